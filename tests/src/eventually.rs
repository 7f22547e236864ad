//! Waiting for a condition: the only place where tests sleep.

use std::time::{Duration, Instant};

/// Timeout, long enough for a busy machine; only failing tests wait this long.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// Polls until there is a value, and returns it.
///
/// # Panics
/// Panics after two minutes without a value; the message names `what`.
pub async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, check).await
}

/// Like [`eventually`], with another timeout.
///
/// # Panics
/// Panics if there is no value before the timeout.
pub async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < patience, "timed out waiting for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Like [`eventually`], but blocks the thread.
///
/// # Panics
/// Panics after two minutes without a value; the message names `what`.
pub fn eventually_blocking<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(PAUSE);
    }
}
