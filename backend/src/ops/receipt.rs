//! Receipts: which request a key stands for, and when the answer to it is forgotten.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    domain::{Receipt, RecordId, Refusal},
    error::{Error, log_failure},
    limits::{
        RECEIPT_BATCH, RECEIPT_BYTES_MAX, RECEIPT_REASON_BYTES_MAX, RECEIPT_SWEEP_INTERVAL,
        RECEIPT_TIME, RECEIPTS_MAX,
    },
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
    /// Its events that are not submitted, because they cannot be accepted.
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

/// What stands for the reasons that have no room in a receipt.
const NO_ROOM: &str = "cannot be accepted; send it without an idempotency key to get the reason";

/// Refusals as a receipt has room for them: after [`RECEIPT_REASON_BYTES_MAX`] of reasons, events
/// are refused without theirs. The first answer is built from them too, so that later ones are
/// equal.
pub fn fitting(mut refused: Vec<Refusal>) -> Vec<Refusal> {
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

/// Forgets receipts: the old ones, and the oldest when there are too many.
#[derive(Debug)]
pub struct ReceiptSweep {
    store: Store,
    clock: Arc<dyn Clock>,
    tally: ReceiptTally,
}

/// How many receipts there are up to a place in their index, and how many bytes they have.
#[derive(Debug, Default)]
struct ReceiptTally {
    /// Where to continue counting.
    next: Vec<u8>,
    count: usize,
    bytes: usize,
    /// When the counting began.
    since_ms: i64,
}

/// What is kept at the most.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Receipts.
    pub count: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl ReceiptSweep {
    /// Sweeps the receipts in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            tally: ReceiptTally::default(),
        }
    }

    /// Sweeps once a minute until shutdown.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let most = Most {
            count: RECEIPTS_MAX,
            bytes: RECEIPT_BYTES_MAX,
        };
        let sweep = async {
            loop {
                if let Err(error) = self.sweep(most).await {
                    log_failure("failed to delete old receipts", &error);
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
    /// many. What came within the last minute is not counted yet.
    ///
    /// # Errors
    /// Those of the store; what was forgotten before stays forgotten.
    pub async fn sweep(&mut self, most: Most) -> Result<usize, Error> {
        let now_ms = self.clock.now_ms();
        let old = until(now_ms - millis(RECEIPT_TIME));
        let mut forgotten = 0;
        loop {
            let step = self.forget(old.clone(), RECEIPT_BATCH).await?;
            forgotten += step;
            if step == 0 {
                break;
            }
        }
        self.count(now_ms).await?;
        let (count, bytes) = (self.tally.count, self.tally.bytes);
        if count > most.count || bytes > most.bytes {
            tracing::warn!(
                count,
                bytes,
                "too many receipts: the oldest are forgotten early"
            );
        }
        loop {
            let over = self.tally.bytes.saturating_sub(most.bytes);
            // All of the average size at the most, so that none is forgotten for nothing.
            let for_bytes = over.saturating_mul(self.tally.count) / self.tally.bytes.max(1);
            let excess = self.tally.count.saturating_sub(most.count);
            let excess = excess.max(for_bytes).max(usize::from(over > 0));
            if excess == 0 {
                return Ok(forgotten);
            }
            let step = self.forget(Range::under(&[]), excess.min(RECEIPT_BATCH));
            match step.await? {
                // The tally was wrong; it is made again the next time.
                0 => self.tally = ReceiptTally::default(),
                step => forgotten += step,
            }
        }
    }

    /// Counts the receipts that came since the last time; all of them once a day, should the clock
    /// have been set meanwhile.
    async fn count(&mut self, now_ms: i64) -> Result<(), Error> {
        if !(0..millis(RECEIPT_TIME)).contains(&(now_ms - self.tally.since_ms)) {
            self.tally = ReceiptTally {
                since_ms: now_ms,
                ..ReceiptTally::default()
            };
        }
        // One that is under way has its time already.
        let settled = until(now_ms - millis(RECEIPT_SWEEP_INTERVAL));
        loop {
            let found = self.store.page_by::<Receipt>(
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

    /// Forgets the first receipts of a stretch of the index.
    async fn forget(&mut self, range: Range, limit: usize) -> Result<usize, Error> {
        let decide = async || {
            let found = self.store.page_by::<Receipt>(
                Index::ReceiptByTime,
                range.clone(),
                Direction::Ascending,
                limit,
            );
            let mut found = found.await?;
            // What is indexed by the time before the clock was set may not be old.
            found.retain(|(_, it)| !it.is_shifted());
            let mut changes = self.store.changes();
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

/// The receipts that are older than that.
fn until(ms: i64) -> Range {
    Range {
        start: Vec::new(),
        end: Some(Key::new().moment(ms).build()),
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, ops::samples};

    const UNBOUNDED: usize = usize::MAX;

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

    /// Four receipts, an hour between each two; the last is an hour old.
    async fn four() -> (Store, Arc<ManualClock>, ReceiptSweep) {
        let store = samples::store();
        let clock = Arc::new(ManualClock::at(samples::START_MS));
        let sweep = ReceiptSweep::new(store.clone(), Arc::clone(&clock) as _);
        for key in ["d", "c", "b", "a"] {
            remember(&store, &clock, key).await;
            clock.advance(Duration::from_secs(3600));
        }
        (store, clock, sweep)
    }

    fn most(count: usize) -> Most {
        Most {
            count,
            bytes: UNBOUNDED,
        }
    }

    #[tokio::test]
    async fn receipts_are_forgotten_after_a_day_and_the_oldest_when_there_are_too_many() {
        let (store, clock, mut sweep) = four().await;
        let hour = Duration::from_secs(3600);
        assert_eq!(sweep.sweep(most(4)).await.unwrap(), 0);
        assert_eq!(sweep.sweep(most(3)).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b", "c"]);
        // Four hours have passed; the second one was made in the first of them.
        clock.advance(21 * hour);
        assert_eq!(sweep.sweep(most(4)).await.unwrap(), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(sweep.sweep(most(4)).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b"]);
        clock.advance(24 * hour);
        assert_eq!(sweep.sweep(most(4)).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn the_oldest_receipts_are_forgotten_when_all_have_too_many_bytes() {
        let (store, clock, mut sweep) = four().await;
        let all = store.page::<Receipt>(Range::under(&[]), Direction::Ascending, 9);
        let each = all.await.unwrap()[0].bytes;
        let most = |bytes| Most {
            count: UNBOUNDED,
            bytes,
        };
        assert_eq!(sweep.sweep(most(4 * each)).await.unwrap(), 0);
        assert_eq!(sweep.sweep(most(4 * each - 1)).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b", "c"]);
        // What comes later is counted when it has settled.
        clock.advance(Duration::from_secs(3600));
        remember(&store, &clock, "e").await;
        assert_eq!(sweep.sweep(most(3 * each)).await.unwrap(), 0);
        clock.advance(2 * RECEIPT_SWEEP_INTERVAL);
        assert_eq!(sweep.sweep(most(3 * each)).await.unwrap(), 1);
        assert_eq!(keys(&store).await, ["a", "b", "e"]);
        assert_eq!(sweep.sweep(most(0)).await.unwrap(), 3);
        assert_eq!(sweep.sweep(most(0)).await.unwrap(), 0);
    }

    #[test]
    fn reasons_that_have_no_room_are_left_out_and_no_refusal_is() {
        let refusal = |place| Refusal {
            place,
            reason: "x".repeat(RECEIPT_REASON_BYTES_MAX / 4),
        };
        let fitting = fitting((0..6).map(refusal).collect());
        let cut: Vec<_> = fitting.iter().map(|it| it.reason == NO_ROOM).collect();
        assert_eq!(cut, [false, false, false, false, true, true]);
        assert_eq!(fitting[5].place, 5);
    }
}
