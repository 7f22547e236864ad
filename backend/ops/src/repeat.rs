//! Checks that are repeated until shutdown.

use std::{fmt::Display, time::Duration};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    error::log_failure,
};

/// Repeats a check until shutdown, with a pause after each. Failures are logged as `failure`.
pub async fn repeat_until_shutdown<T: Send, E: Display + Send + Sync>(
    mut checker: T,
    clock: &dyn Clock,
    pause: Duration,
    shutdown: CancellationToken,
    failure: &'static str,
    check: fn(&mut T) -> BoxFuture<'_, Result<(), E>>,
) {
    let work = async {
        loop {
            if let Err(error) = check(&mut checker).await {
                log_failure(failure, &error);
            }
            let next_ms = clock.now_ms().saturating_add(to_millis(pause));
            clock.wait_until(next_ms).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}
