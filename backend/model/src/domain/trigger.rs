//! Triggers: named queries over events.

use crate::domain::{Name, Query, RecordId};

/// A named query over events.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Distinguishes it from an earlier trigger of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// The condition.
    pub query: Query,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}
