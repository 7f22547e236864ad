//! Triggers: named queries over events.

use crate::domain::{Name, Query, RecordId};

/// A named query over events.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// The identity; distinguishes it from an earlier trigger of the same name.
    pub id: RecordId,
    /// The name.
    pub name: Name,
    /// The human-readable description.
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    /// The condition.
    pub query: Query,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    /// Time it was created, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}
