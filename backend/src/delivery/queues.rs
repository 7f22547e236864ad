//! The in-memory queues of all destinations, served round-robin.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use crate::{
    config::DeliveryConfig,
    delivery::{
        decide,
        queue::{DestinationQueue, Lease},
        rank::Selection,
        refusals,
    },
    domain::{Destination, RecordId},
    limits::SET_ASIDE_MAX,
    ops::delivery::{QueueHold, attempt},
    send::AttemptReport,
};

#[derive(Debug)]
pub(crate) struct Queues {
    config: DeliveryConfig,
    all: BTreeMap<RecordId, DestinationQueue>,
    turn: RecordId,
    set_aside: HashSet<RecordId>,
}

pub(crate) struct ReadyDestination {
    pub(crate) destination: Arc<Destination>,
    pub(crate) allowance: usize,
    /// Number of attempts that may begin concurrently.
    pub(crate) places: usize,
    /// Number of index entries of the destination to skip: leases of this process, and deliveries
    /// set aside.
    pub(crate) ours: usize,
    /// Start position in the index; empty for the beginning.
    pub(crate) cursor: Vec<u8>,
    /// Selection if more deliveries are waiting than may be sent; `None` selects the first ones.
    pub(crate) wanted: Option<Selection>,
}

pub(crate) enum Next {
    Begin(Lease, Duration),
    /// The lease must be given back. Its attempt must not begin.
    GiveBack(RecordId),
}

impl Queues {
    pub(crate) fn new(config: DeliveryConfig) -> Self {
        Self {
            config,
            all: BTreeMap::new(),
            turn: RecordId::from_parts(0, 0),
            set_aside: HashSet::new(),
        }
    }

    pub(crate) fn get(&self, destination: RecordId) -> Option<&DestinationQueue> {
        self.all.get(&destination)
    }

    pub(crate) fn get_mut(&mut self, destination: RecordId) -> Option<&mut DestinationQueue> {
        self.all.get_mut(&destination)
    }

    pub(crate) fn destination(&self, id: RecordId) -> Option<&Arc<Destination>> {
        self.get(id)?.destination.as_ref()
    }

    pub(crate) fn insert(&mut self, destination: RecordId, queue: DestinationQueue) {
        self.all.insert(destination, queue);
    }

    pub(crate) fn remove(&mut self, destination: RecordId) {
        self.all.remove(&destination);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn running_count(&self) -> usize {
        self.all.values().map(|queue| queue.running).sum()
    }

    pub(crate) fn ids(&self) -> Vec<RecordId> {
        self.all.keys().copied().collect()
    }

    pub(crate) fn ids_where(&self, holds: impl Fn(&DestinationQueue) -> bool) -> Vec<RecordId> {
        let found = self.all.iter().filter(|(_, queue)| holds(queue));
        found.map(|(id, _)| *id).collect()
    }

    pub(crate) fn add_waiting(&mut self, destination: RecordId, due_ms: i64) {
        if let Some(queue) = self.get_mut(destination) {
            queue.add_waiting(due_ms);
        }
    }

    /// Skips an unreadable delivery until the next start. Returns the name of its destination if
    /// the delivery was not skipped before.
    pub(crate) fn set_aside_delivery(
        &mut self,
        destination: RecordId,
        delivery: RecordId,
    ) -> Option<&str> {
        let queue = self.all.get_mut(&destination)?;
        if self.set_aside.len() >= SET_ASIDE_MAX || !self.set_aside.insert(delivery) {
            return None;
        }
        queue.set_aside += 1;
        Some(&queue.name)
    }

    pub(crate) fn is_set_aside(&self, delivery: RecordId) -> bool {
        self.set_aside.contains(&delivery)
    }

    /// Returns the destinations whose deliveries may begin now, in round-robin order, with their
    /// shares of the attempts that may begin.
    pub(crate) fn ready_destinations(&mut self, now_ms: i64) -> Vec<ReadyDestination> {
        let width_max = self.config.max_in_flight_per_destination;
        let after = self
            .all
            .range((Bound::Excluded(self.turn), Bound::Unbounded));
        let before = self.all.range(..=self.turn);
        let turns: Vec<_> = after.chain(before).map(|(id, _)| *id).collect();
        let mut ready = Vec::new();
        for id in turns {
            let Some(queue) = self.all.get_mut(&id) else {
                continue;
            };
            let opening = queue.next_opening(width_max, now_ms);
            if let (Some(opening), Some(destination)) = (opening, &queue.destination)
                && opening.from_ms <= now_ms
            {
                ready.push(ReadyDestination {
                    destination: Arc::clone(destination),
                    allowance: opening.allowance,
                    places: queue
                        .concurrency(width_max)
                        .saturating_sub(queue.lease_count()),
                    ours: queue.unrecorded + queue.set_aside,
                    cursor: queue.cursor.clone(),
                    wanted: queue.is_sorted_by_severity().then(|| Selection {
                        count: opening.allowance,
                        probe: queue.breaker.probe(),
                        early: opening.is_early,
                        only_severe: opening.only_severe,
                    }),
                });
            }
        }
        let free = self
            .config
            .max_in_flight
            .saturating_sub(self.running_count());
        ready.truncate(free);
        let share = free / ready.len().max(1);
        for ready in &mut ready {
            ready.allowance = ready.allowance.min(share);
        }
        ready
    }

    pub(crate) fn record_served(
        &mut self,
        destination: RecordId,
        due_ms: i64,
        cursor: Option<Vec<u8>>,
    ) {
        if let Some(queue) = self.all.get_mut(&destination) {
            queue.due_ms = due_ms;
            if let Some(cursor) = cursor {
                queue.cursor = cursor;
            }
            self.turn = destination;
        }
    }

    pub(crate) fn keep_lease(&mut self, lease: Lease, now_ms: i64) {
        if let Some(queue) = self.all.get_mut(&lease.destination.id) {
            queue.unrecorded += 1;
            queue.rate.record_start(1, now_ms);
            queue.ahead.push_back(lease);
        }
    }

    /// Returns the next lease of a destination if its attempt may begin, or if the lease must be
    /// given back.
    pub(crate) fn next(&mut self, destination: RecordId, now_ms: i64) -> Option<Next> {
        let width_max = self.config.max_in_flight_per_destination;
        let queue = self.all.get_mut(&destination)?;
        let is_closed = queue.must_not_begin(now_ms);
        if !is_closed && queue.running >= queue.concurrency(width_max) {
            return None;
        }
        let lease = queue.ahead.pop_front()?;
        let (settings, kind) = (lease.destination.delivery, &lease.destination.kind);
        let timeouts = attempt::timeouts(&self.config, settings, kind);
        if is_closed || !decide::may_begin_attempt(&lease.delivery.value, timeouts.longest, now_ms)
        {
            return Some(Next::GiveBack(lease.delivery.value.id));
        }
        queue.record_start(lease.delivery.value.id, now_ms);
        Some(Next::Begin(lease, timeouts.attempt))
    }

    /// Reclassifies an outcome based on previous outcomes, and records messages that failed because
    /// of their destination.
    pub(crate) fn reclassify(
        &mut self,
        destination: RecordId,
        delivery: RecordId,
        report: &mut AttemptReport,
    ) {
        if let Some(queue) = self.all.get_mut(&destination) {
            let to_resend = refusals::reclassify_outcome(&mut queue.refusals, delivery, report);
            queue.to_resend.extend(to_resend);
        }
    }

    pub(crate) fn record_outcome(
        &mut self,
        destination: RecordId,
        delivery: RecordId,
        report: &AttemptReport,
        now_ms: i64,
    ) {
        if let Some(queue) = self.all.get_mut(&destination) {
            queue.record_outcome(delivery, report, now_ms);
        }
    }

    /// Removes leases whose attempts have not begun, for one destination or for all.
    pub(crate) fn release_ended_leases(&mut self, destination: Option<RecordId>) -> Vec<RecordId> {
        let queues = self.all.iter_mut();
        let of_it = queues.filter(|(id, _)| destination.is_none_or(|only| only == **id));
        let ahead = of_it.flat_map(|(_, queue)| queue.ahead.drain(..));
        ahead.map(|lease| lease.delivery.value.id).collect()
    }

    /// Returns the next automatic wake-up in milliseconds since 1970, or `i64::MAX` if there is
    /// none. If `is_full`, an attempt must end first.
    pub(crate) fn next_wake_ms(&mut self, is_full: bool, now_ms: i64) -> i64 {
        let width_max = self.config.max_in_flight_per_destination;
        let wake = |queue: &mut DestinationQueue| match queue.next_opening(width_max, now_ms) {
            Some(opening) if is_full && opening.from_ms <= now_ms => i64::MAX,
            Some(opening) => opening.from_ms,
            None if queue.is_deleted() && queue.due_ms < i64::MAX => now_ms,
            None => i64::MAX,
        };
        self.all.values_mut().map(wake).min().unwrap_or(i64::MAX)
    }

    pub(crate) fn hold_reasons(&mut self, now_ms: i64) -> HashMap<RecordId, QueueHold> {
        let width_max = self.config.max_in_flight_per_destination;
        let held = self.all.iter_mut();
        held.filter_map(|(id, queue)| Some((*id, queue.hold_reason(width_max, now_ms)?)))
            .collect()
    }

    pub(crate) fn shift_times(&mut self, by_ms: i64) {
        for queue in self.all.values_mut() {
            queue.shift_times(by_ms);
        }
    }
}
