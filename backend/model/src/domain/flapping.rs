//! Events that open and close too often to be reported each time.

use crate::domain::{OccurrenceId, RecordId};

/// When a rule regards an event as flapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlappingLimits {
    /// The number of openings with which it begins.
    pub open_count: u32,
    /// The time within which these happen, in milliseconds.
    pub window_ms: i64,
    /// For how long nothing opens or closes when it ends, in milliseconds.
    pub settle_ms: i64,
}

/// How often an event opened lately, as one rule counts it. Each occurrence takes it over from the one
/// before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flapping {
    /// The rule, by identity.
    pub rule: RecordId,
    /// When it opened, in milliseconds since 1970, oldest first; up to the count of the rule.
    pub openings: Vec<i64>,
    /// The occurrence whose opening was counted last, by number.
    pub number: u32,
    /// When it opened or closed last, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Since when it flaps, in milliseconds since 1970; none when it does not.
    pub since_ms: Option<i64>,
}

impl Flapping {
    /// Until when it flaps if nothing opens or closes any more, in milliseconds since 1970; none when it
    /// does not.
    pub fn until_ms(&self, limits: &FlappingLimits) -> Option<i64> {
        self.since_ms?;
        Some(self.changed_ms.saturating_add(limits.settle_ms))
    }
}

/// The occurrence that those who were notified know an event by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadOf {
    /// Its key in the store.
    pub key: RecordId,
    /// Its number.
    pub number: u32,
}

impl ThreadOf {
    /// The identity that callers see, given that of another occurrence of the event.
    pub fn id(self, other: OccurrenceId) -> OccurrenceId {
        OccurrenceId {
            number: self.number,
            ..other
        }
    }
}
