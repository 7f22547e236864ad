//! Deliveries, their attempts, and the report of a test.

use std::collections::BTreeMap;

use super::Severity;

/// One notification on its way to one destination.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) rule_name: String,
    pub(crate) trigger_name: String,
    pub(crate) destination_name: String,
    pub(crate) event_id: String,
    pub(crate) occurrence_id: String,
    pub(crate) state: DeliveryState,
    pub(crate) test: bool,
    /// Whether it tells that a notified occurrence changed or ended.
    pub(crate) clear: bool,
    pub(crate) attempt_count: i32,
    pub(crate) last_error: String,
    pub(crate) retry_of: String,
    pub(crate) retried_as: String,
    pub(crate) next_attempt_ms: Option<i64>,
    pub(crate) create_ms: Option<i64>,
    pub(crate) end_ms: Option<i64>,
    /// Oldest first; only when one delivery is read.
    pub(crate) attempts: Vec<Attempt>,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DeliveryState {
    #[default]
    Unknown,
    Pending,
    Leased,
    Retry,
    Delivered,
    Dead,
    Cancelled,
}

impl DeliveryState {
    /// The states an operator can filter by.
    pub(crate) const ALL: [Self; 6] = [
        Self::Pending,
        Self::Leased,
        Self::Retry,
        Self::Delivered,
        Self::Dead,
        Self::Cancelled,
    ];

    /// The word shown and typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Pending => "pending",
            Self::Leased => "sending",
            Self::Retry => "retry",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    #[default]
    UnderWay,
    Delivered,
    Rejected,
    Unreachable,
    Blocked,
    Unknown,
}

impl Outcome {
    /// The word shown.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::UnderWay => "under way",
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Unknown => "end not known",
        }
    }
}

/// What was sent or what came back, secrets masked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    /// `POST https://…` or `HTTP 200`.
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// One try of a delivery.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attempt {
    pub(crate) number: i32,
    pub(crate) start_ms: Option<i64>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) outcome: Outcome,
    pub(crate) explanation: String,
    pub(crate) request: Option<Sent>,
    pub(crate) response: Option<Sent>,
}

/// What became of a test message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TestReport {
    pub(crate) attempt: Attempt,
    pub(crate) delivery_id: String,
}

/// What can be done to many deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    SendAgain,
    Cancel,
}

/// How many deliveries something was done to, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BulkTally {
    pub(crate) count: i64,
    /// By destination.
    pub(crate) destinations: BTreeMap<String, i64>,
    /// How many were left as they are, by the reason for people.
    pub(crate) skipped: BTreeMap<&'static str, i64>,
}

impl BulkTally {
    /// Adds what another call did.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        for (name, count) in other.destinations {
            *self.destinations.entry(name).or_default() += count;
        }
        for (reason, count) in other.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
    }
}

/// Which obligations are meant; empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObligationFilter {
    pub(crate) rule_names: Vec<String>,
    pub(crate) destination_names: Vec<String>,
    pub(crate) event_id: String,
}

/// That a destination is still to be told that an occurrence is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Obligation {
    pub(crate) rule_name: String,
    pub(crate) destination_name: String,
    pub(crate) occurrence_id: String,
    pub(crate) summary: String,
    pub(crate) severity: Severity,
    pub(crate) notify_ms: Option<i64>,
}
