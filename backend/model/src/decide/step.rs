//! Steps of occurrences and their origin.

use super::{Match, PastDefinitions, Transition};
use crate::domain::RecordId;

/// The origin of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An event; rules that notified before may repeat.
    Event,
    /// A change by an operator or ageing; these do not repeat notifications.
    Change,
    /// A request to notify about open occurrences by certain rules; held notifications of other
    /// rules stay.
    Open,
    /// A re-evaluation because a hold may have ended. Only held notifications are decided.
    Check,
    /// A request to send the held notification of a rule despite its holds.
    Release(RecordId),
    /// The message of a group of the rule, which reports its waiting members.
    NotifyGroup {
        /// The rule.
        rule: RecordId,
        /// The group.
        group: RecordId,
    },
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

/// A step of an occurrence, with the rules that match after it.
#[derive(Debug)]
pub struct Step<'a> {
    /// The origin.
    pub kind: StepKind,
    /// The changes of the occurrence.
    pub transition: Transition,
    /// The enabled rules that match, each once.
    pub matches: &'a [Match<'a>],
    /// Time of the step, in milliseconds since 1970.
    pub now_ms: i64,
    /// The earlier definitions on which previous messages were based.
    pub past: &'a PastDefinitions,
}
