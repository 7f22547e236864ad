//! Wraps an engine, counts its calls, and injects delays, failures and unknown outcomes.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    ApplyResult, ChangeSet, Delta, Direction, Engine, EngineError, Index, IndexedRecord, Kind,
    Lane, LogPosition, LogStep, Range, Row,
};

/// Maximum number of times a call yields to other tasks, before it begins and before it returns.
const DELAY_MAX: u32 = 4;

/// An engine that delays every call and fails some of them.
#[derive(Debug)]
pub struct FaultyEngine<E> {
    engine: E,
    random: Mutex<StdRng>,
    /// Probability that a call fails.
    faults: Mutex<f64>,
    /// Position of a change that has been announced and cannot be read yet.
    announced: Mutex<LogPosition>,
    calls: AtomicUsize,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy)]
enum InjectedOutcome {
    Done,
    Refused,
    Unknown { is_done: bool },
}

impl<E: Engine> FaultyEngine<E> {
    /// Creates an engine that delays calls without failing any.
    pub fn with_delays(engine: E, seed: u64) -> Self {
        Self::with_failures(engine, seed, 0.0)
    }

    /// Creates an engine that fails the given fraction of its calls.
    pub fn with_failures(engine: E, seed: u64, faults: f64) -> Self {
        let random = Mutex::new(StdRng::seed_from_u64(seed));
        Self {
            engine,
            random,
            faults: Mutex::new(faults),
            announced: Mutex::default(),
            calls: AtomicUsize::default(),
        }
    }

    /// Returns the number of reads and writes since the last call.
    pub fn take_call_count(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }

    /// Announces the next commit before it can be read, as the last change of every kind.
    pub fn announce_next(&self) {
        let next = self.engine.log_signal().borrow().next();
        *self
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = next;
    }

    pub fn set_failure_rate(&self, faults: f64) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    fn failure_rate(&self) -> f64 {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_random<T>(&self, choose: impl FnOnce(&mut StdRng) -> T) -> T {
        choose(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn delay_call(&self) {
        for _ in 0..self.with_random(|random| random.random_range(0..=DELAY_MAX)) {
            tokio::task::yield_now().await;
        }
    }

    fn next_outcome(&self) -> InjectedOutcome {
        let faults = self.failure_rate();
        self.with_random(|random| match random.random_range(0..3) {
            _ if !random.random_bool(faults) => InjectedOutcome::Done,
            0 => InjectedOutcome::Refused,
            1 => InjectedOutcome::Unknown { is_done: false },
            _ => InjectedOutcome::Unknown { is_done: true },
        })
    }

    async fn read(&self) -> Result<(), EngineError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.delay_call().await;
        let faults = self.failure_rate();
        if self.with_random(|random| random.random_bool(faults)) {
            return Err(injected_error());
        }
        Ok(())
    }
}

fn injected_error() -> EngineError {
    EngineError::Unavailable("failure injected by a test".into())
}

#[async_trait]
impl<E: Engine> Engine for FaultyEngine<E> {
    async fn apply(&self, lane: Lane, set: ChangeSet) -> Result<ApplyResult, EngineError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.delay_call().await;
        let answer = match self.next_outcome() {
            InjectedOutcome::Done => self.engine.apply(lane, set).await,
            InjectedOutcome::Refused => Err(injected_error()),
            InjectedOutcome::Unknown { is_done } => {
                if is_done {
                    // The write is applied, but its result is not returned.
                    drop(self.engine.apply(lane, set).await);
                }
                Err(EngineError::Indeterminate(
                    "failure injected by a test".into(),
                ))
            }
        };
        self.delay_call().await;
        answer
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        self.read().await?;
        self.engine.get(kind, keys).await
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        self.read().await?;
        self.engine.read_page(kind, range, direction, limit).await
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<(Vec<u8>, Vec<u8>)>>, EngineError> {
        self.read().await?;
        self.engine
            .read_ranges(index, ranges, direction, limit)
            .await
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        self.read().await?;
        self.engine.last_with_prefix(index, prefixes).await
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        self.read().await?;
        self.engine.log_after(after, limit).await
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        self.read().await?;
        self.engine.changes_after(after, bytes_max).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.read().await?;
        self.engine.row_count().await
    }

    fn last_changed(&self, kinds: &[Kind]) -> LogPosition {
        let announced = *self
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.engine.last_changed(kinds).later(announced)
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        self.read().await?;
        self.engine.log_head().await
    }

    fn log_signal(&self) -> tokio::sync::watch::Receiver<LogPosition> {
        self.engine.log_signal()
    }

    fn position_of_version(&self, version: u64) -> Option<LogPosition> {
        self.engine.position_of_version(version)
    }

    fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }
}

#[cfg(test)]
mod conformance_with_delays {
    use super::FaultyEngine;
    use crate::{conformance, memory::MemoryEngine};

    conformance!((FaultyEngine::with_delays(MemoryEngine::new(), 7), ()));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures_util::future::join_all;

    use super::{Engine, EngineError, FaultyEngine, Kind, Lane};
    use crate::{Action, Change, Expect, memory::MemoryEngine};

    const CALLERS: u8 = 8;
    const TURNS: u8 = 12;

    /// Reads the list that all callers add to, and its version.
    async fn read_list(engine: &dyn Engine) -> (Vec<u8>, Expect) {
        loop {
            if let Ok(mut rows) = engine.get(Kind::Rule, &[b"list".to_vec()]).await {
                return match rows.pop().flatten() {
                    Some(row) => (row.value, Expect::Version(row.version)),
                    None => (Vec::new(), Expect::Absent),
                };
            }
        }
    }

    /// Adds to the list, and retries until the addition is known to be stored.
    async fn add_to_list(engine: &dyn Engine, what: u8) {
        loop {
            let (mut value, expect) = read_list(engine).await;
            if value.contains(&what) {
                return;
            }
            value.push(what);
            let put = Change::new(Kind::Rule, b"list", expect, Action::Put(value));
            match engine.apply(Lane::Bulk, vec![put].into()).await {
                Ok(_) => return,
                Err(EngineError::Corrupt(why)) => panic!("{why}"),
                Err(_) => {}
            }
        }
    }

    #[tokio::test]
    async fn retry_after_failure_neither_loses_nor_duplicates() {
        for seed in 0..20 {
            let engine = FaultyEngine::with_failures(MemoryEngine::new(), seed, 0.4);
            let callers = (0..CALLERS).map(async |caller| {
                for turn in 0..TURNS {
                    add_to_list(&engine, caller * TURNS + turn).await;
                }
            });
            join_all(callers).await;
            let (value, _) = read_list(&engine).await;
            let all: BTreeSet<_> = value.iter().copied().collect();
            assert_eq!(value.len(), usize::from(CALLERS * TURNS), "seed {seed}");
            assert_eq!(all.len(), value.len(), "seed {seed}");
        }
    }
}
