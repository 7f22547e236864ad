//! The time, as something that is passed in.

mod steady;

use std::{
    fmt::Debug,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

pub use steady::SteadyClock;

/// A minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// A day, in milliseconds.
pub const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Longest sleep without a look at the clock, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// By how much the time must be off what has passed for the clock to have been set; less is drift,
/// or a process that was held up between two readings.
pub const STEP_MIN_MS: i64 = 5_000;
#[cfg(target_os = "linux")]
const PASSED: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const PASSED: ClockId = ClockId::Monotonic;

/// The identity of a run of the machine's kernel, in which [`Clock::passed`] counts on.
pub type Boot = [u8; 16];

/// Tells the time, and waits for it.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// How much time has passed since some moment, whatever anybody sets the clock to.
    fn passed(&self) -> Duration;

    /// How far the clock is ahead of [`Clock::passed`], in milliseconds: a change of
    /// [`STEP_MIN_MS`] or more means that it was set.
    fn offset_ms(&self) -> i64 {
        self.now_ms().saturating_sub(millis(self.passed()))
    }

    /// Returns the run of the kernel that [`Clock::passed`] belongs to; none where that is not known.
    fn boot(&self) -> Option<Boot> {
        machine_boot()
    }

    /// Returns when the clock shows that time or a later one, immediately when it already does;
    /// also when the clock is set back, so that the caller looks again at what it waits for.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn wait_until(&self, at_ms: i64);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the time comes from"
    )]
    fn now_ms(&self) -> i64 {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    }

    fn passed(&self) -> Duration {
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

/// The run of this machine's kernel.
fn machine_boot() -> Option<Boot> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().split('-').collect();
    u128::from_str_radix(&digits, 16)
        .ok()
        .map(u128::to_be_bytes)
}

/// A duration as the clock counts.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug, Default)]
pub struct ManualClock(watch::Sender<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    now_ms: i64,
    passed: Duration,
    boot: u128,
}

impl ManualClock {
    /// A clock that shows that time, in milliseconds since 1970.
    pub fn at(now_ms: i64) -> Self {
        Self(watch::Sender::new(ManualTime {
            now_ms,
            ..ManualTime::default()
        }))
    }

    /// Lets time pass, and wakes those who wait for the time it then shows.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|reading| {
            reading.now_ms = reading.now_ms.saturating_add(millis(by));
            reading.passed += by;
        });
    }

    /// Sets the clock forward by so many milliseconds, or back, while no time passes.
    pub fn set(&self, by_ms: i64) {
        self.0
            .send_modify(|reading| reading.now_ms = reading.now_ms.saturating_add(by_ms));
    }

    /// Begins another run of the kernel, as a restart of the machine does.
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

    fn passed(&self) -> Duration {
        self.0.borrow().passed
    }

    fn boot(&self) -> Option<Boot> {
        Some(self.0.borrow().boot.to_be_bytes())
    }

    async fn wait_until(&self, at_ms: i64) {
        let offset_ms = |reading: &ManualTime| reading.now_ms - millis(reading.passed);
        let mut reading = self.0.subscribe();
        let before_ms = offset_ms(&reading.borrow());
        let is_over =
            |reading: &ManualTime| reading.now_ms >= at_ms || offset_ms(reading) < before_ms;
        // The sender lives as long as this call, so waiting cannot fail.
        drop(reading.wait_for(is_over).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_clock_shows_what_has_passed() {
        let before = SystemClock.passed();
        let offset_ms = SystemClock.offset_ms();
        assert!(SystemClock.passed() >= before);
        assert!((SystemClock.offset_ms() - offset_ms).abs() < STEP_MIN_MS);
    }

    #[tokio::test]
    async fn whoever_waits_looks_again_when_the_clock_is_set_back() {
        let clock = ManualClock::at(10_000);
        let mut waiting = std::pin::pin!(clock.wait_until(20_000));
        tokio::select! {
            biased;
            () = waiting.as_mut() => panic!("it is too early"),
            () = std::future::ready(()) => clock.set(-5_000),
        }
        waiting.await;
        assert_eq!(clock.now_ms(), 5_000);
    }
}
