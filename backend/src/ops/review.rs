//! Ageing and retention: closes occurrences without news or whose time is over, and deletes old
//! closed ones.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::{
    decide::{Causes, Past, Snapshot},
    domain::{CloseReason, Occurrence, Status, silence::NEVER_MS},
    error::Error,
    lifecycle::{Cause, Review, StateChange, review},
    limits::{REVIEW_BATCH, REVIEW_INTERVAL_MAX, REVIEW_LOOK_INTERVAL, REVIEW_RETRY},
    ops::{
        cause_lookup::settled,
        commit::commit,
        deciding::Deciding,
        group,
        intake::Intake,
        loop_guard::Reports,
        pending::look::PendingReview,
        revision,
        silence::{event_of, flexible, lifecycle},
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
    looks: PendingReview,
}

impl Reviewer {
    /// Reviews what that store holds; what the service has to say of it goes through the intake.
    pub fn new(deciding: Deciding, intake: Intake) -> Self {
        let looks = PendingReview::new(deciding.clone(), intake.clone());
        Self {
            deciding,
            intake,
            looks,
        }
    }

    /// Reviews until shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            let mut retry = REVIEW_RETRY;
            loop {
                // What is committed while it reviews is news to it.
                let log = self.deciding.store.engine().log_signal();
                let since_ms = self.deciding.clock.now_ms();
                let mut latest = REVIEW_INTERVAL_MAX;
                if self.pass().await {
                    retry = REVIEW_RETRY;
                } else {
                    latest = retry;
                    retry = (retry * 2).min(REVIEW_INTERVAL_MAX);
                }
                self.sweep().await;
                if let Err(error) = revision::forget(&self.deciding.store).await {
                    error!(%error, "old revisions of triggers and rules are still there");
                }
                self.wait(log, since_ms, latest).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Reviews everything that is due now: reports on silences that begin and end, re-evaluates
    /// what waits, ages and forgets. What cannot be reviewed is left for the next pass, which is to
    /// come soon when this answers false.
    pub async fn pass(&self) -> bool {
        let held = self.holds().await;
        if let Err(error) = &held {
            error!(%error, "silences were not reported, or held notifications were not evaluated");
        }
        if let Err(error) = self.age().await {
            error!(%error, "occurrences that are due were not found");
            return false;
        }
        held.is_ok()
    }

    /// Reviews the occurrences that are due.
    async fn age(&self) -> Result<(), Error> {
        let due = Key::new().moment(self.deciding.clock.now_ms().saturating_add(1));
        let end = due.build();
        let mut start = Vec::new();
        loop {
            let range = Range {
                start,
                end: Some(end.clone()),
            };
            let keys = self.due(range).await?;
            let Some((last, _)) = keys.last() else {
                return Ok(());
            };
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

    /// Each of these is done whatever happened to the others; answers the first fault.
    async fn holds(&self) -> Result<(), Error> {
        let said = lifecycle::say(&self.deciding, &self.intake).await;
        let looked = self.looks.pass().await;
        let begun = flexible::begin(&self.deciding).await;
        let ended = lifecycle::end_idle(&self.deciding).await;
        said.and(looked).and(begun).and(ended)
    }

    /// Forgets silences and groups that were over for long; there is no hurry.
    async fn sweep(&self) {
        if let Err(error) = lifecycle::forget(&self.deciding).await {
            error!(%error, "old silences are still there");
        }
        if let Err(error) = group::forget(&self.deciding).await {
            error!(%error, "old groups are still there");
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
            let causes = Causes::default();
            settled(store, &causes, || self.decided(records, &causes)).await
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    async fn decided(
        &self,
        records: &[Vec<u8>],
        causes: &Causes,
    ) -> Result<(Changes, Reports), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let found = store.get_many::<Occurrence>(records.to_vec()).await?;
        let found: Vec<_> = found.into_iter().flatten().collect();
        let past = revision::past(store, &snapshot, found.iter().map(|it| &it.value)).await?;
        let past = past.asking(causes);
        let mut changes = store.changes();
        changes.rest_on(snapshot.position());
        let mut reports = Reports::default();
        for stored in found {
            reports.append(self.decide((&snapshot, &past), &stored, &mut changes));
        }
        Ok((changes, reports))
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
        // What reports on a silence lasts as long as that.
        let ends_ms = told_silence_ends(&stored.value, rules.0, now_ms).filter(|it| *it > now_ms);
        let review = review(&stored.value, now_ms, rules.0.settings());
        match (review, ends_ms) {
            (Review::Age | Review::Expire, Some(ends_ms)) => next.review_ms = ends_ms,
            // What it holds as a cause is re-evaluated before.
            (Review::Forget, _) if !stored.value.causes.is_empty() => {
                next.review_ms = now_ms.saturating_add(millis(REVIEW_INTERVAL_MAX));
            }
            (Review::Forget, _) => {
                changes.delete(stored);
                return reports;
            }
            (Review::Later(due_ms), _) => next.review_ms = due_ms,
            (due @ (Review::Age | Review::Expire), None) => {
                let change = StateChange {
                    status: Some(Status::Closed),
                    ..StateChange::default()
                };
                let cause = Cause {
                    author: None,
                    reason: match due {
                        Review::Expire => CloseReason::Expired,
                        _ => CloseReason::Aged,
                    },
                    now_ms,
                };
                let altered = self.deciding.alter(rules, &mut next, &change, cause);
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
    /// That long at most.
    async fn wait(&self, mut log: watch::Receiver<u64>, since_ms: i64, most: Duration) {
        let clock = &self.deciding.clock;
        let latest_ms = since_ms.saturating_add(millis(most));
        loop {
            let next_ms = self.next_ms(since_ms).await.min(latest_ms);
            tokio::select! {
                () = clock.wait_until(next_ms) => return,
                () = self.deciding.store.until_advance() => continue,
                changed = log.changed() => if changed.is_err() {
                    return clock.wait_until(next_ms).await;
                }
            }
            // What was committed may be due earlier; one look finds that for many commits.
            let look_ms = clock.now_ms().saturating_add(millis(REVIEW_LOOK_INTERVAL));
            clock.wait_until(look_ms.min(next_ms)).await;
            if let Err(error) = flexible::begin(&self.deciding).await {
                // The next pass tries again, and soon.
                return error!(%error, "silences that are to begin by themselves did not");
            }
            // An edit may free what no time ends.
            if self.looks.is_outdated().await.unwrap_or(true) {
                return;
            }
        }
    }

    /// When the first review is due that was not at that time; what could not be reviewed then is
    /// due again after a while.
    async fn next_ms(&self, since_ms: i64) -> i64 {
        let latest_ms = since_ms.saturating_add(millis(REVIEW_INTERVAL_MAX));
        let next = self.next_due_ms(since_ms).await.ok().flatten();
        next.unwrap_or(latest_ms).min(latest_ms)
    }

    /// When the first thing is due that was not at that time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn next_due_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let range = Range {
            start: Key::new().moment(since_ms.saturating_add(1)).build(),
            end: None,
        };
        let engine = self.deciding.store.engine();
        let index = Index::OccurrenceByReview;
        let found = engine
            .entries(index, range, Direction::Ascending, 1)
            .await?;
        let first = found.first().and_then(|it| moment_at(&it.0, 0));
        let waits = self.looks.next_ms(since_ms).await?;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let said = lifecycle::next_ms(&snapshot, since_ms);
        self.deciding.store.advance();
        Ok([first, waits, said].into_iter().flatten().min())
    }
}

/// When the silence ends that an occurrence of the service's own reports on, in milliseconds since
/// 1970; none when it reports on none, or that is over.
fn told_silence_ends(occurrence: &Occurrence, snapshot: &Snapshot, now_ms: i64) -> Option<i64> {
    let name = occurrence.dimensions.get("silence")?;
    let mut all = snapshot.silences().all().iter();
    let loaded = all.find(|it| it.silence.name.as_str() == name)?;
    let is_about = event_of(&loaded.silence.name) == occurrence.event;
    let ends_ms = loaded.ends_ms(now_ms).unwrap_or(NEVER_MS);
    is_about.then_some(ends_ms)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
