//! What waits, and whose turn it is: the queues of all destinations, in memory.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use crate::{
    config::DeliveryConfig,
    delivery::{
        backoff,
        breaker::Probe,
        decide,
        queue::{DestinationQueue, Lease},
        refusals,
    },
    destination::Report,
    domain::{Destination, RecordId},
    limits::SET_ASIDE_MAX,
    ops::delivery::{Hold, attempt},
};

/// The queues, by destination.
#[derive(Debug)]
pub(crate) struct Queues {
    config: DeliveryConfig,
    all: BTreeMap<RecordId, DestinationQueue>,
    /// The destination that was served last.
    turn: RecordId,
    /// Deliveries that cannot be read.
    set_aside: HashSet<RecordId>,
}

/// A destination to which something may begin.
pub(crate) struct Ready {
    pub(crate) destination: Arc<Destination>,
    /// Deliveries that may be leased.
    pub(crate) allowance: usize,
    /// Attempts that may begin concurrently.
    pub(crate) places: usize,
    /// Entries of its index that are not to be looked at: our own leases, and what is set aside.
    pub(crate) ours: usize,
    /// Where in the index to begin; empty for the beginning.
    pub(crate) cursor: Vec<u8>,
    /// Which message to take while it is failing.
    pub(crate) probe: Option<Probe>,
}

/// What happens to the next lease.
pub(crate) enum Next {
    /// Its attempt begins, and may take so long.
    Begin(Lease, Duration),
    /// Its attempt must not begin.
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

    /// The destination as it is now, unless it is gone.
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

    /// Attempts under way.
    pub(crate) fn running(&self) -> usize {
        self.all.values().map(|queue| queue.running).sum()
    }

    /// All destinations.
    pub(crate) fn ids(&self) -> Vec<RecordId> {
        self.all.keys().copied().collect()
    }

    /// The destinations of which that holds.
    pub(crate) fn ids_where(&self, holds: impl Fn(&DestinationQueue) -> bool) -> Vec<RecordId> {
        let found = self.all.iter().filter(|(_, queue)| holds(queue));
        found.map(|(id, _)| *id).collect()
    }

    /// Takes note of a delivery that waits.
    pub(crate) fn expect(&mut self, destination: RecordId, due_ms: i64) {
        if let Some(queue) = self.get_mut(destination) {
            queue.expect(due_ms);
        }
    }

    /// Leaves a delivery that cannot be read alone until the next start; answers the name of its
    /// destination when that is new.
    pub(crate) fn set_aside(&mut self, destination: RecordId, delivery: RecordId) -> Option<&str> {
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

    /// The destinations to which something may begin now, but for those that are paused, in their
    /// turns.
    pub(crate) fn ready(&mut self, paused: &[RecordId], now_ms: i64) -> Vec<Ready> {
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
            let opening = queue.opening(width_max, now_ms);
            if let (Some(opening), Some(destination)) = (opening, &queue.destination)
                && opening.from_ms <= now_ms
                && !paused.contains(&id)
            {
                ready.push(Ready {
                    destination: Arc::clone(destination),
                    allowance: opening.allowance,
                    places: queue.width(width_max).saturating_sub(queue.held()),
                    ours: queue.unrecorded + queue.set_aside,
                    cursor: queue.cursor.clone(),
                    probe: queue.breaker.probe(),
                });
            }
        }
        ready
    }

    /// Takes note that a destination was served, and that what is left of it is due then.
    pub(crate) fn served(&mut self, destination: RecordId, due_ms: i64, cursor: Option<Vec<u8>>) {
        if let Some(queue) = self.all.get_mut(&destination) {
            queue.due_ms = due_ms;
            if let Some(cursor) = cursor {
                queue.cursor = cursor;
            }
            self.turn = destination;
        }
    }

    /// Keeps what was leased until its attempt begins.
    pub(crate) fn hold(&mut self, lease: Lease, now_ms: i64) {
        if let Some(queue) = self.all.get_mut(&lease.destination.id) {
            queue.unrecorded += 1;
            queue.rate.note(1, now_ms);
            queue.ahead.push_back(lease);
        }
    }

    /// The next lease of a destination, when its attempt may begin or must not begin at all.
    pub(crate) fn next(&mut self, destination: RecordId, now_ms: i64) -> Option<Next> {
        let width_max = self.config.max_in_flight_per_destination;
        let queue = self.all.get_mut(&destination)?;
        let is_closed = queue.is_closed(now_ms);
        if !is_closed && queue.running >= queue.width(width_max) {
            return None;
        }
        let lease = queue.ahead.pop_front()?;
        let timeout = backoff::timeout(&self.config, &lease.destination);
        let (settings, kind) = (lease.destination.delivery, &lease.destination.kind);
        let longest = attempt::longest(&self.config, settings, kind);
        if is_closed || !decide::may_begin(&lease.delivery.value, longest, now_ms) {
            return Some(Next::GiveBack(lease.delivery.value.id));
        }
        queue.running += 1;
        Some(Next::Begin(lease, timeout))
    }

    /// Judges an attempt's end by those before it, and notes the messages that ended and were refused for
    /// what their destination is.
    pub(crate) fn judge(&mut self, destination: RecordId, delivery: RecordId, report: &mut Report) {
        if let Some(queue) = self.all.get_mut(&destination) {
            let wronged = refusals::judge(&mut queue.refusals, delivery, report);
            queue.wronged.extend(wronged);
        }
    }

    /// Takes note of an attempt's end.
    pub(crate) fn ended(
        &mut self,
        destination: RecordId,
        delivery: RecordId,
        report: &Report,
        now_ms: i64,
    ) {
        if let Some(queue) = self.all.get_mut(&destination) {
            queue.note(delivery, report, now_ms);
        }
    }

    /// Lets go of what is leased and has not begun: to that destination, or to all.
    pub(crate) fn let_go(&mut self, destination: Option<RecordId>) -> Vec<RecordId> {
        let queues = self.all.iter_mut();
        let of_it = queues.filter(|(id, _)| destination.is_none_or(|only| only == **id));
        let ahead = of_it.flat_map(|(_, queue)| queue.ahead.drain(..));
        ahead.map(|lease| lease.delivery.value.id).collect()
    }

    /// When something may begin automatically, in milliseconds since 1970; the end of time when
    /// nothing may. `is_full` tells that an end of an attempt has to come first.
    pub(crate) fn wakes_ms(&mut self, is_full: bool, now_ms: i64) -> i64 {
        let width_max = self.config.max_in_flight_per_destination;
        let wake = |queue: &mut DestinationQueue| match queue.opening(width_max, now_ms) {
            Some(opening) if is_full && opening.from_ms <= now_ms => i64::MAX,
            Some(opening) => opening.from_ms,
            None if queue.is_gone() && queue.due_ms < i64::MAX => now_ms,
            None => i64::MAX,
        };
        self.all.values_mut().map(wake).min().unwrap_or(i64::MAX)
    }

    /// What keeps deliveries to which destination waiting.
    pub(crate) fn holds(&mut self, now_ms: i64) -> HashMap<RecordId, Hold> {
        let width_max = self.config.max_in_flight_per_destination;
        let held = self.all.iter_mut();
        held.filter_map(|(id, queue)| Some((*id, queue.hold(width_max, now_ms)?)))
            .collect()
    }

    /// Moves along with a clock that was set.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        for queue in self.all.values_mut() {
            queue.shift(by_ms);
        }
    }
}
