//! A value read from the service: its age, the request in flight, and the last failure.

use std::{any::Any, fmt};

use crate::{client::Ticket, data::Failure, limits};

#[derive(Clone, Debug)]
pub(crate) struct Loaded<T> {
    pub(crate) value: Option<T>,
    pub(crate) waiting: Option<Ticket>,
    pub(crate) failure: Option<Failure>,
    /// Time of the last request.
    pub(crate) requested_ms: i64,
    pub(crate) at_ms: Option<i64>,
    pub(crate) received_ms: Option<i64>,
    /// Time at which the value was requested. Later changes may be missing in it.
    pub(crate) as_of_ms: Option<i64>,
    pub(crate) revision: u64,
}

impl<T> Default for Loaded<T> {
    fn default() -> Self {
        Self {
            value: None,
            waiting: None,
            failure: None,
            requested_ms: 0,
            at_ms: None,
            received_ms: None,
            as_of_ms: None,
            revision: 0,
        }
    }
}

impl<T> Loaded<T> {
    pub(crate) fn clear(&mut self) {
        let revision = self.revision + 1;
        *self = Self {
            revision,
            ..Self::default()
        };
    }

    pub(crate) fn request(&mut self, ticket: Ticket, now_ms: i64) {
        self.waiting = Some(ticket);
        self.requested_ms = now_ms;
    }

    /// Returns the time of the next count: after this interval, or later if counting is slow.
    /// `None` while counting.
    pub(crate) fn count_due_ms(&self, pace_ms: i64) -> Option<i64> {
        if self.waiting.is_some() {
            return None;
        }
        let due = self.at_ms.map(|at| {
            let took_ms = at.saturating_sub(self.requested_ms);
            at.saturating_add(pace_ms.max(took_ms.saturating_mul(limits::COUNTED_PAUSE)))
        });
        Some(due.unwrap_or(i64::MIN))
    }
}

impl<T: PartialEq> Loaded<T> {
    /// Records the result of a read; a failure keeps the previous value. Returns whether anything
    /// changed.
    pub(crate) fn record(&mut self, result: Result<T, Failure>, now_ms: i64) -> bool {
        if self.waiting.take().is_none() {
            // Received with other data.
            self.requested_ms = now_ms;
        }
        self.at_ms = Some(now_ms);
        match result {
            Ok(value) => {
                self.received_ms = Some(now_ms);
                self.as_of_ms = Some(self.requested_ms);
                let failed = self.failure.take().is_some();
                let value = Some(value);
                let changed = self.value != value;
                self.revision += u64::from(changed);
                self.value = value;
                changed || failed
            }
            Err(failure) => {
                self.failure = Some(failure);
                true
            }
        }
    }
}

impl<T> Loaded<Vec<T>> {
    pub(crate) fn rows(&self) -> &[T] {
        self.value.as_deref().unwrap_or_default()
    }
}

pub(crate) trait Slot: Any + fmt::Debug + Send {
    fn pending_ticket(&self) -> Option<Ticket>;
    fn failure(&self) -> Option<&Failure>;
    fn requested_ms(&self) -> i64;
    fn at_ms(&self) -> Option<i64>;
    fn received_ms(&self) -> Option<i64>;
    fn as_of_ms(&self) -> Option<i64>;
    fn revision(&self) -> u64;
    fn is_loaded(&self) -> bool;
    /// Clears what belongs to the previous connection: the pending request, and the error.
    fn reconnect(&mut self);
}

impl<T: fmt::Debug + Send + 'static> Slot for Loaded<T> {
    fn pending_ticket(&self) -> Option<Ticket> {
        self.waiting
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn requested_ms(&self) -> i64 {
        self.requested_ms
    }

    fn at_ms(&self) -> Option<i64> {
        self.at_ms
    }

    fn received_ms(&self) -> Option<i64> {
        self.received_ms
    }

    fn as_of_ms(&self) -> Option<i64> {
        self.as_of_ms
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn is_loaded(&self) -> bool {
        self.value.is_some()
    }

    fn reconnect(&mut self) {
        self.waiting = None;
        self.failure = None;
    }
}
