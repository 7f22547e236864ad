//! What an action is: its name, its keys, where it can be taken, and which role it needs.

use crate::data::Role;

/// What an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    Help,
    Palette,
    Back,
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
    Copy,
    RetryNow,
    Suspend,
    GoOverview,
    GoEvents,
    GoTriggers,
    GoDestinations,
    GoRules,
    GoDeliveries,
    GoClients,
    New,
    Edit,
    EditText,
    Duplicate,
    Delete,
    TestDestination,
    TestTrigger,
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
    TriggerFromEvent,
    Pause,
    OpenOnly,
    SendAgain,
    CancelDelivery,
    Revoke,
    FormSave,
    FormTest,
    FormText,
    FormClauseView,
    FormAddClause,
    FormRemoveClause,
    FormReveal,
}

/// Where an action can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
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
    Report,
    Form,
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
