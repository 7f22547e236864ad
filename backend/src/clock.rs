//! The time, as something that is passed in.

use std::{
    fmt::Debug,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;
use tonic::async_trait;

/// Longest sleep without a look at the clock, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Tells the time, and waits for it.
#[async_trait]
pub trait Clock: Debug + Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Returns when the clock shows that time or a later one, at once when it already does.
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

    async fn wait_until(&self, at_ms: i64) {
        while let Ok(left_ms @ 1..) = u64::try_from(at_ms.saturating_sub(self.now_ms())) {
            tokio::time::sleep(Duration::from_millis(left_ms).min(SLEEP_MAX)).await;
        }
    }
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug, Default)]
pub struct ManualClock(watch::Sender<i64>);

impl ManualClock {
    /// A clock that shows that time, in milliseconds since 1970.
    pub fn at(now_ms: i64) -> Self {
        Self(watch::Sender::new(now_ms))
    }

    /// Moves the clock forward, and wakes those who wait for the time it then shows.
    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0
            .send_modify(|now_ms| *now_ms = now_ms.saturating_add(by_ms));
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        *self.0.borrow()
    }

    async fn wait_until(&self, at_ms: i64) {
        let mut time = self.0.subscribe();
        // The sender lives as long as this call, so waiting cannot fail.
        drop(time.wait_for(|now_ms| *now_ms >= at_ms).await);
    }
}
