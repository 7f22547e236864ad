//! What an action is: its name, its keys, where it can be taken, and which role it needs.

use crate::data::{Kind, Role};

/// What an operator can do. In a configuration an action has its variant's name in small letters,
/// words separated by `_`: renaming one here breaks the files of those who gave it keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Quit,
    Help,
    Palette,
    Back,
    PageBefore,
    Forward,
    Up,
    Down,
    Top,
    Bottom,
    PageUp,
    PageDown,
    Open,
    NextLink,
    NextTab,
    Filter,
    Mark,
    MarkAll,
    Sort,
    Copy,
    CopyAs,
    RetryNow,
    Suspend,
    ToggleMouse,
    ToggleAges,
    ToggleSplit,
    GoOverview,
    GoEvents,
    GoTriggers,
    GoDestinations,
    GoRules,
    GoDeliveries,
    GoClients,
    GoMap,
    GoReference,
    GoSilences,
    GoCalendars,
    GoInhibitions,
    GoMappings,
    GoGroups,
    GoPending,
    GoViews,
    GoCriticals,
    LongerCharts,
    MapLeft,
    MapRight,
    MapAround,
    Search,
    NextMatch,
    MatchBefore,
    New,
    Edit,
    EditText,
    Duplicate,
    Delete,
    TestDestination,
    PauseDestination,
    TestTrigger,
    TestMapping,
    LongerTry,
    PreviewRule,
    TestWithEvent,
    TestWithDocument,
    Toggle,
    Explain,
    Unfold,
    Silence,
    Acknowledge,
    Unacknowledge,
    CloseEvent,
    Suppress,
    Reopen,
    Annotate,
    Mine,
    Assign,
    Undo,
    Release,
    AcknowledgeGroup,
    CloseGroup,
    SuppressGroup,
    AcknowledgeAll,
    CloseAll,
    SuppressAll,
    AnnotateAll,
    TriggerFromEvent,
    Pause,
    OpenOnly,
    GroupBy,
    ChooseView,
    NextView,
    SaveView,
    NextState,
    SendAgain,
    CancelDelivery,
    SendAllAgain,
    CancelAll,
    Obligations,
    History,
    Revoke,
    FormNext,
    FormPrevious,
    FormLeave,
    FormSave,
    FormTest,
    FormText,
    FormAddClause,
    FormRemoveClause,
    FormNegateClause,
    FormNestClause,
    FormUnnestClause,
    FormReveal,
    FormReference,
}

/// Where an action can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ActionPlace {
    Anywhere,
    List,
    Document,
    Overview,
    Events,
    EventGroups,
    Event,
    /// The list of a kind of resource.
    Many(Kind),
    /// The page of one resource.
    One(Kind),
    Deliveries,
    Delivery,
    Map,
    Reference,
    Report,
    Form,
}

impl ActionPlace {
    /// All of them.
    pub(crate) const ALL: &[Self] = &[
        Self::Anywhere,
        Self::List,
        Self::Document,
        Self::Overview,
        Self::Events,
        Self::EventGroups,
        Self::Event,
        Self::Many(Kind::Trigger),
        Self::One(Kind::Trigger),
        Self::Many(Kind::Destination),
        Self::One(Kind::Destination),
        Self::Many(Kind::Rule),
        Self::One(Kind::Rule),
        Self::Deliveries,
        Self::Delivery,
        Self::Many(Kind::Client),
        Self::Many(Kind::Silence),
        Self::One(Kind::Silence),
        Self::Many(Kind::Calendar),
        Self::One(Kind::Calendar),
        Self::Many(Kind::Inhibition),
        Self::One(Kind::Inhibition),
        Self::Many(Kind::Mapping),
        Self::One(Kind::Mapping),
        Self::Many(Kind::Group),
        Self::One(Kind::Group),
        Self::Many(Kind::Pending),
        Self::One(Kind::Pending),
        Self::Many(Kind::View),
        Self::One(Kind::View),
        Self::Map,
        Self::Reference,
        Self::Report,
        Self::Form,
    ];
}

impl ActionPlace {
    /// Where actions look for their keys on the screen of this place, the most particular first.
    pub(crate) fn around(self) -> [Self; 3] {
        match self {
            Self::Form => [Self::Form; 3],
            Self::Events | Self::EventGroups | Self::Many(_) | Self::Deliveries | Self::Map => {
                [self, Self::List, Self::Anywhere]
            }
            _ => [self, Self::Document, Self::Anywhere],
        }
    }

    /// The places of every screen.
    pub(crate) fn screens() -> impl Iterator<Item = [Self; 3]> {
        let shapes = [Self::Anywhere, Self::List, Self::Document];
        Self::ALL
            .iter()
            .filter(move |place| !shapes.contains(place))
            .map(|place| place.around())
    }

    /// Its name in a configuration.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Many(kind) => kind.plural().to_owned(),
            Self::One(kind) => kind.word().to_owned(),
            other => snake(&format!("{other:?}")),
        }
    }
}

impl Action {
    /// Its name in a configuration.
    pub(crate) fn name(self) -> String {
        snake(&format!("{self:?}"))
    }
}

/// `GoEvents` as `go_events`.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for char in name.chars() {
        if char.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(char.to_ascii_lowercase());
    }
    out
}

/// What an action needs in addition to something to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    None,
    /// A link, and a key of at least this role; nothing is changed.
    Role(Role),
    /// A link, a key of at least this role, and a console that may write.
    Write(Role),
}

/// One action of the list.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// Short, for hints.
    pub(crate) name: &'static str,
    /// In full, for palette and help.
    pub(crate) title: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) places: &'static [ActionPlace],
    pub(crate) need: Need,
    /// Order among the hints, smallest first; 0 is never hinted.
    pub(crate) hint: u8,
    pub(crate) lines: Lines,
}

/// How an action is typed on a line, where there is no screen.
#[expect(
    clippy::struct_excessive_bools,
    reason = "columns of a table that have nothing to do with each other"
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// It is about moving on a screen that is not there.
    pub(crate) screen: bool,
    /// In a list it is about all of it, not about some rows.
    pub(crate) all: bool,
    /// It can be about several rows.
    pub(crate) several: bool,
    /// What stands behind the rows is a text that it asks for.
    pub(crate) text: bool,
    /// It shows no page that is to be printed.
    pub(crate) silent: bool,
}

impl Lines {
    /// About one row, without a text, telling what it shows.
    pub(crate) const PLAIN: Self = Self {
        screen: false,
        all: false,
        several: false,
        text: false,
        silent: false,
    };

    pub(super) const fn screen(self) -> Self {
        Self {
            screen: true,
            ..self
        }
    }

    pub(super) const fn all(self) -> Self {
        Self { all: true, ..self }
    }

    pub(super) const fn several(self) -> Self {
        Self {
            several: true,
            ..self
        }
    }

    pub(super) const fn text(self) -> Self {
        Self { text: true, ..self }
    }

    pub(super) const fn silent(self) -> Self {
        Self {
            silent: true,
            ..self
        }
    }
}
