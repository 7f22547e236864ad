//! What the console asks of the connection, and what it hears back: plain data.

use crate::data::DestinationSpec;
use crate::data::{
    BulkTally, Caller, Clause, Client, Deed, Delivery, DeliveryState, Destination, Draft,
    EventDetail, EventRow, Explanation, Failure, Kind, NewClient, Obligation, ObligationFilter,
    Overview, Rule, RulePreview, RuleSpec, Status, TestReport, Trigger, TriggerSpec, TriggerTest,
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
        span: Span,
        /// When the span begins, in milliseconds since 1970; none leaves it to the service.
        start_ms: Option<i64>,
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
    /// Which events a filter leaves, and with the first page, how many there are.
    GatherEvents {
        filter: EventFilter,
        cursor: String,
    },
    Annotate {
        occurrence_ids: Vec<String>,
        text: String,
    },
    RetryDelivery {
        id: String,
    },
    CancelDelivery {
        id: String,
    },
    /// Without a token: the first part.
    Bulk {
        deed: Deed,
        chosen: Chosen,
        dry_run: bool,
        page_token: String,
    },
    ListObligations {
        filter: ObligationFilter,
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
                | Self::Bulk { dry_run: false, .. }
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
    /// Decided at or after this moment, and before that one, in milliseconds since 1970.
    pub(crate) start_ms: Option<i64>,
    pub(crate) end_ms: Option<i64>,
}

/// The deliveries that something is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Ids(Vec<String>),
    /// All that a filter leaves, and how an operator wrote it.
    Matching {
        filter: DeliveryFilter,
        words: String,
    },
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
    /// A page of events, and how many there are in all where that was counted.
    Gathered {
        page: Page<EventRow>,
        count: Option<i64>,
    },
    /// What was done to many deliveries, or would be, and where to go on.
    Bulk {
        tally: BulkTally,
        next: String,
    },
    Obligations {
        rows: Vec<Obligation>,
        more: bool,
    },
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
    /// A call that is under way tells how far it is.
    Progress(Ticket, Progress),
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

/// How far the try of a trigger is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) matched: i32,
    /// Absent when no trigger of that name is stored.
    pub(crate) matched_by_saved: Option<i32>,
    pub(crate) scanned: i32,
    /// Everything last seen at or after this moment was looked at.
    pub(crate) reached_ms: Option<i64>,
    /// When the span begins; none is no bound.
    pub(crate) start_ms: Option<i64>,
}

/// The stored events that a trigger is tried on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Span {
    #[default]
    Day,
    Week,
    Month,
    All,
}

impl Span {
    /// The next longer one; after the longest the shortest.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Day => Self::Week,
            Self::Week => Self::Month,
            Self::Month => Self::All,
            Self::All => Self::Day,
        }
    }

    /// As it is said of occurrences.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Day => "in the last 24 h",
            Self::Week => "in the last 7 days",
            Self::Month => "in the last 30 days",
            Self::All => "of all that are stored",
        }
    }

    /// When it begins; none leaves it to the service.
    pub(crate) fn start_ms(self, now_ms: i64) -> Option<i64> {
        const DAY_MS: i64 = 24 * 3_600_000;
        match self {
            Self::Day => None,
            Self::Week => Some(now_ms - 7 * DAY_MS),
            Self::Month => Some(now_ms - 30 * DAY_MS),
            Self::All => Some(0),
        }
    }
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
