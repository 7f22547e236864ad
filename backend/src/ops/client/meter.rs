//! How much a client may still ask for.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    domain::{Name, Rates},
    error::Error,
};

/// Thousandths in one: what a rate a second gives in a millisecond.
const THOUSANDTHS: i64 = 1_000;

/// Meters the calls and events of one client.
///
/// A second's worth may come in a burst. A list with more events than that is accepted when a
/// second's worth is free, and what is too much of it has to be waited for afterwards: over time
/// the rate holds, and no list is too long for ever.
#[derive(Debug)]
pub struct Meter {
    rates: Rates,
    buckets: Mutex<Buckets>,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Calls.
    Requests,
    /// Events in them.
    Events,
}

/// What a client may still ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What is counted.
    pub unit: Unit,
    /// How many a second, which is also how many may come in a burst.
    pub per_second: i64,
    /// How many are left.
    pub left: i64,
    /// Seconds until all of them are there again.
    pub full_seconds: u64,
}

#[derive(Debug)]
struct Buckets {
    requests: Option<Bucket>,
    events: Option<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    per_second: i64,
    /// What is left, in thousandths; below zero when it has to be waited for.
    left: i64,
    at_ms: i64,
}

impl Meter {
    /// A meter of which nothing is used yet.
    pub fn new(rates: Rates, now_ms: i64) -> Self {
        let bucket = |per_second: Option<u32>| {
            let per_second = i64::from(per_second?);
            Some(Bucket {
                per_second,
                left: per_second * THOUSANDTHS,
                at_ms: now_ms,
            })
        };
        let buckets = Buckets {
            requests: bucket(rates.requests_per_second),
            events: bucket(rates.events_per_second),
        };
        Self {
            rates,
            buckets: Mutex::new(buckets),
        }
    }

    /// The rates that it holds a client to.
    pub(super) fn rates(&self) -> Rates {
        self.rates
    }

    /// Counts one call.
    ///
    /// # Errors
    /// [`Error::Exhausted`] with the time to wait; nothing is counted then.
    pub fn take_call(&self, client: &Name, now_ms: i64) -> Result<(), Error> {
        self.take(|buckets| &mut buckets.requests, 1, now_ms)
            .map_err(|wait| beyond(client, self.rates.requests_per_second, "requests", wait))
    }

    /// Counts events.
    ///
    /// # Errors
    /// [`Error::Exhausted`] with the time to wait; nothing is counted then.
    pub fn take_events(&self, client: &Name, count: usize, now_ms: i64) -> Result<(), Error> {
        self.take(|buckets| &mut buckets.events, count, now_ms)
            .map_err(|wait| beyond(client, self.rates.events_per_second, "events", wait))
    }

    /// Counts events, or shows how long to wait until they can be.
    ///
    /// # Errors
    /// With that time.
    pub fn try_events(&self, count: usize, now_ms: i64) -> Result<(), Duration> {
        self.take(|buckets| &mut buckets.events, count, now_ms)
    }

    fn take(
        &self,
        of: impl Fn(&mut Buckets) -> &mut Option<Bucket>,
        count: usize,
        now_ms: i64,
    ) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        match of(&mut buckets) {
            Some(bucket) => bucket.take(count, now_ms),
            None => Ok(()),
        }
    }

    /// What is left of each limit that the client has.
    pub fn limits(&self, now_ms: i64) -> Vec<Limit> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { requests, events } = &mut *buckets;
        let limit = |(bucket, unit): (&mut Option<Bucket>, Unit)| {
            let bucket = bucket.as_mut()?;
            bucket.refill(now_ms);
            let full_ms = (bucket.most() - bucket.left).div_euclid(bucket.per_second);
            Some(Limit {
                unit,
                per_second: bucket.per_second,
                left: bucket.left.max(0) / THOUSANDTHS,
                full_seconds: full_ms.max(0).unsigned_abs().div_ceil(1_000),
            })
        };
        let buckets = [(requests, Unit::Requests), (events, Unit::Events)];
        buckets.into_iter().filter_map(limit).collect()
    }
}

impl Bucket {
    fn most(&self) -> i64 {
        self.per_second * THOUSANDTHS
    }

    fn refill(&mut self, now_ms: i64) {
        // A clock that was set back gives nothing.
        let passed_ms = now_ms.saturating_sub(self.at_ms).max(0);
        let more = passed_ms.saturating_mul(self.per_second);
        self.left = self.left.saturating_add(more).min(self.most());
        self.at_ms = now_ms;
    }

    fn take(&mut self, count: usize, now_ms: i64) -> Result<(), Duration> {
        self.refill(now_ms);
        let wanted = i64::try_from(count).unwrap_or(i64::MAX / THOUSANDTHS);
        let wanted = wanted.saturating_mul(THOUSANDTHS);
        let needed = wanted.min(self.most());
        if self.left >= needed {
            self.left -= wanted;
            return Ok(());
        }
        let lacking = (needed - self.left).unsigned_abs();
        let wait_ms = lacking.div_ceil(self.per_second.unsigned_abs());
        Err(Duration::from_millis(wait_ms))
    }
}

fn beyond(client: &Name, rate: Option<u32>, what: &str, wait: Duration) -> Error {
    let rate = rate.unwrap_or_default();
    Error::Exhausted {
        message: format!(
            "`{client}` may send {rate} {what} a second; nothing of this was accepted"
        ),
        retry_after: Some(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(requests: Option<u32>, events: Option<u32>) -> Meter {
        let rates = Rates {
            requests_per_second: requests,
            events_per_second: events,
        };
        Meter::new(rates, 0)
    }

    #[test]
    fn over_time_the_rate_holds_and_no_list_is_too_long_for_ever() {
        let meter = meter(None, Some(100));
        assert_eq!(meter.try_events(60, 0), Ok(()));
        assert_eq!(meter.try_events(60, 0), Err(Duration::from_millis(200)));
        assert_eq!(meter.try_events(60, 200), Ok(()));
        // More than a second's worth waits until a second's worth is there, and is paid for after.
        assert_eq!(meter.try_events(300, 200), Err(Duration::from_secs(1)));
        assert_eq!(meter.try_events(300, 1_200), Ok(()));
        assert_eq!(
            meter.try_events(1, 1_200),
            Err(Duration::from_millis(2_010))
        );
        assert_eq!(meter.try_events(1, 3_210), Ok(()));
        // A clock that is set back takes nothing away and gives nothing.
        assert_eq!(meter.try_events(1, 0), Err(Duration::from_millis(10)));
        let without = Meter::new(Rates::default(), 0);
        assert_eq!(without.try_events(1_000_000, 0), Ok(()));
    }

    #[test]
    fn what_is_left_of_each_limit_is_known() {
        let meter = meter(Some(5), Some(100));
        let client = Name::parse("sender").unwrap();
        meter.take_call(&client, 0).unwrap();
        meter.take_events(&client, 250, 0).unwrap();
        let limit = |unit, per_second, left, full_seconds| Limit {
            unit,
            per_second,
            left,
            full_seconds,
        };
        let expected = [
            limit(Unit::Requests, 5, 4, 1),
            limit(Unit::Events, 100, 0, 3),
        ];
        assert_eq!(meter.limits(0), expected);
        let Err(Error::Exhausted { message, .. }) = meter.take_events(&client, 1, 0) else {
            panic!("it was allowed");
        };
        assert!(message.starts_with("`sender` may send 100 events a second"));
        assert_eq!(Meter::new(Rates::default(), 0).limits(0), []);
    }
}
