//! The first part of a commit: outcomes of deliveries, and the health of their destinations.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use rand::Rng;

use super::{CommitPlan, LeaseEnd, Ledger, UnrecordedAttempt, interrupted_count};
use crate::{
    delivery::{
        decide::{self, RetryContext},
        health,
        queues::Queues,
    },
    domain::{Delivery, Destination, Health, HealthState, Outcome, RecordId},
    ops::delivery::attempt,
    send::mail_addresses,
    store::{EngineError, Store, Stored},
};

/// The data needed to record outcomes.
#[derive(Debug)]
pub(super) struct AttemptEnds {
    /// The deliveries with outcomes, each with the number of its earlier attempts that were
    /// interrupted.
    ended: Vec<(RecordId, u32)>,
    healths: HealthUpdates,
    /// Destinations whose health is not stored yet.
    untried: BTreeMap<RecordId, Stored<Destination>>,
}

/// The health of destinations: the stored value, and a copy to be updated.
type HealthUpdates = BTreeMap<RecordId, (Option<Stored<Health>>, Option<Health>)>;

impl Ledger {
    pub(super) async fn read_ends(&self, queues: &Queues) -> Result<AttemptEnds, EngineError> {
        let ended = self.unrecorded.iter();
        let ended = ended.filter_map(|(id, it)| Some((*id, it, it.end.as_ref()?)));
        let ended: Vec<_> = ended.collect();
        let destinations = ended.iter().map(|(_, it, _)| it.destination);
        let before = ended.iter().map(|(id, it, end)| match end {
            LeaseEnd::Attempted(report)
                if decide::counts_against_limit(&report.verdict, it.early_for_ms) =>
            {
                (*id, it.number.saturating_sub(1))
            }
            _ => (*id, 0),
        });
        let count =
            |store: Store, (id, before)| async move { interrupted_count(&store, id, before).await };
        let counts = self.store.read_each(before, count);
        let healths = self.read_healths(destinations.collect(), queues);
        let (counts, (healths, untried)) = try_join(counts, healths).await?;
        let ended = ended.into_iter().zip(counts);
        Ok(AttemptEnds {
            ended: ended.map(|((id, ..), count)| (id, count)).collect(),
            healths,
            untried,
        })
    }

    async fn read_healths(
        &self,
        destinations: BTreeSet<RecordId>,
        queues: &Queues,
    ) -> Result<(HealthUpdates, BTreeMap<RecordId, Stored<Destination>>), EngineError> {
        let keys = destinations.iter().map(|id| id.to_bytes().into()).collect();
        let (stored, unreadable) = self.store.get_readable::<Health>(keys).await?;
        let is_readable =
            |id: &RecordId| !unreadable.iter().any(|key| key[..] == id.to_bytes()[..]);
        let all = destinations.into_iter().zip(stored);
        let all = all.filter(|(id, _)| is_readable(id)).map(|(id, old)| {
            let current = old.as_ref().map(|old| old.value.clone());
            (id, (old, current))
        });
        let healths: HealthUpdates = all.collect();
        let untried = healths.iter().filter(|(_, (old, _))| old.is_none());
        let names = untried.filter_map(|(id, _)| Some(queues.get(*id)?.name.as_bytes().into()));
        let found = self.store.get_many::<Destination>(names.collect()).await?;
        let found = found.into_iter().flatten();
        let untried = found.map(|found| (found.value.id, found)).collect();
        Ok((healths, untried))
    }

    pub(super) fn plan_ends(&mut self, plan: &mut CommitPlan, queues: &Queues, ends: AttemptEnds) {
        let AttemptEnds {
            ended,
            mut healths,
            untried,
        } = ends;
        for (id, cut_off) in ended {
            let random = self.random.random();
            let now_ms = self.clock.now_ms();
            let Some((unrecorded, end)) = self.unrecorded_end(id) else {
                continue;
            };
            let destination = unrecorded.destination;
            let settings = queues.destination(destination).map(|found| found.delivery);
            let around = RetryContext {
                backoff: match &unrecorded.delivery {
                    Some(stored) => self.backoff(&stored.value),
                    None => &self.backoff,
                },
                now_ms,
                random,
                cut_off,
                early_for_ms: unrecorded.early_for_ms,
                settings,
            };
            let dead = plan.dead.len();
            let due_ms = plan_end(plan, unrecorded, end, &around);
            let died = plan.dead.len() > dead;
            plan.ends.push((id, due_ms));
            if let (LeaseEnd::Attempted(report), true) = (end, settings.is_some()) {
                // Unreadable health is left unchanged.
                let Some((_, current)) = healths.get_mut(&destination) else {
                    continue;
                };
                let old = current.as_ref();
                let pause_after = self.config.pause_after;
                let mut next =
                    health::health_after(old, destination, report, died, now_ms, pause_after);
                if let (Some(next), Some(found)) = (&mut next, queues.destination(destination))
                    && !next.refused.is_empty()
                {
                    // The attempt may have begun before an address was removed.
                    let addresses = mail_addresses(&found.kind);
                    next.refused.retain(|it| addresses.contains(&it.address));
                }
                if let (Some(next), Some(queue)) = (&mut next, queues.get(destination)) {
                    next.alike.clone_from(&queue.refusals);
                }
                *current = next.or(current.take());
            }
        }
        for (id, (old, current)) in healths {
            if let Some(current) = current {
                plan_health(plan, old.as_ref(), current, untried.get(&id));
            }
        }
    }

    fn unrecorded_end(&self, delivery: RecordId) -> Option<(&UnrecordedAttempt, &LeaseEnd)> {
        let unrecorded = self.unrecorded.get(&delivery)?;
        Some((unrecorded, unrecorded.end.as_ref()?))
    }
}

/// Records the health of a destination. `untried` is the destination if no health is stored yet.
fn plan_health(
    plan: &mut CommitPlan,
    old: Option<&Stored<Health>>,
    current: Health,
    untried: Option<&Stored<Destination>>,
) {
    match (old, untried) {
        (Some(old), _) if old.value == current => return,
        (Some(old), _) => plan.changes.update(old, &current),
        (None, Some(destination)) => {
            // A destination that is being deleted must not leave its health behind.
            plan.changes.touch_record(destination);
            plan.changes.insert(&current);
        }
        (None, None) => return,
    }
    let refused = |health: &Health| {
        let refused = health.refused.iter();
        let refused = refused.map(|it| (it.address.clone(), it.is_permanent));
        refused.collect::<Vec<_>>()
    };
    if old.map(|old| refused(&old.value)).unwrap_or_default() != refused(&current) {
        plan.refused
            .push((current.destination, current.refused.clone()));
    }
    if current.state == HealthState::Paused {
        plan.paused.push(current);
    }
}

/// Records the outcome of a lease, and returns the next due time of the delivery.
fn plan_end(
    plan: &mut CommitPlan,
    unrecorded: &UnrecordedAttempt,
    end: &LeaseEnd,
    around: &RetryContext<'_>,
) -> Option<i64> {
    let delivery = unrecorded.delivery.as_ref()?;
    let (attempt, number) = (&unrecorded.attempt, unrecorded.number);
    let next = match end {
        LeaseEnd::GivenBack => {
            if let Some(attempt) = attempt {
                plan.changes.delete(attempt);
            }
            Some(decide::release_lease(&delivery.value, number, around))
        }
        LeaseEnd::Attempted(report) => {
            let begun = attempt.as_ref().map(|attempt| attempt.value.clone());
            let begun = begun.unwrap_or_else(|| attempt::new_attempt(delivery.value.id, number, 0));
            let ended = attempt::ended_attempt(&begun, report, delivery.value.is_reduced);
            if report.verdict.outcome != Outcome::Delivered {
                plan.count_failure(&delivery.value, around.now_ms);
            }
            let advice = report.verdict.advice;
            let next =
                decide::delivery_after_attempt(&delivery.value, number, &ended, advice, around);
            let next = next.map(|next| Delivery {
                recipients: report.verdict.settled_recipients(&next.recipients),
                kept: report.verdict.kept.clone(),
                ..next
            });
            if let Some(attempt) = attempt {
                let is_current = next.as_ref().is_none_or(|next| next.attempts >= number);
                if is_current {
                    plan.changes.update(attempt, &ended);
                } else {
                    plan.changes.delete(attempt);
                }
            }
            if next.is_none() {
                // Attempts are not logged; the change of their delivery represents them.
                plan.changes.touch_record(delivery);
            }
            next
        }
    }?;
    plan.changes.update(delivery, &next);
    plan.record_end(&next);
    next.state.due_ms()
}
