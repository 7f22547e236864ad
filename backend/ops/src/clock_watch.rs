//! Applies clock steps to all waiting records, so that no wait gets longer or shorter.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{BootId, Clock, STEP_MIN_MS, SteadyClock, to_millis},
    commit::commit,
    domain::{Delivery, Occurrence, Receipt, Silence},
    error::{Error, log_failure},
    limits::{
        CLOCK_CHECK_INTERVAL, CLOCK_FORWARD_MAX, CLOCK_INDEX_AGAIN_AFTER, CLOCK_STEP_OWN_AFTER,
        CLOCK_STILL_WAIT_MAX,
    },
    store::{ClockFact, Direction, EngineError, Index, Lane, Record, Store, engine::Range},
};

const PAGE: usize = 500;
const BATCH: usize = 100;

/// Offset change above which the offset is stored. It is smaller than a step, so that slow drift is
/// never mistaken for a step.
const DRIFT_MS: i64 = STEP_MIN_MS / 5;

#[derive(Debug)]
pub struct ClockWatch {
    store: Store,
    clock: Arc<SteadyClock>,
    boot: Option<BootId>,
    known: Mutex<LastCheck>,
}

#[derive(Debug)]
struct LastCheck {
    /// Sum of the steps applied to the clock of this process.
    stepped_ms: i64,
    /// A step that no node has applied yet, and the time of the check that first found it.
    waits: Option<(i64, Duration)>,
    /// Time of the first rewrite of index entries after the last step; `None` if there was none.
    indexed: Option<Duration>,
}

impl ClockWatch {
    /// Creates a watch of the clock `below` from the stored state. From then on, the store converts
    /// times with the stored shift.
    pub async fn open(store: Store, below: Arc<dyn Clock>) -> Result<Self, EngineError> {
        let (_, fact) = store.clock_fact().await?.unwrap_or_default();
        Ok(Self::new(store, below, &fact))
    }

    pub fn new(store: Store, below: Arc<dyn Clock>, fact: &ClockFact) -> Self {
        // Elapsed times are only comparable within one boot.
        let boot = below.boot_id();
        let is_same_boot = boot.is_some() && fact.boot == boot;
        let clock = if is_same_boot {
            SteadyClock::resume_from(below, fact.offset_ms)
        } else {
            SteadyClock::new(below)
        };
        store.set_shift_ms(fact.shift_ms);
        Self {
            store,
            clock: Arc::new(clock),
            boot,
            known: Mutex::new(LastCheck {
                stepped_ms: fact.stepped_ms,
                waits: None,
                indexed: None,
            }),
        }
    }

    pub fn clock(&self) -> Arc<SteadyClock> {
        Arc::clone(&self.clock)
    }

    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let work = async {
            loop {
                self.log_and_pause(self.apply_recorded().await).await;
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    /// Applies steps every second until shutdown; runs on the leader, with its store.
    pub async fn run_as_leader(self: Arc<Self>, store: Store, shutdown: CancellationToken) {
        let work = async {
            loop {
                self.log_and_pause(self.apply(&store).await).await;
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    async fn log_and_pause(&self, checked: Result<(), Error>) {
        if let Err(error) = checked {
            log_failure("failed to apply a clock change", &error);
        }
        let below = self.clock.inner();
        let next_ms = below
            .now_ms()
            .saturating_add(to_millis(CLOCK_CHECK_INTERVAL));
        below.wait_until(next_ms).await;
    }

    /// Applies to this process the clock changes that another node has recorded.
    pub async fn apply_recorded(&self) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        let (_, fact) = self.store.clock_fact().await?.unwrap_or_default();
        let is_other_node = fact.stepped_ms != known.stepped_ms;
        self.apply_fact(&mut known, &fact).await;
        if is_other_node {
            // Records that this process stored since the step are indexed with the time before it.
            Self::rewrite_indexes(&self.store).await?;
        }
        let step_ms = self.clock.step_ms();
        let passed = self.clock.elapsed();
        let is_same =
            |(waiting_ms, _): &(i64, Duration)| (waiting_ms - step_ms).abs() < STEP_MIN_MS;
        known.waits = match known.waits.filter(is_same) {
            _ if step_ms == 0 => None,
            Some((_, since)) if passed.saturating_sub(since) >= CLOCK_STEP_OWN_AFTER => {
                // No other node noticed the step, so only this process is affected.
                tracing::warn!(step_ms, "the clock of this process was changed");
                self.clock.apply(step_ms);
                None
            }
            Some(waits) => Some(waits),
            None => Some((step_ms, passed)),
        };
        Ok(())
    }

    async fn apply_fact(&self, known: &mut LastCheck, fact: &ClockFact) {
        let step_ms = fact.stepped_ms.saturating_sub(known.stepped_ms);
        if step_ms == 0 {
            return;
        }
        // A decision that takes longer than this wait continues after the step, possibly with
        // outdated times.
        let _still = timeout(CLOCK_STILL_WAIT_MAX, self.store.lock_clock_exclusive()).await;
        known.stepped_ms = fact.stepped_ms;
        known.indexed = None;
        self.store.set_shift_ms(fact.shift_ms);
        self.clock.apply(step_ms);
    }

    /// Applies a step to all waiting records in one commit, then to the clock, and updates the
    /// indexes. Runs on the leader, with its store.
    ///
    /// # Errors
    /// Returns an error if the store fails; the next call continues.
    pub async fn apply(&self, store: &Store) -> Result<(), Error> {
        let mut known = self.known.lock().await;
        let stored = store.clock_fact().await?;
        let (version, before) =
            stored.map_or_else(Default::default, |(version, fact)| (Some(version), fact));
        self.apply_fact(&mut known, &before).await;
        let step_ms = self.clock.step_ms();
        let mut fact = ClockFact {
            stepped_ms: before.stepped_ms.saturating_add(step_ms),
            offset_ms: self.clock.offset_ms().saturating_add(step_ms),
            boot: self.boot,
            ..before
        };
        // A larger step forward corrects a clock that was plainly wrong. Everything due before the
        // new time is due.
        if step_ms <= to_millis(CLOCK_FORWARD_MAX) {
            fact.shift_ms = before.shift_ms.saturating_add(step_ms);
        }
        // A step in one direction and one back cancel out, but entries may have been rewritten
        // between them.
        if step_ms != 0 && fact.indexed_ms == fact.shift_ms {
            fact.indexed_ms = before.shift_ms;
        }
        let drift_ms = fact.offset_ms.saturating_sub(before.offset_ms);
        if step_ms != 0 || fact.boot != before.boot || drift_ms.saturating_abs() >= DRIFT_MS {
            store.put_clock_fact(version, &fact).await?;
        }
        if step_ms != 0 {
            tracing::warn!(step_ms, "the clock was changed; adjusting due times");
            self.apply_fact(&mut known, &fact).await;
        }
        known.waits = None;
        if fact.indexed_ms == fact.shift_ms {
            return Ok(());
        }
        // Index twice: nodes that have not noticed the step yet still store records with the
        // earlier shift.
        let passed = self.clock.elapsed();
        match known.indexed {
            None => {
                Self::rewrite_indexes(store).await?;
                known.indexed = Some(passed);
            }
            Some(since) if passed.saturating_sub(since) >= CLOCK_INDEX_AGAIN_AFTER => {
                Self::rewrite_indexes(store).await?;
                let stored = store.clock_fact().await?;
                let same = stored.filter(|(_, it)| it.shift_ms == fact.shift_ms);
                if let Some((version, stored)) = same {
                    let indexed_ms = fact.shift_ms;
                    let fact = ClockFact {
                        indexed_ms,
                        ..stored
                    };
                    store.put_clock_fact(Some(version), &fact).await?;
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Rewrites the records whose index entries still use the time before a step.
    async fn rewrite_indexes(store: &Store) -> Result<(), Error> {
        rewrite_by_index::<Delivery>(store, Index::DeliveryByDue).await?;
        rewrite_by_index::<Occurrence>(store, Index::OccurrenceByDue).await?;
        rewrite_by_index::<Occurrence>(store, Index::OccurrenceByReview).await?;
        rewrite_by_index::<Receipt>(store, Index::ReceiptByTime).await?;
        // Rewriting a silence makes all processes that cache silences read it again.
        let mut pages = store.pages::<Silence>(Range::with_prefix(&[]));
        while let Some(page) = pages.next().await? {
            let idle = page
                .iter()
                .filter(|it| it.value.progress.idle_since_ms.is_some());
            rewrite::<Silence>(store, idle.map(|it| it.value.key()).collect()).await?;
        }
        Ok(())
    }
}

/// Rewrites the records found through an index. Unreadable records are skipped.
async fn rewrite_by_index<T: Record>(store: &Store, index: Index) -> Result<(), Error> {
    let mut range = Range::with_prefix(&[]);
    loop {
        let engine = store.engine();
        let page = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
        let page = page.await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        range.exclude_through(last);
        let keys: Vec<_> = page.into_iter().map(|(_, key)| key).collect();
        for keys in keys.chunks(BATCH) {
            rewrite::<T>(store, keys.to_vec()).await?;
        }
    }
}

async fn rewrite<T: Record>(store: &Store, keys: Vec<Vec<u8>>) -> Result<(), Error> {
    let decide = async || {
        let (found, _) = store.get_readable::<T>(keys.clone()).await?;
        let mut changes = store.new_changes();
        for stored in found.iter().flatten().filter(|it| it.is_shifted()) {
            changes.update(stored, &stored.value);
        }
        Ok((changes, ()))
    };
    commit(store, Lane::Bulk, decide).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
