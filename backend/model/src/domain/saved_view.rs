//! Views: ways to look at the list of events that people share.

use crate::domain::{Name, RecordId, SortField};

/// A way to look at the list of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// Distinguishes it from an earlier view of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Which events, as its author wrote it: ages in it are counted from the time of reading.
    pub filter: String,
    /// What they are sorted by.
    pub sort: SortField,
    /// Whether the smallest or oldest comes first.
    pub ascending: bool,
    /// Whether closed ones are shown as well.
    pub includes_closed: bool,
    /// The field that they are counted by; none for the events themselves.
    pub group_by: Option<String>,
    /// The columns that are shown, by their titles; none for the reader's choice.
    pub columns: Vec<String>,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}
