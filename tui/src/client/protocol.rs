//! What the console asks of the connection, and what it hears back: plain data.

use crate::data::DestinationSpec;
use crate::data::{
    Caller, Clause, Client, Delivery, DeliveryState, Destination, Draft, EventDetail, EventRow,
    Explanation, Failure, Kind, NewClient, Overview, Rule, RulePreview, RuleSpec, Status,
    TestReport, Trigger, TriggerSpec, TriggerTest,
};

/// Joins an answer to what asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// What the console asks of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Make a call; answered by one [`News::Answer`] with the same ticket.
    Call(Ticket, Box<Request>),
    /// Follow these occurrences instead of those before, going on after the token.
    Watch {
        generation: Ticket,
        filter: EventFilter,
        resume_token: String,
    },
    /// Give up a call; no answer follows.
    Abandon(Ticket),
    /// Connect now instead of after the pause.
    RetryNow,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Overview,
    ListTriggers,
    ListDestinations,
    ListRules,
    ListClients,
    ListDeliveries {
        filter: DeliveryFilter,
        page_token: String,
    },
    GetDelivery {
        id: String,
    },
    SearchEvents {
        filter: EventFilter,
        cursor: String,
    },
    GetEvent {
        id: String,
        occurrence_id: String,
    },
    ExplainEvent {
        id: String,
        occurrence_id: String,
    },
    TestTrigger {
        spec: TriggerSpec,
    },
    PreviewRule {
        spec: RuleSpec,
        event_id: String,
    },
    /// Without a spec: the stored destination of that name.
    TestDestination {
        name: String,
        spec: Option<DestinationSpec>,
        event_id: String,
    },
    /// Check a draft and store nothing.
    Validate {
        draft: Draft,
        update: bool,
    },
    Create {
        draft: Draft,
    },
    Update {
        draft: Draft,
        etag: String,
    },
    Delete {
        kind: Kind,
        name: String,
        etag: String,
        force: bool,
    },
    SetStatus {
        occurrence_ids: Vec<String>,
        change: StatusChange,
    },
    Annotate {
        occurrence_id: String,
        text: String,
    },
    RetryDelivery {
        ids: Vec<String>,
    },
    CancelDelivery {
        ids: Vec<String>,
    },
    CreateClient(NewClient),
    RevokeClient {
        name: String,
    },
}

impl Request {
    /// Whether it changes something at the service; such a request needs a confirmation.
    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::Update { .. }
                | Self::Delete { .. }
                | Self::SetStatus { .. }
                | Self::Annotate { .. }
                | Self::RetryDelivery { .. }
                | Self::CancelDelivery { .. }
                | Self::CreateClient(_)
                | Self::RevokeClient { .. }
        )
    }
}

/// What to set on occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusChange {
    Status(Status),
    Acknowledged(bool),
}

/// Which occurrences are meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFilter {
    pub(crate) clause: Option<Clause>,
    /// Whether closed occurrences are left out.
    pub(crate) open_only: bool,
}

/// Which deliveries are meant; empty lists mean all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryFilter {
    pub(crate) states: Vec<DeliveryState>,
    pub(crate) rule_names: Vec<String>,
    pub(crate) destination_names: Vec<String>,
    pub(crate) event_id: String,
}

/// Some rows and where to go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Empty at the end.
    pub(crate) next: String,
    /// How many there are in all, when the service says so.
    pub(crate) total: Option<i32>,
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Overview(Box<Overview>),
    Triggers(Vec<Trigger>),
    Destinations(Vec<Destination>),
    Rules(Vec<Rule>),
    Clients(Vec<Client>),
    Deliveries(Page<Delivery>),
    Delivery(Box<Delivery>),
    Events(Page<EventRow>),
    Event(Box<EventDetail>),
    Explanation(Box<Explanation>),
    TriggerTest(Box<TriggerTest>),
    RulePreview {
        previews: Vec<RulePreview>,
        warnings: Vec<String>,
    },
    TestReport(Box<TestReport>),
    /// A draft passed the check.
    Valid,
    /// A write is done; for items that fail on their own, how many and why the first did.
    Done {
        failed: usize,
        first_error: String,
    },
    /// A new client's key, which is shown once.
    Key {
        name: String,
        key: String,
    },
}

/// What the console hears from the connection.
#[derive(Debug)]
pub(crate) enum News {
    /// The link changed.
    Link(LinkState),
    /// A call ended.
    Answer(Ticket, Result<Answer, Failure>),
    /// Occurrences changed.
    Watched {
        generation: Ticket,
        rows: Vec<EventRow>,
        left: Vec<String>,
        token: String,
        gap: bool,
    },
    /// The stream is refused or not served; lists are read on request only.
    WatchRefused {
        generation: Ticket,
        failure: Failure,
    },
}

/// How the link to the service stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LinkState {
    /// An attempt is under way.
    Connecting,
    /// Calls can be made.
    Up(Caller),
    /// The attempt failed or the link broke.
    Down { failure: Failure, retry_in_ms: u64 },
}
