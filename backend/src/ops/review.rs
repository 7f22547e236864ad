//! Ageing and retention: closes occurrences without news, and deletes old closed ones.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::{
    decide::{Past, Snapshot},
    domain::{CloseReason, Occurrence, Status},
    error::Error,
    limits::{REVIEW_BATCH, REVIEW_INTERVAL_MAX, REVIEW_LOOK_INTERVAL},
    ops::{
        commit::commit,
        deciding::Deciding,
        intake::Intake,
        loop_guard::Reports,
        occurrence::{Cause, Review, StateChange, review},
        revision,
    },
    store::{
        Changes, Direction, Index, Lane, Stored,
        engine::Range,
        record::bytes::{Key, moment_at},
    },
};

/// Looks at occurrences when their review is due, a few at a time.
#[derive(Debug)]
pub struct Reviewer {
    deciding: Deciding,
    intake: Intake,
}

impl Reviewer {
    /// Reviews what that store holds; what the service has to say of it goes through the intake.
    pub fn new(deciding: Deciding, intake: Intake) -> Self {
        Self { deciding, intake }
    }

    /// Reviews until shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                let since_ms = self.deciding.clock.now_ms();
                self.pass().await;
                if let Err(error) = revision::forget(&self.deciding.store).await {
                    error!(%error, "old revisions of triggers and rules are still there");
                }
                self.wait(since_ms).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Reviews everything that is due now. What cannot be reviewed is left for the next pass.
    pub async fn pass(&self) {
        let due = Key::new().moment(self.deciding.clock.now_ms().saturating_add(1));
        let end = due.build();
        let mut start = Vec::new();
        loop {
            let range = Range {
                start,
                end: Some(end.clone()),
            };
            let keys = match self.due(range).await {
                Ok(keys) => keys,
                Err(error) => return error!(%error, "occurrences that are due were not found"),
            };
            let Some((last, _)) = keys.last() else { return };
            start = last.clone();
            start.push(0);
            let records: Vec<_> = keys.into_iter().map(|(_, record)| record).collect();
            if let Err(fault) = self.step(&records).await {
                error!(error = %fault, "a review failed; its occurrences are reviewed one by one");
                for record in records {
                    if let Err(error) = self.step(&[record]).await {
                        error!(%error, "an occurrence could not be reviewed");
                    }
                }
            }
        }
    }

    async fn due(&self, range: Range) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let engine = self.deciding.store.engine();
        let index = Index::OccurrenceByReview;
        let found = engine.entries(index, range, Direction::Ascending, REVIEW_BATCH);
        Ok(found.await?)
    }

    async fn step(&self, records: &[Vec<u8>]) -> Result<(), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let snapshot = self.deciding.ruleset.refreshed().await?;
            let found = store.get_many::<Occurrence>(records.to_vec()).await?;
            let found: Vec<_> = found.into_iter().flatten().collect();
            let past = revision::past(store, &snapshot, found.iter().map(|it| &it.value)).await?;
            let mut changes = store.changes();
            let mut reports = Reports::default();
            for stored in found {
                reports.append(self.decide((&snapshot, &past), &stored, &mut changes));
            }
            Ok((changes, reports))
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    fn decide(
        &self,
        rules: (&Snapshot, &Past),
        stored: &Stored<Occurrence>,
        changes: &mut Changes,
    ) -> Reports {
        let mut reports = Reports::default();
        let now_ms = self.deciding.clock.now_ms();
        if stored.value.review_ms > now_ms {
            return reports;
        }
        let mut next = stored.value.clone();
        match review(&stored.value, now_ms, &self.deciding.lifetime) {
            Review::Forget => {
                changes.delete(stored);
                return reports;
            }
            Review::Later(due_ms) => next.review_ms = due_ms,
            Review::Age => {
                let change = StateChange {
                    status: Some(Status::Closed),
                    ..StateChange::default()
                };
                let cause = Cause {
                    author: None,
                    reason: CloseReason::Aged,
                    now_ms,
                };
                let altered = self.deciding.alter(rules, &mut next, change, cause);
                for delivery in &altered.deliveries {
                    changes.insert(delivery);
                }
                reports = altered.reports;
            }
        }
        changes.update(stored, &next);
        reports
    }

    /// Waits until something is due that was not at that time, also when it is made due meanwhile.
    async fn wait(&self, since_ms: i64) {
        let clock = &self.deciding.clock;
        let mut log = self.deciding.store.engine().log_signal();
        loop {
            let next_ms = self.next_ms(since_ms).await;
            tokio::select! {
                () = clock.wait_until(next_ms) => return,
                changed = log.changed() => if changed.is_err() {
                    return clock.wait_until(next_ms).await;
                }
            }
            // What was committed may be due earlier; one look finds that for many commits.
            let look_ms = clock.now_ms().saturating_add(millis(REVIEW_LOOK_INTERVAL));
            clock.wait_until(look_ms.min(next_ms)).await;
        }
    }

    /// When the first review is due that was not at that time; what could not be reviewed then is
    /// due again after a while.
    async fn next_ms(&self, since_ms: i64) -> i64 {
        let range = Range {
            start: Key::new().moment(since_ms.saturating_add(1)).build(),
            end: None,
        };
        let engine = self.deciding.store.engine();
        let index = Index::OccurrenceByReview;
        let found = engine.entries(index, range, Direction::Ascending, 1).await;
        let first = found.ok().and_then(|it| moment_at(&it.first()?.0, 0));
        let latest_ms = since_ms.saturating_add(millis(REVIEW_INTERVAL_MAX));
        first.unwrap_or(latest_ms).min(latest_ms)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
