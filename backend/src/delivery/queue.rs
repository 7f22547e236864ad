//! The waiting deliveries of one destination, and the number of attempts that may begin.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::{
    clock::to_millis,
    delivery::{
        breaker::Breaker,
        concurrency::{Concurrency, QUICK},
        pace::Pace,
        rate::Rate,
        thread::ThreadContext,
    },
    domain::{Attempt, Delivery, Destination, Outcome, RecordId, destination::RepeatedRejections},
    ops::delivery::QueueHold,
    send::{Advice, AttemptReport},
    store::{
        Stored,
        record::bytes::{Key, read_id},
    },
};

/// Leases per allowed attempt for a fast destination, so that the next attempts need not wait for a
/// commit.
const LEASES_PER_PLACE: usize = 8;

/// Minimum interval between scans for a severe message to try before it is due, in milliseconds.
const SORT_INTERVAL_MS: i64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    This,
    /// Another process; it delivers as soon as no attempt is in flight here.
    Another,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a receiver"
)]
pub(crate) struct DestinationQueue {
    /// The destination's name, which is its key in the store.
    pub(crate) name: String,
    /// The destination; `None` if it was deleted.
    pub(crate) destination: Option<Arc<Destination>>,
    /// Whether the destination exists but cannot be read.
    pub(crate) unreadable: bool,
    pub(crate) paused: bool,
    pub(crate) owner: Owner,
    /// A lower bound for the due times of waiting deliveries, in milliseconds since 1970;
    /// `i64::MAX` if none is waiting.
    pub(crate) due_ms: i64,
    /// Leased deliveries whose attempts have not begun.
    pub(crate) ahead: VecDeque<Lease>,
    pub(crate) running: usize,
    /// Start of each attempt in flight, in milliseconds since 1970.
    starts: HashMap<RecordId, i64>,
    pub(crate) unrecorded: usize,
    /// Number of waiting deliveries that cannot be read.
    pub(crate) set_aside: usize,
    /// Whether the last attempt was fast and successful, and no retried delivery was found since.
    pub(crate) quick: bool,
    pub(crate) breaker: Breaker,
    pub(crate) refusals: RepeatedRejections,
    /// Messages that failed because of the destination and must be resent.
    pub(crate) to_resend: Vec<RecordId>,
    pub(crate) requested_until_ms: i64,
    pub(crate) rate: Rate,
    pub(crate) pace: Pace,
    /// Whether more deliveries are waiting than may be sent now, so that they are sent by severity.
    pub(crate) has_backlog: bool,
    pub(crate) is_severe: bool,
    pub(crate) sorted_ms: i64,
    /// Whether the receiver has recovered, so that deliveries waiting for the recovery are due.
    pub(crate) is_recovered: bool,
    pub(crate) width: Concurrency,
    /// The index position before which no delivery is waiting; empty for the beginning.
    pub(crate) cursor: Vec<u8>,
}

/// A delivery to send, as stored when it was leased.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) delivery: Arc<Stored<Delivery>>,
    pub(crate) attempt: Arc<Stored<Attempt>>,
    pub(crate) destination: Arc<Destination>,
    /// The first delivery of the thread that this one updates, if it was delivered.
    pub(crate) opening: Option<RecordId>,
    pub(crate) thread: ThreadContext,
}

/// Time from which a queue may continue, and the number of attempts allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueOpening {
    pub(crate) from_ms: i64,
    pub(crate) allowance: usize,
    /// Whether a severe delivery may be tried now though it is not due.
    pub(crate) is_early: bool,
    pub(crate) only_severe: bool,
}

impl DestinationQueue {
    pub(crate) fn new(name: String, destination: Option<Arc<Destination>>, failures: u32) -> Self {
        Self {
            name,
            destination,
            unreadable: false,
            paused: false,
            owner: Owner::This,
            due_ms: i64::MAX,
            ahead: VecDeque::new(),
            running: 0,
            starts: HashMap::new(),
            unrecorded: 0,
            set_aside: 0,
            quick: false,
            breaker: Breaker::with_failures(failures),
            refusals: RepeatedRejections::default(),
            to_resend: Vec::new(),
            requested_until_ms: i64::MIN,
            rate: Rate::default(),
            pace: Pace::default(),
            has_backlog: failures > 0,
            is_severe: true,
            sorted_ms: i64::MIN,
            is_recovered: false,
            width: Concurrency::default(),
            cursor: Vec::new(),
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.destination.is_none() && !self.unreadable
    }

    pub(crate) fn add_waiting(&mut self, due_ms: i64) {
        self.due_ms = self.due_ms.min(due_ms);
        // The delivery may be severe; its severity is read when it is tried.
        self.is_severe = true;
        if let Some(destination) = read_id(&self.cursor, 0) {
            let earliest = Key::new().id(destination).time_ms(due_ms).build();
            self.cursor = std::mem::take(&mut self.cursor).min(earliest);
        }
    }

    /// Returns the time from which the queue may continue; `None` if another event must occur
    /// first.
    pub(crate) fn next_opening(&mut self, width_max: u32, now_ms: i64) -> Option<QueueOpening> {
        let destination = self.destination.as_ref()?;
        if self.paused || self.owner == Owner::Another || self.due_ms == i64::MAX {
            return None;
        }
        let settings = destination.delivery;
        let width = self.concurrency(width_max);
        let leases = if self.quick && !self.is_slowed_down() {
            width * LEASES_PER_PLACE
        } else {
            width
        };
        let held = self.lease_count();
        let (permitted, closed_until_ms) = self.breaker.start_allowance(held);
        let (paced, paced_until_ms) = self.pace.start_allowance(held);
        let allowance = leases.saturating_sub(held).min(permitted).min(paced);
        if allowance == 0 {
            return None;
        }
        let (allowed, full_until_ms) = self.rate.start_allowance(settings.max_per_minute, now_ms);
        let limited_until_ms = full_until_ms
            .max(paced_until_ms)
            .max(self.requested_until_ms);
        let from_ms = self.due_ms.max(closed_until_ms).max(limited_until_ms);
        let early_ms = self
            .early_retry_ms(held)
            .map(|at_ms| at_ms.max(limited_until_ms));
        let is_early = early_ms.is_some_and(|early_ms| early_ms < from_ms);
        let allowance = allowance.min(allowed);
        Some(QueueOpening {
            from_ms: early_ms.unwrap_or(from_ms).min(from_ms),
            allowance: if is_early {
                allowance.min(1)
            } else {
                allowance
            },
            is_early: early_ms.is_some_and(|early_ms| early_ms <= now_ms),
            only_severe: from_ms > now_ms,
        })
    }

    /// Returns the time at which a severe message may be tried before it is due.
    fn early_retry_ms(&self, held: usize) -> Option<i64> {
        // The interval prevents a busy loop over a message that cannot be tried after all.
        let sorted_ms = self.sorted_ms.saturating_add(SORT_INTERVAL_MS);
        let at_ms = self.breaker.severe_probe_ms()?.max(sorted_ms);
        (self.is_severe && held == 0).then_some(at_ms)
    }

    /// Whether waiting deliveries are sent by severity because not all of them can be sent now.
    pub(crate) fn is_sorted_by_severity(&self) -> bool {
        self.has_backlog || self.is_slowed_down()
    }

    fn is_slowed_down(&self) -> bool {
        let settings = self.destination.as_ref().map(|found| found.delivery);
        let has_rate = settings.is_some_and(|it| it.max_per_minute.is_some());
        has_rate || self.breaker.is_failing() || self.pace.has_limit()
    }

    pub(crate) fn hold_reason(&mut self, width_max: u32, now_ms: i64) -> Option<QueueHold> {
        let settings = self.destination.as_ref()?.delivery;
        if self.paused {
            return Some(QueueHold::Paused);
        }
        if self.requested_until_ms > now_ms {
            let until_ms = self.requested_until_ms;
            return Some(QueueHold::Requested { until_ms });
        }
        let (permitted, closed_until_ms) = self.breaker.start_allowance(self.lease_count());
        if permitted == 0 || closed_until_ms > now_ms {
            let early_ms = self.early_retry_ms(self.lease_count()).unwrap_or(i64::MAX);
            let probe_ms = closed_until_ms.min(early_ms).max(now_ms);
            return Some(QueueHold::Breaker { probe_ms });
        }
        let (_, paced_until_ms) = self.pace.start_allowance(self.lease_count());
        if paced_until_ms > now_ms {
            let until_ms = paced_until_ms;
            return Some(QueueHold::Limited { until_ms });
        }
        let (allowed, full_until_ms) = self.rate.start_allowance(settings.max_per_minute, now_ms);
        if let (0, Some(per_minute)) = (allowed, settings.max_per_minute) {
            let until_ms = full_until_ms.max(now_ms);
            return Some(QueueHold::Rate {
                per_minute,
                until_ms,
            });
        }
        let running = self.running;
        (running >= self.concurrency(width_max)).then_some(QueueHold::Width { running })
    }

    /// Returns the number of concurrent attempts. `width_max` applies unless the destination sets a
    /// number.
    pub(crate) fn concurrency(&self, width_max: u32) -> usize {
        let settings = self.destination.as_ref().map(|found| found.delivery);
        let stated = settings.and_then(|settings| settings.max_in_flight);
        self.width.current_limit(stated.unwrap_or(width_max))
    }

    pub(crate) fn lease_count(&self) -> usize {
        self.running + self.ahead.len()
    }

    /// Whether attempts of leased deliveries must not begin.
    pub(crate) fn must_not_begin(&self, now_ms: i64) -> bool {
        let (permitted, closed_until_ms) = self.breaker.start_allowance(self.running);
        let (paced, paced_until_ms) = self.pace.start_allowance(self.running);
        // Only a severe message is leased before the pause ends.
        let early_ms = self.breaker.severe_probe_ms().filter(|_| self.running == 0);
        let until_ms = closed_until_ms.min(early_ms.unwrap_or(i64::MAX));
        let until_ms = until_ms.max(self.requested_until_ms).max(paced_until_ms);
        let is_stopped = self.paused || self.owner == Owner::Another || self.destination.is_none();
        is_stopped || permitted.min(paced) == 0 || until_ms > now_ms
    }

    pub(crate) fn reset_failures(&mut self) {
        self.breaker = Breaker::default();
        self.refusals = RepeatedRejections::default();
        self.pace = Pace::default();
        self.requested_until_ms = i64::MIN;
    }

    pub(crate) fn shift_times(&mut self, by_ms: i64) {
        self.breaker.shift_times(by_ms);
        self.rate.shift_times(by_ms);
        for start_ms in self.starts.values_mut() {
            *start_ms = start_ms.saturating_add(by_ms);
        }
        self.pace.shift_times(by_ms);
        self.sorted_ms = i64::MIN;
        self.requested_until_ms = self.requested_until_ms.saturating_add(by_ms);
        self.add_waiting(i64::MIN);
    }

    pub(crate) fn record_start(&mut self, delivery: RecordId, now_ms: i64) {
        self.running += 1;
        self.starts.insert(delivery, now_ms);
        self.pace.record_start(now_ms);
    }

    pub(crate) fn record_outcome(
        &mut self,
        delivery: RecordId,
        report: &AttemptReport,
        now_ms: i64,
    ) {
        let delivered = report.verdict.outcome == Outcome::Delivered;
        self.running -= 1;
        self.quick = delivered && report.duration <= QUICK;
        let advice = report.verdict.advice;
        let was_failing = self.breaker.is_failing() || self.pace.is_rate_limited();
        self.breaker
            .record_outcome(delivery, &report.verdict, now_ms);
        let requested_wait = advice.requested_wait();
        if let Some(wait) = requested_wait {
            let until_ms = now_ms.saturating_add(to_millis(wait));
            self.requested_until_ms = self.requested_until_ms.max(until_ms);
        }
        let start_ms = self.starts.remove(&delivery).unwrap_or(now_ms);
        if delivered {
            self.pace.record_acceptance(start_ms);
        } else if let Advice::Limited(_) = advice {
            self.pace.record_refusal(start_ms, requested_wait, now_ms);
        }
        let is_failing = self.breaker.is_failing() || self.pace.is_rate_limited();
        self.has_backlog |= is_failing;
        self.is_recovered |= was_failing && !is_failing;
        if self.is_sorted_by_severity() {
            // Deliveries that wait for this one in its thread may be sent now.
            self.due_ms = self.due_ms.min(now_ms);
        }
        let waiting = !self.ahead.is_empty() || self.due_ms <= now_ms;
        self.width.record_outcome(report, waiting);
        if self.running == 0 && !waiting {
            self.width = Concurrency::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_moves_back_only_for_earlier_due_times() {
        let destination = RecordId::from_parts(1, 1);
        let at = |due_ms| Key::new().id(destination).time_ms(due_ms).build();
        let mut queue = DestinationQueue::new("hook".into(), None, 0);
        queue.add_waiting(5);
        assert!(
            queue.cursor.is_empty(),
            "no earlier message is in the queue"
        );
        queue.cursor = Key::new()
            .id(destination)
            .time_ms(100)
            .id(destination)
            .build();
        queue.add_waiting(101);
        assert!(queue.cursor > at(100));
        queue.add_waiting(100);
        assert_eq!(queue.cursor, at(100));
        queue.add_waiting(50);
        queue.add_waiting(70);
        assert_eq!((queue.cursor, queue.due_ms), (at(50), 5));
    }
}
