//! Receipts: idempotency keys of requests, and their expiry.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    commit::commit,
    domain::{Receipt, RecordId, Refusal},
    error::Error,
    limits::{
        RECEIPT_BATCH, RECEIPT_BYTES_MAX, RECEIPT_REASON_BYTES_MAX, RECEIPT_SWEEP_INTERVAL,
        RECEIPT_TIME, RECEIPTS_MAX,
    },
    repeat::repeat_until_shutdown,
    store::{Direction, Index, Lane, Store, engine::Range, record::bytes::Key},
};

#[derive(Debug, Clone)]
pub struct ReceiptClaim {
    pub client: RecordId,
    pub key: String,
    /// SHA-256 of the request.
    pub fingerprint: [u8; 32],
    /// Events of the request that were refused as invalid.
    pub refused: Vec<Refusal>,
}

impl ReceiptClaim {
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

const NO_ROOM: &str = "was rejected; send it without an idempotency key to get the reason";

/// Truncates refusals to fit into a receipt: beyond [`RECEIPT_REASON_BYTES_MAX`] bytes, reasons are
/// replaced by a placeholder. The first response is built from the result, so that repeated
/// responses are equal to it.
pub fn truncate_refusals(mut refused: Vec<Refusal>) -> Vec<Refusal> {
    let mut room = RECEIPT_REASON_BYTES_MAX;
    for refusal in &mut refused {
        if let Some(left) = room.checked_sub(refusal.reason.len()) {
            room = left;
        } else {
            room = 0;
            NO_ROOM.clone_into(&mut refusal.reason);
        }
    }
    refused
}

/// Task that deletes expired receipts, and the oldest ones if there are too many.
#[derive(Debug)]
pub struct ReceiptSweep {
    store: Store,
    clock: Arc<dyn Clock>,
    tally: ReceiptTally,
}

/// Number and size of the receipts up to a position in their index.
#[derive(Debug, Default)]
struct ReceiptTally {
    next: Vec<u8>,
    count: usize,
    bytes: usize,
    since_ms: i64,
}

#[derive(Debug, Clone, Copy)]
pub struct ReceiptLimits {
    pub count: usize,
    pub bytes: usize,
}

impl ReceiptSweep {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            tally: ReceiptTally::default(),
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.clock);
        let (every, failure) = (RECEIPT_SWEEP_INTERVAL, "failed to delete old receipts");
        repeat_until_shutdown(self, &*clock, every, shutdown, failure, |it| {
            let most = ReceiptLimits {
                count: RECEIPTS_MAX,
                bytes: RECEIPT_BYTES_MAX,
            };
            Box::pin(async move { it.delete_expired(most).await.map(|_count| ()) })
        })
        .await;
    }

    /// Deletes expired receipts, and the oldest ones beyond the limits `most`. Returns the number
    /// of deleted receipts. Receipts of the last minute are not counted yet.
    ///
    /// # Errors
    /// Returns an error if the store fails; earlier deletions remain in effect.
    pub async fn delete_expired(&mut self, most: ReceiptLimits) -> Result<usize, Error> {
        let now_ms = self.clock.now_ms();
        let old = older_range(now_ms - to_millis(RECEIPT_TIME));
        let mut forgotten = 0;
        loop {
            let step = self.delete_first(old.clone(), RECEIPT_BATCH).await?;
            forgotten += step;
            if step == 0 {
                break;
            }
        }
        self.count_receipts(now_ms).await?;
        let (count, bytes) = (self.tally.count, self.tally.bytes);
        if count > most.count || bytes > most.bytes {
            tracing::warn!(count, bytes, "too many receipts; deleting the oldest early");
        }
        loop {
            let over = self.tally.bytes.saturating_sub(most.bytes);
            // Assume receipts of average size, so that none is deleted unnecessarily.
            let for_bytes = over.saturating_mul(self.tally.count) / self.tally.bytes.max(1);
            let excess = self.tally.count.saturating_sub(most.count);
            let excess = excess.max(for_bytes).max(usize::from(over > 0));
            if excess == 0 {
                return Ok(forgotten);
            }
            let step = self.delete_first(Range::with_prefix(&[]), excess.min(RECEIPT_BATCH));
            match step.await? {
                // The tally was wrong; it is rebuilt by the next sweep.
                0 => self.tally = ReceiptTally::default(),
                step => forgotten += step,
            }
        }
    }

    /// Counts the receipts added since the last call. Recounts all of them once a day, in case the
    /// clock was set.
    async fn count_receipts(&mut self, now_ms: i64) -> Result<(), Error> {
        if !(0..to_millis(RECEIPT_TIME)).contains(&(now_ms - self.tally.since_ms)) {
            self.tally = ReceiptTally {
                since_ms: now_ms,
                ..ReceiptTally::default()
            };
        }
        // Skip the last interval: a receipt has its time before it is committed.
        let settled = older_range(now_ms - to_millis(RECEIPT_SWEEP_INTERVAL));
        loop {
            let found = self.store.page_by_index::<Receipt>(
                Index::ReceiptByTime,
                Range {
                    start: self.tally.next.clone(),
                    ..settled.clone()
                },
                Direction::Ascending,
                RECEIPT_BATCH,
            );
            let found = found.await?;
            let Some((last, _)) = found.last() else {
                return Ok(());
            };
            self.tally.next = [last, &[0][..]].concat();
            self.tally.count += found.len();
            let bytes = found.iter().map(|(_, receipt)| receipt.bytes);
            self.tally.bytes += bytes.sum::<usize>();
        }
    }

    async fn delete_first(&mut self, range: Range, limit: usize) -> Result<usize, Error> {
        let decide = async || {
            let found = self.store.page_by_index::<Receipt>(
                Index::ReceiptByTime,
                range.clone(),
                Direction::Ascending,
                limit,
            );
            let mut found = found.await?;
            // The index entry may be from before the clock was set, so the receipt is not
            // necessarily old.
            found.retain(|(_, it)| !it.is_shifted());
            let mut changes = self.store.new_changes();
            for (_, receipt) in &found {
                changes.delete(receipt);
            }
            let counted = found.iter().filter(|(key, _)| *key < self.tally.next);
            let bytes: Vec<_> = counted.map(|(_, receipt)| receipt.bytes).collect();
            Ok((changes, (found.len(), bytes)))
        };
        let ((forgotten, counted), _) = commit(&self.store, Lane::Bulk, decide).await?;
        let tally = &mut self.tally;
        tally.count = tally.count.saturating_sub(counted.len());
        tally.bytes = tally.bytes.saturating_sub(counted.iter().sum());
        Ok(forgotten)
    }
}

fn older_range(ms: i64) -> Range {
    Range {
        start: Vec::new(),
        end: Some(Key::new().time_ms(ms).build()),
    }
}

fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, samples};

    const UNBOUNDED: usize = usize::MAX;

    async fn store_receipt(store: &Store, clock: &ManualClock, key: &str) {
        let claim = ReceiptClaim {
            client: samples::id("sender"),
            key: key.into(),
            fingerprint: [7; 32],
            refused: Vec::new(),
        };
        let mut changes = store.new_changes();
        changes.insert(&claim.receipt(clock.now_ms()));
        store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn stored_keys(store: &Store) -> Vec<String> {
        let all = samples::all::<Receipt>(store).await;
        all.into_iter().map(|receipt| receipt.key).collect()
    }

    /// Returns a store with four receipts, one hour apart; the last is one hour old.
    async fn store_with_four_receipts() -> (Store, Arc<ManualClock>, ReceiptSweep) {
        let store = Store::in_memory();
        let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
        let sweep = ReceiptSweep::new(store.clone(), Arc::clone(&clock) as _);
        for key in ["d", "c", "b", "a"] {
            store_receipt(&store, &clock, key).await;
            clock.advance(Duration::from_secs(3600));
        }
        (store, clock, sweep)
    }

    fn limits_with_count(count: usize) -> ReceiptLimits {
        ReceiptLimits {
            count,
            bytes: UNBOUNDED,
        }
    }

    #[tokio::test]
    async fn receipts_expire_by_age_and_count() {
        let (store, clock, mut sweep) = store_with_four_receipts().await;
        let hour = Duration::from_secs(3600);
        assert_eq!(sweep.delete_expired(limits_with_count(4)).await.unwrap(), 0);
        assert_eq!(sweep.delete_expired(limits_with_count(3)).await.unwrap(), 1);
        assert_eq!(stored_keys(&store).await, ["a", "b", "c"]);
        // Four hours have passed; receipt `c` was created one hour after `d`.
        clock.advance(21 * hour);
        assert_eq!(sweep.delete_expired(limits_with_count(4)).await.unwrap(), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(sweep.delete_expired(limits_with_count(4)).await.unwrap(), 1);
        assert_eq!(stored_keys(&store).await, ["a", "b"]);
        clock.advance(24 * hour);
        assert_eq!(sweep.delete_expired(limits_with_count(4)).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn oldest_receipts_are_evicted_beyond_the_byte_limit() {
        let (store, clock, mut sweep) = store_with_four_receipts().await;
        let all = store.page::<Receipt>(Range::with_prefix(&[]), Direction::Ascending, 9);
        let each = all.await.unwrap()[0].bytes;
        let most = |bytes| ReceiptLimits {
            count: UNBOUNDED,
            bytes,
        };
        assert_eq!(sweep.delete_expired(most(4 * each)).await.unwrap(), 0);
        assert_eq!(sweep.delete_expired(most(4 * each - 1)).await.unwrap(), 1);
        assert_eq!(stored_keys(&store).await, ["a", "b", "c"]);
        // Later receipts are counted once they have settled.
        clock.advance(Duration::from_secs(3600));
        store_receipt(&store, &clock, "e").await;
        assert_eq!(sweep.delete_expired(most(3 * each)).await.unwrap(), 0);
        clock.advance(2 * RECEIPT_SWEEP_INTERVAL);
        assert_eq!(sweep.delete_expired(most(3 * each)).await.unwrap(), 1);
        assert_eq!(stored_keys(&store).await, ["a", "b", "e"]);
        assert_eq!(sweep.delete_expired(most(0)).await.unwrap(), 3);
        assert_eq!(sweep.delete_expired(most(0)).await.unwrap(), 0);
    }

    #[test]
    fn overlong_reasons_are_omitted_but_refusals_retained() {
        let refusal = |place| Refusal {
            place,
            reason: "x".repeat(RECEIPT_REASON_BYTES_MAX / 4),
        };
        let fitting = truncate_refusals((0..6).map(refusal).collect());
        let cut: Vec<_> = fitting.iter().map(|it| it.reason == NO_ROOM).collect();
        assert_eq!(cut, [false, false, false, false, true, true]);
        assert_eq!(fitting[5].place, 5);
    }
}
