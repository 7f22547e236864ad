//! The part of a commit that begins: which deliveries are due, and their leases.

use std::{ops::Bound, sync::Arc};

use rand::Rng;

use super::{
    Dispatcher,
    plan::{Left, Plan},
};
use crate::{
    delivery::{
        decide::{self, Circumstances},
        lane::Lease,
        schedule::{Tried, timeout},
    },
    destination::Advice,
    domain::{Attempt, Delivery, DeliveryState, Destination},
    limits::CUT_OFFS_MAX,
    ops::delivery::attempt::{self, attempt_key},
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
    /// The place of its destination among what is left.
    at: usize,
}

/// A destination to which something may begin.
struct Ready {
    destination: Arc<Destination>,
    /// Deliveries that may be leased.
    room: usize,
    /// Attempts that may begin at once.
    places: usize,
    /// Entries of its index that are not to be looked at: our own leases, and what is set aside.
    ours: usize,
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
            match delivery.value.state {
                DeliveryState::Leased { .. } => {
                    self.plan_lost(plan, &delivery, &due.destination).await?;
                }
                DeliveryState::Pending { .. } | DeliveryState::Retry { .. } => {
                    self.plan_lease(plan, &delivery, due).await?;
                }
                DeliveryState::Delivered | DeliveryState::Dead | DeliveryState::Cancelled => {}
            }
        }
        Ok(())
    }

    /// Leases a delivery that waits, unless it has to go on waiting or gets no more attempts.
    async fn plan_lease(
        &self,
        plan: &mut Plan,
        delivery: &Stored<Delivery>,
        due: Due,
    ) -> Result<(), EngineError> {
        let now_ms = self.clock.now_ms();
        let attempts = delivery.value.attempts;
        let settings = due.destination.delivery;
        // As long as all of them together are too few, nobody needs to know which were cut off.
        if self.schedule.is_used_up(Tried::of(attempts, 0), settings) || attempts >= CUT_OFFS_MAX {
            let cut_off = self.cut_offs(delivery.value.id, attempts).await?;
            let tried = Tried::of(attempts, cut_off);
            if self.schedule.is_used_up(tried, settings) {
                let dead = decide::used_up(&delivery.value, tried, now_ms);
                plan.changes.update(delivery, &dead);
                plan.note_end(&dead);
                return Ok(());
            }
        }
        if let Some(until_ms) = self.held_until(&delivery.value).await? {
            plan.hold_back(delivery, until_ms);
            return Ok(());
        }
        if !plan.left[due.at].admits(&delivery.value) {
            return Ok(());
        }
        let limit = timeout(&self.config, &due.destination);
        let (begun, attempt) = attempt::begun(&delivery.value, limit, now_ms);
        plan.changes.update(delivery, &begun);
        plan.changes.insert(&attempt);
        plan.leases.push(Lease {
            delivery: begun,
            destination: due.destination,
        });
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
        let begun = begun.unwrap_or_else(|| attempt::attempt(delivery.value.id, number, 0));
        let lost = decide::lost(&begun);
        let around = Circumstances {
            schedule: &self.schedule,
            now_ms: self.clock.now_ms(),
            random: self.random.random(),
            cut_off: self
                .cut_offs(delivery.value.id, number.saturating_sub(1))
                .await?,
            settings: Some(destination.delivery),
        };
        let next = decide::after(&delivery.value, number, &lost, Advice::Again, &around);
        if let Some(next) = next {
            let due_ms = next.state.due_ms().unwrap_or(i64::MAX);
            plan.changes.update(delivery, &next);
            plan.note_end(&next);
            plan.leave(destination.id, due_ms);
        } else {
            plan.changes.touch(delivery);
        }
        if let Some(attempt) = attempt {
            plan.changes.update(&attempt, &lost);
        }
        Ok(())
    }

    /// The destinations to which something may begin now, in their turns.
    fn ready(&mut self, plan: &Plan) -> Vec<Ready> {
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
                ready.push(Ready {
                    destination: Arc::clone(destination),
                    room: opening.room,
                    places: lane.places(in_flight_default).saturating_sub(lane.held()),
                    ours: lane.unrecorded + lane.set_aside,
                });
            }
        }
        ready
    }

    /// The deliveries that may begin now.
    async fn due(&mut self, plan: &mut Plan) -> Result<Vec<Due>, EngineError> {
        let now_ms = self.clock.now_ms();
        let ready = self.ready(plan);
        let mut free = self
            .config
            .max_in_flight
            .saturating_sub(self.attempts.len());
        let share = (free / ready.len().max(1)).max(1);
        let mut due = Vec::new();
        for ready in ready {
            if free == 0 {
                break;
            }
            let Ready {
                destination,
                places,
                ..
            } = ready;
            let room = ready.room.min(share).min(free);
            // Our own leases, and what is set aside, stand among the entries; one more tells what
            // comes after.
            let limit = room + ready.ours + 1;
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
                    at: plan.left.len(),
                });
            }
            free -= taken;
            plan.left.push(Left {
                destination: destination.id,
                due_ms: left_ms,
                places,
                again: false,
                is_full: false,
            });
        }
        Ok(due)
    }
}
