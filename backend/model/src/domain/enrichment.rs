//! Enrichment tables: metadata fields that events get at ingest.

use crate::domain::{Name, RecordId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrichmentTable {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    /// The columns that select a row, named as the fields of events in queries; never empty.
    pub match_fields: Vec<String>,
    /// The rows as CSV, without line ends at the end. The first row has the names of the columns.
    pub csv: String,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}
