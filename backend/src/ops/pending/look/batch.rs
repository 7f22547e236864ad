//! Re-evaluates some occurrences: first what causes among them held that are over, then the groups
//! that are due, then what else waits of them.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::together::Together;
use crate::{
    decide::{Causes, Step, StepKind, Transition, notify},
    domain::{
        CauseMark, Delivery, DeliveryState, Health, HealthState, HeldBy, HoldKind, Occurrence,
        Pending, RecordId, ResponseState,
    },
    error::{Error, log_failure},
    limits::{LOOK_BATCH, TELL_BATCH, TELLS_AT_ONCE},
    ops::{
        cause_lookup::settled,
        commit::commit,
        deciding::{Deciding, new_id},
        group::{
            notify::{self, Due},
            respond,
        },
        intake::Intake,
        loop_guard::Reports,
        response::cancel::cancel_pages,
        revision,
    },
    store::{
        Changes, Direction, EngineError, Index, Lane, Record as _, SilenceStanding, Store, Stored,
        engine::Range,
        record::bytes::{Key, id_at},
    },
};
use futures_util::{
    future::join_all,
    stream::{self, StreamExt as _},
};

/// What re-evaluating takes.
pub(super) struct Batch<'a> {
    deciding: &'a Deciding,
    intake: &'a Intake,
    has_failed: &'a AtomicBool,
}

impl<'a> Batch<'a> {
    /// Records in `has_failed` whether something failed that may pass soon.
    pub(super) fn new(
        deciding: &'a Deciding,
        intake: &'a Intake,
        has_failed: &'a AtomicBool,
    ) -> Self {
        Self {
            deciding,
            intake,
            has_failed,
        }
    }

    fn fail(&self, work: &'static str, error: &Error) {
        log_failure(work, error);
        // What is damaged stays so.
        if !matches!(error, Error::Internal(_)) {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }

    /// Re-evaluates the occurrences of these keys. What fails is reported in the log, and is still
    /// due.
    pub(super) async fn look_at(&self, keys: Vec<Vec<u8>>, together: &Together) {
        let freed = async {
            let found = self.read(keys).await?;
            self.free_held(&found).await?;
            Ok::<_, Error>(found)
        };
        let mut found = match freed.await {
            Ok(found) => found,
            // They are due for as long as that was not done.
            Err(error) => {
                return self.fail("failed to evaluate what ended causes held", &error);
            }
        };
        self.tell(&mut found).await;
        self.move_responses(&mut found).await;
        self.decide_all(found, together).await;
    }

    async fn read(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Stored<Occurrence>>, EngineError> {
        let found = self.deciding.store.get_many::<Occurrence>(keys).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Re-evaluates what was held by those of the occurrences that are causes no more.
    async fn free_held(&self, found: &[Stored<Occurrence>]) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refreshed().await?;
        if snapshot.inhibitions().all().is_empty() {
            return Ok(());
        }
        let now_ms = self.deciding.clock.now_ms();
        let is_over = |it: &CauseMark| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let over = found.iter().map(|it| &it.value);
        for cause in over.filter(|it| it.causes.iter().any(is_over)) {
            let prefix = Key::new()
                .byte(SilenceStanding::Inhibited as u8)
                .id(cause.key);
            let mut range = Range::under(&prefix.build());
            let over: Vec<_> = cause.causes.iter().filter(|it| is_over(it)).collect();
            let is_freed = |it: &HeldBy| {
                let mut over = over.iter();
                it.kind == HoldKind::Inhibition && over.any(|mark| mark.inhibition == it.id)
            };
            let index = Index::OccurrenceBySilence;
            let together = Together::of(self.deciding, index, range.clone(), &is_freed).await?;
            loop {
                let engine = self.deciding.store.engine();
                let held = engine.entries(index, range.clone(), Direction::Ascending, LOOK_BATCH);
                let held = held.await?;
                let Some((last, _)) = held.last() else { break };
                range.go_on_after(last);
                let keys = held.into_iter().map(|(_, record)| record).collect();
                self.decide_all(self.read(keys).await?, &together).await;
            }
        }
        Ok(())
    }

    /// Makes the messages of groups that some of the occurrences wait for and that are due, and leaves
    /// those of which something else is due.
    async fn tell(&self, found: &mut Vec<Stored<Occurrence>>) {
        let now_ms = self.deciding.clock.now_ms();
        let is_due = |it: &&Pending| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let pending = found.iter().flat_map(|it| &it.value.pending);
        let due: BTreeSet<_> = pending.filter(is_due).filter_map(Due::of).collect();
        let due: Vec<_> = due.into_iter().collect();
        let of_one_rule = due.chunk_by(|one, next| one.rule == next.rule);
        let batches = of_one_rule.flat_map(|it| it.chunks(TELL_BATCH));
        let tells = batches.map(|batch| self.tell_all(batch));
        let tells: Vec<_> = tells.collect();
        let tells = stream::iter(tells).buffer_unordered(TELLS_AT_ONCE);
        let settled: BTreeSet<_> = tells
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .flatten()
            .collect();
        found.retain(|it| {
            let mut due = it.value.pending.iter().filter(is_due);
            let is_due = due.any(|it| Due::of(it).is_none());
            let is_left = is_due || !it.value.causes.is_empty();
            is_left || respond::is_to_move(&it.value, now_ms) || !settled.contains(&it.value.key)
        });
    }

    /// Has other members of their groups carry the responses that some of the occurrences carry no more, and
    /// leaves those that were not changed with that.
    async fn move_responses(&self, found: &mut Vec<Stored<Occurrence>>) {
        let mut moved = BTreeSet::new();
        for carrier in found.iter().map(|it| &it.value) {
            match respond::move_on((self.deciding, self.intake), carrier).await {
                Ok(true) => drop(moved.insert(carrier.key)),
                Ok(false) => {}
                Err(error) => self.fail("failed to move the response of a group", &error),
            }
        }
        found.retain(|it| !moved.contains(&it.value.key));
    }

    /// Makes the messages of these groups of a rule; where that fails, one by one. Answers what was
    /// decided with that.
    async fn tell_all(&self, due: &[Due]) -> Vec<RecordId> {
        match self.tell_some(due).await {
            Ok(settled) => return settled,
            Err(error) => {
                log_failure("failed to notify groups together", &error);
            }
        }
        let mut all_settled = Vec::new();
        for due in due.chunks(1) {
            match self.tell_some(due).await {
                Ok(settled) => all_settled.extend(settled),
                Err(error) => self.fail("failed to notify a group", &error),
            }
        }
        all_settled
    }

    async fn tell_some(&self, due: &[Due]) -> Result<Vec<RecordId>, Error> {
        let deciding = (self.deciding, self.intake);
        let notify::Outcome {
            rest, mut settled, ..
        } = notify::notify_group(deciding, due).await?;
        settled.extend(rest.iter().filter_map(|key| id_at(key, 0)));
        for keys in rest.chunks(LOOK_BATCH) {
            let found = self.read(keys.to_vec()).await?;
            self.decide_all(found, &Together::default()).await;
        }
        Ok(settled)
    }

    /// Re-evaluates some occurrences, many with a commit; where that fails, one by one.
    async fn decide_all(&self, found: Vec<Stored<Occurrence>>, together: &Together) {
        let mut found = found.into_iter();
        let batches = std::iter::from_fn(|| {
            let batch: Vec<_> = found.by_ref().take(LOOK_BATCH).collect();
            (!batch.is_empty()).then_some(batch)
        });
        // While one waits for its commit, the next is decided.
        let decided = batches.map(|batch| async {
            let keys: Vec<_> = batch.iter().map(|it| it.value.key()).collect();
            let Err(fault) = self.decide(&keys, Some(batch), together).await else {
                return;
            };
            log_failure("failed to evaluate held notifications together", &fault);
            for key in keys {
                if let Err(error) = self.decide(&[key], None, together).await {
                    self.fail("failed to evaluate held notifications", &error);
                }
            }
        });
        join_all(decided.collect::<Vec<_>>()).await;
    }

    /// Re-evaluates occurrences in one commit; what was read of them before is good for the first
    /// try.
    async fn decide(
        &self,
        keys: &[Vec<u8>],
        read: Option<Vec<Stored<Occurrence>>>,
        together: &Together,
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
            settled(store, &causes, || self.decided(&found, &causes, together)).await
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    /// What is to be changed of some occurrences, as far as their causes are known.
    async fn decided(
        &self,
        found: &[Stored<Occurrence>],
        causes: &Causes,
        together: &Together,
    ) -> Result<(Changes, Reports), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let past = revision::past(store, &snapshot, found.iter().map(|it| &it.value)).await?;
        let failed = failed(store, found.iter().map(|it| &it.value)).await?;
        let past = past.asking(causes).freeing(together.0.clone());
        let past = past.failing(failed);
        let now_ms = self.deciding.clock.now_ms();
        let mut changes = store.changes();
        changes.rest_on(&snapshot);
        let mut reports = Reports::default();
        for stored in found {
            let mut next = stored.value.clone();
            let step = Step {
                kind: StepKind::Look,
                transition: Transition::default(),
                matches: &snapshot.matches(&next),
                now_ms,
                past: &past,
            };
            let mut notices = notify(&mut next, &step, &snapshot, &mut || new_id(now_ms));
            respond::report_on_groups(store, &mut notices).await?;
            reports.note(&notices, &next, now_ms);
            let change = (&stored.value, &next);
            cancel_pages(store, change, &mut notices.deliveries, now_ms, &mut changes).await?;
            for delivery in &notices.deliveries {
                changes.insert(delivery);
            }
            if next != stored.value {
                changes.update(stored, &next);
            }
        }
        Ok((changes, reports))
    }
}

/// The deliveries of responses that ended dead, or wait for a paused destination.
async fn failed(
    store: &Store,
    occurrences: impl Iterator<Item = &Occurrence>,
) -> Result<BTreeSet<RecordId>, EngineError> {
    let notified = occurrences.flat_map(|it| &it.notified);
    let active = notified.filter_map(|it| it.response.as_ref());
    let active = active.filter(|it| it.state == ResponseState::Active);
    let pages = active.flat_map(|it| it.of_last_step());
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
