//! Re-evaluates a batch of occurrences: first notifications held by causes that have ended, then
//! groups that are due, then all other held notifications.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Mutex, PoisonError},
};

use super::together::JointRelease;
use crate::{
    cause_lookup::decide_with_causes,
    commit::commit,
    decide::{Causes, Step, StepKind, Transition, notify},
    decision_context::{DecisionContext, new_id},
    domain::{
        CauseMark, Delivery, DeliveryState, Health, HealthState, HeldBy, HoldKind, Occurrence,
        Pending, RecordId, ResponseState,
    },
    error::{Error, log_failure},
    group::{
        notify::{self, DueGroup},
        respond,
    },
    intake::Intake,
    limits::{HOLDS_BATCH, NOTIFY_BATCH, NOTIFY_BATCHES_AT_ONCE, NOTIFY_TIME_MAX},
    loop_guard::{RecordedReports, Reports},
    page_cancel::cancel_pages,
    revision,
    store::{
        Changes, Direction, EngineError, Index, Lane, Record as _, SilenceStanding, Store, Stored,
        engine::Range,
        record::bytes::{Key, read_id},
    },
};
use futures_util::{
    future::join_all,
    stream::{self, StreamExt as _},
};

pub(super) struct ReviewBatch<'a> {
    deciding: &'a DecisionContext,
    intake: &'a Intake,
    /// Inhibitions whose open occurrences have all been marked, although this is not recorded yet.
    marked: BTreeSet<(RecordId, u64)>,
}

impl<'a> ReviewBatch<'a> {
    pub(super) fn new(deciding: &'a DecisionContext, intake: &'a Intake) -> Self {
        Self {
            deciding,
            intake,
            marked: BTreeSet::new(),
        }
    }

    pub(super) fn with_marked_inhibitions(self, marked: BTreeSet<(RecordId, u64)>) -> Self {
        Self { marked, ..self }
    }

    /// Marks the occurrences with these keys as sources of inhibitions. The notifications that they
    /// hold are not evaluated yet.
    ///
    /// # Errors
    /// Returns an error if the store fails; no occurrence is then marked.
    pub(super) async fn mark_sources(&self, keys: &[Vec<u8>]) -> Result<(), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let snapshot = self.deciding.ruleset.refresh().await?;
            let now_ms = self.deciding.clock.now_ms();
            let mut changes = store.new_changes();
            changes.depend_on(&snapshot);
            let found = self.read(keys.to_vec()).await?;
            for stored in &found {
                let mut next = stored.value.clone();
                next.causes = snapshot
                    .inhibitions()
                    .cause_marks(&stored.value, false, now_ms);
                if next.causes != stored.value.causes {
                    changes.update(stored, &next);
                }
            }
            Ok((changes, ()))
        };
        commit(store, Lane::Bulk, decide).await?;
        Ok(())
    }

    /// Re-evaluates the occurrences with these keys. If a part fails, the others continue, and the
    /// failed part remains due.
    pub(super) async fn review_occurrences(
        &self,
        keys: Vec<Vec<u8>>,
        together: &JointRelease,
    ) -> Result<(), Error> {
        let mut found = self.read(keys).await?;
        let freed = self.review_held(&mut found).await;
        let sent = self.send_group_messages(&mut found).await;
        let moved = self.move_responses(&mut found).await;
        let decided = self.decide_all(found, together).await;
        freed.and(sent).and(moved).and(decided)
    }

    /// Runs the due escalation steps of the responses that these occurrences carry.
    pub(super) async fn run_responses(&self, keys: Vec<Vec<u8>>) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let is_due = |it: &Stored<Occurrence>| {
            let responses = it.value.notified.iter();
            let mut responses = responses.filter_map(|it| it.response.as_ref());
            responses.any(|it| it.review_ms.is_some_and(|review_ms| review_ms <= now_ms))
        };
        let mut found = self.read(keys).await?;
        found.retain(is_due);
        let freed = self.review_held(&mut found).await;
        let moved = self.move_responses(&mut found).await;
        let decided = self.decide_all(found, &JointRelease::default()).await;
        freed.and(moved).and(decided)
    }

    async fn read(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Stored<Occurrence>>, EngineError> {
        let found = self.deciding.store.get_many::<Occurrence>(keys).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Re-evaluates notifications held by occurrences that are no longer causes. If this fails for
    /// an occurrence, removes it from `found`, so that it remains due.
    async fn review_held(&self, found: &mut Vec<Stored<Occurrence>>) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        if snapshot.inhibitions().as_slice().is_empty() {
            return Ok(());
        }
        let now_ms = self.deciding.clock.now_ms();
        let is_over = |it: &CauseMark| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let over = found.iter().map(|it| &it.value);
        let over = over.filter(|it| it.causes.iter().any(is_over));
        let over: Vec<_> = over.collect();
        let held = [
            SilenceStanding::Inhibited,
            SilenceStanding::ResponseInhibited,
        ];
        let ranges = over
            .iter()
            .flat_map(|cause| held.map(|it| held_range(it, cause)));
        let (index, ranges) = (Index::OccurrenceBySilence, ranges.collect::<Vec<_>>());
        let engine = self.deciding.store.engine();
        let held = engine.read_ranges(index, &ranges, Direction::Ascending, 1);
        let held = held.await?;
        let holding = over.into_iter().zip(held.chunks(2));
        let holding = holding.filter(|(_, held)| held.iter().any(|it| !it.is_empty()));
        let (mut left, mut freed) = (BTreeSet::new(), Ok(()));
        for (cause, _) in holding {
            if let Err(error) = self.review_held_by_cause(cause).await {
                left.insert(cause.key);
                freed = freed.and(Err(error));
            }
        }
        found.retain(|it| !left.contains(&it.value.key));
        freed
    }

    async fn review_held_by_cause(&self, cause: &Occurrence) -> Result<(), Error> {
        let inhibited = SilenceStanding::Inhibited;
        let freed = self.review_held_with_standing(inhibited, cause).await;
        let responses = SilenceStanding::ResponseInhibited;
        freed.and(self.review_held_with_standing(responses, cause).await)
    }

    async fn review_held_with_standing(
        &self,
        standing: SilenceStanding,
        cause: &Occurrence,
    ) -> Result<(), Error> {
        let mut range = held_range(standing, cause);
        let is_freed = |it: &HeldBy| it.kind == HoldKind::Inhibition && it.id == cause.key;
        let index = Index::OccurrenceBySilence;
        let together =
            JointRelease::find(self.deciding, index, range.clone(), &is_freed, false).await?;
        let mut freed = Ok(());
        loop {
            let engine = self.deciding.store.engine();
            let held = engine.entries(index, range.clone(), Direction::Ascending, HOLDS_BATCH);
            let held = held.await?;
            let Some((last, _)) = held.last() else {
                return freed;
            };
            range.exclude_through(last);
            let keys = held.into_iter().map(|(_, record)| record).collect();
            let mut held = self.read(keys).await?;
            let moved = self.move_responses(&mut held).await;
            let decided = self.decide_all(held, &together).await;
            freed = freed.and(moved).and(decided);
        }
    }

    /// Sends the due group messages that some of the occurrences wait for, and keeps only
    /// occurrences that require further evaluation.
    async fn send_group_messages(&self, found: &mut Vec<Stored<Occurrence>>) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let is_due = |it: &&Pending| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let pending = found.iter().flat_map(|it| &it.value.pending);
        let due = pending.filter(is_due);
        let due: BTreeSet<_> = due.filter_map(|it| Some((it.rule, it.group()?))).collect();
        let due = notify::find_due_groups(&self.deciding.store, due).await?;
        let due: Vec<_> = due.into_iter().collect();
        let of_one_rule = due.chunk_by(|one, next| one.0 == next.0);
        let batches = of_one_rule.flat_map(|it| it.chunks(NOTIFY_BATCH));
        let sending = batches.map(|batch| self.send_with_timeout(batch));
        let sending: Vec<_> = sending.collect();
        let sending = stream::iter(sending).buffer_unordered(NOTIFY_BATCHES_AT_ONCE);
        let (mut settled, mut sent) = (BTreeSet::new(), Ok(()));
        for (some, result) in sending.collect::<Vec<_>>().await {
            settled.extend(some);
            sent = sent.and(result);
        }
        found.retain(|it| {
            let mut due = it.value.pending.iter().filter(is_due);
            let is_due = due.any(|it| it.group().is_none());
            let is_left = is_due || !it.value.causes.is_empty();
            is_left || respond::should_move(&it.value, now_ms) || !settled.contains(&it.value.key)
        });
        sent
    }

    /// Moves responses from occurrences that no longer carry them to other members of their groups,
    /// and re-reads the changed occurrences.
    async fn move_responses(&self, found: &mut Vec<Stored<Occurrence>>) -> Result<(), Error> {
        let (mut moved, mut result) = (BTreeSet::new(), Ok(()));
        let now_ms = self.deciding.clock.now_ms();
        let carriers = found.iter().map(|it| &it.value);
        let carriers = carriers.filter(|it| respond::should_move(it, now_ms));
        let moving = |store: Store, carrier| async move {
            let deciding = self.deciding.with_store(store);
            let is_moved = respond::move_carried_responses((&deciding, self.intake), carrier).await;
            Ok::<_, Infallible>((carrier.key, is_moved))
        };
        let Ok(all) = self.deciding.store.read_each(carriers, moving).await;
        for (carrier, is_moved) in all {
            match is_moved {
                Ok(true) => drop(moved.insert(carrier)),
                Ok(false) => {}
                Err(error) => {
                    log_failure("failed to move a group's response", &error);
                    result = result.and(Err(error));
                }
            }
        }
        found.retain(|it| !moved.contains(&it.value.key));
        let moved = moved.into_iter().map(|it| it.to_bytes().into()).collect();
        found.extend(self.read(moved).await?);
        result
    }

    /// Sends the messages of groups of one rule, within a time limit. Returns the occurrences that
    /// no longer wait, and the first error.
    async fn send_with_timeout(&self, due: &[DueGroup]) -> (Vec<RecordId>, Result<(), Error>) {
        match tokio::time::timeout(NOTIFY_TIME_MAX, self.send_messages_together(due)).await {
            Ok(done) => done,
            Err(_elapsed) => {
                let why =
                    format!("notifying the groups of a rule took longer than {NOTIFY_TIME_MAX:?}");
                (Vec::new(), Err(Error::Unavailable(why)))
            }
        }
    }

    /// Sends the messages of groups of one rule together, or one by one if that fails. Returns the
    /// occurrences that no longer wait, and the first error.
    async fn send_messages_together(&self, due: &[DueGroup]) -> (Vec<RecordId>, Result<(), Error>) {
        match self.send_due_groups(due).await {
            Ok(settled) => return (settled, Ok(())),
            Err(error) => {
                log_failure("failed to notify a batch of groups", &error);
            }
        }
        let (mut all_settled, mut result) = (Vec::new(), Ok(()));
        for due in due.chunks(1) {
            match self.send_due_groups(due).await {
                Ok(settled) => all_settled.extend(settled),
                Err(error) => {
                    log_failure("failed to notify a group", &error);
                    result = result.and(Err(error));
                }
            }
        }
        (all_settled, result)
    }

    async fn send_due_groups(&self, due: &[DueGroup]) -> Result<Vec<RecordId>, Error> {
        let deciding = (self.deciding, self.intake);
        let notify::Outcome {
            rest, mut settled, ..
        } = notify::notify_group(deciding, due).await?;
        settled.extend(rest.iter().filter_map(|key| read_id(key, 0)));
        for keys in rest.chunks(HOLDS_BATCH) {
            let found = self.read(keys.to_vec()).await?;
            self.decide_all(found, &JointRelease::default()).await?;
        }
        Ok(settled)
    }

    /// Re-evaluates occurrences, many per commit; if a commit fails, one by one.
    async fn decide_all(
        &self,
        found: Vec<Stored<Occurrence>>,
        together: &JointRelease,
    ) -> Result<(), Error> {
        let mut found = found.into_iter();
        let batches = std::iter::from_fn(|| {
            let batch: Vec<_> = found.by_ref().take(HOLDS_BATCH).collect();
            (!batch.is_empty()).then_some(batch)
        });
        // While one batch waits for its commit, the next is evaluated.
        let decided = batches.map(|batch| async {
            let keys: Vec<_> = batch.iter().map(|it| it.value.key()).collect();
            let Err(error) = self.decide_occurrence(&keys, Some(batch), together).await else {
                return Ok(());
            };
            log_failure(
                "failed to evaluate a batch of held notifications; evaluating each occurrence separately",
                &error,
            );
            let mut result = Ok(());
            for key in keys {
                if let Err(error) = self.decide_occurrence(&[key], None, together).await {
                    log_failure("failed to evaluate the held notifications of an occurrence", &error);
                    result = result.and(Err(error));
                }
            }
            result
        });
        let decided = join_all(decided.collect::<Vec<_>>()).await;
        decided.into_iter().collect()
    }

    /// Re-evaluates occurrences in one commit. `read` are their stored versions for the first try.
    async fn decide_occurrence(
        &self,
        keys: &[Vec<u8>],
        read: Option<Vec<Stored<Occurrence>>>,
        together: &JointRelease,
    ) -> Result<(), Error> {
        let store = &self.deciding.store;
        let read = Mutex::new(read);
        let decide = async || {
            let read = read.lock().unwrap_or_else(PoisonError::into_inner).take();
            let found = match read {
                Some(found) => found,
                None => self.read(keys.to_vec()).await?,
            };
            let causes = Causes::default();
            decide_with_causes(store, &causes, || {
                self.decide_changes(&found, &causes, together)
            })
            .await
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    async fn decide_changes(
        &self,
        found: &[Stored<Occurrence>],
        causes: &Causes,
        together: &JointRelease,
    ) -> Result<(Changes, RecordedReports), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refresh().await?;
        let past =
            revision::read_past_definitions(store, &snapshot, found.iter().map(|it| &it.value))
                .await?;
        let failed = failed_deliveries(store, found.iter().map(|it| &it.value)).await?;
        let past = past
            .with_causes(causes)
            .with_released_groups(together.groups.clone());
        let past = past
            .with_failed_deliveries(failed)
            .with_marked_inhibitions(self.marked.clone());
        let now_ms = self.deciding.clock.now_ms();
        let mut changes = store.new_changes();
        changes.depend_on(&snapshot);
        let mut reports = Reports::default();
        let in_force = snapshot.silences().as_slice().iter();
        let in_force = in_force.filter(|it| it.is_in_force(now_ms));
        let in_force: BTreeSet<_> = in_force.map(|it| it.silence.id).collect();
        let is_ended = |it: &HeldBy| it.kind == HoldKind::Silence && !in_force.contains(&it.id);
        let (mut decided, mut all_notices) = (Vec::new(), Vec::new());
        for stored in found {
            // The silence ended during this pass. The next pass counts how many notifications its
            // end releases.
            let mut held_by = stored.value.pending.iter().flat_map(|it| &it.held_by);
            if !together.releases_silenced && held_by.any(is_ended) {
                continue;
            }
            let mut next = stored.value.clone();
            let step = Step {
                kind: StepKind::Check,
                transition: Transition::default(),
                matches: &snapshot.matching_triggers(&next),
                now_ms,
                past: &past,
            };
            let notices = notify(&mut next, &step, &snapshot, &mut || new_id(now_ms));
            reports.add_reports(&notices, &next, now_ms);
            decided.push((stored, next));
            all_notices.push(notices);
        }
        let reported = all_notices.iter_mut().collect();
        respond::add_group_content((store, &*snapshot), reported).await?;
        let changed = decided.iter().map(|(stored, next)| (&stored.value, next));
        let new = all_notices.iter_mut().flat_map(|it| &mut it.deliveries);
        let (changed, new) = (changed.collect(), new.collect());
        cancel_pages(store, changed, new, now_ms, &mut changes).await?;
        for delivery in all_notices.iter().flat_map(|it| &it.deliveries) {
            changes.insert(delivery);
        }
        let changed = decided.iter();
        for (stored, next) in changed.filter(|(stored, next)| *next != stored.value) {
            changes.update(stored, next);
        }
        let reports = reports.record(&mut changes);
        Ok((changes, reports))
    }
}

fn held_range(standing: SilenceStanding, cause: &Occurrence) -> Range {
    let prefix = Key::new().byte(standing as u8).id(cause.key);
    Range::with_prefix(&prefix.build())
}

/// Returns the deliveries of responses that failed permanently or that wait for a paused
/// destination.
async fn failed_deliveries(
    store: &Store,
    occurrences: impl Iterator<Item = &Occurrence>,
) -> Result<BTreeSet<RecordId>, EngineError> {
    let notified = occurrences.flat_map(|it| &it.notified);
    let active = notified.filter_map(|it| it.response.as_ref());
    let active = active.filter(|it| it.state == ResponseState::Active);
    let pages = active.flat_map(|it| it.last_step_receivers());
    let keys: Vec<Vec<u8>> = pages.map(|it| it.delivery.to_bytes().into()).collect();
    if keys.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sent = store.get_many::<Delivery>(keys).await?;
    let sent: Vec<_> = sent.into_iter().flatten().map(|it| it.value).collect();
    let health = sent.iter().map(|it| it.destination.to_bytes().into());
    let health = store.get_many::<Health>(health.collect()).await?;
    let does_not_arrive = |(sent, health): (&Delivery, Option<Stored<Health>>)| {
        let is_paused = health.is_some_and(|it| it.value.state == HealthState::Paused);
        let is_dead = matches!(sent.state, DeliveryState::Dead | DeliveryState::Cancelled);
        (is_dead || is_paused && sent.state.due_ms().is_some()).then_some(sent.id)
    };
    Ok(sent
        .iter()
        .zip(health)
        .filter_map(does_not_arrive)
        .collect())
}
