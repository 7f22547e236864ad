//! Messages between the console and the connection, as plain data.

use bellwether_proto::v1;

use super::call::{Call, CallResult};
use crate::data::{Caller, EventOrder, EventRow, Failure, Status};

/// Identifier that correlates a response with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Make a call; results in one [`ServerUpdate::CallResult`] with the same ticket.
    Call(Ticket, Call),
    /// Replace the subscription with one for these occurrences, resumed at the token.
    Watch {
        generation: Ticket,
        filter: EventFilter,
        resume_token: String,
    },
    /// Cancel a call; no response follows.
    Abandon(Ticket),
    RetryNow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusChange {
    Status(Status),
    Acknowledged(bool),
    /// Assigns the occurrences to this client; empty to unassign them.
    Assigned(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFilter {
    pub(crate) clause: Option<v1::Clause>,
    pub(crate) open_only: bool,
    pub(crate) order: EventOrder,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeliverySelection {
    Ids(Vec<String>),
    Matching {
        filter: v1::DeliveryFilter,
        words: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: String,
    pub(crate) total: Option<i32>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum ServerUpdate {
    Link(LinkState),
    CallResult(Ticket, CallResult),
    Progress(Ticket, Progress),
    Watched {
        generation: Ticket,
        rows: Vec<EventRow>,
        left: Vec<String>,
        token: String,
        gap: bool,
    },
    /// The subscription was rejected or is not supported; lists are then only read on request.
    WatchRejected {
        generation: Ticket,
        failure: Failure,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) matched: i32,
    /// `None` if no trigger of this name is stored.
    pub(crate) matched_by_saved: Option<i32>,
    pub(crate) scanned: i32,
    /// All occurrences last seen at or after this time have been scanned.
    pub(crate) reached_ms: Option<i64>,
    pub(crate) start_ms: Option<i64>,
}

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

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Day => "in the last 24 h",
            Self::Week => "in the last 7 days",
            Self::Month => "in the last 30 days",
            Self::All => "among all stored events",
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

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LinkState {
    Connecting,
    Up(Caller),
    Down { failure: Failure, retry_in_ms: u64 },
}
