//! Receipts: which request a key stands for, and when the answer to it is forgotten.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    domain::{Receipt, RecordId, Refusal},
    error::Error,
    limits::{RECEIPT_BATCH, RECEIPT_SWEEP_INTERVAL, RECEIPT_TIME, RECEIPTS_MAX},
    ops::commit::commit,
    store::{Direction, Index, Lane, Store, engine::Range, record::bytes::Key},
};

/// What a request is remembered under.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who sends it.
    pub client: RecordId,
    /// Its idempotency key.
    pub key: String,
    /// SHA-256 of it.
    pub fingerprint: [u8; 32],
    /// Its events that are not submitted, because they cannot be taken in.
    pub refused: Vec<Refusal>,
}

impl Claim {
    /// The receipt of the request when it is carried out at that time.
    pub(super) fn receipt(&self, now_ms: i64) -> Receipt {
        Receipt {
            client: self.client,
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            create_ms: now_ms,
            refused: self.refused.clone(),
        }
    }
}

/// Forgets receipts: the old ones, and the oldest when there are too many.
#[derive(Debug)]
pub struct ReceiptSweep {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl ReceiptSweep {
    /// Sweeps the receipts in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Sweeps once a minute until shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        let sweep = async {
            loop {
                if let Err(error) = self.sweep(RECEIPTS_MAX).await {
                    tracing::warn!(%error, "old receipts are still there");
                }
                let next_ms = self.clock.now_ms() + millis(RECEIPT_SWEEP_INTERVAL);
                self.clock.wait_until(next_ms).await;
            }
        };
        tokio::select! {
            () = sweep => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Forgets what is old enough, and as many more of the oldest as are above `most`; answers how
    /// many.
    ///
    /// # Errors
    /// Those of the store; what was forgotten before stays forgotten.
    pub async fn sweep(&self, most: usize) -> Result<usize, Error> {
        let old_ms = self.clock.now_ms() - millis(RECEIPT_TIME);
        let old = Range {
            start: Vec::new(),
            end: Some(Key::new().moment(old_ms).build()),
        };
        let mut forgotten = 0;
        loop {
            let step = self.forget(old.clone(), RECEIPT_BATCH).await?;
            forgotten += step;
            if step == 0 {
                break;
            }
        }
        let engine = self.store.engine();
        let all = || Range::under(&[]);
        let count = engine.count(Index::ReceiptByTime, all(), 2 * most);
        let mut excess = count.await?.saturating_sub(most);
        if excess > 0 {
            tracing::warn!(
                limit = most,
                excess,
                "too many receipts: the oldest are forgotten early"
            );
        }
        while excess > 0 {
            let step = self.forget(all(), excess.min(RECEIPT_BATCH)).await?;
            forgotten += step;
            excess = excess.saturating_sub(step.max(1));
        }
        Ok(forgotten)
    }

    /// Forgets the first receipts of a stretch of the index.
    async fn forget(&self, range: Range, limit: usize) -> Result<usize, Error> {
        let decide = async || {
            let found = self.store.page_by::<Receipt>(
                Index::ReceiptByTime,
                range.clone(),
                Direction::Ascending,
                limit,
            );
            let found = found.await?;
            let mut changes = self.store.changes();
            for (_, receipt) in &found {
                changes.delete(receipt);
            }
            Ok((changes, found.len()))
        };
        let (forgotten, _) = commit(&self.store, Lane::Bulk, decide).await?;
        Ok(forgotten)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, ops::samples};

    async fn remember(store: &Store, clock: &ManualClock, key: &str) {
        let claim = Claim {
            client: samples::id("sender"),
            key: key.into(),
            fingerprint: [7; 32],
            refused: Vec::new(),
        };
        let mut changes = store.changes();
        changes.insert(&claim.receipt(clock.now_ms()));
        store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn keys(store: &Store) -> Vec<String> {
        let all = samples::all::<Receipt>(store).await;
        all.into_iter().map(|receipt| receipt.key).collect()
    }

    #[tokio::test]
    async fn receipts_are_forgotten_after_a_day_and_the_oldest_when_there_are_too_many() {
        let store = samples::store();
        let clock = Arc::new(ManualClock::at(samples::START_MS));
        let sweep = ReceiptSweep::new(store.clone(), Arc::clone(&clock) as _);
        let hour = Duration::from_secs(3600);
        for key in ["d", "c", "b", "a"] {
            remember(&store, &clock, key).await;
            clock.advance(hour);
        }
        assert_eq!(sweep.sweep(4).await.unwrap(), 0);
        assert_eq!(sweep.sweep(3).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b", "c"]);
        // Four hours have passed; the second one was made in the first of them.
        clock.advance(21 * hour);
        assert_eq!(sweep.sweep(4).await.unwrap(), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(sweep.sweep(4).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b"]);
        clock.advance(24 * hour);
        assert_eq!(sweep.sweep(4).await.unwrap(), 2);
    }
}
