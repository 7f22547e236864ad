//! Waits for what happens some time later: the one place where a test sleeps.

use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with something else: only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until there is something, and gives it.
///
/// # Panics
/// When there is nothing after two minutes; the message names `what`.
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, look).await
}

/// The same with another time to wait.
///
/// # Panics
/// When there is nothing by then.
pub async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < patience, "waited in vain for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Like [`eventually`], on a thread of its own right.
///
/// # Panics
/// When there is nothing after two minutes; the message names `what`.
pub fn eventually_blocking<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}
