//! What an action is: its name, its keys, where it can be taken, and which role it needs.

use crate::data::Role;

/// What an operator can do. In a configuration an action has its variant's name in small letters,
/// words parted by `_`: renaming one here breaks the files of those who gave it keys.
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
    RetryNow,
    Suspend,
    ToggleMouse,
    GoOverview,
    GoEvents,
    GoTriggers,
    GoDestinations,
    GoRules,
    GoDeliveries,
    GoClients,
    GoMap,
    GoReference,
    MapLeft,
    MapRight,
    MapAround,
    Search,
    New,
    Edit,
    EditText,
    Duplicate,
    Delete,
    TestDestination,
    TestTrigger,
    LongerTry,
    PreviewRule,
    TestWithEvent,
    Toggle,
    Explain,
    Acknowledge,
    Unacknowledge,
    CloseEvent,
    Suppress,
    Reopen,
    Annotate,
    AcknowledgeAll,
    CloseAll,
    SuppressAll,
    AnnotateAll,
    TriggerFromEvent,
    Pause,
    OpenOnly,
    SendAgain,
    CancelDelivery,
    SendAllAgain,
    CancelAll,
    Obligations,
    Revoke,
    FormNext,
    FormPrevious,
    FormLeave,
    FormSave,
    FormTest,
    FormText,
    FormClauseView,
    FormAddClause,
    FormRemoveClause,
    FormReveal,
    FormReference,
}

/// Makes the list of places and the enumeration from one text.
macro_rules! places {
    ($($place:ident,)+) => {
        /// Where an action can be taken. In a configuration a place has its variant's name in small
        /// letters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Place {
            $($place,)+
        }

        impl Place {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$place),+];
        }
    };
}

places! {
    Anywhere,
    List,
    Document,
    Overview,
    Events,
    Event,
    Triggers,
    Trigger,
    Destinations,
    Destination,
    Rules,
    Rule,
    Deliveries,
    Delivery,
    Clients,
    Map,
    Reference,
    Report,
    Form,
}

impl Place {
    /// Where actions look for their keys on the screen of this place, the most particular first.
    pub(crate) fn around(self) -> [Self; 3] {
        match self {
            Self::Form => [Self::Form; 3],
            Self::Events
            | Self::Triggers
            | Self::Destinations
            | Self::Rules
            | Self::Deliveries
            | Self::Clients
            | Self::Map => [self, Self::List, Self::Anywhere],
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
        snake(&format!("{self:?}"))
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

/// What an action needs besides something to act on.
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
    pub(crate) places: &'static [Place],
    pub(crate) need: Need,
    /// Order among the hints, smallest first; 0 is never hinted.
    pub(crate) hint: u8,
}
