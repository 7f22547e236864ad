//! What the dispatcher knows of one destination while it runs.

use std::sync::Arc;

use crate::{
    delivery::{breaker::Breaker, rate::Rate},
    domain::Destination,
};

/// One destination's way out.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The destination's name, under which it is stored.
    pub(crate) name: String,
    /// The destination; none when it is gone.
    pub(crate) destination: Option<Arc<Destination>>,
    /// Whether nothing is to be sent.
    pub(crate) paused: bool,
    /// No delivery that waits is due before, in milliseconds since 1970; the end of time when none
    /// waits.
    pub(crate) due_ms: i64,
    /// Attempts under way.
    pub(crate) running: usize,
    /// Attempts under way or not recorded yet.
    pub(crate) unrecorded: usize,
    pub(crate) breaker: Breaker,
    pub(crate) rate: Rate,
}

/// When a lane may go on, and with how many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    /// From when on, in milliseconds since 1970.
    pub(crate) from_ms: i64,
    /// How many attempts may start then.
    pub(crate) room: usize,
}

impl Lane {
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
        let slots = settings.max_in_flight.unwrap_or(in_flight_default) as usize;
        let (permitted, closed_until_ms) = self.breaker.room(self.running);
        let room = slots.saturating_sub(self.running).min(permitted);
        if room == 0 {
            return None;
        }
        let (allowed, full_until_ms) = self.rate.room(settings.max_per_minute, now_ms);
        Some(Opening {
            from_ms: self.due_ms.max(closed_until_ms).max(full_until_ms),
            room: room.min(allowed),
        })
    }
}
