//! The second part of a commit: leases of due deliveries.

use std::sync::Arc;

use rand::Rng;

use super::{Ledger, Plan};
use crate::{
    delivery::{
        backoff::AttemptCounts,
        decide::{self, Circumstances},
        notice,
        notices::Notices,
        queues::{Queues, Ready},
        rank::{self, Selection, WaitReason},
    },
    destination::Advice,
    domain::{Attempt, Delivery, DeliveryState, Destination, Folding, OwnEvent, RecordId},
    limits::{CUT_OFFS_MAX, RANKED_MAX},
    ops::{
        decision_context::new_id,
        delivery::{
            attempt::{self, attempt_key},
            sequencing,
        },
        page_cancel::{cancelled_delivery, is_unneeded},
    },
    store::{
        Direction, EngineError, Index, Stored,
        engine::Range,
        record::{
            EndedDelivery,
            bytes::{Key, id_at, time_ms_at},
        },
    },
};

/// Number of deliveries of a backlog that are read at a time.
const READ_AT_ONCE: usize = 512;
/// Number of deliveries that one commit makes due when their receiver has recovered.
const RELEASED_AT_ONCE: usize = 256;

#[derive(Debug)]
pub(super) struct LeasedDelivery {
    pub(super) delivery: Delivery,
    pub(super) attempt: Attempt,
    pub(super) destination: Arc<Destination>,
    pub(super) opening: Option<RecordId>,
    /// The original due time, if that is later.
    pub(super) early_for_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    pub(super) is_severe: bool,
    pub(super) is_over: bool,
}

#[derive(Debug)]
pub(super) struct RemainingWork {
    pub(super) destination: RecordId,
    pub(super) due_ms: i64,
    /// The index position before which no deliveries remain, if known.
    pub(super) cursor: Option<Vec<u8>>,
    /// Attempts that may begin as soon as they are leased.
    places: usize,
    /// Whether a delivery with earlier attempts is due.
    pub(super) again: bool,
    pub(super) is_full: bool,
    /// The state of the backlog; `None` if the first deliveries were selected.
    pub(super) backlog: Option<Backlog>,
}

impl RemainingWork {
    /// Whether a delivery may be leased now. A delivery with earlier attempts is only leased if its
    /// attempt can begin immediately, because a second interruption counts against it.
    fn admits(&mut self, delivery: &Delivery) -> bool {
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
    pub(super) fn leave(&mut self, destination: RecordId, due_ms: i64) {
        let left = self.left.iter_mut();
        for left in left.filter(|left| left.destination == destination) {
            left.due_ms = left.due_ms.min(due_ms);
        }
    }

    /// Holds due deliveries until an earlier one ends, which makes them due again.
    pub(super) fn hold_due(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        // A change of a delivery must precede that of the deliveries held by it.
        held.sort_by_key(|it| it.delivery.value.thread_position());
        for HeldDelivery {
            delivery,
            earlier,
            at,
        } in held
        {
            let id = earlier.value.id;
            if self.changes.ends_delivery(id) {
                // Released as soon as the end of the earlier delivery is stored.
                let left = &mut self.left[at];
                left.is_full = true;
                left.due_ms = left
                    .due_ms
                    .min(delivery.value.state.due_ms().unwrap_or(i64::MAX));
                continue;
            }
            let waiting = Delivery {
                behind: Some(id),
                ..delivery.value.clone()
            };
            self.changes.update(&delivery, &waiting);
            self.changes.touch(&earlier);
            self.touched.push(id);
            self.waiting.push(delivery.value.id);
        }
    }
}

#[derive(Debug)]
pub(super) struct HeldDelivery {
    delivery: Stored<Delivery>,
    earlier: Stored<Delivery>,
    /// The index of its destination in the remaining work.
    at: usize,
}

struct DueDelivery {
    destination: Arc<Destination>,
    key: Vec<u8>,
    /// The index of its destination in the remaining work.
    at: usize,
}

impl Ledger {
    pub(super) async fn plan_leases(
        &mut self,
        plan: &mut Plan,
        queues: &mut Queues,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let due = self.due_deliveries(plan, queues).await?;
        if due.is_empty() {
            return Ok(());
        }
        let keys = due.iter().map(|due| due.key.clone()).collect();
        let budgeted = due
            .iter()
            .filter(|it| it.destination.delivery.budget.is_some());
        plan.due = budgeted.filter_map(|due| id_at(&due.key, 0)).collect();
        let (deliveries, unreadable) = self.store.get_readable::<Delivery>(keys).await?;
        let now_ms = self.clock.now_ms();
        for (due, delivery) in due.into_iter().zip(deliveries) {
            let Some(delivery) = delivery else {
                if unreadable.contains(&due.key)
                    && let Some(id) = id_at(&due.key, 0)
                    && let Some(name) = queues.set_aside(due.destination.id, id)
                {
                    notices.report_unreadable(id, name);
                    let ended = EndedDelivery {
                        destination: due.destination.id,
                        delivery: id,
                        at_ms: self.clock.now_ms(),
                    };
                    let woken = self.store.wake_followers_of(vec![ended], &mut plan.changes);
                    woken.await?;
                }
                continue;
            };
            let later_ms = delivery.value.state.due_ms().filter(|it| *it > now_ms);
            if let Some(due_ms) = later_ms.filter(|_| delivery.is_shifted()) {
                // Its index entry is from before a clock step.
                plan.changes.update(&delivery, &delivery.value);
                plan.leave(due.destination.id, due_ms);
                continue;
            }
            match delivery.value.state {
                DeliveryState::Leased { .. } => {
                    self.plan_lost(plan, &delivery, &due.destination).await?;
                }
                DeliveryState::Pending { .. } | DeliveryState::Retry { .. } => {
                    self.plan_lease(plan, &delivery, due).await?;
                }
                DeliveryState::Delivered
                | DeliveryState::Dead
                | DeliveryState::Cancelled
                | DeliveryState::Folded
                | DeliveryState::Shadowed => {}
            }
        }
        Ok(())
    }

    /// Leases a waiting delivery, unless it must continue to wait or gets no further attempts.
    #[expect(clippy::too_many_lines, reason = "one check after the other")]
    async fn plan_lease(
        &self,
        plan: &mut Plan,
        delivery: &Stored<Delivery>,
        due: DueDelivery,
    ) -> Result<(), EngineError> {
        let now_ms = self.clock.now_ms();
        if decide::is_poison(&delivery.value) {
            let dead = decide::poisoned_delivery(&delivery.value, now_ms);
            plan.changes.update(delivery, &dead);
            plan.note_end(&dead);
            let name = due.destination.name.as_str();
            let said = OwnEvent {
                id: new_id(now_ms),
                event: notice::poison_event(dead.id, name, now_ms),
                chain: Vec::new(),
            };
            plan.changes.insert(&said);
            plan.poison.push((dead.id, said));
            return Ok(());
        }
        let attempts = delivery.value.attempts;
        let settings = due.destination.delivery;
        if attempts > 0 && is_unneeded(&self.store, &delivery.value).await? {
            let cancelled = cancelled_delivery(&delivery.value, now_ms);
            plan.changes.update(delivery, &cancelled);
            return Ok(());
        }
        let backoff = self.backoff(&delivery.value);
        // While the total is below the limit, interrupted attempts need not be counted.
        let most = AttemptCounts::of(&delivery.value, attempts, 0);
        if backoff.is_exhausted(most, settings) || most.made >= CUT_OFFS_MAX {
            let cut_off = self.interrupted_count(delivery.value.id, attempts).await?;
            let tried = AttemptCounts::of(&delivery.value, attempts, cut_off);
            if backoff.is_exhausted(tried, settings) {
                let dead = decide::exhausted_delivery(&delivery.value, tried, now_ms);
                plan.changes.update(delivery, &dead);
                plan.note_end(&dead);
                return Ok(());
            }
        }
        let before = sequencing::predecessors(&self.store, &delivery.value).await?;
        let is_free = before.earlier.is_none() || before.digest.is_some();
        let (destination, behind) = (&due.destination, before.digest);
        if is_free
            && !self
                .is_within_budget(plan, delivery, destination, behind)
                .await?
        {
            return Ok(());
        }
        if let Some(earlier) = before.earlier {
            plan.held.push(HeldDelivery {
                delivery: delivery.clone(),
                earlier,
                at: due.at,
            });
            return Ok(());
        }
        if !plan.left[due.at].admits(&delivery.value) {
            return Ok(());
        }
        let timeouts = attempt::timeouts(&self.config, settings, &due.destination.kind);
        let (mut begun, attempt) =
            attempt::begin_attempt(&delivery.value, timeouts.longest, now_ms);
        if begun.folding == Folding::Open && settings.budget.is_some() {
            begun.folding = Folding::Alone;
            plan.spend(begun.destination);
        }
        plan.changes.update(delivery, &begun);
        plan.changes.insert(&attempt);
        plan.leases.push(LeasedDelivery {
            delivery: begun,
            attempt,
            destination: due.destination,
            opening: before.opening,
            early_for_ms: delivery
                .value
                .state
                .due_ms()
                .filter(|due_ms| *due_ms > now_ms),
        });
        Ok(())
    }

    /// Continues with a delivery whose lease expired, as after a failed attempt.
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
        let begun = begun.unwrap_or_else(|| attempt::new_attempt(delivery.value.id, number, 0));
        let lost = decide::lost_attempt(&begun);
        let around = Circumstances {
            random: self.random.random(),
            backoff: self.backoff(&delivery.value),
            now_ms: self.clock.now_ms(),
            cut_off: self
                .interrupted_count(delivery.value.id, number.saturating_sub(1))
                .await?,
            early_for_ms: None,
            settings: Some(destination.delivery),
        };
        plan.count_failure(&delivery.value, around.now_ms);
        let next = decide::after_attempt(&delivery.value, number, &lost, Advice::Again, &around);
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

    async fn due_deliveries(
        &mut self,
        plan: &mut Plan,
        queues: &mut Queues,
    ) -> Result<Vec<DueDelivery>, EngineError> {
        let now_ms = self.clock.now_ms();
        let paused: Vec<_> = plan.paused.iter().map(|it| it.destination).collect();
        let ready = queues.ready(&paused, now_ms);
        let mut free = self
            .config
            .max_in_flight
            .saturating_sub(queues.running_count());
        let share = (free / ready.len().max(1)).max(1);
        let mut due = Vec::new();
        for ready in ready {
            if free == 0 {
                break;
            }
            // Deliveries that become due in this commit may be sent first.
            let mut released = plan.released.iter();
            if released.any(|(id, is_any, _)| *is_any && *id == ready.destination.id) {
                continue;
            }
            let wanted = ready.allowance.min(share).min(free);
            let (keys, left) = match ready.wanted {
                Some(how) => {
                    let count = wanted;
                    let how = Selection { count, ..how };
                    self.ranked(&ready, how, queues, now_ms).await?
                }
                None => self.first(&ready, queues, wanted, now_ms).await?,
            };
            free -= keys.len();
            let at = plan.left.len();
            plan.left.push(left);
            due.extend(keys.into_iter().map(|key| DueDelivery {
                destination: Arc::clone(&ready.destination),
                key,
                at,
            }));
        }
        Ok(due)
    }

    /// Returns the first due deliveries, up to `wanted`, and the remaining ones.
    async fn first(
        &self,
        ready: &Ready,
        queues: &Queues,
        wanted: usize,
        now_ms: i64,
    ) -> Result<(Vec<Vec<u8>>, RemainingWork), EngineError> {
        let mut range = Range::with_prefix(&ready.destination.id.to_bytes());
        if !ready.cursor.is_empty() {
            range.start.clone_from(&ready.cursor);
        }
        // The entries include our own leases and skipped deliveries; one more shows the next
        // delivery.
        let limit = wanted + ready.ours + 1;
        let mut left = RemainingWork::for_ready(ready);
        let mut keys = Vec::new();
        for (entry, key) in self.entries(range, Direction::Ascending, limit).await? {
            let (id, due_ms) = read(&entry)?;
            if self.is_leased(id) || queues.is_set_aside(id) {
                continue;
            }
            if due_ms > now_ms || keys.len() == wanted {
                left.due_ms = due_ms;
                break;
            }
            left.cursor = Some([&entry[..], &[0]].concat());
            keys.push(key);
        }
        Ok((keys, left))
    }

    /// Returns the deliveries of a backlog to send first, up to `wanted`, and the remaining ones.
    async fn ranked(
        &mut self,
        ready: &Ready,
        wanted: Selection,
        queues: &Queues,
        now_ms: i64,
    ) -> Result<(Vec<Vec<u8>>, RemainingWork), EngineError> {
        let destination = ready.destination.id;
        let range = Range::with_prefix(&destination.to_bytes());
        let entries = self
            .entries(range, Direction::Ascending, RANKED_MAX)
            .await?;
        let mut found = Vec::with_capacity(entries.len());
        for (entry, _) in &entries {
            let (id, due_ms) = read(entry)?;
            if !queues.is_set_aside(id) {
                found.push((id, due_ms));
            }
        }
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        self.ranks.retain(destination, &ids);
        for ids in self.ranks.unknown(destination, &ids).chunks(READ_AT_ONCE) {
            let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
            let (read, _) = self.store.get_readable::<Delivery>(keys).await?;
            for delivery in read.into_iter().flatten() {
                self.ranks.insert(&delivery.value);
            }
        }
        let mut left = RemainingWork::for_ready(ready);
        let mut unreadable = Vec::new();
        let waiting = found.into_iter().filter_map(|(id, due_ms)| {
            let Some(rank) = self.ranks.get(destination, id) else {
                // It is skipped when it is leased.
                unreadable.push((id, due_ms));
                return None;
            };
            let is_leased = self.is_leased(id);
            Some(WaitReason {
                id,
                due_ms,
                rank,
                is_leased,
            })
        });
        let waiting: Vec<_> = waiting.collect();
        let chosen = rank::choose(&waiting, wanted, now_ms);
        let unreadable = unreadable
            .into_iter()
            .filter(|(_, due_ms)| *due_ms <= now_ms);
        let unreadable = unreadable.map(|(id, _)| id);
        left.due_ms = chosen.next_ms;
        left.backlog = Some(Backlog {
            is_severe: chosen.is_severe,
            is_over: chosen.next_ms == i64::MAX,
        });
        let ids = unreadable.chain(chosen.ids).take(wanted.count.max(1));
        Ok((ids.map(|id| id.to_bytes().into()).collect(), left))
    }

    pub(super) async fn plan_release(
        &self,
        plan: &mut Plan,
        queues: &Queues,
    ) -> Result<(), EngineError> {
        let now_ms = self.clock.now_ms();
        for id in queues.ids_where(|queue| queue.is_recovered) {
            let mut range = Range::with_prefix(&id.to_bytes());
            range.start = Key::new().id(id).time_ms(now_ms.saturating_add(1)).build();
            let (mut count, mut is_whole) = (0, false);
            while count < RELEASED_AT_ONCE && !is_whole {
                let entries = self.entries(range.clone(), Direction::Ascending, READ_AT_ONCE);
                let entries = entries.await?;
                is_whole = entries.len() < READ_AT_ONCE;
                if let Some((last, _)) = entries.last() {
                    range.exclude_through(last);
                }
                let keys = entries.into_iter().map(|(_, key)| key).collect();
                let (waiting, _) = self.store.get_readable::<Delivery>(keys).await?;
                let waiting = waiting.iter().flatten().filter(|it| {
                    let is_retry = matches!(it.value.state, DeliveryState::Retry { .. });
                    is_retry && it.value.awaits_receiver && !self.is_leased(it.value.id)
                });
                for delivery in waiting {
                    let due = Delivery {
                        state: DeliveryState::Retry { due_ms: now_ms },
                        ..delivery.value.clone()
                    };
                    plan.changes.update(delivery, &due);
                    count += 1;
                }
            }
            plan.released.push((id, count > 0, is_whole));
        }
        Ok(())
    }

    async fn entries(
        &self,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, EngineError> {
        let engine = self.store.engine();
        engine
            .entries(Index::DeliveryByDue, range, direction, limit)
            .await
    }
}

impl RemainingWork {
    fn for_ready(ready: &Ready) -> Self {
        Self {
            destination: ready.destination.id,
            due_ms: i64::MAX,
            cursor: None,
            places: ready.places,
            again: false,
            is_full: false,
            backlog: None,
        }
    }
}

fn read(entry: &[u8]) -> Result<(RecordId, i64), EngineError> {
    let read = id_at(entry, 24).zip(time_ms_at(entry, 16));
    read.ok_or_else(|| EngineError::Corrupt("an entry of `DeliveryByDue`".into()))
}
