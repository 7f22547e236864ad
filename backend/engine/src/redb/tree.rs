//! The tree as it was after its last commit: what all readers of a moment share.

use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::{
    cell::{ROWS, Space, Table},
    fault::Fault,
    filter,
    legacy_entries::LegacyEntries,
    runs::{self, Run},
};
use crate::kind::Kind;

/// The tables of one commit. As long as it is held, pages that it sees are not used again, so it is
/// replaced after every commit.
pub(super) struct Tree {
    pub(super) rows: Table,
    /// Entries by event, the newest run first.
    pub(super) runs: Vec<(Arc<Run>, Table)>,
    /// Entries by event that an earlier version put among the other rows; none when there are none.
    old: Option<Arc<LegacyEntries>>,
    /// The last key of each kind of record, by its number; empty where there is no record.
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
    /// Opens the tables as they are now, with the runs that are known already.
    pub(super) fn read(
        database: &Database,
        known: &[Arc<Run>],
        old: &Arc<LegacyEntries>,
    ) -> Result<Self, Fault> {
        let transaction = database.begin_read()?;
        let rows = transaction.open_table(ROWS)?;
        let runs = runs::read(&transaction, known)?;
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

    /// Whether a key is surely not among the rows: a record beyond the last one of its kind.
    pub(super) fn lacks(&self, key: &[u8]) -> bool {
        let last = key
            .first()
            .and_then(|kind| self.last_keys.get(usize::from(*kind)));
        last.is_some_and(|last| key > last.as_slice())
    }

    /// Whether there may be entries of an event among the rows; of any, when none is named.
    pub(super) fn may_have_old(&self, event: Option<u128>) -> bool {
        let Some(old) = &self.old else { return false };
        event.is_none_or(|event| old.may_have(event))
    }

    /// The entries of the rows that no one made a filter of yet.
    pub(super) fn unfiltered(&self) -> Option<&Arc<LegacyEntries>> {
        self.old.as_ref().filter(|old| !old.is_filtered())
    }

    /// How many rows there are about.
    pub(super) fn row_count(&self) -> Result<u64, Fault> {
        let in_runs: u64 = self.runs.iter().map(|(run, _)| run.count).sum();
        Ok(self.rows.len()? + in_runs)
    }

    /// The runs without their tables.
    pub(super) fn run_list(&self) -> Vec<Arc<Run>> {
        self.runs.iter().map(|(run, _)| Arc::clone(run)).collect()
    }
}
