//! What can hold a notification back although a trigger matches: one row a condition, asked in
//! order.

mod already_notified;
mod destinations;
mod enabled;
mod loop_guard;
mod repeat_interval;
mod suppressed;

pub use loop_guard::would_pass_again;

use super::Snapshot;
pub use super::moment::moment;
use crate::domain::{Destination, Field, HistoryEntry, Notified, Occurrence, Rule};

/// One rule asked about one occurrence.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The occurrence as it is after the change that is decided on.
    pub occurrence: &'a Occurrence,
    /// What the rule notified of before.
    pub notified: Option<&'a Notified>,
    /// Whether an event came; else an operator or ageing changed the occurrence.
    pub by_event: bool,
    /// What is in force.
    pub snapshot: &'a Snapshot,
    /// Whether a repeat fell due while something held it back, and waits.
    pub repeat_waits: bool,
    /// When it is decided, in milliseconds since 1970.
    pub now_ms: i64,
}

impl<'a> Case<'a> {
    /// The destinations of the rule that exist.
    pub fn destinations(&self) -> impl Iterator<Item = &'a Destination> + use<'a> {
        let snapshot = self.snapshot;
        let names = self.rule.destination_names.iter();
        names.filter_map(|name| snapshot.destination_named(name))
    }

    /// The changes of a field up to this decision, oldest first.
    fn changes_of(&self, field: Field) -> impl DoubleEndedIterator<Item = &'a HistoryEntry> {
        let (history, now_ms) = (self.occurrence.history.iter(), self.now_ms);
        history.filter(move |it| it.field == field && it.at_ms <= now_ms)
    }

    /// Since when a field is as it is.
    fn since(&self, field: Field) -> Option<i64> {
        self.changes_of(field).next_back().map(|it| it.at_ms)
    }

    /// Whether the rule notifies of the occurrence, which one of its triggers matches.
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

/// What comes of a match.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    /// The rule notifies.
    Notifies,
    /// It does not.
    Held {
        /// The first condition that holds it back.
        by: &'static Condition,
        /// Since when and until when.
        hold: Hold,
        /// Whether no other condition does.
        alone: bool,
    },
}

/// Why nothing is sent now, and how long that has been and will be so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hold {
    /// Since when, in milliseconds since 1970; none when that is not known.
    pub since_ms: Option<i64>,
    /// Until when; none when no time ends it.
    pub until_ms: Option<i64>,
}

/// Which time a detail speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    /// What would be decided now.
    Now,
    /// What was decided then.
    Then,
}

impl Tense {
    fn is(self) -> &'static str {
        match self {
            Self::Now => "is",
            Self::Then => "was",
        }
    }
}

/// One thing that stands between a match and a notification.
#[derive(Debug)]
pub struct Condition {
    /// What it is called.
    pub name: &'static str,
    /// Whether few rules ever meet it, so that it is spoken of only where it holds.
    pub is_rare: bool,
    /// What it saw where the rule notified, if it concerns what the rule sent before: such a
    /// condition holds back another message only.
    pub about_repeats: Option<&'static str>,
    /// Why it holds a notification back; none when it lets it pass.
    pub hold: fn(&Case<'_>) -> Option<Hold>,
    /// What it saw, for people.
    pub detail: fn(&Case<'_>, Option<Hold>, Tense) -> String,
}

/// All of them, in the order in which they are asked.
pub static CONDITIONS: [Condition; 6] = [
    enabled::CONDITION,
    suppressed::CONDITION,
    destinations::CONDITION,
    loop_guard::CONDITION,
    already_notified::CONDITION,
    repeat_interval::CONDITION,
];

impl Condition {
    /// Whether it is the loop guard, which is spoken of aloud.
    pub(super) fn is_loop_guard(&self) -> bool {
        self.name == loop_guard::NAME
    }
}
