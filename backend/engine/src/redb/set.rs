//! Sets of changes as passed to the writer. The caller encodes all parts that can be encoded in
//! advance.

use super::{
    batch::{Batch, Span},
    cell::{self, Space},
    log::Names,
};
use crate::{
    change::{Action, Change, DiskShare, Expect, Lane},
    error::RecordName,
    index::Index,
    position::LogPosition,
};

#[derive(Debug)]
pub(super) struct EncodedSet {
    /// Expectations of changes, by key. Records that must be new are in `fresh`.
    pub(super) expected: Vec<ExpectedRow>,
    pub(super) removed: Vec<RemovedRow>,
    /// Rows that must not exist, by key.
    pub(super) fresh: Vec<NewRow>,
    /// Whether the set changes a record twice, or adds an entry twice.
    pub(super) has_duplicate_changes: bool,
    rows: Batch,
    /// Locations of the records, which are sealed with their version.
    records: Vec<Span>,
    pub(super) names: Names,
    /// The changed kinds, as a bit set of their numbers.
    pub(super) kinds: u32,
    /// See [`crate::change::ChangeSet::rests_on`].
    pub(super) rests_on: Option<LogPosition>,
    pub(super) defines: bool,
    pub(super) space: DiskShare,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct ExpectedRow {
    pub(super) key: Vec<u8>,
    pub(super) expect: Expect,
    pub(super) becomes: ValueEffect,
}

/// The effect of a set on a value that it has not read.
#[derive(Debug)]
pub(super) enum ValueEffect {
    /// Replaces, removes, or only checks the value.
    Overwrite,
    /// Keeps the value under a new version.
    Same,
    Sum(Vec<i64>),
}

/// The row of a record and its value, computed from the previous one; `None` if it is deleted.
pub(super) type ComputedRow = (Vec<u8>, Option<Vec<u8>>);

#[derive(Debug)]
pub(super) struct RemovedRow {
    pub(super) index: Index,
    pub(super) key: Vec<u8>,
    pub(super) target: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NewRow {
    row: Span,
    pub(super) is_record: bool,
    /// Whether the entry cannot exist, because it ends with the key of a new record.
    pub(super) is_own: bool,
}

impl EncodedSet {
    pub(super) fn new(lane: Lane, set: &crate::change::ChangeSet) -> Self {
        let (changes, rests_on) = (&set.changes[..], set.rests_on);
        let all = [DiskShare::AboveFloor, DiskShare::Reserve, DiskShare::All];
        let space = all
            .into_iter()
            .rev()
            .find(|it| !set.is_rejected_for_space(lane, *it));
        let bytes: usize = changes.iter().map(change_bytes).sum();
        let mut set = Self {
            expected: Vec::new(),
            removed: Vec::new(),
            fresh: Vec::new(),
            has_duplicate_changes: false,
            rows: Batch::with_capacity(bytes),
            records: Vec::new(),
            names: Names::default(),
            kinds: 0,
            rests_on,
            defines: false,
            space: space.unwrap_or(DiskShare::AboveFloor),
            bytes,
        };
        for change in changes {
            set.add_change(change);
        }
        // Removals are checked first, so that an entry may be removed and added.
        set.removed.sort_by(|one, other| one.key.cmp(&other.key));
        for removed in &set.removed {
            set.rows.add_removal(&removed.key);
        }
        for change in changes {
            for entry in &change.add {
                let row = set
                    .rows
                    .add_entry(Space::Entries(entry.index), &entry.key, &change.key);
                let is_own = is_insert(change)
                    && entry.index.ends_with_record()
                    && entry.key.ends_with(&change.key);
                set.fresh.push(NewRow {
                    row,
                    is_record: false,
                    is_own,
                });
            }
        }
        set.sort();
        set
    }

    fn add_change(&mut self, change: &Change) {
        if change.action != Action::Check {
            self.defines |= change.defines;
            self.kinds |= 1 << (change.kind as u32);
            if change.is_logged {
                self.names.add(change.kind, &change.key);
            }
        }
        let space = Space::Records(change.kind);
        for entry in &change.remove {
            self.removed.push(RemovedRow {
                index: entry.index,
                key: Space::Entries(entry.index).key(&entry.key),
                target: change.key.clone(),
            });
        }
        let is_new = is_insert(change);
        match &change.action {
            Action::Put(value) => {
                let row = self.rows.record(space, &change.key, value, is_new);
                self.records.push(row);
                if is_new {
                    self.fresh.push(NewRow {
                        row,
                        is_record: true,
                        is_own: false,
                    });
                    return;
                }
            }
            Action::Delete => self.rows.add_removal(&space.key(&change.key)),
            Action::Touch | Action::Check | Action::Add(_) => {}
        }
        self.expected.push(ExpectedRow {
            key: space.key(&change.key),
            expect: change.expect,
            becomes: match &change.action {
                Action::Touch => ValueEffect::Same,
                Action::Add(numbers) => ValueEffect::Sum(numbers.clone()),
                Action::Put(_) | Action::Delete | Action::Check => ValueEffect::Overwrite,
            },
        });
    }

    /// Sorts by row key, so that neighbours share cached pages.
    fn sort(&mut self) {
        let rows = &self.rows;
        self.fresh
            .sort_by(|one, other| rows.key(one.row).cmp(rows.key(other.row)));
        self.expected.sort_by(|one, other| one.key.cmp(&other.key));
        let twins = |pair: &[NewRow]| rows.key(pair[0].row) == rows.key(pair[1].row);
        let is_also_fresh = |expected: &ExpectedRow| {
            let found = self
                .fresh
                .binary_search_by(|fresh| rows.key(fresh.row).cmp(&expected.key));
            found.is_ok()
        };
        self.has_duplicate_changes = self.fresh.windows(2).any(twins)
            || self
                .expected
                .windows(2)
                .any(|pair| pair[0].key == pair[1].key)
            || self.expected.iter().any(is_also_fresh);
    }

    pub(super) fn key(&self, fresh: NewRow) -> &[u8] {
        self.rows.key(fresh.row)
    }

    /// Returns the record that a row contains or points to.
    pub(super) fn record(&self, fresh: NewRow) -> Option<RecordName> {
        let (key, cell) = (self.rows.key(fresh.row), self.rows.cell(fresh.row));
        if fresh.is_record {
            return Space::record(key);
        }
        let target = cell::open_cell(key, cell).ok()?;
        Some((Space::index(key)?.kind(), target.to_vec()))
    }

    pub(super) fn is_removal(&self, key: &[u8]) -> bool {
        let found = self
            .removed
            .binary_search_by(|it| it.key.as_slice().cmp(key));
        found.is_ok()
    }

    /// Returns the final rows, including those computed from previous values.
    pub(super) fn finish(&mut self, version: u64, following: &[ComputedRow]) -> Batch {
        let mut rows = std::mem::take(&mut self.rows);
        for record in &self.records {
            rows.seal(*record, version);
        }
        for (key, value) in following {
            match value {
                Some(value) => rows.add_touched(key, version, value),
                None => rows.add_removal(key),
            }
        }
        rows
    }
}

fn is_insert(change: &Change) -> bool {
    matches!(change.action, Action::Put(_)) && change.expect == Expect::Absent
}

fn change_bytes(change: &Change) -> usize {
    let value_bytes = match &change.action {
        Action::Put(value) => value.len(),
        Action::Add(numbers) => size_of_val(&**numbers),
        Action::Delete | Action::Touch | Action::Check => 0,
    };
    let entries = change.add.iter().chain(&change.remove);
    let entries_bytes: usize = entries
        .map(|entry| entry.key.len() + change.key.len() + ROW_BYTES)
        .sum();
    size_of::<Change>() + change.key.len() + value_bytes + entries_bytes
}

/// Size of a row in addition to its key and value: lengths, checksum, space.
const ROW_BYTES: usize = 16;
