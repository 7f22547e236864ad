//! The first part of a commit: outcomes of deliveries, and the health of their destinations.

use std::collections::BTreeMap;

use rand::Rng;

use super::{LeaseEnd, Ledger, Plan, Unrecorded};
use crate::{
    delivery::{
        decide::{self, Circumstances},
        health,
        queues::Queues,
    },
    destination::mail_addresses,
    domain::{Delivery, Destination, Health, HealthState, Outcome, RecordId},
    ops::delivery::attempt,
    store::{EngineError, Stored},
};

/// The health of destinations: the stored value, and a copy to be updated.
pub(super) type Healths = BTreeMap<RecordId, (Option<Stored<Health>>, Option<Health>)>;

impl Ledger {
    pub(super) async fn plan_ends(
        &mut self,
        plan: &mut Plan,
        queues: &Queues,
    ) -> Result<(), EngineError> {
        let ended = self.unrecorded.iter().filter(|(_, it)| it.end.is_some());
        let ended: Vec<_> = ended.map(|(id, it)| (*id, it.destination)).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let destinations = ended.iter().map(|(_, destination)| *destination);
        let mut healths = self.read_health(destinations.collect()).await?;
        for (id, destination) in ended {
            let random = self.random.random();
            let now_ms = self.clock.now_ms();
            let Some((unrecorded, end)) = self.unrecorded_end(id) else {
                continue;
            };
            let settings = queues.destination(destination).map(|found| found.delivery);
            let cut_off = match end {
                LeaseEnd::Attempted(report)
                    if decide::uses_attempt(&report.verdict, unrecorded.early_for_ms) =>
                {
                    let before = unrecorded.number.saturating_sub(1);
                    self.interrupted_count(id, before).await?
                }
                _ => 0,
            };
            let around = Circumstances {
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
            self.plan_health(plan, queues, id, old.as_ref(), current)
                .await?;
        }
        Ok(())
    }

    fn unrecorded_end(&self, delivery: RecordId) -> Option<(&Unrecorded, &LeaseEnd)> {
        let unrecorded = self.unrecorded.get(&delivery)?;
        Some((unrecorded, unrecorded.end.as_ref()?))
    }

    async fn plan_health(
        &self,
        plan: &mut Plan,
        queues: &Queues,
        id: RecordId,
        old: Option<&Stored<Health>>,
        current: Option<Health>,
    ) -> Result<(), EngineError> {
        let Some(current) = current else {
            return Ok(());
        };
        match old {
            Some(old) if old.value == current => return Ok(()),
            Some(old) => plan.changes.update(old, &current),
            None => {
                // A destination that is being deleted must not leave its health behind.
                let name = queues.get(id).map(|queue| queue.name.as_bytes().into());
                let destination = self.store.get::<Destination>(name.unwrap_or_default());
                let destination = destination.await?.filter(|found| found.value.id == id);
                let Some(destination) = destination else {
                    return Ok(());
                };
                plan.changes.touch(&destination);
                plan.changes.insert(&current);
            }
        }
        let refused = |health: &Health| {
            let refused = health.refused.iter();
            let refused = refused.map(|it| (it.address.clone(), it.is_permanent));
            refused.collect::<Vec<_>>()
        };
        if old.map(|old| refused(&old.value)).unwrap_or_default() != refused(&current) {
            plan.refused.push((id, current.refused.clone()));
        }
        if current.state == HealthState::Paused {
            plan.paused.push(current);
        }
        Ok(())
    }
}

/// Records the outcome of a lease. Returns the next due time of the delivery.
fn plan_end(
    plan: &mut Plan,
    unrecorded: &Unrecorded,
    end: &LeaseEnd,
    around: &Circumstances<'_>,
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
            let next = decide::after_attempt(&delivery.value, number, &ended, advice, around);
            let next = next.map(|next| Delivery {
                recipients: report.verdict.settled_recipients(&next.recipients),
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
                plan.changes.touch(delivery);
            }
            next
        }
    }?;
    plan.changes.update(delivery, &next);
    plan.note_end(&next);
    next.state.due_ms()
}
