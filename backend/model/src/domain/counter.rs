//! What the service counts: of what, when, and how much.

use crate::domain::{
    Delivery, DeliveryState, RecordId, Severity,
    noise::{NoiseBy, NoiseTally},
};

/// One minute in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// The minutes of an hour.
pub const HOUR_MINUTES: u32 = 60;

/// Whose numbers they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The events that were accepted; a number for each severity.
    Events,
    /// All deliveries, but tests.
    Deliveries,
    /// Those of a destination.
    Destination(RecordId),
    /// Those of a rule.
    Rule(RecordId),
    /// Of that which shows what was noise, so many numbers from a part on, counted by day.
    Noise(NoiseBy, RecordId, u8),
}

/// What time the numbers are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// What there is now.
    Now,
    /// What happened in a minute, counted from 1970.
    Minute(u32),
    /// What happened in an hour, counted from 1970.
    Hour(u32),
    /// What happened in a day, counted from 1970, in UTC.
    Day(u32),
}

impl Period {
    /// The minute of a moment in milliseconds since 1970.
    pub fn minute_of(at_ms: i64) -> Self {
        Self::Minute(minute(at_ms))
    }
}

/// The minute of a moment in milliseconds since 1970, counted from there.
pub fn minute(at_ms: i64) -> u32 {
    let minute = at_ms.div_euclid(MINUTE_MS).max(0);
    u32::try_from(minute).unwrap_or(u32::MAX)
}

/// One record of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter {
    /// Whose.
    pub subject: Subject,
    /// Of when.
    pub period: Period,
}

/// What is counted of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// Those that have not ended now.
    Waiting = 0,
    /// Those that were decided in that time.
    Decided = 1,
    /// Those that the provider took: now, or in that time.
    Delivered = 2,
    /// Those that were given up.
    Dead = 3,
    /// Those that were ended by an operator, or with their destination.
    Cancelled = 4,
    /// Attempts that failed in that time.
    Failed = 5,
}

/// How many numbers a counter has at most.
pub const SLOTS: usize = 6;

/// The numbers of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers(pub [i64; SLOTS]);

/// Which number of a counter.
pub trait Slot {
    /// Its place among them.
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
    /// One of them.
    pub fn of(&self, slot: impl Slot) -> i64 {
        self.0[slot.slot()]
    }

    /// Adds to one of them.
    pub fn add(&mut self, slot: impl Slot, number: i64) {
        let sum = &mut self.0[slot.slot()];
        *sum = sum.saturating_add(number);
    }

    /// Adds others, one by one.
    pub fn add_all(&mut self, other: &Self) {
        for (sum, number) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(number);
        }
    }

    /// Whether there is nothing to count.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; SLOTS]
    }
}

impl NoiseTally {
    /// The part of a subject's numbers that has it, and where in that.
    pub fn slot(self) -> (u8, usize) {
        let place = usize::from(self.place());
        let part = u8::try_from(place / SLOTS).unwrap_or(u8::MAX);
        (part, place % SLOTS)
    }
}

/// One that counts.
pub type Counted = (Counter, Tally);

impl Delivery {
    /// What counts it. Tests, and what a shadow rule recorded, are not counted: no one was to know
    /// of anything.
    pub fn counted(&self) -> Vec<Counted> {
        if self.test {
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
        // Its outcome is counted with its digest.
        let is_folded = self.state == DeliveryState::Folded;
        let times = [
            (!is_folded).then(|| (Period::Now, end.unwrap_or(Tally::Waiting))),
            Some((Period::minute_of(self.create_ms), Tally::Decided)),
            end.zip(self.end_ms)
                .map(|(end, end_ms)| (Period::minute_of(end_ms), end)),
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
