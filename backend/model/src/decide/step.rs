//! A step of an occurrence, and what made it.

use super::{Match, Past, Transition};
use crate::domain::RecordId;

/// What made an occurrence change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An event came in: rules that notified before may repeat.
    Event,
    /// An operator or ageing changed it: a repeat is news from a sender.
    Change,
    /// Open occurrences are to be notified by some rules on request; what waits of others stays.
    Open,
    /// Nothing changed: a hold may have ended. Only what waits is decided.
    Look,
    /// An operator wants what waits of that rule sent, whatever holds it.
    Release(RecordId),
    /// A message about that group of the rule is made, and reports on what waits for it.
    NotifyGroup {
        /// The rule.
        rule: RecordId,
        /// The group.
        group: RecordId,
    },
}

impl StepKind {
    /// Whether only what waits is decided.
    pub(super) fn is_look(self) -> bool {
        matches!(
            self,
            Self::Look | Self::Release(_) | Self::NotifyGroup { .. }
        )
    }
}

/// A step of an occurrence, and the rules that match it afterwards.
#[derive(Debug)]
pub struct Step<'a> {
    /// What made it.
    pub kind: StepKind,
    /// What it changed.
    pub transition: Transition,
    /// The enabled rules that match, each once.
    pub matches: &'a [Match<'a>],
    /// When, in milliseconds since 1970.
    pub now_ms: i64,
    /// What earlier messages about the occurrence rested on and is not in force any more.
    pub past: &'a Past,
}
