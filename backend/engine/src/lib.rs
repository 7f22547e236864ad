//! The boundary between decisions and storage: versioned records and named indexes.
//!
//! An engine only persists. The layer above reads, decides and writes sets of changes, each of
//! which expects a version. An engine applies a set atomically. Layers above must not assume a
//! single process, a single writer or shared memory.

mod change;
pub mod clock;
mod cluster;
mod condition;
mod error;
mod index;
mod kind;
pub mod limits;
mod log;
pub mod memory;
pub mod merging;
pub mod ownership;
mod position;
pub mod postgres;
mod read;
pub mod redb;
pub mod staged;

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use self::cluster::SingleProcess;
#[cfg(test)]
use self::testing::conformance;
pub use self::{
    change::{
        Action, ApplyResult, Change, ChangeSet, DiskShare, Entry, Expect, Lane, add_to,
        decode_numbers,
    },
    cluster::{Cluster, ClusterNode, Duty},
    condition::{Condition, FreeSpace},
    error::{EngineError, RecordName},
    index::{Index, Membership, SilenceStanding},
    kind::Kind,
    log::{ChangedRecord, Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};
use crate::clock::Clock;

const COUNT_PAGE: usize = 1_000;

/// A store of versioned records.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// Applies a set of changes atomically, and returns its position in the change log once it is
    /// on disk. From then on [`Engine::log_signal`] shows that position or a later one.
    ///
    /// # Errors
    ///
    /// See [`EngineError`]; only `Indeterminate` leaves open whether the set was written.
    ///
    /// # Cancel safety
    ///
    /// A set may still be applied after the call is dropped.
    async fn apply(&self, lane: Lane, set: ChangeSet) -> Result<ApplyResult, EngineError>;

    /// Reads records by key, all at one point in time; absent ones are `None`.
    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError>;

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError>;

    /// Reads a page of index entries as `(entry key, record key)`.
    async fn entries(
        &self,
        index: Index,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<IndexEntry>, EngineError> {
        let mut found = self.read_ranges(index, &[range], direction, limit).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Reads several ranges of an index, up to `limit` entries each, and returns the entries per
    /// range, in the given order. An engine that can do so reads all ranges at one point in time.
    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError>;

    /// Returns the last entry under each prefix with its record, in the order of the prefixes, all
    /// at one point in time.
    ///
    /// Intake calls this for every event.
    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError>;

    async fn count(&self, index: Index, range: Range, limit: usize) -> Result<usize, EngineError> {
        let mut counts = self.count_ranges(index, &[range], limit).await?;
        Ok(counts.pop().unwrap_or_default())
    }

    /// Counts the entries in several ranges of an index, up to `limit` each, in the given order.
    async fn count_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        limit: usize,
    ) -> Result<Vec<usize>, EngineError> {
        let mut counts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (mut range, mut count) = (range.clone(), 0);
            while count < limit {
                let page = (limit - count).min(COUNT_PAGE);
                let entries = self.entries(index, range.clone(), Direction::Ascending, page);
                let entries = entries.await?;
                count += entries.len();
                match entries.last() {
                    Some((key, _)) if entries.len() == page => range.exclude_through(key),
                    _ => break,
                }
            }
            counts.push(count);
        }
        Ok(counts)
    }

    /// Reads the change log after a position. Returns `None` if the position was trimmed or never
    /// existed. A position newer than the newest one known to this process is looked up in the
    /// store first.
    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError>;

    async fn oldest_position(&self) -> Result<LogPosition, EngineError> {
        let (mut forgotten, mut known) = (LogPosition::START, self.log_head().await?);
        let is_known = async |it| Ok::<_, EngineError>(self.log_after(it, 1).await?.is_some());
        if is_known(forgotten).await? {
            return Ok(forgotten);
        }
        while known.steps_since(forgotten) > 1 {
            let middle = forgotten.midpoint(known);
            if is_known(middle).await? {
                known = middle;
            } else {
                forgotten = middle;
            }
        }
        Ok(known)
    }

    /// Reads the current state of all records that changed after a position in the log: at least
    /// one log entry, then further entries until about `bytes` bytes are read. Returns `None` if
    /// the log was trimmed past that position.
    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError>;

    /// Returns the number of records, entries and log steps, for progress reports.
    async fn row_count(&self) -> Result<u64, EngineError>;

    /// Returns the newest position at which records of these kinds were changed, or a later one, as
    /// far as this process knows. A follower of these kinds need not read the log unless this
    /// position is after its own. It must not advance to the returned position, because that commit
    /// may not be readable yet. It may advance to the end of the entries that it has read, or to a
    /// value of [`Engine::log_signal`] read before this call.
    fn last_changed(&self, _kinds: &[Kind]) -> LogPosition {
        *self.log_signal().borrow()
    }

    /// Returns the newest position in the change log, whichever process wrote it.
    async fn log_head(&self) -> Result<LogPosition, EngineError>;

    /// Watches the newest position in the change log that this process knows. It changes after each
    /// commit of any process, slightly behind [`Engine::log_head`].
    fn log_signal(&self) -> watch::Receiver<LogPosition>;

    /// Returns the free space, or `None` if it is unknown or irrelevant.
    fn free_space(&self) -> Option<FreeSpace> {
        None
    }

    fn condition(&self) -> Condition {
        Condition::from_free_space(self.free_space())
    }

    fn registry(&self) -> Option<&Registry> {
        None
    }

    /// Returns the clock shared by all users of the store, or `None` if each has its own.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }

    /// Returns the cluster of processes that share the store; a single process if the store is not
    /// shared.
    fn cluster(&self) -> &dyn Cluster {
        &SingleProcess
    }

    /// Completes queued writes, closes the store and leaves the cluster, so that no process waits
    /// for this one. All writes fail afterwards.
    ///
    /// Once this method returns, the next opening reads all applied sets, regardless of the
    /// durability of single commits. Dropping an engine loses no set that it confirmed as durable,
    /// but other losses are not detected.
    ///
    /// # Errors
    ///
    /// Returns an error if some applied changes are not in their final place yet. Where commits are
    /// durable, the next opening completes them.
    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Returns the position of the commit that created a version, if versions encode it.
    fn position_of_version(&self, _version: u64) -> Option<LogPosition> {
        None
    }

    /// Whether other processes may use the same records. If not, all work started by an earlier
    /// process has ended.
    fn is_shared(&self) -> bool;
}

/// Parts of `bellwether-backend-testing`, built against this crate.
#[cfg(test)]
#[path = "../../testing/src"]
#[expect(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "test helpers whose names document them"
)]
pub mod testing {
    pub mod conformance;
    pub mod simulated_disk;
    #[path = "../../../tests/src/walks.rs"]
    pub mod walks;
}
