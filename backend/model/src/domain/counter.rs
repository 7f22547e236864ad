//! Counters by subject and period.

use crate::domain::{
    Delivery, DeliveryState, RecordId, Severity,
    noise::{NoiseBy, NoiseTally},
};

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MINUTES: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Accepted events, by severity.
    Events,
    /// All deliveries except tests.
    Deliveries,
    Destination(RecordId),
    Rule(RecordId),
    /// Daily noise counts of a subject, split into parts of [`SLOTS`] numbers.
    Noise(NoiseBy, RecordId, u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// The current state.
    Now,
    /// A minute, as minutes since 1970.
    Minute(u32),
    /// An hour, as hours since 1970.
    Hour(u32),
    /// A day in UTC, as days since 1970.
    Day(u32),
}

impl Period {
    pub fn minute_at(at_ms: i64) -> Self {
        Self::Minute(minute_number(at_ms))
    }
}

/// Converts milliseconds since 1970 to minutes since 1970.
pub fn minute_number(at_ms: i64) -> u32 {
    let minute = at_ms.div_euclid(MINUTE_MS).max(0);
    u32::try_from(minute).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter {
    pub subject: Subject,
    pub period: Period,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// Deliveries that have not ended.
    Waiting = 0,
    Decided = 1,
    Delivered = 2,
    /// Deliveries that failed permanently; in [`Period::Now`], excluding those that were resent.
    Dead = 3,
    /// Deliveries that were cancelled by an operator or because their destination was deleted.
    Cancelled = 4,
    /// Failed attempts in the period.
    Failed = 5,
}

/// Maximum number of counts in a counter.
pub const SLOTS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers(pub [i64; SLOTS]);

pub trait Slot {
    fn slot(self) -> usize;
}

impl Slot for Tally {
    fn slot(self) -> usize {
        self as usize
    }
}

impl Slot for usize {
    fn slot(self) -> usize {
        self
    }
}

impl Slot for Severity {
    fn slot(self) -> usize {
        self as usize
    }
}

impl Numbers {
    pub fn get(&self, slot: impl Slot) -> i64 {
        self.0[slot.slot()]
    }

    pub fn add(&mut self, slot: impl Slot, number: i64) {
        let sum = &mut self.0[slot.slot()];
        *sum = sum.saturating_add(number);
    }

    pub fn add_all(&mut self, other: &Self) {
        for (sum, number) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(number);
        }
    }

    pub fn is_zero(&self) -> bool {
        self.0 == [0; SLOTS]
    }
}

impl NoiseTally {
    /// Returns the part of the subject that contains this count, and the index within it.
    pub fn slot(self) -> (u8, usize) {
        let place = usize::from(self.index());
        let part = u8::try_from(place / SLOTS).unwrap_or(u8::MAX);
        (part, place % SLOTS)
    }
}

pub type CounterTally = (Counter, Tally);

impl Delivery {
    /// Returns the counts that include this delivery. Tests, drills and shadow deliveries are not
    /// counted.
    pub fn counter_entries(&self) -> Vec<CounterTally> {
        if self.test || self.content.is_drill() {
            return Vec::new();
        }
        let end = match self.state {
            DeliveryState::Shadowed => return Vec::new(),
            DeliveryState::Delivered => Some(Tally::Delivered),
            DeliveryState::Dead => Some(Tally::Dead),
            DeliveryState::Cancelled => Some(Tally::Cancelled),
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. }
            | DeliveryState::Folded => None,
        };
        // The outcome is counted for the digest.
        let is_folded = self.state == DeliveryState::Folded;
        let is_resent = self.state == DeliveryState::Dead && self.retried_as.is_some();
        let is_counted_now = !is_folded && !is_resent;
        let times = [
            is_counted_now.then(|| (Period::Now, end.unwrap_or(Tally::Waiting))),
            Some((Period::minute_at(self.create_ms), Tally::Decided)),
            end.zip(self.end_ms)
                .map(|(end, end_ms)| (Period::minute_at(end_ms), end)),
        ];
        let subjects = [
            Some(Subject::Deliveries),
            Some(Subject::Destination(self.destination)),
            self.rule.map(Subject::Rule),
        ];
        let of_subject = |subject: Subject| {
            let times = times.into_iter().flatten();
            times.map(move |(period, tally)| (Counter { subject, period }, tally))
        };
        subjects
            .into_iter()
            .flatten()
            .flat_map(of_subject)
            .collect()
    }
}
