//! Entries by event in sorted runs. Their keys are random, so writing them in place would cost a
//! page of the tree each; a run is written sequentially. Eight runs are merged into one. All runs
//! are merged if half of their entries are tombstones or entries deleted by tombstones.
//!
//! A run is an immutable table with a filter of the events in it. An empty cell is a tombstone for
//! an entry. Tables that are not listed are left over from a crash while a run was being written.

use std::{ops::Bound, sync::Arc};

use redb::{
    CursorError, ReadTransaction, ReadableTable, TableDefinition, TableError, TableHandle,
    WriteTransaction,
};

use super::{
    cell::Table,
    error::Failure,
    filter::{self, Filter},
    memtable::Slot,
};

/// The list of runs by number: level, order, number of entries.
pub(super) const RUNS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("runs");
/// The number of tombstones by run number; absent for runs from an earlier version. A separate
/// table, because earlier versions cannot read longer rows in the list of runs.
const TOMBSTONES: TableDefinition<'static, u64, u64> = TableDefinition::new("tombstones");
const PREFIX: &str = "events.";

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: u64,
    /// Number of merges that the entries of the run went through.
    pub(super) level: u8,
    /// Age rank: higher is newer. For equal keys, the newer run wins.
    pub(super) order: u64,
    pub(super) count: u64,
    pub(super) tombstones: u64,
    pub(super) filter: Filter,
}

pub(super) fn run_name(id: u64) -> String {
    format!("{PREFIX}{id}")
}

pub(super) fn run_table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

/// A filter has its own table because it is large, and a write would include all rows stored next
/// to it.
fn filter_name(id: u64) -> String {
    format!("{PREFIX}{id}.filter")
}

fn filter_table(name: &str) -> TableDefinition<'_, (), &'static [u8]> {
    TableDefinition::new(name)
}

impl Run {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.level];
        bytes.extend_from_slice(&self.order.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes
    }

    fn decode(id: u64, bytes: &[u8], tombstones: u64, filter: &[u8]) -> Option<Self> {
        let (level, rest) = bytes.split_first()?;
        let (order, rest) = rest.split_first_chunk()?;
        Some(Self {
            id,
            level: *level,
            order: u64::from_be_bytes(*order),
            count: u64::from_be_bytes(rest.try_into().ok()?),
            tombstones,
            filter: Filter::from_bytes(filter)?,
        })
    }

    pub(super) fn add_to_list(&self, transaction: &WriteTransaction) -> Result<(), Failure> {
        let name = filter_name(self.id);
        let mut filter = transaction.open_table(filter_table(&name))?;
        filter.insert((), self.filter.to_bytes().as_slice())?;
        let mut list = transaction.open_table(RUNS)?;
        list.insert(self.id, self.encode().as_slice())?;
        transaction
            .open_table(TOMBSTONES)?
            .insert(self.id, self.tombstones)?;
        Ok(())
    }
}

pub(super) fn remove_from_list(transaction: &WriteTransaction, ids: &[u64]) -> Result<(), Failure> {
    let mut list = transaction.open_table(RUNS)?;
    let mut tombstones = transaction.open_table(TOMBSTONES)?;
    for id in ids {
        list.remove(id)?;
        tombstones.remove(id)?;
    }
    Ok(())
}

fn read_run(transaction: &ReadTransaction, id: u64, bytes: &[u8]) -> Result<Run, Failure> {
    let tombstones = match transaction.open_table(TOMBSTONES) {
        Ok(tombstones) => tombstones.get(id)?.map_or(0, |count| count.value()),
        Err(TableError::TableDoesNotExist(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    let name = filter_name(id);
    let filter = transaction.open_table(filter_table(&name))?;
    let filter = filter.get(())?.ok_or_else(damaged_run)?;
    Run::decode(id, bytes, tombstones, filter.value()).ok_or_else(damaged_run)
}

/// Reads the list of runs, the newest first, reusing those already known.
pub(super) fn read_runs(
    transaction: &ReadTransaction,
    known: &[Arc<Run>],
) -> Result<Vec<(Arc<Run>, Table)>, Failure> {
    let list = match transaction.open_table(RUNS) {
        Ok(list) => list,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut runs = Vec::new();
    for row in list.iter()? {
        let (id, bytes) = row?;
        let id = id.value();
        let run = match known.iter().find(|run| run.id == id) {
            Some(run) => Arc::clone(run),
            None => Arc::new(read_run(transaction, id, bytes.value())?),
        };
        let entries = transaction.open_table(run_table(&run_name(id)))?;
        runs.push((run, entries));
    }
    runs.sort_by_key(|(run, _)| std::cmp::Reverse(run.order));
    Ok(runs)
}

fn damaged_run() -> Failure {
    Failure::File(redb::Error::Corrupted(
        "the list of runs is unreadable".into(),
    ))
}

/// Deletes the tables that are not listed. Returns the first unused number.
pub(super) fn delete_unlisted(transaction: &WriteTransaction) -> Result<u64, Failure> {
    let (mut named, mut free) = (Vec::new(), 1);
    for row in transaction.open_table(RUNS)?.iter()? {
        let id = row?.0.value();
        free = free.max(id + 1);
        named.extend([run_name(id), filter_name(id)]);
    }
    let tables = transaction.list_tables()?;
    let tables = tables.map(|table| table.name().to_owned());
    let unnamed = tables.filter(|name| name.starts_with(PREFIX) && !named.contains(name));
    for name in unnamed.collect::<Vec<_>>() {
        transaction.delete_table(run_table(&name))?;
    }
    Ok(free)
}

pub(super) fn delete_run(transaction: &WriteTransaction, id: u64) -> Result<(), Failure> {
    transaction.delete_table(run_table(&run_name(id)))?;
    transaction.delete_table(filter_table(&filter_name(id)))?;
    Ok(())
}

pub(super) fn write_run<'a>(
    transaction: &WriteTransaction,
    id: u64,
    entries: impl Iterator<Item = (&'a [u8], Slot<'a>)> + Clone,
) -> Result<(), Failure> {
    let count = entries.clone().count() as u64;
    if count == 0 {
        return Ok(());
    }
    let mut filter = Filter::for_events(count);
    let mut tombstones = 0;
    {
        let name = run_name(id);
        let mut into = transaction.open_table(run_table(&name))?;
        let mut cursor = into.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
        for (key, slot) in entries {
            filter.add(filter::event_prefix(key));
            tombstones += u64::from(slot.is_none());
            let put = cursor.insert_before(key, slot.unwrap_or_default());
            put.map_err(cursor_failure)?;
        }
        cursor.close()?;
    }
    let run = Run {
        id,
        level: 0,
        order: id,
        count,
        tombstones,
        filter,
    };
    run.add_to_list(transaction)
}

pub(super) fn cursor_failure(error: CursorError) -> Failure {
    match error {
        CursorError::Storage(error) => error.into(),
        other => {
            let why = format!("the rows of the store are out of order: {other}");
            Failure::File(redb::Error::Corrupted(why))
        }
    }
}
