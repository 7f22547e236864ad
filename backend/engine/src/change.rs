//! Sets of changes, each of which expects a version of its record.

use super::{
    error::EngineError, index::Index, kind::Kind, ownership::Claim, position::LogPosition,
};

/// The queue that a set of changes waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Small interactive changes; served first.
    Admin,
    /// Intake.
    Bulk,
    /// Work of the leader; refused unless this process leads. In a store that is not shared, this
    /// lane is for the service's own changes, which are limited to a small part of each commit.
    Leader,
    /// Work of the owner of a slot; see [`ChangeSet::claims`]. In a store that is not shared, the
    /// same as [`Lane::Leader`].
    Owner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Version(u64),
    /// Any state; such a change never conflicts.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub index: Index,
    /// The sort key; unique in the index.
    pub key: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub key: Vec<u8>,
    /// The precondition; if it fails, the whole set is rejected.
    pub expect: Expect,
    pub action: Action,
    /// Index entries to remove; each must point to this record.
    pub remove: Vec<Entry>,
    /// Index entries to add. The set conflicts if an entry exists and the set does not remove it.
    pub add: Vec<Entry>,
    pub is_logged: bool,
    /// Whether the change adds data. Such changes are refused when disk space is low; see
    /// [`ChangeSet::space`].
    pub adds: bool,
    /// Whether the change is to a definition that decisions depend on; see [`ChangeSet::rests_on`].
    pub defines: bool,
}

impl Change {
    /// Returns a logged change without index entries.
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

/// The part of the free space available to a set that adds data. Each variant includes the ones
/// before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskShare {
    /// Only the space above the floor: for events from senders.
    AboveFloor,
    /// Also three quarters of the reserve below the floor: for the service's own work.
    #[default]
    Reserve,
    /// All remaining space: for events about the store itself. [`Lane::Admin`] may always use it.
    All,
}

/// Changes applied atomically, each to a different record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSet {
    pub changes: Vec<Change>,
    /// The free space available to the set if it adds data; see [`Change::adds`].
    pub space: DiskShare,
    /// The change log position up to which the reads behind this set were current. The set
    /// conflicts if a definition changed after it; see [`Change::defines`]. `None` disables the
    /// check.
    pub rests_on: Option<LogPosition>,
    /// Slots that this process must own when the set is applied; otherwise the set is refused. A
    /// process with its own store owns all slots.
    pub claims: Vec<Claim>,
}

impl ChangeSet {
    /// Whether the set is refused in `lane` when there is space only for sets with the share
    /// `left_for` or a larger one.
    pub(super) fn is_rejected_for_space(&self, lane: Lane, left_for: DiskShare) -> bool {
        let adds = |change: &Change| change.adds && change.action != Action::Check;
        lane != Lane::Admin && self.space < left_for && self.changes.iter().any(adds)
    }
}

impl From<Vec<Change>> for ChangeSet {
    fn from(changes: Vec<Change>) -> Self {
        Self {
            changes,
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyResult {
    /// The commit's position in the change log; a commit can contain several sets.
    pub position: LogPosition,
    /// The version of every record that the set stored or touched.
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Put(Vec<u8>),
    Delete,
    /// Raise the version but keep the value, so that decisions based on the old version conflict.
    Touch,
    /// Do not write; only check the expectation.
    Check,
    /// Add to the record's counters element by element. Missing counters count as zero, and a
    /// record left with only zeros is deleted.
    Add(Vec<i64>),
}

pub fn decode_numbers(value: &[u8]) -> Result<Vec<i64>, EngineError> {
    let (numbers, rest) = value.as_chunks();
    if !rest.is_empty() {
        return Err(EngineError::Corrupt("records contain no numbers".into()));
    }
    Ok(numbers.iter().copied().map(i64::from_be_bytes).collect())
}

/// Returns the value that [`Action::Add`] produces, or `None` if the record is deleted.
///
/// # Errors
///
/// Returns [`EngineError::Corrupt`] if the value is not a list of numbers.
pub(super) fn add_numbers(
    value: Option<&[u8]>,
    add: &[i64],
) -> Result<Option<Vec<u8>>, EngineError> {
    let mut sum = value.map(decode_numbers).transpose()?.unwrap_or_default();
    add_to(&mut sum, add);
    let is_left = sum.iter().any(|number| *number != 0);
    Ok(is_left.then(|| sum.into_iter().flat_map(i64::to_be_bytes).collect()))
}

pub fn add_to(sum: &mut Vec<i64>, add: &[i64]) {
    if sum.len() < add.len() {
        sum.resize(add.len(), 0);
    }
    for (number, add) in sum.iter_mut().zip(add) {
        *number = number.saturating_add(*add);
    }
}
