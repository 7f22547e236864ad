//! Triggers: named queries over events.

use crate::domain::{Name, Query, RecordId};

/// A named query over events.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// The identity; distinguishes it from an earlier trigger of the same name.
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    pub query: Query,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}
