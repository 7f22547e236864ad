//! Writes cached beats to the store when they are due.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    decision_context::DecisionContext,
    domain::heartbeat::FLUSHED_EVERY_MS,
    repeat::repeat_until_shutdown,
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
        let clock = Arc::clone(&self.deciding.clock);
        let every = Duration::from_millis(FLUSHED_EVERY_MS.unsigned_abs());
        // If this fails, the beats stay cached.
        repeat_until_shutdown(
            self,
            &*clock,
            every,
            shutdown,
            "failed to store beats",
            |it| Box::pin(it.run_once()),
        )
        .await;
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
