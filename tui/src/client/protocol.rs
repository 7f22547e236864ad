//! Messages between the console and the connection, as plain data.

use bellwether_proto::v1;

use super::call::{Answer, Call};
use crate::data::{Caller, EventOrder, EventRow, Failure, Status};

/// Correlates a response with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// A message from the console to the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Make a call; answered by one [`News::Answer`] with the same ticket.
    Call(Ticket, Call),
    /// Replace the subscription by one for these occurrences, resumed at the token.
    Watch {
        generation: Ticket,
        filter: EventFilter,
        resume_token: String,
    },
    /// Cancel a call; no response follows.
    Abandon(Ticket),
    /// Connect now instead of after the pause.
    RetryNow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusChange {
    Status(Status),
    Acknowledged(bool),
    /// The client to assign them to; empty for none.
    Assigned(String),
}

/// A selection of occurrences.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFilter {
    pub(crate) clause: Option<v1::Clause>,
    /// Whether closed occurrences are excluded.
    pub(crate) open_only: bool,
    /// Sort order.
    pub(crate) order: EventOrder,
}

/// A selection of deliveries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chosen {
    Ids(Vec<String>),
    /// All deliveries that match a filter, with the filter as typed.
    Matching {
        filter: v1::DeliveryFilter,
        words: String,
    },
}

/// A page of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Token of the next page; empty at the end.
    pub(crate) next: String,
    /// Total number of rows, if the service reports it.
    pub(crate) total: Option<i32>,
    /// Warnings about the filter.
    pub(crate) warnings: Vec<String>,
}

/// A message from the connection to the console.
#[derive(Debug)]
pub(crate) enum News {
    /// The state of the connection changed.
    Link(LinkState),
    Answer(Ticket, Answer),
    /// Progress of a call in flight.
    Progress(Ticket, Progress),
    Watched {
        generation: Ticket,
        rows: Vec<EventRow>,
        left: Vec<String>,
        token: String,
        gap: bool,
    },
    /// The subscription was rejected or is not supported; lists are read only on request.
    WatchRefused {
        generation: Ticket,
        failure: Failure,
    },
}

/// Progress of testing a trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) matched: i32,
    /// `None` if no trigger of this name is stored.
    pub(crate) matched_by_saved: Option<i32>,
    pub(crate) scanned: i32,
    /// Everything last seen at or after this time has been scanned.
    pub(crate) reached_ms: Option<i64>,
    /// Start of the span; `None` if unbounded.
    pub(crate) start_ms: Option<i64>,
}

/// The span of stored events to test a trigger on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Span {
    #[default]
    Day,
    Week,
    Month,
    All,
}

impl Span {
    /// Returns the next longer span; the shortest after the longest.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Day => Self::Week,
            Self::Week => Self::Month,
            Self::Month => Self::All,
            Self::All => Self::Day,
        }
    }

    /// Returns the span in words, for a count of occurrences.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Day => "in the last 24 h",
            Self::Week => "in the last 7 days",
            Self::Month => "in the last 30 days",
            Self::All => "of all stored events",
        }
    }

    /// Returns the start of the span; `None` for the service's default.
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

/// The state of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LinkState {
    /// An attempt is in progress.
    Connecting,
    /// Calls can be made.
    Up(Caller),
    /// The attempt failed, or the connection broke.
    Down { failure: Failure, retry_in_ms: u64 },
}
