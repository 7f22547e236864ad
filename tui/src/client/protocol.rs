//! What the console asks of the connection, and what it hears back: plain data.

use bellwether_proto::v1;

use super::call::{Answer, Call};
use crate::data::{Caller, EventOrder, EventRow, Failure, Status};

/// Joins an answer to what asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// What the console asks of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Make a call; answered by one [`News::Answer`] with the same ticket.
    Call(Ticket, Call),
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
    /// What the author of the filter may not mean.
    pub(crate) warnings: Vec<String>,
}

/// News from the connection.
#[derive(Debug)]
pub(crate) enum News {
    /// The link changed.
    Link(LinkState),
    /// A call ended.
    Answer(Ticket, Answer),
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
