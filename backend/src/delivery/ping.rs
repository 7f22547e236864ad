//! Pings an external monitor while this service is healthy, so that its own death is noticed.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, millis},
    config::PingConfig,
    destination::{PingFailure, Sender},
    domain::Settings,
    limits::PING_TIMEOUT,
    store::Store,
};

/// Pings an external monitor. Each node does, for itself.
#[derive(Debug)]
pub struct Pings {
    store: Store,
    clock: Arc<dyn Clock>,
    sender: Sender,
    config: PingConfig,
    /// Why the last ping was not accepted; none when it was.
    failure: Option<PingFailure>,
}

impl Pings {
    /// Pings as configured, over the ways out of a sender.
    pub fn new(store: Store, clock: Arc<dyn Clock>, sender: Sender, config: PingConfig) -> Self {
        Self {
            store,
            clock,
            sender,
            config,
            failure: None,
        }
    }

    /// Pings until shutdown.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let work = async {
            loop {
                self.ping().await;
                let next_ms = self
                    .clock
                    .now_ms()
                    .saturating_add(millis(self.config.every));
                self.clock.wait_until(next_ms).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Pings once; the log has what changed.
    pub async fn ping(&mut self) {
        let failure = self.pinged().await.err();
        let outcome = failure.as_ref().map_or("accepted", PingFailure::word);
        self.store.metrics().pinged(outcome);
        match &failure {
            Some(failure) if self.failure.as_ref() != Some(failure) => {
                tracing::warn!(%failure, "the external monitor was not pinged");
            }
            None if self.failure.is_some() => {
                tracing::info!("the external monitor is pinged again");
            }
            _ => {}
        }
        self.failure = failure;
    }

    async fn pinged(&self) -> Result<(), PingFailure> {
        self.check_health().await?;
        let url = self.config.url.reveal();
        self.sender.ping(url, PING_TIMEOUT).await
    }

    /// Whether events are accepted here.
    async fn check_health(&self) -> Result<(), PingFailure> {
        let engine = self.store.engine();
        let reach = engine.cluster().within_reach();
        if reach.is_some_and(|it| !*it.borrow()) {
            return Err(PingFailure::Unhealthy("the store is out of reach"));
        }
        let space = engine.free_space();
        if space.is_some_and(|it| it.free_bytes < it.floor_bytes) {
            return Err(PingFailure::Unhealthy("the disk is full"));
        }
        let read = self.store.get::<Settings>(Settings::NAME.into());
        match tokio::time::timeout(Duration::from_secs(5), read).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(PingFailure::Unhealthy("the store cannot be read")),
            Err(_) => Err(PingFailure::Unhealthy("the store does not answer")),
        }
    }
}

#[cfg(test)]
mod tests;
