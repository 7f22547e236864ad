//! One commit: the ends of attempts, and the leases of those that begin.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use rand::Rng;

use super::{Dispatcher, End};
use crate::{
    delivery::{
        decide::{self, Circumstances},
        health,
        lane::Lease,
        notice,
    },
    domain::{
        Attempt, Delivery, DeliveryState, Destination, Health, HealthState, Outcome, RecordId,
    },
    ops::delivery::attempt::{self, attempt_key},
    store::{Changes, EngineError, Lane as Queue, Stored},
};

/// Times a plan is made anew because somebody else changed what it rests on.
const TRIES_MAX: usize = 16;

/// What one commit does, and what follows from it once it is on disk.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) changes: Changes,
    /// The deliveries whose ends are recorded, with when they are due next.
    ends: Vec<(RecordId, Option<i64>)>,
    /// Destinations that are paused from now on.
    pub(super) paused: Vec<Health>,
    /// Deliveries that died: their destination, and what their last attempt said.
    pub(super) dead: Vec<(RecordId, String)>,
    /// What is left of the destinations that were looked at.
    pub(super) left: Vec<Left>,
    /// What is to be sent.
    pub(super) leases: Vec<Lease>,
}

/// What is left of a destination after a plan.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) destination: RecordId,
    /// When the first delivery that is left is due.
    pub(super) due_ms: i64,
    /// Attempts that may begin as soon as they are leased.
    pub(super) places: usize,
    /// Whether a delivery that was tried before is among those that are due.
    pub(super) again: bool,
    /// Whether nothing more is to be leased in this plan.
    pub(super) is_full: bool,
}

impl Left {
    /// Whether a delivery may be leased now. One that was tried before is leased when its attempt
    /// can begin at once: whoever is cut off a second time was cut off in an attempt of its own.
    pub(super) fn admits(&mut self, delivery: &Delivery) -> bool {
        let is_again = delivery.attempts > 0;
        self.again |= is_again;
        self.is_full |= is_again && self.places == 0;
        if self.is_full {
            let due_ms = delivery.state.due_ms().unwrap_or(i64::MAX);
            self.due_ms = self.due_ms.min(due_ms);
            return false;
        }
        self.places = self.places.saturating_sub(1);
        true
    }
}

impl Plan {
    /// Takes note of a delivery as it is after an attempt.
    pub(super) fn note_end(&mut self, delivery: &Delivery) {
        if delivery.state == DeliveryState::Dead {
            let error = delivery.last_error.clone();
            self.dead.push((delivery.destination, error));
        }
    }

    /// Takes note of a delivery that is left.
    pub(super) fn leave(&mut self, destination: RecordId, due_ms: i64) {
        let left = self.left.iter_mut();
        for left in left.filter(|left| left.destination == destination) {
            left.due_ms = left.due_ms.min(due_ms);
        }
    }

    /// Has a delivery that is due wait, without an attempt.
    pub(super) fn hold_back(&mut self, delivery: &Stored<Delivery>, until_ms: i64) {
        let mut held = delivery.value.clone();
        held.state = match held.state {
            DeliveryState::Retry { .. } => DeliveryState::Retry { due_ms: until_ms },
            _ => DeliveryState::Pending { due_ms: until_ms },
        };
        self.changes.update(delivery, &held);
        self.leave(held.destination, until_ms);
    }
}

impl Dispatcher {
    /// Records the ends there are and, when asked to, leases what is due.
    pub(super) async fn commit_plan(&mut self, leasing: bool) -> Result<Plan, EngineError> {
        for _ in 0..TRIES_MAX {
            let mut plan = Plan {
                changes: self.store.changes(),
                ends: Vec::new(),
                paused: Vec::new(),
                dead: Vec::new(),
                left: Vec::new(),
                leases: Vec::new(),
            };
            self.plan_ends(&mut plan).await?;
            if leasing {
                self.plan_leases(&mut plan).await?;
            }
            let changes = std::mem::replace(&mut plan.changes, self.store.changes());
            let sequence = if changes.is_empty() {
                None
            } else {
                match self.store.apply(Queue::Bulk, changes).await {
                    Ok(sequence) => Some(sequence),
                    Err(EngineError::Conflict) => continue,
                    Err(error) => return Err(error),
                }
            };
            self.adopt(&plan, sequence);
            return Ok(plan);
        }
        Err(EngineError::Conflict)
    }

    /// Takes over into memory what is on disk now.
    fn adopt(&mut self, plan: &Plan, sequence: Option<u64>) {
        for left in &plan.left {
            if let Some(lane) = self.lanes.get_mut(&left.destination) {
                lane.due_ms = left.due_ms;
                lane.quick &= !left.again;
                self.turn = left.destination;
            }
        }
        for &(delivery, due_ms) in &plan.ends {
            let Some(finished) = self.unrecorded.remove(&delivery) else {
                continue;
            };
            if let Some(sequence) = sequence {
                self.recorded.insert(delivery, sequence);
            }
            if let Some(lane) = self.lanes.get_mut(&finished.destination) {
                lane.unrecorded -= 1;
                lane.expect(due_ms.unwrap_or(i64::MAX));
            }
        }
        for health in &plan.paused {
            let Some(lane) = self.lanes.get_mut(&health.destination) else {
                continue;
            };
            lane.paused = true;
            let now_ms = self.clock.now_ms();
            let notice = notice::paused(&lane.name, &health.last_error, now_ms);
            self.sender.report(notice);
        }
        for (destination, last_error) in &plan.dead {
            self.tell_dead(*destination, last_error);
        }
    }

    async fn plan_ends(&mut self, plan: &mut Plan) -> Result<(), EngineError> {
        let finished: Vec<(RecordId, RecordId, u32, End)> = self
            .unrecorded
            .iter()
            .filter_map(|(id, finishing)| {
                let end = finishing.end.clone()?;
                Some((*id, finishing.destination, finishing.number, end))
            })
            .collect();
        if finished.is_empty() {
            return Ok(());
        }
        let keys = finished
            .iter()
            .map(|(id, ..)| id.to_bytes().into())
            .collect();
        let (deliveries, unreadable) = self.store.get_readable::<Delivery>(keys).await?;
        for key in unreadable {
            let of = finished
                .iter()
                .find(|(id, ..)| id.to_bytes()[..] == key[..]);
            if let Some((_, destination, ..)) = of {
                self.set_aside(*destination, &key);
            }
        }
        let keys = finished
            .iter()
            .map(|(id, _, number, _)| attempt_key(*id, *number))
            .collect();
        let (attempts, _) = self.store.get_readable::<Attempt>(keys).await?;
        let mut healths = self
            .healths(finished.iter().map(|(_, destination, ..)| *destination))
            .await?;
        for ((finished, delivery), attempt) in finished.into_iter().zip(deliveries).zip(attempts) {
            let (id, destination, number, end) = finished;
            let now_ms = self.clock.now_ms();
            let settings = self.destination(destination).map(|found| found.delivery);
            let cut_off = match &end {
                End::Made(report) if report.verdict.outcome != Outcome::Delivered => {
                    self.cut_offs(id, number.saturating_sub(1)).await?
                }
                _ => 0,
            };
            let around = Circumstances {
                schedule: &self.schedule,
                now_ms,
                random: self.random.random(),
                cut_off,
                settings,
            };
            let due_ms = delivery.and_then(|delivery| {
                plan_end(plan, (&delivery, attempt.as_ref()), number, &end, &around)
            });
            plan.ends.push((id, due_ms));
            if let (End::Made(report), true) = (end, settings.is_some()) {
                // One that cannot be read stays as it is.
                let Some((_, current)) = healths.get_mut(&destination) else {
                    continue;
                };
                let old = current.as_ref();
                let pause_after = self.config.pause_after;
                let next = health::after(old, destination, &report.verdict, now_ms, pause_after);
                *current = next.or(current.take());
            }
        }
        for (id, (old, current)) in healths {
            self.plan_health(plan, id, old.as_ref(), current).await?;
        }
        Ok(())
    }

    /// Records a destination's health when it changed.
    async fn plan_health(
        &self,
        plan: &mut Plan,
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
                // A destination that is deleted at this moment must not leave its health behind.
                let name = self.lanes.get(&id).map(|lane| lane.name.as_bytes().into());
                let destination = self.store.get::<Destination>(name.unwrap_or_default());
                let destination = destination.await?.filter(|found| found.value.id == id);
                let Some(destination) = destination else {
                    return Ok(());
                };
                plan.changes.touch(&destination);
                plan.changes.insert(&current);
            }
        }
        if current.state == HealthState::Paused {
            plan.paused.push(current);
        }
        Ok(())
    }

    /// How many of the first attempts of a delivery were cut off. One that cannot be read was not.
    pub(super) async fn cut_offs(
        &self,
        delivery: RecordId,
        attempts: u32,
    ) -> Result<u32, EngineError> {
        if attempts == 0 {
            return Ok(0);
        }
        let keys = (1..=attempts).map(|number| attempt_key(delivery, number));
        let (found, _) = self.store.get_readable::<Attempt>(keys.collect()).await?;
        let found = found.iter().flatten();
        let cut_off = found.filter(|attempt| decide::is_cut_off(&attempt.value));
        Ok(cut_off.count().try_into().unwrap_or(u32::MAX))
    }

    pub(super) fn destination(&self, id: RecordId) -> Option<&Arc<Destination>> {
        self.lanes.get(&id)?.destination.as_ref()
    }

    /// The health of destinations, where it can be read: as it is stored, and as it becomes.
    async fn healths(
        &self,
        destinations: impl Iterator<Item = RecordId>,
    ) -> Result<BTreeMap<RecordId, (Option<Stored<Health>>, Option<Health>)>, EngineError> {
        let destinations: Vec<_> = destinations.collect::<HashSet<_>>().into_iter().collect();
        let keys = destinations.iter().map(|id| id.to_bytes().into()).collect();
        let (stored, unreadable) = self.store.get_readable::<Health>(keys).await?;
        let both = stored.into_iter().map(|old| {
            let current = old.as_ref().map(|old| old.value.clone());
            (old, current)
        });
        let all = destinations.into_iter().zip(both);
        let is_readable =
            |id: &RecordId| !unreadable.iter().any(|key| key[..] == id.to_bytes()[..]);
        Ok(all.filter(|(id, _)| is_readable(id)).collect())
    }
}

/// Records the end of a lease; answers when the delivery is due next.
fn plan_end(
    plan: &mut Plan,
    (delivery, attempt): (&Stored<Delivery>, Option<&Stored<Attempt>>),
    number: u32,
    end: &End,
    around: &Circumstances<'_>,
) -> Option<i64> {
    let next = match end {
        End::GivenBack => {
            if let Some(attempt) = attempt {
                plan.changes.delete(attempt);
            }
            Some(decide::given_back(&delivery.value, number, around.now_ms))
        }
        End::Made(report) => {
            let begun = attempt.map(|attempt| attempt.value.clone());
            let begun = begun.unwrap_or_else(|| attempt::attempt(delivery.value.id, number, 0));
            let ended = attempt::ended(&begun, report);
            if let Some(attempt) = attempt {
                plan.changes.update(attempt, &ended);
            }
            let advice = report.verdict.advice;
            let next = decide::after(&delivery.value, number, &ended, advice, around);
            if next.is_none() {
                // The log does not tell of attempts: that of their delivery does.
                plan.changes.touch(delivery);
            }
            next
        }
    }?;
    plan.changes.update(delivery, &next);
    plan.note_end(&next);
    next.state.due_ms()
}
