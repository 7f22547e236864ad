//! Actions: their names, keys, places and required roles.

use crate::data::{Kind, Role, Screen};

/// An action of an operator. Configuration files name an action by its variant in snake case, and
/// the action for the list of a kind by `go_` and the plural of the kind. Renaming a variant breaks
/// files that bind keys to the action.
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
    Handover,
    /// Opens a screen.
    Show(Screen),
    /// Opens the list of a kind.
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
    OpenLink,
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
    RunDrill,
    AcknowledgeGroup,
    CloseGroup,
    SuppressGroup,
    AcknowledgeAll,
    CloseAll,
    SuppressAll,
    AnnotateAll,
    TriggerFromEvent,
    Pause,
    Follow,
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
    FormScrollUp,
    FormScrollDown,
    FormPart,
    FormDifferences,
    FormText,
    FormReveal,
    FormReference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ActionPlace {
    Anywhere,
    List,
    Document,
    Screen(Screen),
    EventGroups,
    Event,
    Many(Kind),
    One(Kind),
    Delivery,
    Report,
    Form,
}

impl ActionPlace {
    pub(crate) fn iter() -> impl Iterator<Item = Self> {
        let shapes = [Self::Anywhere, Self::List, Self::Document];
        let screens = Screen::ALL.iter().copied().map(Self::Screen);
        let kinds = Self::for_kinds(|_| true);
        let pages = [Self::EventGroups, Self::Event, Self::Delivery];
        let others = [Self::Report, Self::Form];
        let all = shapes.into_iter().chain(screens).chain(pages);
        all.chain(kinds).chain(others)
    }

    pub(super) fn for_kinds(wanted: fn(Kind) -> bool) -> impl Iterator<Item = Self> {
        let kinds = Kind::ALL.iter().copied().filter(move |kind| wanted(*kind));
        kinds.flat_map(|kind| {
            let page = kind.has_page().then_some(Self::One(kind));
            std::iter::once(Self::Many(kind)).chain(page)
        })
    }

    /// Returns the places whose key bindings apply on the screen of this place, most specific
    /// first.
    pub(crate) fn enclosing_places(self) -> [Self; 3] {
        match self {
            Self::Form => [Self::Form; 3],
            Self::EventGroups | Self::Many(_) => [self, Self::List, Self::Anywhere],
            Self::Screen(screen) if screen.is_list() => [self, Self::List, Self::Anywhere],
            _ => [self, Self::Document, Self::Anywhere],
        }
    }

    pub(crate) fn screen_places() -> impl Iterator<Item = [Self; 3]> {
        let shapes = [Self::Anywhere, Self::List, Self::Document];
        let screens = Self::iter().filter(move |place| !shapes.contains(place));
        screens.map(Self::enclosing_places)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Many(kind) => kind.plural().to_owned(),
            Self::One(kind) => kind.singular().to_owned(),
            Self::Screen(screen) => to_snake_case(&format!("{screen:?}")),
            other => to_snake_case(&format!("{other:?}")),
        }
    }
}

impl Action {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Go(kind) => format!("go_{}", kind.plural()),
            Self::Show(screen) => to_snake_case(&format!("go{screen:?}")),
            other => to_snake_case(&format!("{other:?}")),
        }
    }
}

fn to_snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for char in name.chars() {
        if char.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(char.to_ascii_lowercase());
    }
    out
}

/// A requirement of an action, in addition to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    None,
    /// A connection and at least this role, for a read-only action.
    Role(Role),
    /// A connection, at least this role, and a console that is not read-only.
    Write(Role),
}

/// A group of the help, in the order shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Form,
    Events,
    OnCall,
    Messages,
    Tests,
    Resources,
    Reports,
    List,
    Move,
    Console,
    GoTo,
}

impl Group {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Form => "This form",
            Self::Events => "Events",
            Self::OnCall => "On call",
            Self::Messages => "Messages",
            Self::Tests => "Test and preview",
            Self::Resources => "Create and change",
            Self::Reports => "Reports",
            Self::List => "Find, select and copy",
            Self::Move => "Move",
            Self::Console => "Console",
            Self::GoTo => "Go to a screen",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    pub(crate) group: Group,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) places: Vec<ActionPlace>,
    pub(crate) need: Requirement,
    /// Rank among the hints, smallest first; 0 for no hint.
    pub(crate) hint: u8,
    pub(crate) lines: Lines,
}

/// The form of an action as a command of plain mode.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent columns of a table"
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Whether the action only navigates the screen, which plain mode lacks.
    pub(crate) screen: bool,
    /// Whether the action concerns a whole list rather than some rows.
    pub(crate) all: bool,
    pub(crate) several: bool,
    /// Whether the command accepts a text after the rows.
    pub(crate) text: bool,
    pub(crate) silent: bool,
}

impl Lines {
    /// The command accepts one row and no text, and then prints the page.
    pub(crate) const PLAIN: Self = Self {
        screen: false,
        all: false,
        several: false,
        text: false,
        silent: false,
    };

    pub(super) const fn and_screen(self) -> Self {
        Self {
            screen: true,
            ..self
        }
    }

    pub(super) const fn and_all(self) -> Self {
        Self { all: true, ..self }
    }

    pub(super) const fn and_several(self) -> Self {
        Self {
            several: true,
            ..self
        }
    }

    pub(super) const fn and_text(self) -> Self {
        Self { text: true, ..self }
    }

    pub(super) const fn without_output(self) -> Self {
        Self {
            silent: true,
            ..self
        }
    }
}
