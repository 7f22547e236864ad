//! The engine on a disk: one file of redb, written by one thread, read by everybody.

mod blocks;
mod cell;
mod delta;
mod fault;
mod file;
mod fresh;
mod journal;
mod log;
mod medium;
mod queue;
mod rows;
mod set;
mod transaction;
mod writer;

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    thread::JoinHandle,
    time::Instant,
};

use async_trait::async_trait;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

pub use self::medium::Medium;
use self::{
    cell::ROWS,
    fault::Fault,
    file::{File, Opened},
    queue::{Queue, Waiting},
    set::Set,
    writer::Writer,
};
use crate::{
    limits::STORE_REOPEN_TIME_MAX,
    store::engine::{
        Change, Delta, Direction, DiskRoom, Engine, EngineError, Index, Kind, Lane, Logged, Range,
        Row,
    },
};

/// Records read on the caller's thread; more are read on a thread that may block.
const INLINE_READS_MAX: usize = 32;

/// Entries counted in one transaction.
const COUNT_STEP: usize = 20_000;

/// How the file is read and written.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Memory for cached pages, in bytes.
    pub cache_bytes: usize,
    /// Whether a commit takes two syncs.
    pub two_phase_commit: bool,
    /// The length of the file, in bytes, from which on commits of two phases save what a repair
    /// would have to find out.
    pub quick_repair_from: u64,
    /// The place after which the change log of a new file begins.
    pub first_place: u64,
}

/// Keeps records in a file of redb.
///
/// Dropping it carries out what waits and closes the file.
#[derive(Debug)]
pub struct RedbEngine {
    medium: Arc<dyn Medium>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// What the writer and the readers share.
#[derive(Debug)]
struct Shared {
    /// Why not, while there is none.
    database: RwLock<Result<Database, Closed>>,
    /// Counts how often that changed.
    openings: watch::Sender<u64>,
    queue: Queue,
    head: watch::Sender<u64>,
}

/// Why there is no open file.
#[derive(Debug, Clone)]
struct Closed {
    why: String,
    is_damaged: bool,
    /// Whether it is about to be opened again.
    is_passing: bool,
}

/// Why something was not read.
#[derive(Debug)]
struct Unread {
    error: EngineError,
    /// Whether it can be read once the file is open again.
    is_passing: bool,
}

impl Closed {
    /// It is about to be opened again.
    fn for_now() -> Self {
        Self {
            why: "its file is being opened again after an error".into(),
            is_damaged: false,
            is_passing: true,
        }
    }

    /// It stays closed.
    fn for_good() -> Self {
        Self {
            why: "it is closed".into(),
            is_damaged: false,
            is_passing: false,
        }
    }

    fn by(fault: Fault) -> Self {
        let error = EngineError::from(fault);
        let is_damaged = matches!(error, EngineError::Corrupt(_));
        let why = match error {
            EngineError::Corrupt(why) | EngineError::Unavailable(why) => why,
            other => other.to_string(),
        };
        Self {
            why,
            is_damaged,
            is_passing: false,
        }
    }
}

impl From<&Closed> for EngineError {
    fn from(closed: &Closed) -> Self {
        if closed.is_damaged {
            Self::Corrupt(closed.why.clone())
        } else {
            Self::Unavailable(closed.why.clone())
        }
    }
}

impl RedbEngine {
    /// Opens the file of a medium, or makes it when it is empty.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when the file is damaged or not one of redb, others when the medium
    /// fails.
    pub fn open(medium: Arc<dyn Medium>, settings: Settings) -> Result<Self, EngineError> {
        let file = File::new(Arc::clone(&medium), settings);
        let Opened {
            database,
            head,
            blocks,
        } = file.open()?;
        let shared = Arc::new(Shared {
            database: RwLock::new(Ok(database)),
            openings: watch::Sender::new(0),
            queue: Queue::default(),
            head: watch::Sender::new(head.sequence),
        });
        let writer = Writer::new(Arc::clone(&shared), file, head, blocks);
        let thread = std::thread::Builder::new().name("store-writer".into());
        let thread = thread.spawn(move || writer.run());
        let thread = thread.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        Ok(Self {
            medium,
            shared,
            writer: Some(thread),
        })
    }

    /// Reads, and waits for a file that is just being opened again.
    async fn read<T: Send + 'static>(
        &self,
        count: usize,
        work: impl Fn(&Table) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, EngineError> {
        let work = Arc::new(work);
        let mut openings = self.shared.openings.subscribe();
        let start = Instant::now();
        loop {
            openings.mark_unchanged();
            let result = if count <= INLINE_READS_MAX {
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
        self.shared.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing left to wait for.
            drop(writer.join());
        }
    }
}

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Shared {
    /// Reads in a transaction of its own, which must be short: pages it sees cannot be used again.
    fn read<T>(&self, work: impl Fn(&Table) -> Result<T, Fault>) -> Result<T, Unread> {
        let transaction = match self.database().as_ref() {
            Ok(database) => database.begin_read().map_err(Fault::from),
            Err(closed) => {
                return Err(Unread {
                    error: closed.into(),
                    is_passing: closed.is_passing,
                });
            }
        };
        let read = || work(&transaction?.open_table(ROWS)?);
        read().map_err(|fault: Fault| {
            let is_of_file = matches!(fault, Fault::File(_));
            if is_of_file {
                self.queue.ask_to_reopen();
            }
            let error = EngineError::from(fault);
            Unread {
                is_passing: is_of_file && !matches!(error, EngineError::Corrupt(_)),
                error,
            }
        })
    }

    fn database(&self) -> RwLockReadGuard<'_, Result<Database, Closed>> {
        self.database.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        self.database().is_ok()
    }

    fn set_database(&self, database: Result<Database, Closed>) {
        *self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner) = database;
        self.openings.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Engine for RedbEngine {
    async fn apply(&self, lane: Lane, changes: Vec<Change>) -> Result<u64, EngineError> {
        let (answer, answered) = oneshot::channel();
        let set = Set::new(lane, changes);
        self.shared.queue.push(Waiting { lane, set, answer })?;
        answered
            .await
            .unwrap_or_else(|error| Err(EngineError::Indeterminate(Box::new(error))))
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        let keys = keys.to_vec();
        self.read(keys.len(), move |rows| {
            let records = keys.iter().map(|key| rows::record(rows, kind, key));
            records.collect()
        })
        .await
    }

    async fn page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        let work = move |rows: &Table| rows::page(rows, kind, &range, direction, limit);
        self.read(limit, work).await
    }

    async fn entries(
        &self,
        index: Index,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, EngineError> {
        let work = move |rows: &Table| rows::entries(rows, index, &range, direction, limit);
        self.read(limit, work).await
    }

    async fn last_under(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<(Vec<u8>, Vec<u8>)>>, EngineError> {
        let prefixes = prefixes.to_vec();
        self.read(prefixes.len(), move |rows| {
            let last = |prefix: &Vec<u8>| rows::last_under(rows, index, prefix);
            prefixes.iter().map(last).collect()
        })
        .await
    }

    async fn count(&self, index: Index, range: Range, limit: usize) -> Result<usize, EngineError> {
        let (mut count, mut range) = (0, range);
        loop {
            let step = (limit - count).min(COUNT_STEP);
            let part = range.clone();
            let work = move |rows: &Table| rows::count(rows, index, &part, step);
            let (found, rest) = self.read(step, work).await?;
            count += found;
            match rest {
                Some(start) if count < limit => range.start = start,
                _ => return Ok(count),
            }
        }
    }

    async fn log_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Option<Vec<Logged>>, EngineError> {
        self.read(limit, move |rows| log::after(rows, sequence, limit))
            .await
    }

    async fn changed_after(
        &self,
        sequence: u64,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        let work = move |rows: &Table| delta::after(rows, sequence, bytes_max);
        self.read(usize::MAX, work).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.read(1, |rows| Ok(rows.len()?)).await
    }

    async fn log_head(&self) -> Result<u64, EngineError> {
        Ok(*self.shared.head.borrow())
    }

    fn log_signal(&self) -> watch::Receiver<u64> {
        self.shared.head.subscribe()
    }

    fn room(&self) -> Option<DiskRoom> {
        self.medium.room()
    }

    fn is_shared(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::SimulatedDisk;
