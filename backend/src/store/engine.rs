//! The seam between what is decided and where it is kept: versioned records and named indexes.
//!
//! An engine only persists. What to change is decided above, from what was read, as a set of
//! changes that each name the version they expect; an engine applies such a set as a whole or not
//! at all. Nothing above may assume one process, one writer or a shared memory.

#[cfg(test)]
pub(super) mod conformance;
#[cfg(test)]
pub(crate) mod faulty;
mod index;
pub mod memory;
pub mod postgres;
pub mod redb;
pub mod staged;

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use prometheus_client::registry::Registry;

pub use self::index::{Index, Membership, Standing};
use crate::{clock::Clock, error::Error};

/// The kinds of record. Numbers are written to disk and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Facts about the store itself.
    Meta = 1,
    /// Triggers, by name.
    Trigger = 2,
    /// Destinations, by name.
    Destination = 3,
    /// Rules, by name.
    Rule = 4,
    /// Clients, by name.
    Client = 5,
    /// Occurrences, by record id.
    Occurrence = 6,
    /// Deliveries, by record id.
    Delivery = 7,
    /// Attempts, by delivery and number.
    Attempt = 8,
    /// How destinations' deliveries fare, by destination id.
    Health = 9,
    /// Answers to requests with an idempotency key, by client and key.
    Receipt = 10,
    /// Triggers and rules before they were edited, by kind, name, id and revision.
    Revision = 11,
    /// Silences, by name.
    Silence = 12,
    /// What the service counts, by what is counted and when.
    Counter = 13,
    /// Calendars, by name.
    Calendar = 14,
    /// Inhibitions, by name.
    Inhibition = 15,
    /// Entries of the audit log, by number.
    Audit = 16,
    /// Groups of occurrences that are told of together, by record id.
    Group = 17,
    /// Intake mappings, by name.
    Mapping = 18,
    /// What became of the budgets of destinations, by destination id.
    Budget = 19,
    /// Views, by name.
    View = 20,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 20] = [
        Self::Meta,
        Self::Trigger,
        Self::Destination,
        Self::Rule,
        Self::Client,
        Self::Occurrence,
        Self::Delivery,
        Self::Attempt,
        Self::Health,
        Self::Receipt,
        Self::Revision,
        Self::Silence,
        Self::Counter,
        Self::Calendar,
        Self::Inhibition,
        Self::Audit,
        Self::Group,
        Self::Mapping,
        Self::Budget,
        Self::View,
    ];

    /// The kind of a number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The word for such records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Meta => "fact",
            Self::Trigger => "trigger",
            Self::Destination => "destination",
            Self::Rule => "rule",
            Self::Client => "client",
            Self::Occurrence => "occurrence",
            Self::Delivery => "delivery",
            Self::Attempt => "attempt",
            Self::Health => "health",
            Self::Receipt => "receipt",
            Self::Revision => "revision",
            Self::Silence => "silence",
            Self::Counter => "counter",
            Self::Calendar => "calendar",
            Self::Inhibition => "inhibition",
            Self::Audit => "audit entry",
            Self::Group => "group",
            Self::Mapping => "mapping",
            Self::Budget => "budget",
            Self::View => "view",
        }
    }
}

/// Which queue a set of changes waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Small changes that people wait for; served first.
    Admin,
    /// Intake and deliveries.
    Bulk,
    /// What only the process that leads does: it is refused to one that does not any more. Where no
    /// other may use the store, the same as [`Lane::Bulk`].
    Leader,
}

/// A process that uses a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// What it is called.
    pub name: String,
    /// Since when it has been there, in milliseconds since 1970.
    pub since_ms: i64,
    /// Up to which place it has followed the change log.
    pub follows: u64,
    /// Whether it leads.
    pub leads: bool,
}

/// What a change expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No record under the key.
    Absent,
    /// The record at that version.
    Version(u64),
    /// Whatever is there, or nothing: such a change conflicts with no other one.
    Any,
}

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Rises with every change of the record; versions are not reused after a delete. It is no place
    /// in the change log.
    pub version: u64,
    /// The encoded record.
    pub value: Vec<u8>,
}

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The index.
    pub index: Index,
    /// The key that sorts; unique in the index.
    pub key: Vec<u8>,
}

/// A change of one record and its index entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of record.
    pub kind: Kind,
    /// The record's key.
    pub key: Vec<u8>,
    /// What must be found for the whole set to be applied.
    pub expect: Expect,
    /// What to do.
    pub action: Action,
    /// Index entries to remove; each must lead to this record.
    pub remove: Vec<Entry>,
    /// Index entries to add; an entry that exists and is not removed in the same set is a conflict.
    pub add: Vec<Entry>,
    /// Whether the change log names the record.
    pub is_logged: bool,
    /// Whether it adds to the store: of what waits with others, that is refused first when the disk
    /// runs full.
    pub adds: bool,
    /// Whether it changes what decisions rest on: see [`Set::rests_on`].
    pub defines: bool,
}

impl Change {
    /// A change without entries, which the change log names.
    pub fn new(kind: Kind, key: &[u8], expect: Expect, action: Action) -> Self {
        Self {
            kind,
            key: key.into(),
            expect,
            action,
            remove: Vec::new(),
            add: Vec::new(),
            is_logged: true,
            adds: false,
            defines: false,
        }
    }
}

/// Changes that are applied together, each of another record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// The changes.
    pub changes: Vec<Change>,
    /// The place in the change log up to which was read what the changes were decided by. The set
    /// conflicts when a change that [`Change::defines`] was committed after it; none rests on
    /// nothing.
    pub rests_on: Option<u64>,
}

impl From<Vec<Change>> for Set {
    fn from(changes: Vec<Change>) -> Self {
        Self {
            changes,
            rests_on: None,
        }
    }
}

/// What a set of changes became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The commit's place in the change log; other sets may be in the same commit.
    pub place: u64,
    /// The version of every record that it stored or touched.
    pub version: u64,
}

/// What to do with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Store this value.
    Put(Vec<u8>),
    /// Remove the record.
    Delete,
    /// Leave the value and raise the version, so that decisions made on the old one conflict.
    Touch,
    /// Write nothing: the record must only be as expected when the set is applied.
    Check,
    /// Add to the numbers that the record consists of, one by one; one that is not there is zero,
    /// and a record that only has zeros left is removed.
    Add(Vec<i64>),
}

/// The numbers that a record consists of.
///
/// # Errors
/// [`EngineError::Corrupt`] when it consists of something else.
pub fn numbers(value: &[u8]) -> Result<Vec<i64>, EngineError> {
    let (numbers, rest) = value.as_chunks();
    if !rest.is_empty() {
        return Err(EngineError::Corrupt("a record holds no numbers".into()));
    }
    Ok(numbers.iter().copied().map(i64::from_be_bytes).collect())
}

/// What [`Action::Add`] makes of a record; none when it is removed.
///
/// # Errors
/// [`EngineError::Corrupt`] when the record does not consist of numbers.
fn sum(value: Option<&[u8]>, add: &[i64]) -> Result<Option<Vec<u8>>, EngineError> {
    let mut sum = value.map(numbers).transpose()?.unwrap_or_default();
    add_to(&mut sum, add);
    let is_left = sum.iter().any(|number| *number != 0);
    Ok(is_left.then(|| sum.into_iter().flat_map(i64::to_be_bytes).collect()))
}

/// Adds numbers to numbers, one by one.
pub fn add_to(sum: &mut Vec<i64>, add: &[i64]) {
    if sum.len() < add.len() {
        sum.resize(add.len(), 0);
    }
    for (number, add) in sum.iter_mut().zip(add) {
        *number = number.saturating_add(*add);
    }
}

/// A record, by its kind and key.
pub type RecordName = (Kind, Vec<u8>);

/// An index entry as it is read: its key, and the key of the record that it leads to.
pub type Lead = (Vec<u8>, Vec<u8>);

/// An index entry and the record that it leads to, read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entry's key.
    pub entry: Vec<u8>,
    /// The record's key.
    pub key: Vec<u8>,
    /// The record.
    pub row: Row,
}

/// The way to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Ascending,
    /// From large keys to small ones.
    Descending,
}

/// A stretch of keys to walk: from `start` (included) to `end` (not included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key after the stretch; none means no end.
    pub end: Option<Vec<u8>>,
}

impl Range {
    /// All keys that start with a prefix.
    pub fn under(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self {
            start: prefix.to_vec(),
            end: (!end.is_empty()).then_some(end),
        }
    }

    /// Leaves out everything up to a key.
    pub fn go_on_after(&mut self, key: &[u8]) {
        self.start = [key, &[0]].concat();
    }
}

/// One step of the change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The commit's place in the log; rises by one a commit.
    pub sequence: u64,
    /// The records that changed, as `(kind, key)`, but for changes that were not to be logged.
    pub changed: Vec<(Kind, Vec<u8>)>,
}

/// A record that was named by the change log, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The kind of record.
    pub kind: Kind,
    /// Its key.
    pub key: Vec<u8>,
    /// The record; none when it was gone.
    pub row: Option<Row>,
    /// For a delivery, its attempts: whoever changes these changes or touches it.
    pub attempts: Vec<Row>,
}

/// What changed after a place in the log, all of it read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Everything up to this place is in it.
    pub through: u64,
    /// The newest place at that time. When it is `through`, nothing is left out.
    pub head: u64,
    /// The records, each once.
    pub changed: Vec<Changed>,
    /// When nothing is left out: all records of the kinds that are not logged, but attempts.
    pub unlogged: Vec<(Kind, Vec<u8>, Row)>,
}

impl Delta {
    /// The kinds of [`Delta::unlogged`]: small records, of which nobody says when they change.
    pub(super) const UNLOGGED: [Kind; 4] = [Kind::Meta, Kind::Health, Kind::Counter, Kind::Budget];

    /// The records that steps of the log name, each once, and the last of these steps. Steps are
    /// taken until their names have so many bytes.
    fn named(steps: Vec<Logged>, bytes_max: usize) -> (BTreeSet<(u8, Vec<u8>)>, Option<u64>) {
        let (mut named, mut through, mut bytes) = (BTreeSet::new(), None, 0);
        for step in steps {
            if bytes >= bytes_max {
                break;
            }
            through = Some(step.sequence);
            for (kind, key) in step.changed {
                bytes += DELTA_RECORD_BYTES;
                named.insert((kind as u8, key));
            }
        }
        (named, through)
    }
}

/// What a record of a delta is taken to have, before it is read.
const DELTA_RECORD_BYTES: usize = 1024;
/// Steps of the log that a delta looks at.
const DELTA_STEPS_MAX: usize = 1_000;

/// Why an engine did not do what it was asked, by what the caller may conclude.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An expectation did not hold; nothing was written. Read again and decide anew. Names the
    /// records of the set that are not as it expected, or whose entries are taken; none where that
    /// is not known, or where what the set rests on was changed.
    #[error("a record was changed by somebody else")]
    Conflict(Vec<RecordName>),
    /// Nothing was written. The queue is full or the engine is closed.
    #[error("the store cannot write now: {0}")]
    Unavailable(String),
    /// Nothing was written. The disk is full; deletes and small changes may still go through.
    #[error("the disk is full: {0}")]
    Full(String),
    /// It may or may not have been written.
    #[error("the outcome of a write is not known")]
    Indeterminate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored is damaged.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Nothing was written: for whom the change is made may not make it.
    #[error("{0}")]
    Forbidden(String),
}

impl EngineError {
    /// An entry that a change removes does not lead to the record it should.
    fn missing(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} is missing"))
    }

    /// An entry leads to a record that is not there.
    fn leads_nowhere(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} leads to no record"))
    }

    /// A conflict of which nobody says with which records.
    pub fn conflict() -> Self {
        Self::Conflict(Vec::new())
    }

    /// The same error for another caller.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Conflict(records) => Self::Conflict(records.clone()),
            Self::Unavailable(text) => Self::Unavailable(text.clone()),
            Self::Full(text) => Self::Full(text.clone()),
            Self::Indeterminate(source) => Self::Indeterminate(source.to_string().into()),
            Self::Corrupt(text) => Self::Corrupt(text.clone()),
            Self::Forbidden(text) => Self::Forbidden(text.clone()),
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Conflict(_) => {
                Self::Aborted("it was changed by somebody else meanwhile; try again".into())
            }
            EngineError::Unavailable(_) => Self::Unavailable(error.to_string()),
            EngineError::Full(_) => Self::Exhausted {
                message: error.to_string(),
                retry_after: None,
            },
            EngineError::Indeterminate(_) => Self::Indeterminate(Box::new(error)),
            EngineError::Corrupt(_) => Self::Internal(Box::new(error)),
            EngineError::Forbidden(why) => Self::PermissionDenied(why),
        }
    }
}

/// Space on the disk that an engine writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Below this nothing is added.
    pub floor_bytes: u64,
}

/// Entries read at once while counting.
const COUNT_PAGE: usize = 1_000;

/// A place where records are kept.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// Applies a set of changes, all or none, and returns its place in the change log once it is on
    /// disk. From then on [`Engine::log_signal`] shows that place or a later one.
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

    /// Reads the change log after a place in it. `None` when that place has been forgotten, or was
    /// never reached: a place beyond what this process knows is looked for in the store first.
    async fn log_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Option<Vec<Logged>>, EngineError>;

    /// Reads what changed after a place in the log, as it is now. At least one step of the log is
    /// taken, then more until there are about so many bytes. `None` when that place has been
    /// forgotten.
    async fn changed_after(
        &self,
        sequence: u64,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError>;

    /// How many records, entries and steps of the log there are, for telling how far a walk is.
    async fn row_count(&self) -> Result<u64, EngineError>;

    /// The newest place at which records of these kinds were changed, or a later one, as far as this
    /// process knows. Who follows only them need not read the log up to [`Engine::log_signal`], when
    /// that was read before.
    fn last_changed(&self, _kinds: &[Kind]) -> u64 {
        u64::MAX
    }

    /// The newest place in the change log, whichever process has put it there.
    async fn log_head(&self) -> Result<u64, EngineError>;

    /// The newest place in the change log that this process knows: the value changes after each
    /// commit, also of others, a moment behind [`Engine::log_head`].
    fn log_signal(&self) -> tokio::sync::watch::Receiver<u64>;

    /// How much room there is; none when the engine cannot tell, or needs none.
    fn free_space(&self) -> Option<FreeSpace> {
        None
    }

    /// What it counts of its own work; none where that tells nothing.
    fn registry(&self) -> Option<&Registry> {
        None
    }

    /// The time that all who use the store go by; none where each has its own.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }

    /// Returns once this process leads: of those that share the store one does, and what is to be done
    /// once is done by that. One that has the store to itself leads from the start.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind that the next one does not find.
    async fn lead(&self) {}

    /// Returns once this process does not lead any more.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn deposed(&self) {
        std::future::pending::<()>().await;
    }

    /// Returns when this process may not use the store any more, as those that share it have taken it
    /// for dead long ago. Of most engines never.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn forgotten(&self) {
        std::future::pending::<()>().await;
    }

    /// The processes that share the store and live; none where it is not shared.
    async fn nodes(&self) -> Result<Vec<NodeSeen>, EngineError> {
        Ok(Vec::new())
    }

    /// Whether the store has been within reach lately; none where it always is.
    fn within_reach(&self) -> Option<tokio::sync::watch::Receiver<bool>> {
        None
    }

    /// Waits until every process that shares the store knows of a place in the change log; whether that
    /// came in time.
    async fn followed_by_all(
        &self,
        _place: u64,
        _within: std::time::Duration,
    ) -> Result<bool, EngineError> {
        Ok(true)
    }

    /// Leaves those that share the store, so that nobody has to wait. Nothing is written through this
    /// engine after it.
    async fn close(&self) {}

    /// Whether a record's version is the place of the commit that made it, which lets both be held
    /// against each other.
    fn versions_are_places(&self) -> bool {
        false
    }

    /// Whether another process may use the same records meanwhile. Where none may, whatever an
    /// earlier process left under way has ended.
    fn is_shared(&self) -> bool;
}
