//! A clock that hides a clock step until all waiting records have been adjusted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{BootId, Clock, STEP_MIN_MS, to_millis};

/// The clock of a service. When the underlying clock is stepped, this clock continues in the old
/// time until the step is applied, so that no decision uses the new time before the due times in
/// the store have been adjusted.
#[derive(Debug)]
pub struct SteadyClock {
    below: Arc<dyn Clock>,
    /// Difference between the time shown and [`Clock::elapsed`].
    offset_ms: AtomicI64,
    applied: watch::Sender<()>,
}

impl SteadyClock {
    pub fn new(below: Arc<dyn Clock>) -> Self {
        let offset_ms = below.offset_ms();
        Self::resume_from(below, offset_ms)
    }

    /// Creates a clock that continues with the offset of an earlier one from the same boot.
    pub fn resume_from(below: Arc<dyn Clock>, offset_ms: i64) -> Self {
        Self {
            below,
            offset_ms: AtomicI64::new(offset_ms),
            applied: watch::Sender::default(),
        }
    }

    /// Returns the step of the underlying clock that is not applied yet, in milliseconds; 0 if
    /// there is none. Differences too small for a step are followed silently.
    pub fn step_ms(&self) -> i64 {
        let (offset_ms, below_ms) = (self.offset_ms(), self.below.offset_ms());
        let step_ms = below_ms.saturating_sub(offset_ms);
        if step_ms.saturating_abs() >= STEP_MIN_MS {
            return step_ms;
        }
        if step_ms != 0 {
            let (order, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            // Fails if a concurrent step has already changed the offset.
            let _ = self
                .offset_ms
                .compare_exchange(offset_ms, below_ms, order, failure);
        }
        0
    }

    pub fn apply(&self, step_ms: i64) {
        self.offset_ms.fetch_add(step_ms, Ordering::AcqRel);
        self.applied.send_replace(());
    }

    pub fn inner(&self) -> &Arc<dyn Clock> {
        &self.below
    }
}

#[async_trait]
impl Clock for SteadyClock {
    fn now_ms(&self) -> i64 {
        match self.step_ms() {
            0 => self.below.now_ms(),
            _ => to_millis(self.elapsed()).saturating_add(self.offset_ms()),
        }
    }

    fn elapsed(&self) -> Duration {
        self.below.elapsed()
    }

    fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    fn boot_id(&self) -> Option<BootId> {
        self.below.boot_id()
    }

    async fn wait_until(&self, at_ms: i64) {
        let mut applied = self.applied.subscribe();
        loop {
            let left_ms = at_ms.saturating_sub(self.now_ms());
            if left_ms <= 0 {
                return;
            }
            let below_ms = self.below.now_ms().saturating_add(left_ms);
            tokio::select! {
                () = self.below.wait_until(below_ms) => {}
                // The caller checks its condition again. The sender outlives this call.
                _ = applied.changed() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn step_takes_effect_when_applied() {
        for by_ms in [-HOUR_MS, HOUR_MS, -STEP_MIN_MS, STEP_MIN_MS] {
            let below = Arc::new(ManualClock::starting_at(HOUR_MS));
            let clock = SteadyClock::new(Arc::clone(&below) as _);
            below.step(by_ms);
            below.advance(Duration::from_secs(1));
            assert_eq!((clock.step_ms(), clock.now_ms()), (by_ms, HOUR_MS + 1_000));
            clock.apply(by_ms);
            assert_eq!((clock.step_ms(), clock.now_ms()), (0, below.now_ms()));
        }
    }

    #[test]
    fn continuous_drift_is_followed_without_a_clock_step() {
        let below = Arc::new(ManualClock::starting_at(HOUR_MS));
        let clock = SteadyClock::new(Arc::clone(&below) as _);
        for _ in 0..10 {
            below.step(STEP_MIN_MS - 1);
            assert_eq!((clock.step_ms(), clock.now_ms()), (0, below.now_ms()));
        }
    }

    #[tokio::test]
    async fn wait_duration_ignores_clock_steps() {
        let below = Arc::new(ManualClock::starting_at(HOUR_MS));
        let clock = SteadyClock::new(Arc::clone(&below) as _);
        for by_ms in [0, HOUR_MS, -HOUR_MS] {
            let mut waiting = std::pin::pin!(clock.wait_until(clock.now_ms() + 10_000));
            for seconds in 1..=10 {
                below.step(if seconds == 5 { by_ms } else { 0 });
                tokio::select! {
                    biased;
                    () = waiting.as_mut() => panic!("early by {}", 10 - seconds),
                    () = tokio::task::yield_now() => {}
                }
                below.advance(Duration::from_secs(1));
            }
            waiting.await;
            clock.apply(clock.step_ms());
        }
    }

    #[tokio::test]
    async fn waits_are_rechecked_when_step_is_applied() {
        let below = Arc::new(ManualClock::starting_at(HOUR_MS));
        let clock = SteadyClock::new(Arc::clone(&below) as _);
        let mut waiting = std::pin::pin!(clock.wait_until(2 * HOUR_MS));
        tokio::select! {
            biased;
            () = waiting.as_mut() => panic!("early"),
            () = std::future::ready(()) => below.step(-HOUR_MS),
        }
        clock.apply(-HOUR_MS);
        waiting.await;
    }
}
