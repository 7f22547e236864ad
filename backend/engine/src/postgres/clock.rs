//! The database's clock, extrapolated locally between its responses.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::clock::{Clock, STEP_MIN_MS, SystemClock, to_millis};

/// Number of recent readings, of which the fastest is trusted.
const READINGS: usize = 8;
/// Longest sleep between two reads of the clock.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A clock that never runs backwards unless the database's clock is stepped back.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    readings: Mutex<VecDeque<ClockSample>>,
    offset_ms: AtomicI64,
    shown_ms: AtomicI64,
}

#[derive(Debug, Clone, Copy)]
struct ClockSample {
    took: Duration,
    offset_ms: i64,
}

impl DatabaseClock {
    /// Creates a clock from a first reading: the elapsed time before and after the query, and the
    /// time that the database reported.
    pub(super) fn new(before: Duration, after: Duration, said_ms: i64) -> Self {
        let clock = Self {
            readings: Mutex::default(),
            offset_ms: AtomicI64::new(0),
            shown_ms: AtomicI64::new(i64::MIN),
        };
        clock.read(before, after, said_ms);
        clock
    }

    pub(super) fn read(&self, before: Duration, after: Duration, said_ms: i64) {
        let took = after.saturating_sub(before);
        let offset_ms = said_ms.saturating_sub(to_millis(before + took / 2));
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let current_ms = self.offset_ms.load(Ordering::Acquire);
        let step_ms = offset_ms.saturating_sub(current_ms);
        let is_step = step_ms.saturating_abs() >= STEP_MIN_MS + to_millis(took);
        if is_step && !readings.is_empty() {
            tracing::warn!(step_ms, "the database's clock was changed");
        }
        if is_step {
            // Earlier readings are worthless after a step.
            readings.clear();
            self.shown_ms.store(i64::MIN, Ordering::Release);
        }
        readings.push_back(ClockSample { took, offset_ms });
        if readings.len() > READINGS {
            readings.pop_front();
        }
        let quickest = readings.iter().min_by_key(|reading| reading.took);
        if let Some(quickest) = quickest {
            self.offset_ms.store(quickest.offset_ms, Ordering::Release);
        }
    }
}

#[async_trait]
impl Clock for DatabaseClock {
    fn now_ms(&self) -> i64 {
        let now_ms = to_millis(self.elapsed()).saturating_add(self.offset_ms());
        now_ms.max(self.shown_ms.fetch_max(now_ms, Ordering::AcqRel))
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    async fn wait_until(&self, at_ms: i64) {
        let before_ms = self.offset_ms();
        while let Ok(left_ms @ 1..) = u64::try_from(at_ms.saturating_sub(self.now_ms())) {
            tokio::time::sleep(Duration::from_millis(left_ms).min(SLEEP_MAX)).await;
            if before_ms.saturating_sub(self.offset_ms()) >= STEP_MIN_MS {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::DatabaseClock;
    use crate::clock::{Clock, SystemClock, to_millis};

    /// Returns a reading that is `by_ms` ahead of the elapsed time and took `took_ms`.
    fn reading_ahead(by_ms: i64, took_ms: u64) -> (Duration, Duration, i64) {
        let now = SystemClock.elapsed();
        let took = Duration::from_millis(took_ms);
        (
            now,
            now + took,
            to_millis(now) + by_ms + to_millis(took / 2),
        )
    }

    #[test]
    fn fastest_reading_sets_offset_and_time_stays_monotonic() {
        let (before, after, said_ms) = reading_ahead(1_000_000, 400);
        let clock = DatabaseClock::new(before, after, said_ms);
        assert_eq!(clock.offset_ms(), 1_000_000);
        let shown_ms = clock.now_ms();
        let (before, after, said_ms) = reading_ahead(999_500, 10);
        clock.read(before, after, said_ms);
        assert_eq!(clock.offset_ms(), 999_500);
        assert!(clock.now_ms() >= shown_ms);
        let (before, after, said_ms) = reading_ahead(1_000_300, 900);
        clock.read(before, after, said_ms);
        assert_eq!(
            clock.offset_ms(),
            999_500,
            "a slow response is less precise"
        );
    }

    #[test]
    fn database_clock_set_back_is_followed() {
        let (before, after, said_ms) = reading_ahead(1_000_000, 10);
        let clock = DatabaseClock::new(before, after, said_ms);
        let shown_ms = clock.now_ms();
        let (before, after, said_ms) = reading_ahead(400_000, 20);
        clock.read(before, after, said_ms);
        assert_eq!(clock.offset_ms(), 400_000);
        assert!(clock.now_ms() < shown_ms);
    }
}
