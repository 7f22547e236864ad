//! What an action is: its name, its keys, where it can be taken, and which role it needs.

use crate::data::{Kind, Role};

/// What an operator can do. In a configuration an action has its variant's name in small letters,
/// words separated by `_`, and a kind's list is `go_` with its plural: renaming one here breaks the files of
/// those who gave it keys.
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
    Columns,
    Copy,
    CopyAs,
    RetryNow,
    Suspend,
    ToggleMouse,
    ToggleAges,
    ToggleSplit,
    GoOverview,
    GoOnCall,
    GoEvents,
    GoDeliveries,
    GoReference,
    /// To the list of a kind of resource.
    Go(Kind),
    GoCriticals,
    LongerCharts,
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
    DeadLetters,
    TestTrigger,
    TestContact,
    TestMapping,
    LongerTry,
    NoiseReport,
    NoiseBy,
    PreviewRule,
    TestWithEvent,
    SendWaiting,
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
    AcknowledgeResponse,
    AcknowledgeFor,
    Escalate,
    Override,
    Feed,
    RevokeFeed,
    ForgetExpectation,
    RotateHeartbeat,
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
    NextOnCall,
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
    FormFlip,
    FormEvent,
    FormCurl,
    FormBench,
    FormText,
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
    OnCall,
    Events,
    EventGroups,
    Event,
    /// The list of a kind of resource.
    Many(Kind),
    /// The page of one resource.
    One(Kind),
    Deliveries,
    Delivery,
    Reference,
    Report,
    Form,
}

impl ActionPlace {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let shapes = [Self::Anywhere, Self::List, Self::Document];
        let events = [
            Self::Overview,
            Self::OnCall,
            Self::Events,
            Self::EventGroups,
            Self::Event,
        ];
        let others = [
            Self::Deliveries,
            Self::Delivery,
            Self::Reference,
            Self::Report,
            Self::Form,
        ];
        let kinds = Self::of_kinds(|_| true);
        shapes.into_iter().chain(events).chain(kinds).chain(others)
    }

    /// The lists and the pages of these kinds.
    pub(super) fn of_kinds(wanted: fn(Kind) -> bool) -> impl Iterator<Item = Self> {
        let kinds = Kind::ALL.iter().copied().filter(move |kind| wanted(*kind));
        kinds.flat_map(|kind| {
            let page = kind.has_page().then_some(Self::One(kind));
            std::iter::once(Self::Many(kind)).chain(page)
        })
    }

    /// Where actions look for their keys on the screen of this place, the most particular first.
    pub(crate) fn around(self) -> [Self; 3] {
        match self {
            Self::Form => [Self::Form; 3],
            Self::Events | Self::EventGroups | Self::Many(_) | Self::Deliveries => {
                [self, Self::List, Self::Anywhere]
            }
            _ => [self, Self::Document, Self::Anywhere],
        }
    }

    /// The places of every screen.
    pub(crate) fn screens() -> impl Iterator<Item = [Self; 3]> {
        let shapes = [Self::Anywhere, Self::List, Self::Document];
        let screens = Self::all().filter(move |place| !shapes.contains(place));
        screens.map(Self::around)
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
        match self {
            Self::Go(kind) => format!("go_{}", kind.plural()),
            other => snake(&format!("{other:?}")),
        }
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
    pub(crate) places: Vec<ActionPlace>,
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
