//! What the dispatcher knows of one destination while it runs.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    delivery::{breaker::Breaker, rate::Rate},
    destination::Report,
    domain::{Delivery, Destination, Outcome},
};

/// An attempt that ends within this time makes its destination a quick one.
const QUICK: Duration = Duration::from_millis(100);
/// Leases that a quick destination may hold for each attempt that may be under way, so that the
/// next attempts need not wait for a commit.
const LEASES_PER_PLACE: usize = 8;

/// One destination's way out.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The destination's name, under which it is stored.
    pub(crate) name: String,
    /// The destination; none when it is gone.
    pub(crate) destination: Option<Arc<Destination>>,
    /// Whether the destination is there and cannot be read.
    pub(crate) unreadable: bool,
    /// Whether nothing is to be sent.
    pub(crate) paused: bool,
    /// No delivery that waits is due before, in milliseconds since 1970; the end of time when none
    /// waits.
    pub(crate) due_ms: i64,
    /// Leased deliveries whose attempts have not begun.
    pub(crate) ahead: VecDeque<Lease>,
    /// Attempts under way.
    pub(crate) running: usize,
    /// Leases whose ends are not recorded yet.
    pub(crate) unrecorded: usize,
    /// Deliveries that wait and cannot be read.
    pub(crate) set_aside: usize,
    /// Whether the last attempt was delivered quickly, and no delivery that was tried before has been
    /// met since.
    pub(crate) quick: bool,
    pub(crate) breaker: Breaker,
    pub(crate) rate: Rate,
}

/// A delivery to send.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) delivery: Delivery,
    pub(crate) destination: Arc<Destination>,
}

/// When a lane may go on, and with how many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    /// From when on, in milliseconds since 1970.
    pub(crate) from_ms: i64,
    /// How many deliveries may be leased then.
    pub(crate) room: usize,
}

impl Lane {
    /// Whether there is no such destination any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.destination.is_none() && !self.unreadable
    }

    /// Takes note of a delivery that waits.
    pub(crate) fn expect(&mut self, due_ms: i64) {
        self.due_ms = self.due_ms.min(due_ms);
    }

    /// When it may go on; none when there is nothing to do before something else happens.
    pub(crate) fn opening(&mut self, in_flight_default: u32, now_ms: i64) -> Option<Opening> {
        let destination = self.destination.as_ref()?;
        if self.paused || self.due_ms == i64::MAX {
            return None;
        }
        let settings = destination.delivery;
        let places = self.places(in_flight_default);
        let leases = if self.quick && settings.max_per_minute.is_none() {
            places * LEASES_PER_PLACE
        } else {
            places
        };
        let held = self.held();
        let (permitted, closed_until_ms) = self.breaker.room(held);
        let room = leases.saturating_sub(held).min(permitted);
        if room == 0 {
            return None;
        }
        let (allowed, full_until_ms) = self.rate.room(settings.max_per_minute, now_ms);
        Some(Opening {
            from_ms: self.due_ms.max(closed_until_ms).max(full_until_ms),
            room: room.min(allowed),
        })
    }

    /// How many attempts may be under way.
    pub(crate) fn places(&self, in_flight_default: u32) -> usize {
        let settings = self.destination.as_ref().map(|found| found.delivery);
        let places = settings.and_then(|settings| settings.max_in_flight);
        places.unwrap_or(in_flight_default) as usize
    }

    /// Leases that have not ended.
    pub(crate) fn held(&self) -> usize {
        self.running + self.ahead.len()
    }

    /// Whether another attempt may begin.
    pub(crate) fn has_place(&self, in_flight_default: u32) -> bool {
        self.running < self.places(in_flight_default)
    }

    /// Whether what is leased and has not begun must not begin.
    pub(crate) fn is_closed(&self, now_ms: i64) -> bool {
        let (permitted, closed_until_ms) = self.breaker.room(self.running);
        self.paused || self.destination.is_none() || permitted == 0 || closed_until_ms > now_ms
    }

    /// Takes note of an attempt's end.
    pub(crate) fn note(&mut self, report: &Report, now_ms: i64) {
        let delivered = report.verdict.outcome == Outcome::Delivered;
        self.running -= 1;
        self.quick = delivered && report.duration <= QUICK;
        self.breaker.note(delivered, now_ms);
    }
}
