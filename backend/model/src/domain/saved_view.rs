//! Saved views: shared settings for the list of events.

use crate::domain::{Name, RecordId, SortField};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    /// The filter as written by its author; ages in it are relative to the time of reading.
    pub filter: String,
    pub sort: SortField,
    pub ascending: bool,
    pub includes_closed: bool,
    /// The field to count by; `None` lists the events themselves.
    pub group_by: Option<String>,
    /// The titles of the visible columns; empty means the reader's choice.
    pub columns: Vec<String>,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}
