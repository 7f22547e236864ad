//! Pings an external monitor while this service is healthy, so that the monitor notices if the
//! service fails.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    config::PingConfig,
    domain::Settings,
    limits::PING_TIMEOUT,
    send::{PingFailure, Sender},
    store::{Store, engine::Condition},
};

/// Pings of an external monitor, sent by each node.
#[derive(Debug)]
pub struct PingTask {
    store: Store,
    clock: Arc<dyn Clock>,
    sender: Sender,
    config: PingConfig,
    /// Reason why the last ping was not accepted; `None` if it was.
    failure: Option<PingFailure>,
}

impl PingTask {
    pub fn new(store: Store, clock: Arc<dyn Clock>, sender: Sender, config: PingConfig) -> Self {
        Self {
            store,
            clock,
            sender,
            config,
            failure: None,
        }
    }

    pub async fn run(mut self, shutdown: CancellationToken) {
        let work = async {
            loop {
                self.ping_once().await;
                let next_ms = self
                    .clock
                    .now_ms()
                    .saturating_add(to_millis(self.config.every));
                self.clock.wait_until(next_ms).await;
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    /// Pings once, and logs changes of the result.
    pub async fn ping_once(&mut self) {
        let failure = self.send_ping().await.err();
        let outcome = failure.as_ref().map_or("accepted", PingFailure::as_str);
        self.store.metrics().record_ping(outcome);
        match &failure {
            Some(failure) if self.failure.as_ref() != Some(failure) => {
                tracing::warn!(%failure, "failed to ping the external monitor");
            }
            None if self.failure.is_some() => {
                tracing::info!("pings to the external monitor succeed again");
            }
            _ => {}
        }
        self.failure = failure;
    }

    async fn send_ping(&self) -> Result<(), PingFailure> {
        self.check_health().await?;
        let url = self.config.url.reveal();
        self.sender.ping_url(url, PING_TIMEOUT).await
    }

    /// Checks whether events are accepted here.
    async fn check_health(&self) -> Result<(), PingFailure> {
        let engine = self.store.engine();
        let why = match engine.condition() {
            Condition::Writable => None,
            Condition::Short(_) | Condition::Full(_) => Some("the disk is full"),
            Condition::Unwritable(_) => Some("the store cannot be written"),
            Condition::Damaged(_) => Some("the store is damaged"),
            Condition::Unreachable => Some("the store is unreachable"),
        };
        if let Some(why) = why {
            return Err(PingFailure::Unhealthy(why));
        }
        let read = self.store.get::<Settings>(Settings::NAME.into());
        match tokio::time::timeout(Duration::from_secs(5), read).await {
            Ok(Ok(Some(found))) if found.value.values.is_quiet_mode() => Err(
                PingFailure::Unhealthy("the service is quiet: no messages are sent"),
            ),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(PingFailure::Unhealthy("the store cannot be read")),
            Err(_) => Err(PingFailure::Unhealthy("the store does not respond")),
        }
    }
}

#[cfg(test)]
mod tests;
