//! Closes occurrences that have aged or expired, and deletes old closed ones. Each node does this
//! for the occurrences whose slots it owns.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    cause_lookup::decide_with_causes,
    clock::to_millis,
    commit::commit,
    decide::{Causes, PastDefinitions, Snapshot},
    decision_context::DecisionContext,
    domain::{CloseReason, Delivery, Occurrence, Status, silence::NEVER_MS},
    error::{Error, log_failure},
    intake::Intake,
    lifecycle::{Cause, Review, StateChange, review_occurrence},
    limits::{REVIEW_BATCH, REVIEW_CHECK_INTERVAL, REVIEW_INTERVAL_MAX, REVIEW_RETRY},
    loop_guard::{RecordedReports, Reports},
    page_cancel::cancel_pages,
    revision,
    silence::silence_event_id,
    store::{
        Changes, Direction, Duty, Index, Lane, LogPosition, Stored,
        engine::{
            Range,
            ownership::{OwnedSlots, review_slot_for_key},
        },
        record::bytes::{Key, read_time_ms},
    },
};

#[derive(Debug)]
pub struct AgeReviewer {
    deciding: DecisionContext,
    intake: Intake,
    owned: watch::Receiver<OwnedSlots>,
}

impl AgeReviewer {
    pub fn new(deciding: &DecisionContext, intake: Intake) -> Self {
        let owned = deciding.store.engine().cluster().watch_ownership();
        Self::for_owner(deciding, intake, owned)
    }

    pub(super) fn for_owner(
        deciding: &DecisionContext,
        intake: Intake,
        owned: watch::Receiver<OwnedSlots>,
    ) -> Self {
        Self {
            deciding: DecisionContext {
                store: deciding
                    .store
                    .clone()
                    .for_owner(Duty::Ageing, owned.clone()),
                ..deciding.clone()
            },
            intake,
            owned,
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                // Subscribe first, so that commits and ownership changes during the pass are
                // noticed.
                let log = self.deciding.store.engine().log_signal();
                let mut owned = self.owned.clone();
                owned.mark_unchanged();
                let since_ms = self.deciding.clock.now_ms();
                let latest = if self.run_once().await {
                    REVIEW_INTERVAL_MAX
                } else {
                    REVIEW_RETRY
                };
                self.wait_until_due((log, owned), since_ms, latest).await;
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    /// Ages all occurrences that are due now. Work that fails is left for the next pass; returns
    /// false if that pass should follow soon.
    pub async fn run_once(&self) -> bool {
        let aged = self.age_due().await;
        if let Err(error) = &aged {
            log_failure("failed to review due occurrences", error);
        }
        aged.is_ok()
    }

    fn owns_occurrence(&self, record: &[u8]) -> bool {
        self.owned
            .borrow()
            .find(review_slot_for_key(record))
            .is_some()
    }

    async fn age_due(&self) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        if snapshot.settings().is_quiet_mode() {
            return Ok(());
        }
        let due = Key::new().time_ms(self.deciding.clock.now_ms().saturating_add(1));
        let mut range = Range {
            start: Vec::new(),
            end: Some(due.build()),
        };
        let mut records = Vec::new();
        let mut reviewed = Ok(());
        loop {
            let found = self.due_entries(range.clone()).await?;
            let last = found.last().map(|(entry, _)| entry.clone());
            let found = found.into_iter().map(|(_, record)| record);
            records.extend(found.filter(|record| self.owns_occurrence(record)));
            if records.len() >= REVIEW_BATCH || last.is_none() {
                reviewed = reviewed.and(self.review(std::mem::take(&mut records)).await);
            }
            let Some(last) = last else {
                return reviewed;
            };
            range.exclude_through(&last);
        }
    }

    /// Reviews occurrences together, or one by one if that fails. Returns the first temporary
    /// error; damaged records are only logged.
    async fn review(&self, mut records: Vec<Vec<u8>>) -> Result<(), Error> {
        let Err(failure) = self.review_batch(&records).await else {
            return Ok(());
        };
        // Skip occurrences that another node owns by now.
        records.retain(|record| self.owns_occurrence(record));
        if records.is_empty() {
            return Ok(());
        }
        log_failure("failed to review a batch of occurrences", &failure);
        let mut reviewed = Ok(());
        for record in records {
            match self.review_batch(&[record]).await {
                Err(error @ Error::Internal(_)) => {
                    log_failure("failed to review an occurrence", &error);
                }
                step => reviewed = reviewed.and(step),
            }
        }
        reviewed
    }

    async fn due_entries(&self, range: Range) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let engine = self.deciding.store.engine();
        let index = Index::OccurrenceByReview;
        let found = engine.entries(index, range, Direction::Ascending, REVIEW_BATCH);
        Ok(found.await?)
    }

    async fn review_batch(&self, records: &[Vec<u8>]) -> Result<(), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let causes = Causes::default();
            decide_with_causes(store, &causes, || self.decide_ageing(records, &causes)).await
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    async fn decide_ageing(
        &self,
        records: &[Vec<u8>],
        causes: &Causes,
    ) -> Result<(Changes, RecordedReports), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refresh().await?;
        let found = store.get_many::<Occurrence>(records.to_vec()).await?;
        let found: Vec<_> = found.into_iter().flatten().collect();
        let past =
            revision::read_past_definitions(store, &snapshot, found.iter().map(|it| &it.value))
                .await?;
        let past = past.with_causes(causes);
        let mut changes = store.new_changes();
        changes.depend_on(&snapshot);
        let mut reports = Reports::default();
        let mut deliveries = Vec::new();
        let mut kept = Vec::new();
        for stored in found {
            let rules = (&*snapshot, &past);
            let (next, said) = self.decide_occurrence(rules, &stored, &mut deliveries);
            reports.append(said);
            match next {
                Some(next) => kept.push((stored, next)),
                None => changes.delete(&stored),
            }
        }
        let changed = kept.iter().map(|(stored, next)| (&stored.value, next));
        let (changed, new) = (changed.collect(), deliveries.iter_mut().collect());
        let now_ms = self.deciding.clock.now_ms();
        cancel_pages(store, changed, new, now_ms, &mut changes).await?;
        for delivery in &deliveries {
            changes.insert(delivery);
        }
        for (stored, next) in kept.iter().filter(|(stored, next)| *next != stored.value) {
            changes.update(stored, next);
        }
        let reports = reports.record(&mut changes);
        Ok((changes, reports))
    }

    /// Returns the next version of an occurrence, or `None` to delete it, and the service's own
    /// reports about the change. Appends the deliveries that the change causes.
    fn decide_occurrence(
        &self,
        rules: (&Snapshot, &PastDefinitions),
        stored: &Stored<Occurrence>,
        deliveries: &mut Vec<Delivery>,
    ) -> (Option<Occurrence>, Reports) {
        let mut reports = Reports::default();
        let now_ms = self.deciding.clock.now_ms();
        let mut next = stored.value.clone();
        if stored.value.review_ms > now_ms {
            return (Some(next), reports);
        }
        // The event about a silence stays open as long as the silence lasts.
        let ends_ms =
            reported_silence_ends(&stored.value, rules.0, now_ms).filter(|it| *it > now_ms);
        let review = review_occurrence(&stored.value, now_ms, rules.0.settings());
        match (review, ends_ms) {
            (Review::Age | Review::Expire, Some(ends_ms)) => next.review_ms = ends_ms,
            // First, the notifications that this occurrence holds as a cause must be re-evaluated.
            (Review::Forget, _) if !stored.value.causes.is_empty() => {
                next.review_ms = now_ms.saturating_add(to_millis(REVIEW_INTERVAL_MAX));
            }
            (Review::Forget, _) => return (None, reports),
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
                let altered = self.deciding.apply_change(rules, &mut next, &change, cause);
                deliveries.extend(altered.deliveries);
                reports = altered.reports;
            }
        }
        (Some(next), reports)
    }

    /// Waits for at most `most` until an occurrence becomes due after `since_ms`. Notices
    /// occurrences that become due through concurrent commits or new ownership.
    async fn wait_until_due(
        &self,
        (mut log, mut owned): (watch::Receiver<LogPosition>, watch::Receiver<OwnedSlots>),
        since_ms: i64,
        most: Duration,
    ) {
        let clock = &self.deciding.clock;
        let latest_ms = since_ms.saturating_add(to_millis(most));
        loop {
            let next = self.next_ms(since_ms).await.ok().flatten();
            let next_ms = next.unwrap_or(latest_ms).min(latest_ms);
            tokio::select! {
                () = clock.wait_until(next_ms) => return,
                () = self.deciding.store.wait_until_progress_due() => continue,
                Ok(()) = owned.changed() => return,
                changed = log.changed() => if changed.is_err() {
                    return clock.wait_until(next_ms).await;
                }
            }
            // Commits may have made an occurrence due earlier. One check serves many commits.
            let review_ms = clock
                .now_ms()
                .saturating_add(to_millis(REVIEW_CHECK_INTERVAL));
            clock.wait_until(review_ms.min(next_ms)).await;
        }
    }

    /// Returns the first time after `since_ms` at which an owned occurrence may be due, in
    /// milliseconds since the epoch.
    pub(crate) async fn next_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let found = self.due_entries(Range {
            start: Key::new().time_ms(since_ms.saturating_add(1)).build(),
            end: None,
        });
        let found = found.await?;
        self.deciding.store.record_progress();
        let first = found
            .iter()
            .find(|(_, record)| self.owns_occurrence(record));
        let first = first.or(found.last());
        Ok(first.and_then(|(entry, _)| read_time_ms(entry, 0)))
    }
}

/// Returns the end of the silence that one of the service's own occurrences is about, in
/// milliseconds since the epoch. `None` if it is about no silence, or the silence has ended.
fn reported_silence_ends(occurrence: &Occurrence, snapshot: &Snapshot, now_ms: i64) -> Option<i64> {
    let name = occurrence.dimensions.get("silence")?;
    let mut all = snapshot.silences().as_slice().iter();
    let loaded = all.find(|it| it.silence.name.as_str() == name)?;
    let is_about = silence_event_id(&loaded.silence.name) == occurrence.event;
    let ends_ms = loaded.current_end_ms(now_ms).unwrap_or(NEVER_MS);
    is_about.then_some(ends_ms)
}
