//! Events as lists show them: light, because there may be many.

use bellwether_proto::{
    cloud::{Severity, Status},
    v1,
};

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
    /// Whether something holds back messages about it.
    pub(crate) is_held: bool,
}

impl EventRow {
    /// One row an occurrence.
    pub(crate) fn all_of(event: v1::Event) -> Vec<Self> {
        let pairs = event.dimensions.iter();
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
        let entity = pairs.join(" ").into_boxed_str();
        let row = |occurrence: v1::Occurrence| Self {
            severity: occurrence.severity(),
            status: occurrence.status(),
            id: occurrence.id.into_boxed_str(),
            name: event.name.as_str().into(),
            entity: entity.clone(),
            summary: occurrence.summary.into_boxed_str(),
            acknowledged: occurrence.acknowledged.unwrap_or_default(),
            last_seen_ms: occurrence.last_seen,
            count: occurrence.count.unwrap_or_default(),
            is_held: !occurrence.holds.is_empty(),
        };
        event.occurrences.into_iter().map(row).collect()
    }
}
