//! Clocks that can be injected.

mod steady;

use std::{
    fmt::Debug,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

pub use steady::SteadyClock;

pub const MINUTE_MS: i64 = 60_000;
pub const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Longest sleep between two reads of the clock, so that a forward step is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Smallest difference between wall clock and elapsed time that counts as a clock step. Less is
/// drift, or a process that was suspended between two readings.
pub const STEP_MIN_MS: i64 = 5_000;
#[cfg(target_os = "linux")]
const PASSED: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const PASSED: ClockId = ClockId::Monotonic;

/// Identifies a boot of the kernel, during which [`Clock::elapsed`] is continuous.
pub type BootId = [u8; 16];

/// A source of time that can be waited on.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns the wall clock time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Returns the time elapsed since an arbitrary moment, unaffected by clock steps.
    fn elapsed(&self) -> Duration;

    /// Returns the difference between the wall clock and [`Clock::elapsed`], in milliseconds. A
    /// change of [`STEP_MIN_MS`] or more means that the clock was stepped.
    fn offset_ms(&self) -> i64 {
        self.now_ms().saturating_sub(to_millis(self.elapsed()))
    }

    /// Returns the boot that [`Clock::elapsed`] belongs to, or `None` if the boot is unknown.
    fn boot_id(&self) -> Option<BootId> {
        machine_boot()
    }

    /// Waits until the clock shows `at_ms` or later. Also returns when the clock is set back, so
    /// that the caller checks its condition again.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    async fn wait_until(&self, at_ms: i64);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only source of time")]
    fn now_ms(&self) -> i64 {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    }

    fn elapsed(&self) -> Duration {
        let passed = clock_gettime(PASSED);
        let seconds = passed.tv_sec.try_into().unwrap_or_default();
        Duration::new(seconds, passed.tv_nsec.try_into().unwrap_or_default())
    }

    async fn wait_until(&self, at_ms: i64) {
        let mut offset_ms = self.offset_ms();
        while let Ok(left_ms @ 1..) = u64::try_from(at_ms.saturating_sub(self.now_ms())) {
            tokio::time::sleep(Duration::from_millis(left_ms).min(SLEEP_MAX)).await;
            let before_ms = std::mem::replace(&mut offset_ms, self.offset_ms());
            if before_ms.saturating_sub(offset_ms) >= STEP_MIN_MS {
                return;
            }
        }
    }
}

fn machine_boot() -> Option<BootId> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().split('-').collect();
    u128::from_str_radix(&digits, 16)
        .ok()
        .map(u128::to_be_bytes)
}

pub fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A clock for tests that only advances when moved.
#[derive(Debug, Default)]
pub struct ManualClock(watch::Sender<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    now_ms: i64,
    passed: Duration,
    boot: u128,
}

impl ManualClock {
    pub fn starting_at(now_ms: i64) -> Self {
        Self(watch::Sender::new(ManualTime {
            now_ms,
            ..ManualTime::default()
        }))
    }

    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|reading| {
            reading.now_ms = reading.now_ms.saturating_add(to_millis(by));
            reading.passed += by;
        });
    }

    /// Steps the clock by `by_ms` without any time passing.
    pub fn step(&self, by_ms: i64) {
        self.0
            .send_modify(|reading| reading.now_ms = reading.now_ms.saturating_add(by_ms));
    }

    pub fn reboot(&self) {
        self.0.send_modify(|reading| {
            reading.passed = Duration::ZERO;
            reading.boot += 1;
        });
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.borrow().now_ms
    }

    fn elapsed(&self) -> Duration {
        self.0.borrow().passed
    }

    fn boot_id(&self) -> Option<BootId> {
        Some(self.0.borrow().boot.to_be_bytes())
    }

    async fn wait_until(&self, at_ms: i64) {
        let offset_ms = |reading: &ManualTime| reading.now_ms - to_millis(reading.passed);
        let mut reading = self.0.subscribe();
        let before_ms = offset_ms(&reading.borrow());
        let is_over =
            |reading: &ManualTime| reading.now_ms >= at_ms || offset_ms(reading) < before_ms;
        // Cannot fail: the sender outlives this call.
        drop(reading.wait_for(is_over).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_elapsed_time_is_monotonic() {
        let before = SystemClock.elapsed();
        let offset_ms = SystemClock.offset_ms();
        assert!(SystemClock.elapsed() >= before);
        assert!((SystemClock.offset_ms() - offset_ms).abs() < STEP_MIN_MS);
    }

    #[tokio::test]
    async fn wait_until_returns_when_clock_is_set_back() {
        let clock = ManualClock::starting_at(10_000);
        let mut waiting = std::pin::pin!(clock.wait_until(20_000));
        tokio::select! {
            biased;
            () = waiting.as_mut() => panic!("the wait ended early"),
            () = std::future::ready(()) => clock.step(-5_000),
        }
        waiting.await;
        assert_eq!(clock.now_ms(), 5_000);
    }
}
