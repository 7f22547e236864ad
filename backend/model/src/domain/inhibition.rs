//! Inhibitions: while a source event is open, target events with equal fields are held.

use crate::domain::{Name, Query, RecordId};

/// Holds the events matching `target` while one matching `source` is open.
#[derive(Debug, Clone, PartialEq)]
pub struct Inhibition {
    /// The identity; distinguishes it from an earlier inhibition of the same name.
    pub id: RecordId,
    /// The name.
    pub name: Name,
    /// The human-readable description.
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The query of the sources.
    pub source: Query,
    /// The query of the targets.
    pub target: Query,
    /// The fields that must be equal in source and target; never empty.
    pub equal: Vec<EqualFields>,
    /// Time for which targets stay held after the source closes, in milliseconds.
    pub linger_ms: i64,
    /// The revision for which all open occurrences were scanned; 0 if none. Not part of the
    /// revision.
    pub counted_revision: u64,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    /// Time it was created, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// Two fields, named as in queries, that must be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EqualFields {
    /// The field of the source.
    pub source: String,
    /// The field of the target.
    pub target: String,
}

/// A digest of the values of an inhibition's fields in an event.
pub type EqualValues = [u8; 16];

/// Marks an occurrence as a source of an inhibition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseMark {
    /// The inhibition, by identity.
    pub inhibition: RecordId,
    /// The digest of the values that must be equal.
    pub values: EqualValues,
    /// Time until which it holds its targets, in milliseconds since 1970; `None` while it is a
    /// source.
    pub until_ms: Option<i64>,
    /// Whether its targets were re-evaluated after that.
    pub is_freed: bool,
}

/// Time after which its targets are re-evaluated a second time, in milliseconds, to catch events
/// held concurrently with the first time.
const SECOND_EVALUATION_MS: i64 = 10_000;

impl CauseMark {
    /// Returns its key in the index: the inhibition and the digest of the values.
    pub fn key(&self) -> (RecordId, EqualValues) {
        (self.inhibition, self.values)
    }

    /// Whether it holds its targets at `now_ms`.
    pub fn holds(&self, now_ms: i64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    /// Returns the time to re-evaluate its targets, in milliseconds since 1970; `None` while it is
    /// a source.
    pub fn due_ms(&self) -> Option<i64> {
        let later_ms = if self.is_freed {
            SECOND_EVALUATION_MS
        } else {
            0
        };
        Some(self.until_ms?.saturating_add(later_ms))
    }

    /// Returns the mark after its targets were re-evaluated; `None` after the last time.
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
