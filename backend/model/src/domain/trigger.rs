//! Triggers: named queries over events.

use crate::domain::{Name, Query, RecordId};

#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub query: Query,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}
