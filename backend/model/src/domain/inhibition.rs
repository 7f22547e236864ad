//! Inhibitions: while a source event is open, target events with equal fields are held.

use crate::domain::{Name, Query, RecordId};

/// An inhibition. While an event that matches `source` is open, notifications about events that
/// match `target` are held.
#[derive(Debug, Clone, PartialEq)]
pub struct Inhibition {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    pub source: Query,
    pub target: Query,
    /// The fields that must have equal values in source and target; never empty.
    pub equal: Vec<EqualFields>,
    /// Time for which targets stay held after the source closes, in milliseconds.
    pub linger_ms: i64,
    /// The newest revision for which all open occurrences were scanned; 0 before the first scan. A
    /// change of this field does not create a revision.
    pub counted_revision: u64,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

/// Two fields, named as in queries, that must have equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EqualFields {
    pub source: String,
    pub target: String,
}

/// A digest of the values of an inhibition's fields in an event.
pub type EqualValues = [u8; 16];

/// A mark on an occurrence that is, or was, a source of an inhibition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseMark {
    pub inhibition: RecordId,
    pub values: EqualValues,
    /// Time until which the source holds its targets, in milliseconds since 1970; `None` while it
    /// is a source.
    pub until_ms: Option<i64>,
    /// Whether the targets were re-evaluated after `until_ms`.
    pub is_freed: bool,
}

/// Time after which the targets are re-evaluated a second time, in milliseconds, to include events
/// that were held concurrently with the first evaluation.
const SECOND_EVALUATION_MS: i64 = 10_000;

impl CauseMark {
    pub fn key(&self) -> (RecordId, EqualValues) {
        (self.inhibition, self.values)
    }

    pub fn holds(&self, now_ms: i64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    /// Returns the time at which to re-evaluate the targets, in milliseconds since 1970; `None`
    /// while the occurrence is a source.
    pub fn due_ms(&self) -> Option<i64> {
        let later_ms = if self.is_freed {
            SECOND_EVALUATION_MS
        } else {
            0
        };
        Some(self.until_ms?.saturating_add(later_ms))
    }

    /// Returns the mark after the targets were re-evaluated; `None` after the last time.
    pub fn after_evaluation(self, now_ms: i64) -> Option<Self> {
        match self.due_ms() {
            Some(due_ms) if due_ms <= now_ms => (!self.is_freed).then_some(Self {
                is_freed: true,
                ..self
            }),
            _ => Some(self),
        }
    }
}
