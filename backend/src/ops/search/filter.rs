//! Which occurrences a search, a count or a watch is about.

use crate::{
    domain::{Occurrence, Severity, Status},
    matching::CompiledQuery,
    ops::search::SortField,
    scan,
    store::Stored,
};

/// Which occurrences are meant; the default means all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Last seen at or after this moment, in milliseconds since 1970.
    pub start_ms: Option<i64>,
    /// Opened before this moment, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// Matching this query.
    pub query: Option<CompiledQuery>,
    /// Of these severities; empty means all.
    pub severities: Vec<Severity>,
    /// Of these statuses; empty means all.
    pub statuses: Vec<Status>,
}

impl Filter {
    /// Whether an occurrence is meant.
    pub fn admits(&self, occurrence: &Occurrence) -> bool {
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

    /// Those of some occurrences that are meant; others get their turn in between.
    pub async fn meant<P>(&self, batch: Vec<(P, Stored<Occurrence>)>) -> Vec<Occurrence> {
        let mut meant = Vec::new();
        for (_, found) in batch {
            if self.admits(&found.value) {
                meant.push(found.value);
            }
            scan::turn().await;
        }
        meant
    }

    /// Whether what the index of that sort walks is exactly what is meant.
    pub(super) fn is_answered_by(&self, sort: SortField) -> bool {
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

    /// The severities that are meant, in rising order.
    pub(super) fn severities(&self) -> Vec<Severity> {
        let meant =
            |severity: &Severity| self.severities.is_empty() || self.severities.contains(severity);
        Severity::ALL.into_iter().filter(meant).collect()
    }

    /// The statuses that are meant, in order.
    pub(super) fn statuses(&self) -> Vec<Status> {
        let meant = |status: &Status| self.statuses.is_empty() || self.statuses.contains(status);
        Status::ALL.into_iter().filter(meant).collect()
    }
}
