//! Flapping: events that open and close too often to report each change.

use crate::domain::{OccurrenceId, RecordId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlappingLimits {
    /// The number of openings at which flapping starts.
    pub open_count: u32,
    /// The window for counting openings, in milliseconds.
    pub window_ms: i64,
    /// The time without a change after which flapping ends, in milliseconds.
    pub settle_ms: i64,
}

/// The recent openings of an event, as counted for one rule. Each occurrence inherits them from the
/// previous one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flapping {
    pub rule: RecordId,
    /// The times of the openings, in milliseconds since 1970, oldest first; at most the count of
    /// the rule.
    pub openings: Vec<i64>,
    /// The number of the occurrence whose opening was counted last.
    pub number: u32,
    /// Time of the last opening or close, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Time since which the event is flapping, in milliseconds since 1970; `None` if it is not
    /// flapping.
    pub since_ms: Option<i64>,
}

impl Flapping {
    /// Returns the time at which the event settles without further changes, in milliseconds since
    /// 1970; `None` if it is not flapping.
    pub fn until_ms(&self, limits: &FlappingLimits) -> Option<i64> {
        self.since_ms?;
        Some(self.changed_ms.saturating_add(limits.settle_ms))
    }
}

/// The occurrence under which notified receivers know an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadOrigin {
    pub key: RecordId,
    pub number: u32,
}

impl ThreadOrigin {
    /// Returns the public identity, given the identity of another occurrence of the same event.
    pub fn id(self, other: OccurrenceId) -> OccurrenceId {
        OccurrenceId {
            number: self.number,
            ..other
        }
    }
}
