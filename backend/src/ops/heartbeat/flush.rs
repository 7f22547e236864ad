//! Writes cached beats to the store when they are due.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    domain::heartbeat::FLUSHED_EVERY_MS,
    error::log_failure,
    ops::decision_context::DecisionContext,
    store::{EngineError, Lane},
};

#[derive(Debug)]
pub struct BeatFlush {
    deciding: DecisionContext,
}

impl BeatFlush {
    pub fn new(deciding: DecisionContext) -> Self {
        Self { deciding }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                if let Err(error) = self.run_once().await {
                    // The beats stay cached.
                    log_failure("failed to store beats", &error);
                }
                let clock = &self.deciding.clock;
                let next_ms = clock.now_ms().saturating_add(FLUSHED_EVERY_MS);
                clock.wait_until(next_ms).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Stores the beats that are due. Beats that conflict are stored by the next pass.
    pub(super) async fn run_once(&self) -> Result<(), EngineError> {
        let DecisionContext {
            store,
            clock,
            beats,
            ..
        } = &self.deciding;
        let mut claims = Arc::clone(beats).claim_cached(clock.as_ref());
        claims.read_expectations(store).await?;
        let mut changes = store.new_changes();
        claims.add_to_changes(&mut changes);
        if !changes.is_empty() {
            store.apply(Lane::Bulk, changes).await?;
        }
        claims.mark_stored();
        Ok(())
    }
}
