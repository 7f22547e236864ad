//! The waiting deliveries of one destination, and how many may begin.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    clock::millis,
    delivery::{
        backoff::ASKED_WAIT_MAX,
        breaker::Breaker,
        concurrency::{Concurrency, QUICK},
        rate::Rate,
    },
    destination::{Advice, Report},
    domain::{Attempt, Delivery, Destination, Outcome, RecordId, destination::AlikeRefusals},
    ops::delivery::Hold,
    store::{
        Stored,
        record::bytes::{Key, id_at},
    },
};

/// Leases per allowed attempt for a fast destination, so that the next attempts need not wait for a
/// commit.
const LEASES_PER_PLACE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    This,
    /// Another process, as soon as nothing is in flight here.
    Another,
}

#[derive(Debug)]
pub(crate) struct DestinationQueue {
    /// The destination's name, which is its key in the store.
    pub(crate) name: String,
    /// The destination; `None` if it was deleted.
    pub(crate) destination: Option<Arc<Destination>>,
    /// Whether the destination exists but cannot be read.
    pub(crate) unreadable: bool,
    pub(crate) paused: bool,
    pub(crate) owner: Owner,
    /// A lower bound of the waiting deliveries' due times, in milliseconds since 1970; the end of
    /// time if none waits.
    pub(crate) due_ms: i64,
    /// Leased deliveries whose attempts have not begun.
    pub(crate) ahead: VecDeque<Lease>,
    /// Number of attempts in flight.
    pub(crate) running: usize,
    /// Number of leases whose outcomes are not recorded yet.
    pub(crate) unrecorded: usize,
    /// Number of waiting deliveries that cannot be read.
    pub(crate) set_aside: usize,
    /// Whether the last attempt was fast and successful, and no retried delivery was found since.
    pub(crate) quick: bool,
    pub(crate) breaker: Breaker,
    pub(crate) refusals: AlikeRefusals,
    /// Messages that failed because of the destination and must be resent.
    pub(crate) wronged: Vec<RecordId>,
    /// End of the pause requested by the receiver, in milliseconds since 1970.
    pub(crate) asked_until_ms: i64,
    pub(crate) rate: Rate,
    pub(crate) width: Concurrency,
    /// The index position before which nothing waits; empty for the beginning.
    pub(crate) cursor: Vec<u8>,
}

/// A delivery to send, as stored when it was leased.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) delivery: Arc<Stored<Delivery>>,
    pub(crate) attempt: Arc<Stored<Attempt>>,
    pub(crate) destination: Arc<Destination>,
    /// The first delivery of the thread that this one updates, if it arrived.
    pub(crate) opening: Option<RecordId>,
}

/// When a queue may continue, and with how many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) from_ms: i64,
    /// Number of deliveries that may be leased then.
    pub(crate) allowance: usize,
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
            unrecorded: 0,
            set_aside: 0,
            quick: false,
            breaker: Breaker::after_failures(failures),
            refusals: AlikeRefusals::default(),
            wronged: Vec::new(),
            asked_until_ms: i64::MIN,
            rate: Rate::default(),
            width: Concurrency::default(),
            cursor: Vec::new(),
        }
    }

    /// Whether the destination was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.destination.is_none() && !self.unreadable
    }

    /// Records a waiting delivery. Only an earlier due time is news.
    pub(crate) fn expect(&mut self, due_ms: i64) {
        self.due_ms = self.due_ms.min(due_ms);
        if let Some(destination) = id_at(&self.cursor, 0) {
            let earliest = Key::new().id(destination).moment(due_ms).build();
            self.cursor = std::mem::take(&mut self.cursor).min(earliest);
        }
    }

    /// Returns when it may continue, or `None` if something else must happen first.
    pub(crate) fn opening(&mut self, width_max: u32, now_ms: i64) -> Option<Opening> {
        let destination = self.destination.as_ref()?;
        if self.paused || self.owner == Owner::Another || self.due_ms == i64::MAX {
            return None;
        }
        let settings = destination.delivery;
        let width = self.width(width_max);
        let leases = if self.quick && settings.max_per_minute.is_none() {
            width * LEASES_PER_PLACE
        } else {
            width
        };
        let held = self.held();
        let (permitted, closed_until_ms) = self.breaker.allowance(held);
        let allowance = leases.saturating_sub(held).min(permitted);
        if allowance == 0 {
            return None;
        }
        let (allowed, full_until_ms) = self.rate.allowance(settings.max_per_minute, now_ms);
        Some(Opening {
            from_ms: self
                .due_ms
                .max(closed_until_ms)
                .max(full_until_ms)
                .max(self.asked_until_ms),
            allowance: allowance.min(allowed),
        })
    }

    /// Returns why due deliveries cannot be tried now.
    pub(crate) fn hold(&mut self, width_max: u32, now_ms: i64) -> Option<Hold> {
        let settings = self.destination.as_ref()?.delivery;
        if self.paused {
            return Some(Hold::Paused);
        }
        if self.asked_until_ms > now_ms {
            let until_ms = self.asked_until_ms;
            return Some(Hold::Asked { until_ms });
        }
        let (permitted, closed_until_ms) = self.breaker.allowance(self.held());
        if permitted == 0 || closed_until_ms > now_ms {
            let probe_ms = closed_until_ms.max(now_ms);
            return Some(Hold::Breaker { probe_ms });
        }
        let (allowed, full_until_ms) = self.rate.allowance(settings.max_per_minute, now_ms);
        if let (0, Some(per_minute)) = (allowed, settings.max_per_minute) {
            let until_ms = full_until_ms.max(now_ms);
            return Some(Hold::Rate {
                per_minute,
                until_ms,
            });
        }
        let running = self.running;
        (running >= self.width(width_max)).then_some(Hold::Width { running })
    }

    /// Returns the number of concurrent attempts; `width_max` applies unless the destination sets
    /// one.
    pub(crate) fn width(&self, width_max: u32) -> usize {
        let settings = self.destination.as_ref().map(|found| found.delivery);
        let stated = settings.and_then(|settings| settings.max_in_flight);
        self.width.now(stated.unwrap_or(width_max))
    }

    /// Returns the number of leases that have not ended.
    pub(crate) fn held(&self) -> usize {
        self.running + self.ahead.len()
    }

    /// Whether leased deliveries must not begin.
    pub(crate) fn is_closed(&self, now_ms: i64) -> bool {
        let (permitted, closed_until_ms) = self.breaker.allowance(self.running);
        let until_ms = closed_until_ms.max(self.asked_until_ms);
        let is_stopped = self.paused || self.owner == Owner::Another || self.destination.is_none();
        is_stopped || permitted == 0 || until_ms > now_ms
    }

    /// Forgets earlier failures of the destination.
    pub(crate) fn forgive(&mut self) {
        self.breaker = Breaker::default();
        self.refusals = AlikeRefusals::default();
        self.asked_until_ms = i64::MIN;
    }

    /// Adjusts its times to a clock step.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        self.breaker.shift(by_ms);
        self.rate.shift(by_ms);
        self.asked_until_ms = self.asked_until_ms.saturating_add(by_ms);
        self.expect(i64::MIN);
    }

    pub(crate) fn note(&mut self, delivery: RecordId, report: &Report, now_ms: i64) {
        let delivered = report.verdict.outcome == Outcome::Delivered;
        self.running -= 1;
        self.quick = delivered && report.duration <= QUICK;
        self.breaker.note(delivery, &report.verdict, now_ms);
        if let Advice::AgainAfter(wait) = report.verdict.advice {
            let until_ms = now_ms.saturating_add(millis(wait.min(ASKED_WAIT_MAX)));
            self.asked_until_ms = self.asked_until_ms.max(until_ms);
        }
        let waiting = !self.ahead.is_empty() || self.due_ms <= now_ms;
        self.width.note(report, waiting);
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
        let at = |due_ms| Key::new().id(destination).moment(due_ms).build();
        let mut queue = DestinationQueue::new("hook".into(), None, 0);
        queue.expect(5);
        assert!(queue.cursor.is_empty(), "it is at the beginning");
        queue.cursor = Key::new()
            .id(destination)
            .moment(100)
            .id(destination)
            .build();
        queue.expect(101);
        assert!(queue.cursor > at(100));
        queue.expect(100);
        assert_eq!(queue.cursor, at(100));
        queue.expect(50);
        queue.expect(70);
        assert_eq!((queue.cursor, queue.due_ms), (at(50), 5));
    }
}
