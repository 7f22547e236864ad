//! The seam between what is decided and where it is kept: versioned records and named indexes.
//!
//! An engine only persists. What to change is decided above, from what was read, as a set of
//! changes that each name the version they expect; an engine applies such a set as a whole or not
//! at all. Nothing above may assume one process, one writer or a shared memory.

mod change;
pub mod clock;
mod cluster;
mod condition;
mod fault;
mod index;
mod kind;
pub mod limits;
mod log;
pub mod memory;
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

use self::cluster::Alone;
#[cfg(test)]
use self::testing::conformance;
pub use self::{
    change::{Action, Applied, Change, DiskShare, Entry, Expect, Lane, Set, add_to, numbers},
    cluster::{Cluster, Duty, NodeSeen},
    condition::{Condition, FreeSpace},
    fault::{EngineError, RecordName},
    index::{Index, Membership, SilenceStanding},
    kind::Kind,
    log::{Changed, Delta, Logged},
    position::LogPosition,
    read::{Direction, Found, Lead, Range, Row},
};
use crate::clock::Clock;

/// Entries read at a time while counting.
const COUNT_PAGE: usize = 1_000;

/// A position where records are kept.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// Applies a set of changes, all or none, and returns its position in the change log once it is on
    /// disk. From then on [`Engine::log_signal`] shows that position or a later one.
    ///
    /// # Errors
    /// See [`EngineError`]; only `Indeterminate` leaves open whether it was written.
    ///
    /// # Cancel safety
    /// A dropped call may still be carried out.
    async fn apply(&self, lane: Lane, set: Set) -> Result<Applied, EngineError>;

    /// Reads records by key; absent ones are `None`. All are read at one point in time.
    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError>;

    /// Walks the records of a kind by key.
    async fn page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError>;

    /// Walks the entries of an index; answers `(entry key, record key)`.
    async fn entries(
        &self,
        index: Index,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Lead>, EngineError>;

    /// Walks several stretches of an index, each up to `limit` entries; answers them in the order of
    /// the stretches. An engine that can, reads all of them at one point in time.
    async fn entries_in(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<Lead>>, EngineError> {
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            found.push(self.entries(index, range.clone(), direction, limit).await?);
        }
        Ok(found)
    }

    /// Finds the last entry under each prefix with the record that it leads to, in the order of the
    /// prefixes, all at one point in time.
    ///
    /// What intake asks for every event.
    async fn last_under(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<Found>>, EngineError>;

    /// Counts the entries of a stretch of an index, at most `limit`.
    async fn count(&self, index: Index, range: Range, limit: usize) -> Result<usize, EngineError> {
        let mut range = range;
        let mut count = 0;
        while count < limit {
            let page = (limit - count).min(COUNT_PAGE);
            let entries = self
                .entries(index, range.clone(), Direction::Ascending, page)
                .await?;
            count += entries.len();
            match entries.into_iter().last() {
                Some((mut key, _)) if count % COUNT_PAGE == 0 => {
                    key.push(0);
                    range.start = key;
                }
                _ => break,
            }
        }
        Ok(count)
    }

    /// Counts the entries of several stretches of an index, of each at most `limit`; answers them in
    /// the order of the stretches.
    async fn count_in(
        &self,
        index: Index,
        ranges: &[Range],
        limit: usize,
    ) -> Result<Vec<usize>, EngineError> {
        let mut counts = Vec::with_capacity(ranges.len());
        for range in ranges {
            counts.push(self.count(index, range.clone(), limit).await?);
        }
        Ok(counts)
    }

    /// Reads the change log after a position in it. `None` when that position has been forgotten, or was
    /// never reached: a position beyond what this process knows is looked for in the store first.
    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<Logged>>, EngineError>;

    /// The oldest position after which the change log can be read.
    async fn oldest_position(&self) -> Result<LogPosition, EngineError> {
        let (mut forgotten, mut known) = (LogPosition::START, self.log_head().await?);
        let is_known = async |it| Ok::<_, EngineError>(self.log_after(it, 1).await?.is_some());
        if is_known(forgotten).await? {
            return Ok(forgotten);
        }
        while known.steps_since(forgotten) > 1 {
            let middle = forgotten.middle(known);
            if is_known(middle).await? {
                known = middle;
            } else {
                forgotten = middle;
            }
        }
        Ok(known)
    }

    /// Reads what changed after a position in the log, as it is now. At least one step of the log is
    /// taken, then more until there are about so many bytes. `None` when that position has been
    /// forgotten.
    async fn changed_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError>;

    /// How many records, entries and steps of the log there are, for telling how far a walk is.
    async fn row_count(&self) -> Result<u64, EngineError>;

    /// The newest position at which records of these kinds were changed, or a later one, as far as this
    /// process knows. A follower of these kinds need not read the log while this is not after its own
    /// position. It never moves its position here: the commit may not be readable yet. It moves to the end
    /// of what it has read, or to a [`Engine::log_signal`] that it read before this.
    fn last_changed(&self, _kinds: &[Kind]) -> LogPosition {
        *self.log_signal().borrow()
    }

    /// The newest position in the change log, whichever process has put it there.
    async fn log_head(&self) -> Result<LogPosition, EngineError>;

    /// The newest position in the change log that this process knows: the value changes after each
    /// commit, also of others, a moment behind [`Engine::log_head`].
    fn log_signal(&self) -> watch::Receiver<LogPosition>;

    /// How much room there is; none when the engine cannot tell, or needs none.
    fn free_space(&self) -> Option<FreeSpace> {
        None
    }

    /// The state of the store, as last observed.
    fn condition(&self) -> Condition {
        Condition::of_space(self.free_space())
    }

    /// Counters of its work; none where they mean nothing.
    fn registry(&self) -> Option<&Registry> {
        None
    }

    /// The time that all who use the store go by; none where each has its own.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }

    /// What concerns the processes that share the store; of one that is not shared, what holds of a
    /// process alone.
    fn cluster(&self) -> &dyn Cluster {
        &Alone
    }

    /// Carries out what waits, and closes the store; leaves those that share it, so that no one has
    /// to wait. Nothing is written through this engine after it.
    ///
    /// Once it returns, all that was applied is where the engine is read from when it is opened
    /// again, whatever it promised of single commits. An engine that is dropped loses nothing that
    /// it promised, and no one learns of what else it lost.
    ///
    /// # Errors
    /// Some of what was applied is not there yet. Where commits are promised, the next opening
    /// finishes it.
    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The position of the commit that made a record of a version, where versions show it.
    fn made_at(&self, _version: u64) -> Option<LogPosition> {
        None
    }

    /// Whether another process may use the same records meanwhile. Where none may, whatever an
    /// earlier process left under way has ended.
    fn is_shared(&self) -> bool;
}

/// Parts of `bellwether-backend-testing`, built against this crate.
#[cfg(test)]
#[path = "../../testing/src"]
#[expect(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "these are for tests; each name is its documentation"
)]
pub mod testing {
    pub mod conformance;
    pub mod simulated_disk;
    #[path = "../../../tests/src/walks.rs"]
    pub mod walks;
}
