//! Conditions that prevent a notification although a trigger matches, evaluated in order.

mod already_notified;
mod destinations;
mod enabled;
mod loop_guard;
mod repeat_interval;
mod suppressed;

pub use loop_guard::would_pass_again;

use super::Snapshot;
pub use super::time_format::{format_time, with_until};
use crate::domain::{Destination, Field, HistoryEntry, Notified, Occurrence, Rule};

#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub rule: &'a Rule,
    pub occurrence: &'a Occurrence,
    /// The record of the rule's earlier notification.
    pub notified: Option<&'a Notified>,
    /// Whether an event caused the change, rather than an operator or ageing.
    pub by_event: bool,
    pub snapshot: &'a Snapshot,
    /// Whether a repeat became due while the notification was held.
    pub repeat_waits: bool,
    pub now_ms: i64,
}

impl<'a> Case<'a> {
    pub fn destinations(&self) -> impl Iterator<Item = &'a Destination> + use<'a> {
        let snapshot = self.snapshot;
        let names = self.rule.destination_names.iter();
        names.filter_map(|name| snapshot.destination_by_name(name))
    }

    fn changes_to_field(&self, field: Field) -> impl DoubleEndedIterator<Item = &'a HistoryEntry> {
        let (history, now_ms) = (self.occurrence.history.iter(), self.now_ms);
        history.filter(move |it| it.field == field && it.at_ms <= now_ms)
    }

    fn field_since(&self, field: Field) -> Option<i64> {
        self.changes_to_field(field).next_back().map(|it| it.at_ms)
    }

    pub fn verdict(&self) -> Verdict {
        let held = |by: &'static Condition| Some((by, (by.hold)(self)?));
        let mut holds = CONDITIONS.iter().filter_map(held);
        match holds.next() {
            None => Verdict::Notifies,
            Some((by, hold)) => Verdict::Held {
                by,
                hold,
                alone: holds.next().is_none(),
            },
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    Notifies,
    Held {
        /// The first condition that prevents the notification.
        by: &'static Condition,
        hold: Hold,
        /// Whether no other condition prevents the notification.
        alone: bool,
    },
}

/// The period in which a condition prevents a notification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hold {
    /// Start of the hold, in milliseconds since 1970; `None` if unknown.
    pub since_ms: Option<i64>,
    /// The end, in milliseconds since 1970; `None` if it has no known end.
    pub until_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    Now,
    Then,
}

impl Tense {
    fn verb(self) -> &'static str {
        match self {
            Self::Now => "is",
            Self::Then => "was",
        }
    }

    fn auxiliary(self) -> &'static str {
        match self {
            Self::Now => "has",
            Self::Then => "had",
        }
    }
}

#[derive(Debug)]
pub struct Condition {
    pub name: &'static str,
    /// Whether the condition applies to few rules, and is therefore mentioned only when it does.
    pub is_rare: bool,
    /// The explanation if the rule notified, for a condition that can only prevent further
    /// messages.
    pub about_repeats: Option<&'static str>,
    pub hold: fn(&Case<'_>) -> Option<Hold>,
    pub detail: fn(&Case<'_>, Option<Hold>, Tense) -> String,
}

pub static CONDITIONS: [Condition; 6] = [
    enabled::CONDITION,
    suppressed::CONDITION,
    destinations::CONDITION,
    loop_guard::CONDITION,
    already_notified::CONDITION,
    repeat_interval::CONDITION,
];

impl Condition {
    /// Whether the condition is the loop guard, which is reported by an own event.
    pub(super) fn is_loop_guard(&self) -> bool {
        self.name == loop_guard::NAME
    }
}
