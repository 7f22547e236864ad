//! The tree after its last commit, shared by all readers of a snapshot.

use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::{
    cell::{ROWS, Space, Table},
    error::Failure,
    filter,
    legacy_entries::LegacyEntries,
    runs::{self, Run},
};
use crate::kind::Kind;

/// The tables of one commit. While the tree is referenced, its pages cannot be reused, so the tree
/// is replaced after every commit.
pub(super) struct Tree {
    pub(super) rows: Table,
    /// Entries by event, the newest run first.
    pub(super) runs: Vec<(Arc<Run>, Table)>,
    /// Entries by event that an earlier version stored among the other rows; `None` if there are
    /// none.
    old: Option<Arc<LegacyEntries>>,
    /// The last record key of each kind, by number; empty if there are no records.
    last_keys: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Tree");
        shown
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// Opens the current tables, reusing known runs.
    pub(super) fn read(
        database: &Database,
        known: &[Arc<Run>],
        old: &Arc<LegacyEntries>,
    ) -> Result<Self, Failure> {
        let transaction = database.begin_read()?;
        let rows = transaction.open_table(ROWS)?;
        let runs = runs::read_runs(&transaction, known)?;
        let mut last_keys = vec![Vec::new()];
        for kind in Kind::ALL {
            let (start, end) = Space::Records(kind).bounds();
            let mut found = ReadableTable::range(&rows, start.as_slice()..end.as_slice())?;
            let last = found.next_back().transpose()?;
            last_keys.resize(kind as usize, Vec::new());
            last_keys.push(
                last.map(|(key, _)| key.value().to_vec())
                    .unwrap_or_default(),
            );
        }
        let (start, end) = filter::SPACE.bounds();
        let mut entries = ReadableTable::range(&rows, start.as_slice()..end.as_slice())?;
        let has_old = entries.next().transpose()?.is_some();
        drop(entries);
        Ok(Self {
            rows,
            runs,
            old: has_old.then(|| Arc::clone(old)),
            last_keys,
        })
    }

    /// Whether a key is definitely absent, because it is after the last record of its kind.
    pub(super) fn is_certainly_absent(&self, key: &[u8]) -> bool {
        let last = key
            .first()
            .and_then(|kind| self.last_keys.get(usize::from(*kind)));
        last.is_some_and(|last| key > last.as_slice())
    }

    /// Whether there may be entries of an event, or of any event, among the other rows.
    pub(super) fn may_have_legacy_entries(&self, event: Option<u128>) -> bool {
        let Some(old) = &self.old else { return false };
        event.is_none_or(|event| old.may_contain(event))
    }

    pub(super) fn unfiltered_entries(&self) -> Option<&Arc<LegacyEntries>> {
        self.old.as_ref().filter(|old| !old.is_filtered())
    }

    pub(super) fn row_count(&self) -> Result<u64, Failure> {
        let in_runs: u64 = self.runs.iter().map(|(run, _)| run.count).sum();
        Ok(self.rows.len()? + in_runs)
    }

    pub(super) fn run_list(&self) -> Vec<Arc<Run>> {
        self.runs.iter().map(|(run, _)| Arc::clone(run)).collect()
    }
}
