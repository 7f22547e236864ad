//! Rate limits of a client.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    domain::{Name, Rates},
    error::Error,
};

/// Scale of the counters: a rate per second equals thousandths per millisecond.
const THOUSANDTHS: i64 = 1_000;

/// A meter of the calls and events of a client.
///
/// A burst of up to one second's worth is accepted. A larger list of events is accepted once a full
/// second's worth is available; the excess delays later requests. Every list is therefore accepted,
/// whatever its length, and the average rate stays within the limit.
#[derive(Debug)]
pub struct Meter {
    rates: Rates,
    buckets: Mutex<ClientBuckets>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Requests,
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub unit: Unit,
    /// Rate per second, which is also the burst size.
    pub per_second: i64,
    pub left: i64,
    /// Seconds until the bucket is full again.
    pub seconds_until_full: u64,
}

#[derive(Debug)]
struct ClientBuckets {
    requests: Option<Bucket>,
    events: Option<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    per_second: i64,
    /// Remaining amount in thousandths; negative after a large list.
    left: i64,
    at_ms: i64,
}

impl Meter {
    pub fn new(rates: Rates, now_ms: i64) -> Self {
        let bucket = |per_second: Option<u32>| {
            let per_second = i64::from(per_second?);
            Some(Bucket {
                per_second,
                left: per_second * THOUSANDTHS,
                at_ms: now_ms,
            })
        };
        let buckets = ClientBuckets {
            requests: bucket(rates.requests_per_second),
            events: bucket(rates.events_per_second),
        };
        Self {
            rates,
            buckets: Mutex::new(buckets),
        }
    }

    pub(super) fn rates(&self) -> Rates {
        self.rates
    }

    /// Counts a call.
    ///
    /// # Errors
    /// Returns [`Error::Exhausted`] with the time to wait; the call is then not counted.
    pub fn take_call(&self, client: &Name, now_ms: i64) -> Result<(), Error> {
        self.consume(|buckets| &mut buckets.requests, 1, now_ms)
            .map_err(|wait| {
                exceeded_error(client, self.rates.requests_per_second, "requests", wait)
            })
    }

    /// Counts events.
    ///
    /// # Errors
    /// Returns [`Error::Exhausted`] with the time to wait; the events are then not counted.
    pub fn take_events(&self, client: &Name, count: usize, now_ms: i64) -> Result<(), Error> {
        self.consume(|buckets| &mut buckets.events, count, now_ms)
            .map_err(|wait| exceeded_error(client, self.rates.events_per_second, "events", wait))
    }

    /// Counts events if the limit allows.
    ///
    /// # Errors
    /// Returns the time to wait; the events are then not counted.
    pub fn try_events(&self, count: usize, now_ms: i64) -> Result<(), Duration> {
        self.consume(|buckets| &mut buckets.events, count, now_ms)
    }

    fn consume(
        &self,
        of: impl Fn(&mut ClientBuckets) -> &mut Option<Bucket>,
        count: usize,
        now_ms: i64,
    ) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        match of(&mut buckets) {
            Some(bucket) => bucket.consume(count, now_ms),
            None => Ok(()),
        }
    }

    pub fn limits(&self, now_ms: i64) -> Vec<Limit> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let ClientBuckets { requests, events } = &mut *buckets;
        let limit = |(bucket, unit): (&mut Option<Bucket>, Unit)| {
            let bucket = bucket.as_mut()?;
            bucket.refill(now_ms);
            let full_ms = (bucket.capacity() - bucket.left).div_euclid(bucket.per_second);
            Some(Limit {
                unit,
                per_second: bucket.per_second,
                left: bucket.left.max(0) / THOUSANDTHS,
                seconds_until_full: full_ms.max(0).unsigned_abs().div_ceil(1_000),
            })
        };
        let buckets = [(requests, Unit::Requests), (events, Unit::Events)];
        buckets.into_iter().filter_map(limit).collect()
    }
}

impl Bucket {
    fn capacity(&self) -> i64 {
        self.per_second * THOUSANDTHS
    }

    fn refill(&mut self, now_ms: i64) {
        // If the clock is set back, the bucket is not refilled.
        let passed_ms = now_ms.saturating_sub(self.at_ms).max(0);
        let more = passed_ms.saturating_mul(self.per_second);
        self.left = self.left.saturating_add(more).min(self.capacity());
        self.at_ms = now_ms;
    }

    fn consume(&mut self, count: usize, now_ms: i64) -> Result<(), Duration> {
        self.refill(now_ms);
        let wanted = i64::try_from(count).unwrap_or(i64::MAX / THOUSANDTHS);
        let wanted = wanted.saturating_mul(THOUSANDTHS);
        let needed = wanted.min(self.capacity());
        if self.left >= needed {
            self.left -= wanted;
            return Ok(());
        }
        let lacking = (needed - self.left).unsigned_abs();
        let wait_ms = lacking.div_ceil(self.per_second.unsigned_abs());
        Err(Duration::from_millis(wait_ms))
    }
}

fn exceeded_error(client: &Name, rate: Option<u32>, what: &str, wait: Duration) -> Error {
    let rate = rate.unwrap_or_default();
    Error::Exhausted {
        message: format!(
            "`{client}` may send {rate} {what} per second; the whole request was rejected"
        ),
        retry_after: Some(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_meter(requests: Option<u32>, events: Option<u32>) -> Meter {
        let rates = Rates {
            requests_per_second: requests,
            events_per_second: events,
        };
        Meter::new(rates, 0)
    }

    #[test]
    fn rate_is_enforced_and_large_lists_are_eventually_accepted() {
        let meter = sample_meter(None, Some(100));
        assert_eq!(meter.try_events(60, 0), Ok(()));
        assert_eq!(meter.try_events(60, 0), Err(Duration::from_millis(200)));
        assert_eq!(meter.try_events(60, 200), Ok(()));
        // A larger list waits for a full bucket, and its excess delays later lists.
        assert_eq!(meter.try_events(300, 200), Err(Duration::from_secs(1)));
        assert_eq!(meter.try_events(300, 1_200), Ok(()));
        assert_eq!(
            meter.try_events(1, 1_200),
            Err(Duration::from_millis(2_010))
        );
        assert_eq!(meter.try_events(1, 3_210), Ok(()));
        // If the clock is set back, the bucket is neither refilled nor drained.
        assert_eq!(meter.try_events(1, 0), Err(Duration::from_millis(10)));
        let without = Meter::new(Rates::default(), 0);
        assert_eq!(without.try_events(1_000_000, 0), Ok(()));
    }

    #[test]
    fn remaining_quota_is_reported_per_limit() {
        let meter = sample_meter(Some(5), Some(100));
        let client = Name::parse("sender").unwrap();
        meter.take_call(&client, 0).unwrap();
        meter.take_events(&client, 250, 0).unwrap();
        let limit = |unit, per_second, left, seconds_until_full| Limit {
            unit,
            per_second,
            left,
            seconds_until_full,
        };
        let expected = [
            limit(Unit::Requests, 5, 4, 1),
            limit(Unit::Events, 100, 0, 3),
        ];
        assert_eq!(meter.limits(0), expected);
        let Err(Error::Exhausted { message, .. }) = meter.take_events(&client, 1, 0) else {
            panic!("it was allowed");
        };
        assert!(message.starts_with("`sender` may send 100 events per second"));
        assert_eq!(Meter::new(Rates::default(), 0).limits(0), []);
    }
}
