//! Inhibitions: while an event of one query is open, events of another with equal fields are held.

use crate::domain::{Name, Query, RecordId};

/// Holds the events that `target` matches while one that `source` matches is open.
#[derive(Debug, Clone, PartialEq)]
pub struct Inhibition {
    /// Distinguishes it from an earlier inhibition of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Whether it holds.
    pub enabled: bool,
    /// The causes.
    pub source: Query,
    /// Their effects.
    pub target: Query,
    /// The fields that are equal on both, so that one is the cause of the other; never empty.
    pub equal: Vec<EqualFields>,
    /// How long it holds on after the source closed, in milliseconds.
    pub linger_ms: i64,
    /// The revision for which everything open was scanned; 0 for none. No part of its revision.
    pub counted_revision: u64,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// Two fields, named as in queries, that hold the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EqualFields {
    /// The one of the source.
    pub source: String,
    /// The one of the target.
    pub target: String,
}

/// What the fields of an inhibition hold in one event, as a digest.
pub type EqualValues = [u8; 16];

/// That an occurrence is a source of an inhibition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseMark {
    /// The inhibition, by identity.
    pub inhibition: RecordId,
    /// What the fields hold that are to be equal.
    pub values: EqualValues,
    /// Until when it holds on, in milliseconds since 1970; none while it is a source.
    pub until_ms: Option<i64>,
    /// Whether what it held was re-evaluated after that.
    pub is_freed: bool,
}

/// How long what it held is looked for once more after it was re-evaluated, in milliseconds: an
/// event may have been held by it at that very moment.
const LOOKED_FOR_MS: i64 = 10_000;

impl CauseMark {
    /// Where it is found: the inhibition, and what its fields hold.
    pub fn key(&self) -> (RecordId, EqualValues) {
        (self.inhibition, self.values)
    }

    /// Whether it holds at a moment.
    pub fn holds(&self, now_ms: i64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    /// When to re-evaluate what it held, in milliseconds since 1970; none while it is a source.
    pub fn due_ms(&self) -> Option<i64> {
        let later_ms = if self.is_freed { LOOKED_FOR_MS } else { 0 };
        Some(self.until_ms?.saturating_add(later_ms))
    }

    /// The same when what it held is re-evaluated; none when that was the last time.
    pub fn looked_at(self, now_ms: i64) -> Option<Self> {
        match self.due_ms() {
            Some(due_ms) if due_ms <= now_ms => (!self.is_freed).then_some(Self {
                is_freed: true,
                ..self
            }),
            _ => Some(self),
        }
    }
}
