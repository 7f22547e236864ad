//! Steps, which change or evaluate an occurrence, by their origin.

use super::{Match, PastDefinitions, Transition};
use crate::domain::RecordId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An event. Rules that notified before may repeat.
    Event,
    /// A change by an operator or by ageing. Such changes do not repeat notifications.
    Change,
    /// A request to notify about open occurrences by certain rules. Held notifications of other
    /// rules are unchanged.
    Open,
    /// A re-evaluation because a hold may have ended. Only held notifications are decided.
    Check,
    /// A request to send the held notification of a rule despite its holds.
    Release(RecordId),
    /// The message of a group of the rule; reports the waiting members of the group.
    NotifyGroup { rule: RecordId, group: RecordId },
}

impl StepKind {
    /// Whether only held notifications are decided.
    pub(super) fn is_review(self) -> bool {
        matches!(
            self,
            Self::Check | Self::Release(_) | Self::NotifyGroup { .. }
        )
    }
}

#[derive(Debug)]
pub struct Step<'a> {
    pub kind: StepKind,
    pub transition: Transition,
    /// The enabled rules that match, without duplicates.
    pub matches: &'a [Match<'a>],
    pub now_ms: i64,
    pub past: &'a PastDefinitions,
}
