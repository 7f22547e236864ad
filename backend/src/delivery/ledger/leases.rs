//! The second part of a commit: leases of due deliveries.

use std::sync::Arc;

use futures_util::future::{try_join, try_join3};
use rand::Rng;

use super::{CommitPlan, Ledger, interrupted_count};
use crate::{
    delivery::{
        backoff::AttemptCounts,
        decide::{self, RetryContext},
        notice,
        notices::Notices,
        queues::{Queues, ReadyDestination},
        rank::{self, Selection, WaitReason},
        thread::{self, ThreadContext},
    },
    domain::{Attempt, Delivery, DeliveryState, Destination, DigestMembership, OwnEvent, RecordId},
    limits::{CUT_OFFS_MAX, RANKED_MAX},
    ops::{
        decision_context::new_id,
        delivery::{
            attempt::{self, attempt_key},
            sequencing::{self, Predecessors},
        },
        page_cancel::{cancelled_delivery, is_obsolete_page},
    },
    send::{self as destination, Advice},
    store::{
        Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::{
            EndedDelivery,
            bytes::{Key, read_id, read_time_ms},
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
    pub(super) thread: ThreadContext,
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
    fn allows_lease(&mut self, delivery: &Delivery) -> bool {
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

impl CommitPlan {
    pub(super) fn leave_for_later(&mut self, destination: RecordId, due_ms: i64) {
        let left = self.left.iter_mut();
        for left in left.filter(|left| left.destination == destination) {
            left.due_ms = left.due_ms.min(due_ms);
        }
    }

    /// Holds due deliveries until an earlier one ends, which makes them due again.
    pub(super) fn hold_due_deliveries(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        // Change each delivery before the deliveries that it holds.
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
            self.changes.touch_record(&earlier);
            self.touched.push(id);
            self.waiting.push(delivery.value.id);
        }
    }
}

#[derive(Debug)]
pub(super) struct HeldDelivery {
    delivery: Stored<Delivery>,
    earlier: Stored<Delivery>,
    /// The index of the destination in the remaining work.
    at: usize,
}

struct DueDelivery {
    destination: Arc<Destination>,
    key: Vec<u8>,
    /// The index of the destination in the remaining work.
    at: usize,
}

/// The data needed to lease a due delivery.
#[derive(Debug, Default)]
struct LeaseFacts {
    /// Whether the delivery is a page of a response that was acknowledged or has ended.
    is_obsolete_page: bool,
    /// Number of the delivery's interrupted attempts; only counted if it can matter.
    cut_off: u32,
    before: Predecessors,
    thread: ThreadContext,
    /// The attempt whose lease expired.
    lost: Option<Stored<Attempt>>,
}

/// Index entries of deliveries.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Ledger {
    pub(super) async fn read_waiting(
        &self,
        ready: &[ReadyDestination],
    ) -> Result<Vec<Entries>, EngineError> {
        let ranges = ready.iter().map(|ready| {
            let mut range = Range::with_prefix(&ready.destination.id.to_bytes());
            if ready.wanted.is_some() {
                return (range, RANKED_MAX);
            }
            if !ready.cursor.is_empty() {
                range.start.clone_from(&ready.cursor);
            }
            // The entries include our own leases and skipped deliveries. One more entry shows the
            // next due time.
            (range, ready.allowance + ready.ours + 1)
        });
        let read = |store: Store, (range, limit)| async move {
            let (index, ascending) = (Index::DeliveryByDue, Direction::Ascending);
            store.engine().entries(index, range, ascending, limit).await
        };
        self.store.read_each(ranges, read).await
    }

    pub(super) async fn plan_leases(
        &mut self,
        plan: &mut CommitPlan,
        queues: &mut Queues,
        notices: &Notices,
        ready: Vec<(ReadyDestination, Entries)>,
    ) -> Result<(), EngineError> {
        let due = self.due_deliveries(plan, queues, ready).await?;
        let keys = due.iter().map(|due| due.key.clone()).collect();
        let budgeted = due
            .iter()
            .filter(|it| it.destination.delivery.budget.is_some());
        plan.due = budgeted.filter_map(|due| read_id(&due.key, 0)).collect();
        let (deliveries, unreadable) = self.store.get_readable::<Delivery>(keys).await?;
        let now_ms = self.clock.now_ms();
        let mut readable = Vec::new();
        for (due, delivery) in due.into_iter().zip(deliveries) {
            let Some(delivery) = delivery else {
                if unreadable.contains(&due.key)
                    && let Some(id) = read_id(&due.key, 0)
                    && let Some(name) = queues.set_aside_delivery(due.destination.id, id)
                {
                    notices.report_unreadable(id, name);
                    let ended = EndedDelivery {
                        destination: due.destination.id,
                        delivery: id,
                        at_ms: self.clock.now_ms(),
                    };
                    let woken = self
                        .store
                        .wake_followers_after(vec![ended], &mut plan.changes);
                    woken.await?;
                }
                continue;
            };
            let later_ms = delivery.value.state.due_ms().filter(|it| *it > now_ms);
            if let Some(due_ms) = later_ms.filter(|_| delivery.is_shifted()) {
                // The index entry is from before a clock step.
                plan.changes.update(&delivery, &delivery.value);
                plan.leave_for_later(due.destination.id, due_ms);
                continue;
            }
            readable.push((due, delivery));
        }
        let budgeted = readable.iter().map(|(due, _)| &due.destination);
        let budgeted = budgeted.filter(|it| it.delivery.budget.is_some());
        self.read_budgets(plan, budgeted.map(|it| it.id).collect())
            .await?;
        let ledger = &*self;
        let read = |store: Store, (delivery, destination)| async move {
            ledger.read_facts(&store, delivery, destination).await
        };
        let all = readable.iter();
        let all = all.map(|(due, delivery)| (&delivery.value, &*due.destination));
        let facts = self.store.read_each(all, read).await?;
        for ((due, delivery), facts) in readable.into_iter().zip(facts) {
            match delivery.value.state {
                DeliveryState::Leased { .. } => {
                    self.plan_lost_attempt(plan, &delivery, &due.destination, facts);
                }
                DeliveryState::Pending { .. } | DeliveryState::Retry { .. } => {
                    self.plan_lease(plan, &delivery, due, facts);
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

    async fn read_facts(
        &self,
        store: &Store,
        delivery: &Delivery,
        destination: &Destination,
    ) -> Result<LeaseFacts, EngineError> {
        let mut facts = LeaseFacts::default();
        let attempts = delivery.attempts;
        if let DeliveryState::Leased { .. } = delivery.state {
            let key = attempt_key(delivery.id, attempts);
            let lost = store.get_readable::<Attempt>(vec![key]);
            let cut_off = interrupted_count(store, delivery.id, attempts.saturating_sub(1));
            let ((lost, _), cut_off) = try_join(lost, cut_off).await?;
            facts.lost = lost.into_iter().next().flatten();
            facts.cut_off = cut_off;
            return Ok(facts);
        }
        // While the total is below the limit, interrupted attempts need not be counted.
        let most = AttemptCounts::from_delivery(delivery, attempts, 0);
        let backoff = self.backoff(delivery);
        let is_last = backoff.is_exhausted(most, destination.delivery) || most.made >= CUT_OFFS_MAX;
        let (is_obsolete_page, cut_off, before) = try_join3(
            async { Ok(attempts > 0 && is_obsolete_page(store, delivery).await?) },
            interrupted_count(store, delivery.id, if is_last { attempts } else { 0 }),
            sequencing::find_predecessors(store, delivery),
        )
        .await?;
        if before.earlier.is_none() {
            let thread = thread::read_thread(store, delivery, before.opening, &destination.kind);
            facts.thread = thread.await?;
        }
        Ok(LeaseFacts {
            is_obsolete_page,
            cut_off,
            before,
            ..facts
        })
    }

    /// Leases a waiting delivery, unless it must continue to wait or gets no further attempts.
    #[expect(clippy::too_many_lines, reason = "each reason not to lease in turn")]
    fn plan_lease(
        &self,
        plan: &mut CommitPlan,
        delivery: &Stored<Delivery>,
        due: DueDelivery,
        facts: LeaseFacts,
    ) {
        let now_ms = self.clock.now_ms();
        if decide::is_poison(&delivery.value) {
            let dead = decide::poisoned_delivery(&delivery.value, now_ms);
            plan.changes.update(delivery, &dead);
            plan.record_end(&dead);
            let name = due.destination.name.as_str();
            let said = OwnEvent {
                id: new_id(now_ms),
                event: notice::poison_event(dead.id, name, now_ms),
                chain: Vec::new(),
            };
            plan.changes.insert(&said);
            plan.poison.push((dead.id, said));
            return;
        }
        let settings = due.destination.delivery;
        if facts.is_obsolete_page {
            let cancelled = cancelled_delivery(&delivery.value, now_ms);
            plan.changes.update(delivery, &cancelled);
            return;
        }
        let tried =
            AttemptCounts::from_delivery(&delivery.value, delivery.value.attempts, facts.cut_off);
        if self.backoff(&delivery.value).is_exhausted(tried, settings) {
            let dead = decide::exhausted_delivery(&delivery.value, tried, now_ms);
            plan.changes.update(delivery, &dead);
            plan.record_end(&dead);
            return;
        }
        let before = facts.before;
        let is_free = before.earlier.is_none() || before.digest.is_some();
        let (destination, behind) = (&due.destination, before.digest);
        if is_free && !self.is_within_budget(plan, delivery, destination, behind) {
            return;
        }
        if let Some(earlier) = before.earlier {
            plan.held.push(HeldDelivery {
                delivery: delivery.clone(),
                earlier,
                at: due.at,
            });
            return;
        }
        let content = &delivery.value.content;
        if let Some(reason) = destination::skip_reason(content, facts.thread.kept.as_ref()) {
            let skipped = decide::skipped_delivery(&delivery.value, reason, now_ms);
            plan.changes.update(delivery, &skipped);
            return;
        }
        if !plan.left[due.at].allows_lease(&delivery.value) {
            return;
        }
        let timeouts = attempt::timeouts(&self.config, settings, &due.destination.kind);
        let (mut begun, attempt) =
            attempt::begin_attempt(&delivery.value, timeouts.longest, now_ms);
        let is_drill = begun.content.is_drill();
        if begun.folding == DigestMembership::Open && settings.budget.is_some() && !is_drill {
            begun.folding = DigestMembership::Alone;
            plan.spend_budget(begun.destination);
        }
        plan.changes.update(delivery, &begun);
        plan.changes.insert(&attempt);
        plan.leases.push(LeasedDelivery {
            delivery: begun,
            attempt,
            destination: due.destination,
            opening: before.opening,
            thread: facts.thread,
            early_for_ms: delivery
                .value
                .state
                .due_ms()
                .filter(|due_ms| *due_ms > now_ms),
        });
    }

    fn plan_lost_attempt(
        &mut self,
        plan: &mut CommitPlan,
        delivery: &Stored<Delivery>,
        destination: &Destination,
        facts: LeaseFacts,
    ) {
        let number = delivery.value.attempts;
        let begun = facts.lost.as_ref().map(|attempt| attempt.value.clone());
        let begun = begun.unwrap_or_else(|| attempt::new_attempt(delivery.value.id, number, 0));
        let lost = decide::lost_attempt(&begun);
        let around = RetryContext {
            random: self.random.random(),
            backoff: self.backoff(&delivery.value),
            now_ms: self.clock.now_ms(),
            cut_off: facts.cut_off,
            early_for_ms: None,
            settings: Some(destination.delivery),
        };
        plan.count_failure(&delivery.value, around.now_ms);
        let next =
            decide::delivery_after_attempt(&delivery.value, number, &lost, Advice::Again, &around);
        if let Some(next) = next {
            let due_ms = next.state.due_ms().unwrap_or(i64::MAX);
            plan.changes.update(delivery, &next);
            plan.record_end(&next);
            plan.leave_for_later(destination.id, due_ms);
        } else {
            plan.changes.touch_record(delivery);
        }
        if let Some(attempt) = facts.lost {
            plan.changes.update(&attempt, &lost);
        }
    }

    async fn due_deliveries(
        &mut self,
        plan: &mut CommitPlan,
        queues: &Queues,
        mut ready: Vec<(ReadyDestination, Entries)>,
    ) -> Result<Vec<DueDelivery>, EngineError> {
        let now_ms = self.clock.now_ms();
        ready.retain(|(ready, _)| {
            let id = ready.destination.id;
            let is_paused = plan.paused.iter().any(|it| it.destination == id);
            // Skip a destination if this commit makes deliveries due that may have to be sent
            // first.
            let mut released = plan.released.iter();
            !is_paused && !released.any(|(released, is_any, _)| *is_any && *released == id)
        });
        self.read_ranks(queues, &ready).await?;
        let mut due = Vec::new();
        for (ready, entries) in ready {
            let (keys, left) = match ready.wanted {
                Some(how) => self.ranked_due(&ready, how, &entries, queues, now_ms)?,
                None => self.first_due(&ready, entries, queues, now_ms)?,
            };
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

    fn first_due(
        &self,
        ready: &ReadyDestination,
        entries: Entries,
        queues: &Queues,
        now_ms: i64,
    ) -> Result<(Vec<Vec<u8>>, RemainingWork), EngineError> {
        let mut left = RemainingWork::from_ready(ready);
        let mut keys = Vec::new();
        for (entry, key) in entries {
            let (id, due_ms) = parse_due_entry(&entry)?;
            if self.is_leased(id) || queues.is_set_aside(id) {
                continue;
            }
            if due_ms > now_ms || keys.len() == ready.allowance {
                left.due_ms = due_ms;
                break;
            }
            left.cursor = Some([&entry[..], &[0]].concat());
            keys.push(key);
        }
        Ok((keys, left))
    }

    async fn read_ranks(
        &mut self,
        queues: &Queues,
        ready: &[(ReadyDestination, Entries)],
    ) -> Result<(), EngineError> {
        let mut unknown = Vec::new();
        for (ready, entries) in ready.iter().filter(|(ready, _)| ready.wanted.is_some()) {
            let ids = entries
                .iter()
                .map(|(entry, _)| Ok(parse_due_entry(entry)?.0));
            let mut ids = ids.collect::<Result<Vec<_>, EngineError>>()?;
            ids.retain(|id| !queues.is_set_aside(*id));
            self.ranks.retain(ready.destination.id, &ids);
            unknown.extend(self.ranks.ids_without_rank(ready.destination.id, &ids));
        }
        for ids in unknown.chunks(READ_AT_ONCE) {
            let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
            let (read, _) = self.store.get_readable::<Delivery>(keys).await?;
            for delivery in read.into_iter().flatten() {
                self.ranks.insert(&delivery.value);
            }
        }
        Ok(())
    }

    /// Returns the deliveries of a backlog to send first, up to the allowance, and the remaining
    /// ones.
    fn ranked_due(
        &self,
        ready: &ReadyDestination,
        wanted: Selection,
        entries: &Entries,
        queues: &Queues,
        now_ms: i64,
    ) -> Result<(Vec<Vec<u8>>, RemainingWork), EngineError> {
        let destination = ready.destination.id;
        let wanted = Selection {
            count: ready.allowance,
            ..wanted
        };
        let mut left = RemainingWork::from_ready(ready);
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for (entry, _) in entries {
            let (id, due_ms) = parse_due_entry(entry)?;
            if queues.is_set_aside(id) {
                continue;
            }
            match self.ranks.get(destination, id) {
                Some(rank) => waiting.push(WaitReason {
                    id,
                    due_ms,
                    rank,
                    is_leased: self.is_leased(id),
                }),
                // An unreadable delivery is set aside once it is due.
                None if due_ms <= now_ms => unreadable.push(id),
                None => {}
            }
        }
        let chosen = rank::choose_deliveries(&waiting, wanted, now_ms);
        left.due_ms = chosen.next_ms;
        left.backlog = Some(Backlog {
            is_severe: chosen.is_severe,
            is_over: chosen.next_ms == i64::MAX,
        });
        let ids = unreadable.into_iter().chain(chosen.ids);
        let ids = ids.take(wanted.count.max(1));
        Ok((ids.map(|id| id.to_bytes().into()).collect(), left))
    }

    pub(super) async fn plan_release(
        &self,
        plan: &mut CommitPlan,
        queues: &Queues,
    ) -> Result<(), EngineError> {
        let now_ms = self.clock.now_ms();
        let recovered = queues.ids_where(|queue| queue.is_recovered);
        let store = self.store.clone();
        let read = |store: Store, id: RecordId| async move {
            let mut range = Range::with_prefix(&id.to_bytes());
            range.start = Key::new().id(id).time_ms(now_ms.saturating_add(1)).build();
            let (mut found, mut is_whole) = (Vec::new(), false);
            while found.len() < RELEASED_AT_ONCE && !is_whole {
                let (index, ascending) = (Index::DeliveryByDue, Direction::Ascending);
                let entries = store
                    .engine()
                    .entries(index, range.clone(), ascending, READ_AT_ONCE);
                let entries = entries.await?;
                is_whole = entries.len() < READ_AT_ONCE;
                if let Some((last, _)) = entries.last() {
                    range.exclude_through(last);
                }
                let keys = entries.into_iter().map(|(_, key)| key).collect();
                let (waiting, _) = store.get_readable::<Delivery>(keys).await?;
                found.extend(waiting.into_iter().flatten().filter(|it| {
                    let is_retry = matches!(it.value.state, DeliveryState::Retry { .. });
                    is_retry && it.value.awaits_receiver && !self.is_leased(it.value.id)
                }));
            }
            Ok::<_, EngineError>((id, found, is_whole))
        };
        for (id, found, is_whole) in store.read_each(recovered, read).await? {
            plan.released.push((id, !found.is_empty(), is_whole));
            for delivery in found {
                let due = Delivery {
                    state: DeliveryState::Retry { due_ms: now_ms },
                    ..delivery.value.clone()
                };
                plan.changes.update(&delivery, &due);
            }
        }
        Ok(())
    }
}

impl RemainingWork {
    fn from_ready(ready: &ReadyDestination) -> Self {
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

fn parse_due_entry(entry: &[u8]) -> Result<(RecordId, i64), EngineError> {
    let read = read_id(entry, 24).zip(read_time_ms(entry, 16));
    read.ok_or_else(|| EngineError::Corrupt("an entry in `DeliveryByDue`".into()))
}
