//! Filter for occurrences in searches, counts and watches.

use crate::{
    domain::{Occurrence, Severity, Status},
    matching::CompiledQuery,
    scan,
    search::SortField,
    store::Stored,
};

#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Last seen at or after this time, in milliseconds since the epoch.
    pub start_ms: Option<i64>,
    /// Opened before this time, in milliseconds since the epoch.
    pub end_ms: Option<i64>,
    pub query: Option<CompiledQuery>,
    pub severities: Vec<Severity>,
    pub statuses: Vec<Status>,
}

impl Filter {
    pub fn matches(&self, occurrence: &Occurrence) -> bool {
        (self.severities.is_empty() || self.severities.contains(&occurrence.severity))
            && (self.statuses.is_empty() || self.statuses.contains(&occurrence.status))
            && self
                .start_ms
                .is_none_or(|start_ms| occurrence.last_seen_ms >= start_ms)
            && self
                .end_ms
                .is_none_or(|end_ms| occurrence.start_ms < end_ms)
            && self
                .query
                .as_ref()
                .is_none_or(|query| query.matches(occurrence))
    }

    /// Returns the occurrences that match, yielding in between.
    pub async fn retain_matching<P>(&self, batch: Vec<(P, Stored<Occurrence>)>) -> Vec<Occurrence> {
        let mut meant = Vec::new();
        for (_, found) in batch {
            if self.matches(&found.value) {
                meant.push(found.value);
            }
            scan::yield_if_needed().await;
        }
        meant
    }

    /// Returns whether the index for a sort field yields exactly the matching occurrences.
    pub(super) fn is_covered_by_index(&self, sort: SortField) -> bool {
        self.query.is_none()
            && match sort {
                SortField::LastSeen => self.end_ms.is_none(),
                SortField::Severity => self.start_ms.is_none(),
                SortField::StartTime => {
                    let is_of_any_state = self.severities.is_empty() && self.statuses.is_empty();
                    is_of_any_state && self.start_ms.is_none()
                }
            }
    }

    pub(super) fn severities(&self) -> Vec<Severity> {
        let meant =
            |severity: &Severity| self.severities.is_empty() || self.severities.contains(severity);
        Severity::ALL.into_iter().filter(meant).collect()
    }

    pub(super) fn statuses(&self) -> Vec<Status> {
        let meant = |status: &Status| self.statuses.is_empty() || self.statuses.contains(status);
        Status::ALL.into_iter().filter(meant).collect()
    }
}
