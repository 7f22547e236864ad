//! The engine on a disk: a log in front of a tree, each written by one thread and read by all
//! callers.
//!
//! `apply` encodes a set of changes and queues it (`set`, `queue`). The writer takes all waiting
//! sets as a group, checks the expectations of each set (`compare`), and writes the group to the
//! log with one write and one sync (`wal`, `batch`). Then it publishes the group in memory
//! (`memtable`, `layers`) and completes the waiting calls, so all visible data is on disk. When
//! memory is full, the log switches to its other file, and the mover writes the rows into the redb
//! tree in one large commit (`mover`, `put`). Entries by event are written as a sorted run (`runs`,
//! `union`, `filter`).
//!
//! A reader takes a lock-free snapshot of the layers: memory, memory being moved, runs, tree
//! (`view`, `merge`, `tree`). Opening a store moves the frames that a crash left in the log into
//! the tree. Closing it leaves the log empty. Below the tree, `blocks` and `journal` detect bytes
//! that were changed on disk.

mod arena;
mod batch;
mod blocks;
mod cell;
mod closed;
mod compare;
mod delta;
mod error;
mod file;
mod filter;
mod journal;
mod layers;
mod legacy_entries;
mod log;
mod medium;
mod memtable;
mod merge;
mod mover;
mod mover_commands;
mod ordered;
mod put;
mod queue;
mod rows;
mod runs;
mod set;
mod tree;
mod union;
mod view;
mod wal;
mod writer;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

use async_trait::async_trait;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

pub use self::medium::Medium;
use self::{
    error::Failure,
    file::{File, NO_GENERATION},
    layers::{Layers, SharedLayers},
    memtable::Memtable,
    mover::Mover,
    mover_commands::MoverCommands,
    queue::{Queue, QueuedSet},
    set::EncodedSet,
    view::{TableRows, View},
    wal::Wal,
    writer::Writer,
};
use crate::{
    Engine,
    change::{ApplyResult, Lane},
    condition::{Condition, FreeSpace, ObservedCondition},
    error::EngineError,
    index::Index,
    kind::Kind,
    limits::{
        STORE_LOG_BYTES, STORE_MEMORY_BYTES, STORE_QUICK_REPAIR_FROM, STORE_REOPEN_TIME_MAX,
        STORE_RUNS_UNITED,
    },
    log::{Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

/// Maximum number of rows read on the caller's thread. Larger reads use a blocking thread.
const INLINE_ROWS_MAX: usize = 32;
/// Maximum number of keys looked up on the caller's thread. Most keys are in memory or known to be
/// absent.
const INLINE_KEYS_MAX: usize = 1_000;

/// Entries counted per transaction.
const COUNT_STEP: usize = 20_000;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub cache_bytes: usize,
    /// File size in bytes from which commits save the data that a repair would otherwise compute.
    pub quick_repair_from: u64,
    /// The change log position before the first commit of a new file.
    pub first_position: LogPosition,
    /// Bytes of changes in memory that trigger a move into the tree.
    pub memory_bytes: usize,
    pub log_bytes: u64,
    /// Number of runs of entries by event that are merged into one.
    pub fan: usize,
    /// Whether to open a store whose log is missing or truncated, and lose the content of the log.
    pub accept_loss: bool,
}

impl Settings {
    /// Returns the production settings with the given page cache size.
    pub const fn with_cache(cache_bytes: usize) -> Self {
        Self {
            cache_bytes,
            quick_repair_from: STORE_QUICK_REPAIR_FROM,
            first_position: LogPosition::START,
            memory_bytes: STORE_MEMORY_BYTES,
            log_bytes: STORE_LOG_BYTES,
            fan: STORE_RUNS_UNITED,
            accept_loss: false,
        }
    }
}

/// An engine that keeps records in a redb file behind a log.
///
/// [`Engine::close`] completes queued writes, moves the rows in memory and closes the file.
/// Dropping the engine does the same as far as possible; the next opening moves the remaining rows
/// of the log.
#[derive(Debug)]
pub struct RedbEngine {
    medium: Arc<dyn Medium>,
    shared: Arc<EngineState>,
    /// The writer, then the mover: the order in which they end. Empty once closed.
    threads: Mutex<Vec<WorkerThread>>,
}

type WorkerThread = JoinHandle<Result<(), EngineError>>;

#[derive(Debug)]
struct EngineState {
    layers: SharedLayers,
    openings: watch::Sender<u64>,
    queue: Queue,
    commands: MoverCommands,
    observed: ObservedCondition,
    head: watch::Sender<LogPosition>,
    /// By kind number, the newest position at which a record of the kind was changed, or a later
    /// one.
    changed: [AtomicU64; KINDS],
}

/// One more than the largest kind number.
const KINDS: usize = Kind::ALL.len() + 1;

#[derive(Debug)]
struct ReadFailure {
    error: EngineError,
    /// Whether a retry can succeed once the tree is reopened.
    is_passing: bool,
}

impl RedbEngine {
    /// Opens the file of a medium, or creates it if it is empty. The log of an earlier process is
    /// moved into the tree before this function returns.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Corrupt`] if the file or the log is damaged or foreign. Returns
    /// [`EngineError::Incomplete`] if a part of the log is missing and this loss is not accepted,
    /// and other errors if the medium fails.
    pub fn open(medium: Arc<dyn Medium>, settings: Settings) -> Result<Self, EngineError> {
        let file = File::new(Arc::clone(&medium), settings);
        let opened = file.open()?;
        let wal = Wal::open(medium.as_ref(), settings.log_bytes).map_err(Failure::from);
        let mut wal = wal?;
        let (last, after) = (opened.life, opened.head.sequence);
        let mut mover = Mover::new(file, opened);
        if last.number != NO_GENERATION {
            // Writes of an earlier process must be in the tree before its log is overwritten.
            let frames = match wal.read(last, after) {
                Err(Failure::Request(EngineError::Incomplete(why))) if settings.accept_loss => {
                    tracing::warn!(%why, "opening the store without the missing data");
                    wal.read_frames(last.number, after)?
                }
                frames => frames?,
            };
            let mut memory = Memtable::default();
            for frame in frames {
                memory.add(frame.rows);
            }
            mover.begin_generation(&memory, NO_GENERATION)?;
        }
        let life = rand::random_range(NO_GENERATION + 1..=u64::MAX);
        wal.start_generation(life).map_err(Failure::from)?;
        let tree = mover.begin_generation(&Memtable::default(), life)?;
        let head = log::log_head(&TableRows(&tree.rows))?;
        let shared = Arc::new(EngineState {
            layers: SharedLayers::new(Layers {
                active: Memtable::default(),
                moving: None,
                tree: Ok(Arc::new(tree)),
            }),
            openings: watch::Sender::new(0),
            queue: Queue::default(),
            commands: MoverCommands::default(),
            observed: ObservedCondition::default(),
            head: watch::Sender::new(LogPosition::from_number(head.sequence)),
            changed: std::array::from_fn(|_| AtomicU64::new(head.sequence)),
        });
        let mut engine = Self {
            medium: Arc::clone(&medium),
            shared: Arc::clone(&shared),
            threads: Mutex::default(),
        };
        let writer = Writer::new(
            Arc::clone(&shared),
            medium,
            wal,
            head,
            settings.memory_bytes,
        );
        engine.spawn_thread("store-writer", move || writer.run())?;
        engine.spawn_thread("store-mover", move || mover.run(&shared))?;
        Ok(engine)
    }

    fn spawn_thread(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), EngineError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(work);
        let thread = thread.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        self.lock_threads().push(thread);
        Ok(())
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<WorkerThread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals the threads to stop, and returns those that were not signalled before.
    fn stop_threads(&self) -> Vec<WorkerThread> {
        self.shared.queue.close();
        std::mem::take(&mut self.lock_threads())
    }

    /// Runs a read. If the file is being reopened, retries the read once the file is open.
    async fn read<T: Send + 'static>(
        &self,
        is_short: bool,
        work: impl Fn(&View<'_>) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, EngineError> {
        let work = Arc::new(work);
        let mut openings = self.shared.openings.subscribe();
        let start = Instant::now();
        loop {
            openings.mark_unchanged();
            let result = if is_short {
                self.shared.read(work.as_ref())
            } else {
                let (shared, work) = (Arc::clone(&self.shared), Arc::clone(&work));
                let read = tokio::task::spawn_blocking(move || shared.read(work.as_ref()));
                read.await
                    .map_err(|error| EngineError::Unavailable(error.to_string()))?
            };
            let unread = match result {
                Ok(found) => return Ok(found),
                Err(unread) => unread,
            };
            let left = STORE_REOPEN_TIME_MAX.saturating_sub(start.elapsed());
            let is_over = !unread.is_passing || left.is_zero();
            if is_over || timeout(left, openings.changed()).await.is_err() {
                return Err(unread.error);
            }
        }
    }
}

impl Drop for RedbEngine {
    fn drop(&mut self) {
        // If this fails, the rows that were not moved are still in the log.
        drop(join_threads(self.stop_threads()));
    }
}

fn join_threads(threads: Vec<WorkerThread>) -> Result<(), EngineError> {
    let panicked = |_panic| Err(EngineError::Unavailable("a store thread panicked".into()));
    let ended = threads.into_iter();
    let ended: Vec<_> = ended
        .map(|thread| thread.join().unwrap_or_else(panicked))
        .collect();
    ended.into_iter().collect()
}

impl EngineState {
    /// Reads a snapshot of the layers. Must be short, because pages of the tree cannot be reused
    /// while the snapshot is held.
    fn read<T>(&self, work: impl Fn(&View<'_>) -> Result<T, Failure>) -> Result<T, ReadFailure> {
        let layers = self.layers.get();
        work(&View::from_layers(&layers)).map_err(|failure| {
            let is_of_file = match &failure {
                Failure::Request(_) => false,
                Failure::Closed(closed) => closed.is_passing,
                Failure::File(_) => {
                    if layers.has_same_tree(&self.layers.get()) {
                        self.commands.request_reopen();
                    }
                    true
                }
            };
            let error = EngineError::from(failure);
            ReadFailure {
                is_passing: is_of_file && !matches!(error, EngineError::Corrupt(_)),
                error,
            }
        })
    }

    fn publish_positions(&self, kinds: u32, position: u64) {
        for (number, changed) in self.changed.iter().enumerate() {
            if kinds & (1 << number) != 0 {
                changed.store(position, Ordering::Release);
            }
        }
    }
}

#[async_trait]
impl Engine for RedbEngine {
    async fn apply(
        &self,
        lane: Lane,
        set: crate::change::ChangeSet,
    ) -> Result<ApplyResult, EngineError> {
        let (answer, answered) = oneshot::channel();
        let set = EncodedSet::new(lane, &set);
        self.shared.queue.push(QueuedSet { lane, set, answer })?;
        answered
            .await
            .unwrap_or_else(|error| Err(EngineError::Indeterminate(Box::new(error))))
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        let keys = keys.to_vec();
        self.read(keys.len() <= INLINE_KEYS_MAX, move |rows| {
            let records = keys.iter().map(|key| rows::read_record(rows, kind, key));
            records.collect()
        })
        .await
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        let work = move |rows: &View<'_>| rows::read_page(rows, kind, &range, direction, limit);
        self.read(limit <= INLINE_ROWS_MAX, work).await
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        let ranges = ranges.to_vec();
        let is_short = ranges.len().saturating_mul(limit) <= INLINE_ROWS_MAX;
        self.read(is_short, move |rows| {
            let walk = |range| rows::read_entries(rows, index, range, direction, limit);
            ranges.iter().map(walk).collect()
        })
        .await
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        let prefixes = prefixes.to_vec();
        self.read(prefixes.len() <= INLINE_KEYS_MAX, move |rows| {
            let last = |prefix: &Vec<u8>| rows::last_with_prefix(rows, index, prefix);
            prefixes.iter().map(last).collect()
        })
        .await
    }

    async fn count_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        limit: usize,
    ) -> Result<Vec<usize>, EngineError> {
        let mut counts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (mut count, mut range) = (0, range.clone());
            loop {
                let step = (limit - count).min(COUNT_STEP);
                let part = range.clone();
                let work = move |rows: &View<'_>| rows::count_range(rows, index, &part, step);
                let (found, rest) = self.read(step <= INLINE_ROWS_MAX, work).await?;
                count += found;
                match rest {
                    Some(start) if count < limit => range.start = start,
                    _ => break,
                }
            }
            counts.push(count);
        }
        Ok(counts)
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        self.read(limit <= INLINE_ROWS_MAX, move |rows| {
            log::read_after(rows, after, limit)
        })
        .await
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        let work = move |rows: &View<'_>| delta::read_after(rows, after, bytes_max);
        self.read(false, work).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.read(true, |view: &View<'_>| view.row_count()).await
    }

    fn last_changed(&self, kinds: &[Kind]) -> LogPosition {
        let position = |kind: &Kind| self.shared.changed[*kind as usize].load(Ordering::Acquire);
        LogPosition::from_number(kinds.iter().map(position).max().unwrap_or_default())
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        Ok(*self.shared.head.borrow())
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.shared.head.subscribe()
    }

    fn free_space(&self) -> Option<FreeSpace> {
        self.medium
            .free_space(self.shared.layers.get().bytes() as u64)
    }

    fn condition(&self) -> Condition {
        let layers = self.shared.layers.get();
        let closed = layers.tree.as_ref().err().filter(|it| !it.is_passing);
        let closed = closed.and_then(|it| Condition::from_error(&it.into()));
        if let Some(condition) = closed.or_else(|| self.shared.observed.condition()) {
            return condition;
        }
        if self.medium.is_read_only() {
            return Condition::Unwritable("the file system is read-only".into());
        }
        Condition::from_free_space(self.free_space())
    }

    fn position_of_version(&self, version: u64) -> Option<LogPosition> {
        Some(LogPosition::from_number(version))
    }

    async fn close(&self) -> Result<(), EngineError> {
        let threads = self.stop_threads();
        let ended = tokio::task::spawn_blocking(|| join_threads(threads)).await;
        ended.map_err(|error| EngineError::Unavailable(error.to_string()))?
    }

    fn is_shared(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
