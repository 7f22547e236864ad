//! Events: the light row of a list, the full detail of one, and its explanation.

use std::collections::BTreeMap;

use serde_json::Value;

/// How bad an event is. Ordered, worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Severity {
    #[default]
    Unknown,
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

impl Severity {
    /// The known ones, worst first.
    pub(crate) const WORST_FIRST: [Self; 5] = [
        Self::Critical,
        Self::Error,
        Self::Warning,
        Self::Info,
        Self::Debug,
    ];

    /// The word shown and typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Where an occurrence stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    #[default]
    Unknown,
    Open,
    Suppressed,
    Closed,
}

impl Status {
    /// The word shown and typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Open => "open",
            Self::Suppressed => "suppressed",
            Self::Closed => "closed",
        }
    }
}

/// One occurrence as lists show it; kept small because there may be many.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventRow {
    /// The occurrence's id.
    pub(crate) id: Box<str>,
    pub(crate) name: Box<str>,
    /// The dimensions as `key=value`, by key.
    pub(crate) entity: Box<str>,
    pub(crate) summary: Box<str>,
    pub(crate) severity: Severity,
    pub(crate) status: Status,
    pub(crate) acknowledged: bool,
    pub(crate) last_seen_ms: i64,
    pub(crate) count: i64,
}

/// One event with the occurrences that were asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventDetail {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) dimensions: BTreeMap<String, String>,
    /// Over all occurrences.
    pub(crate) count: i64,
    pub(crate) occurrence: OccurrenceDetail,
}

/// One open-to-closed span of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OccurrenceDetail {
    pub(crate) id: String,
    pub(crate) number: i32,
    pub(crate) severity: Severity,
    pub(crate) status: Status,
    pub(crate) acknowledged: bool,
    pub(crate) summary: String,
    pub(crate) body: String,
    pub(crate) metadata: Value,
    pub(crate) start_ms: i64,
    pub(crate) last_seen_ms: i64,
    pub(crate) close_ms: Option<i64>,
    /// Empty while it is not closed.
    pub(crate) close_reason: &'static str,
    pub(crate) count: i64,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) history: Vec<HistoryEntry>,
}

/// An operator's note.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Annotation {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) author: String,
    pub(crate) update_ms: i64,
}

/// A change of an occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HistoryEntry {
    pub(crate) time_ms: i64,
    pub(crate) author: String,
    pub(crate) field: String,
    pub(crate) from: String,
    pub(crate) to: String,
}
