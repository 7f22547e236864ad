//! Revisions of a schedule, by the time at which they were in force.

use super::Schedules;
use crate::{
    domain::{RevisedResource, RevisionKind, Schedule},
    error::Error,
    revision,
};

impl Schedules {
    /// Returns the revisions in force in a range, each with its part of the range, in order. Times
    /// without a stored revision are omitted.
    pub(super) async fn revisions_in_force(
        &self,
        current: Schedule,
        (start_ms, end_ms): (i64, i64),
    ) -> Result<Vec<((i64, i64), Schedule)>, Error> {
        let mut found = Vec::new();
        if start_ms < current.update_ms {
            let stored =
                revision::stored_revisions(&self.store, RevisionKind::Schedule, &current.name);
            for revision in stored.await? {
                let range = (revision.since_ms(), revision.until_ms);
                if let RevisedResource::Schedule(was) = revision.was {
                    found.push((range, was));
                }
            }
            found.sort_by_key(|(range, _)| *range);
        }
        found.push(((current.update_ms, i64::MAX), current));
        for (range, _) in &mut found {
            *range = (range.0.max(start_ms), range.1.min(end_ms));
        }
        found.retain(|((start_ms, end_ms), _)| start_ms < end_ms);
        Ok(found)
    }
}
