//! The part of a commit that begins: which deliveries are due, and their leases.

use std::{ops::Bound, sync::Arc};

use rand::Rng;

use super::{Dispatcher, plan::Plan};
use crate::{
    delivery::{
        decide::{self, Circumstances, attempt_key},
        lane::Lease,
        schedule::timeout,
        verdict::Advice,
    },
    domain::{Attempt, Delivery, DeliveryState, Destination},
    store::{
        Direction, EngineError, Index, Stored,
        engine::Range,
        record::bytes::{id_at, moment_at},
    },
};

/// A delivery that is due.
struct Due {
    destination: Arc<Destination>,
    key: Vec<u8>,
}

impl Dispatcher {
    /// Leases what is due and may begin, and takes over what others leased and lost.
    pub(super) async fn plan_leases(&mut self, plan: &mut Plan) -> Result<(), EngineError> {
        let due = self.due(plan).await?;
        if due.is_empty() {
            return Ok(());
        }
        let keys = due.iter().map(|due| due.key.clone()).collect();
        let (deliveries, unreadable) = self.store.get_readable::<Delivery>(keys).await?;
        for (due, delivery) in due.into_iter().zip(deliveries) {
            let Some(delivery) = delivery else {
                if unreadable.contains(&due.key) {
                    self.set_aside(due.destination.id, &due.key);
                }
                continue;
            };
            let settings = due.destination.delivery;
            let attempts_max = self.schedule.attempts_max(settings);
            match delivery.value.state {
                DeliveryState::Leased { .. } => {
                    self.plan_lost(plan, &delivery, &due.destination).await?;
                }
                DeliveryState::Pending { .. } | DeliveryState::Retry { .. }
                    if delivery.value.attempts >= attempts_max =>
                {
                    let dead = Delivery {
                        state: DeliveryState::Dead,
                        end_ms: Some(self.clock.now_ms()),
                        ..delivery.value.clone()
                    };
                    plan.changes.update(&delivery, &dead);
                    plan.dead.push((dead.destination, dead.last_error));
                }
                DeliveryState::Pending { .. } | DeliveryState::Retry { .. } => {
                    if let Some(until_ms) = self.held_until(&delivery.value).await? {
                        plan.hold_back(&delivery, until_ms);
                        continue;
                    }
                    let limit = timeout(&self.config, &due.destination);
                    let (begun, attempt) =
                        decide::begun(&delivery.value, limit, self.clock.now_ms());
                    plan.changes.update(&delivery, &begun);
                    plan.changes.insert(&attempt);
                    plan.leases.push(Lease {
                        delivery: begun,
                        destination: due.destination,
                    });
                }
                DeliveryState::Delivered | DeliveryState::Dead | DeliveryState::Cancelled => {}
            }
        }
        Ok(())
    }

    /// A delivery whose lease ran out goes on as after a failed attempt.
    async fn plan_lost(
        &mut self,
        plan: &mut Plan,
        delivery: &Stored<Delivery>,
        destination: &Destination,
    ) -> Result<(), EngineError> {
        let number = delivery.value.attempts;
        let key = attempt_key(delivery.value.id, number);
        let (mut found, _) = self.store.get_readable::<Attempt>(vec![key]).await?;
        let attempt = found.pop().flatten();
        let begun = attempt.as_ref().map(|attempt| attempt.value.clone());
        let begun = begun.unwrap_or_else(|| decide::attempt(delivery.value.id, number, 0));
        let lost = decide::lost(&begun);
        let around = Circumstances {
            schedule: &self.schedule,
            now_ms: self.clock.now_ms(),
            random: self.random.random(),
            settings: Some(destination.delivery),
        };
        let next = decide::after(&delivery.value, number, &lost, Advice::Again, &around);
        if let Some(next) = next {
            let due_ms = next.state.due_ms().unwrap_or(i64::MAX);
            plan.changes.update(delivery, &next);
            plan.note_end(&next);
            let left = plan.left.iter_mut().find(|(id, _)| *id == destination.id);
            if let Some((_, left_ms)) = left {
                *left_ms = due_ms.min(*left_ms);
            }
        } else {
            plan.changes.touch(delivery);
        }
        if let Some(attempt) = attempt {
            plan.changes.update(&attempt, &lost);
        }
        Ok(())
    }

    /// The deliveries that may begin now, destinations taking turns.
    async fn due(&mut self, plan: &mut Plan) -> Result<Vec<Due>, EngineError> {
        let now_ms = self.clock.now_ms();
        let in_flight_default = self.config.max_in_flight_per_destination;
        let after_turn = (Bound::Excluded(self.turn), Bound::Unbounded);
        let before: Vec<_> = self.lanes.range(..=self.turn).map(|(id, _)| *id).collect();
        let order: Vec<_> = self
            .lanes
            .range(after_turn)
            .map(|(id, _)| *id)
            .chain(before)
            .collect();
        let mut ready = Vec::new();
        for id in order {
            let Some(lane) = self.lanes.get_mut(&id) else {
                continue;
            };
            let opening = lane.opening(in_flight_default, now_ms);
            if let (Some(opening), Some(destination)) = (opening, &lane.destination)
                && opening.from_ms <= now_ms
                && !plan.paused.iter().any(|health| health.destination == id)
            {
                let ours = lane.unrecorded + lane.set_aside;
                ready.push((Arc::clone(destination), opening.room, ours));
            }
        }
        let mut free = self
            .config
            .max_in_flight
            .saturating_sub(self.attempts.len());
        let share = (free / ready.len().max(1)).max(1);
        let mut due = Vec::new();
        for (destination, room, ours) in ready {
            if free == 0 {
                break;
            }
            let room = room.min(share).min(free);
            // Our own leases, and what is set aside, stand among the entries; one more tells what
            // comes after.
            let limit = room + ours + 1;
            let range = Range::under(&destination.id.to_bytes());
            let index = Index::DeliveryByDue;
            let entries = self
                .store
                .engine()
                .entries(index, range, Direction::Ascending, limit)
                .await?;
            let mut left_ms = i64::MAX;
            let mut taken = 0;
            for (entry, key) in entries {
                let (Some(due_ms), Some(id)) = (moment_at(&entry, 16), id_at(&entry, 24)) else {
                    return Err(EngineError::Corrupt("an entry of `DeliveryByDue`".into()));
                };
                if self.unrecorded.contains_key(&id) || self.set_aside.contains(&id) {
                    continue;
                }
                if due_ms > now_ms || taken == room {
                    left_ms = due_ms;
                    break;
                }
                taken += 1;
                due.push(Due {
                    destination: Arc::clone(&destination),
                    key,
                });
            }
            free -= taken;
            plan.left.push((destination.id, left_ms));
        }
        Ok(due)
    }
}
