//! What is written: sets of changes, each of which names the version it expects.

use super::{
    fault::EngineError, index::Index, kind::Kind, ownership::Claim, position::LogPosition,
};

/// Which queue a set of changes waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Small changes that people wait for; served first.
    Admin,
    /// Intake.
    Bulk,
    /// What only the process that leads does: it is refused to one that does not any more. Where no
    /// other may use the store, the service's own changes, of which a commit takes only a little.
    Leader,
    /// What only the owner of something does: see [`Set::claims`]. Where no other may use the store, the
    /// same as [`Lane::Leader`].
    Owner,
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
    /// Whether it adds to the store, which is refused when the disk runs short: see [`Set::space`].
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

/// The part of the free space that a set which adds to the store may use. Each includes the parts before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskShare {
    /// Only what exceeds the floor: for events of senders.
    AboveFloor,
    /// The reserve below the floor, down to a quarter of it: for the service's own work.
    #[default]
    Reserve,
    /// All that is left: for events about the store itself. [`Lane::Admin`] may always use it.
    All,
}

/// Changes that are applied together, each of another record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// The changes.
    pub changes: Vec<Change>,
    /// The free space that it may use if one of them [`Change::adds`].
    pub space: DiskShare,
    /// The position in the change log up to which was read what the changes were decided by. The set
    /// conflicts when a change that [`Change::defines`] was committed after it; none rests on
    /// nothing.
    pub rests_on: Option<LogPosition>,
    /// What this process has to own when the set is applied; else it is refused. Where no other may use the
    /// store, it does.
    pub claims: Vec<Claim>,
}

impl Set {
    /// Whether it is refused in a lane when the space is only left for some sets.
    pub(super) fn is_refused(&self, lane: Lane, left_for: DiskShare) -> bool {
        let adds = |change: &Change| change.adds && change.action != Action::Check;
        lane != Lane::Admin && self.space < left_for && self.changes.iter().any(adds)
    }
}

impl From<Vec<Change>> for Set {
    fn from(changes: Vec<Change>) -> Self {
        Self {
            changes,
            ..Self::default()
        }
    }
}

/// What a set of changes became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The commit's position in the change log; other sets may be in the same commit.
    pub position: LogPosition,
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
pub(super) fn sum(value: Option<&[u8]>, add: &[i64]) -> Result<Option<Vec<u8>>, EngineError> {
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
