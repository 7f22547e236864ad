//! What the console asks of the connection, and what it hears back: plain data.

use std::collections::BTreeMap;

use bellwether_proto::v1;
use serde_json::Value;

use crate::data::{
    Back, BulkTally, Caller, Counted, EventOrder, EventRow, Failure, Grouped, Kind, Object, Status,
    Transition,
};

/// Joins an answer to what asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// What the console asks of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Make a call; answered by one [`News::Answer`] with the same ticket.
    Call(Ticket, Box<Request>),
    /// Follow these occurrences instead of those before, continuing after the token.
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

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Overview,
    /// What was counted in that time, and what is open most.
    Counted(Back),
    /// All resources of a kind.
    List(Kind),
    /// One of them, of a kind of which the list does not tell all.
    Get {
        kind: Kind,
        name: String,
    },
    ListDeliveries {
        filter: v1::DeliveryFilter,
        page_token: String,
    },
    GetDelivery {
        id: String,
    },
    SearchEvents {
        filter: EventFilter,
        cursor: String,
    },
    /// How many events a filter leaves, where that is found quickly.
    CountEvents {
        filter: EventFilter,
    },
    /// How many events a filter leaves, by what a field holds.
    GroupEvents {
        filter: EventFilter,
        field: String,
    },
    GetEvent {
        id: String,
        occurrence_id: String,
    },
    ExplainEvent {
        id: String,
        occurrence_id: String,
    },
    /// The fields are those of the service's request, in JSON.
    TestTrigger {
        fields: Value,
        span: Span,
        /// When the span begins, in milliseconds since 1970; none leaves it to the service.
        start_ms: Option<i64>,
    },
    PreviewRule {
        fields: Value,
        event_id: String,
    },
    /// What an intake mapping makes of a document; the name alone means the stored one.
    TestMapping {
        fields: Value,
        document: String,
    },
    /// What a silence would cover; the fields are those of its message, in JSON.
    PreviewSilence {
        fields: Value,
    },
    /// Create a silence, even if it is too broad where that was agreed to.
    Silence {
        fields: Value,
        allow_broad: bool,
    },
    /// How many messages changes of these occurrences send, by destination: they were notified before
    /// by these rules, or by any.
    CountUpdates {
        occurrence_ids: Vec<String>,
        rule_names: Option<Vec<String>>,
    },
    /// The name alone means the stored one.
    TestDestination {
        fields: Value,
        event_id: String,
    },
    /// Pause a destination, or resume it.
    Pause {
        name: String,
        pause: bool,
    },
    /// Check a draft and store nothing.
    Validate {
        draft: Object,
        update: bool,
    },
    Create {
        draft: Object,
    },
    Update {
        draft: Object,
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
    /// Take notes away.
    RemoveNotes {
        notes: Vec<Note>,
    },
    RetryDelivery {
        id: String,
    },
    /// Send what waits of a rule about an occurrence.
    Release {
        rule: String,
        event_id: String,
        occurrence_id: String,
    },
    /// Change all that is open of a group.
    SetGroupStatus {
        id: String,
        change: StatusChange,
    },
    CancelDelivery {
        id: String,
    },
    /// Without a token: the first part.
    Bulk {
        transition: Transition,
        chosen: Chosen,
        dry_run: bool,
        page_token: String,
    },
    ListObligations(v1::ListObligationsRequest),
    ListAudit(v1::ListAuditEntriesRequest),
}

impl Request {
    /// Whether it changes something at the service; such a request needs a
    /// confirmation, or something that takes it back.
    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::Silence { .. }
                | Self::Update { .. }
                | Self::Delete { .. }
                | Self::SetStatus { .. }
                | Self::Pause { .. }
                | Self::Annotate { .. }
                | Self::RemoveNotes { .. }
                | Self::RetryDelivery { .. }
                | Self::Release { .. }
                | Self::SetGroupStatus { .. }
                | Self::CancelDelivery { .. }
                | Self::Bulk { dry_run: false, .. }
        )
    }
}

/// A note, by the ids of its occurrence and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) occurrence_id: String,
    pub(crate) id: String,
}

/// What to set on occurrences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusChange {
    Status(Status),
    Acknowledged(bool),
    /// The client that is to look after them; empty is no one.
    Assigned(String),
}

/// Which occurrences are meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFilter {
    pub(crate) clause: Option<v1::Clause>,
    /// Whether closed occurrences are left out.
    pub(crate) open_only: bool,
    /// The order of their pages.
    pub(crate) order: EventOrder,
}

/// The deliveries that something is done to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chosen {
    Ids(Vec<String>),
    /// All that a filter leaves, and how an operator wrote it.
    Matching {
        filter: v1::DeliveryFilter,
        words: String,
    },
}

/// Some rows and where to continue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Empty at the end.
    pub(crate) next: String,
    /// How many there are in all, when the service reports it.
    pub(crate) total: Option<i32>,
}

/// The outcome of a request: the variant is that of the request, so that no answer can be taken for
/// another's.
#[derive(Debug)]
pub(crate) enum Answer {
    Overview(Result<v1::GetOverviewResponse, Failure>),
    Counted(Result<Counted, Failure>),
    List(Kind, Result<Vec<Object>, Failure>),
    Got(Kind, Result<Object, Failure>),
    Deliveries {
        /// Whether they continue after a page before.
        more: bool,
        page: Result<v1::ListDeliveriesResponse, Failure>,
    },
    Delivery(Result<v1::Delivery, Failure>),
    Events {
        /// Whether they continue after a page before.
        more: bool,
        page: Result<Page<EventRow>, Failure>,
    },
    /// None where finding out would take long.
    Matching(Result<Option<i32>, Failure>),
    Grouped(Result<Grouped, Failure>),
    Event(Result<v1::Event, Failure>),
    Explanation(Result<v1::ExplainEventResponse, Failure>),
    Matches(Result<v1::TestTriggerResponse, Failure>),
    Previews(Result<v1::PreviewRuleResponse, Failure>),
    Mapped(Result<v1::TestIntakeMappingResponse, Failure>),
    /// What a silence would cover.
    Silenced(Result<v1::PreviewSilenceResponse, Failure>),
    /// How many messages go to which destination, and whether there may be more.
    Updates(Result<(BTreeMap<String, i64>, bool), Failure>),
    Tested(Result<v1::TestDestinationResponse, Failure>),
    /// A page of events, and how many there are in all where that was counted.
    Gathered(Result<(Page<EventRow>, Option<i64>), Failure>),
    /// What was done to many deliveries, or would be, and where to continue.
    Bulk(Result<(BulkTally, String), Failure>),
    /// And whether there are more.
    Obligations(Result<(Vec<v1::Obligation>, bool), Failure>),
    /// And whether there are more.
    Audit(Result<(Vec<v1::AuditEntry>, bool), Failure>),
    /// Whether a draft passed the check.
    Checked(Result<(), Failure>),
    Written(Result<Taken, Failure>),
}

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// Some items failed on their own; how many, and why the first did.
    AllBut {
        failed: usize,
        first_error: String,
    },
    /// The silence of this name was created.
    Silence(String),
    /// The notes that were written, each of them.
    Notes(Vec<Note>),
    /// A new client's key, which is shown once.
    Key {
        name: String,
        key: String,
    },
}

/// News from the connection.
#[derive(Debug)]
pub(crate) enum News {
    /// The link changed.
    Link(LinkState),
    /// A call ended.
    Answer(Ticket, Box<Answer>),
    /// A call that is under way reports how far it is.
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

    /// As it is reported of occurrences.
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
