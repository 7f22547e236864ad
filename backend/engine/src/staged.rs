//! An engine on top of another engine that buffers writes, to be applied as one set of changes.
//! This allows operations that each write one resource to be committed together.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Engine,
    change::{Action, ApplyResult, Change, ChangeSet, Entry, Expect, Lane, add_numbers, add_to},
    error::EngineError,
    index::Index,
    kind::Kind,
    log::{Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

/// An engine that buffers changes to an engine that it only reads. Reads see the buffered changes
/// as if they were applied.
#[derive(Debug)]
pub struct StagedEngine {
    base: Arc<dyn Engine>,
    /// The newest position in the base's log when this engine was created.
    from: LogPosition,
    staged: Mutex<StagedState>,
    head: watch::Sender<LogPosition>,
}

#[derive(Debug, Default)]
struct StagedState {
    records: BTreeMap<(u8, Vec<u8>), StagedRecord>,
    /// Entries that differ from the base. Removed entries are `None`.
    entries: HashMap<Index, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    log: Vec<LogStep>,
    /// The version of the newest change; higher than any in the base.
    version: u64,
}

#[derive(Debug)]
struct StagedRecord {
    /// The first change, whose expectation applies to the base.
    first: Change,
    /// The current record; `None` if it is deleted.
    row: Option<Row>,
    is_written: bool,
    /// Counters to add, as long as there are no other changes.
    added: Vec<i64>,
    remove: BTreeSet<Entry>,
    add: BTreeSet<Entry>,
}

impl StagedEngine {
    pub async fn new(base: Arc<dyn Engine>) -> Result<Self, EngineError> {
        let from = base.log_head().await?;
        let staged = StagedState {
            version: u64::MAX / 2,
            ..StagedState::default()
        };
        Ok(Self {
            base,
            from,
            staged: Mutex::new(staged),
            head: watch::Sender::new(from),
        })
    }

    /// Returns the buffered changes, one per record, with the expected state of the base.
    pub fn take_changes(&self) -> Vec<Change> {
        let mut staged = self.lock_staged();
        let records = std::mem::take(&mut staged.records);
        staged.entries.clear();
        let changes = records.into_values().filter_map(|record| {
            let action = match (record.row, record.is_written) {
                _ if !record.added.is_empty() => Action::Add(record.added),
                (Some(row), true) => Action::Put(row.value),
                (Some(_), false) => Action::Touch,
                (None, _) if record.first.expect == Expect::Absent => return None,
                (None, _) => Action::Delete,
            };
            Some(Change {
                action,
                remove: record.remove.into_iter().collect(),
                add: record.add.into_iter().collect(),
                ..record.first
            })
        });
        changes.collect()
    }

    fn lock_staged(&self) -> MutexGuard<'_, StagedState> {
        // A set is checked before any change is buffered, so a panic leaves the state consistent.
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StagedState {
    /// # Errors
    ///
    /// Returns [`EngineError::Corrupt`] if counters are added to another value.
    fn stage_change(&mut self, change: Change, stored: Option<&Row>) -> Result<(), EngineError> {
        self.version += 1;
        let version = self.version;
        let key = change.key.clone();
        let record = self
            .records
            .entry((change.kind as u8, key.clone()))
            .or_insert_with(|| StagedRecord {
                first: change.clone(),
                row: stored.cloned(),
                is_written: false,
                added: Vec::new(),
                remove: BTreeSet::new(),
                add: BTreeSet::new(),
            });
        match change.action {
            Action::Put(value) => {
                record.row = Some(Row { version, value });
                record.is_written = true;
                record.added.clear();
            }
            Action::Delete => {
                record.row = None;
                record.added.clear();
            }
            Action::Add(numbers) => {
                let value = record.row.as_ref().map(|row| &*row.value);
                record.row = add_numbers(value, &numbers)?.map(|value| Row { version, value });
                if !record.is_written {
                    add_to(&mut record.added, &numbers);
                }
            }
            Action::Check => {}
            Action::Touch => {
                if let Some(row) = &mut record.row {
                    row.version = version;
                }
            }
        }
        for entry in change.remove {
            self.entries
                .entry(entry.index)
                .or_default()
                .insert(entry.key.clone(), None);
            if !record.add.remove(&entry) {
                record.remove.insert(entry);
            }
        }
        for entry in change.add {
            self.entries
                .entry(entry.index)
                .or_default()
                .insert(entry.key.clone(), Some(key.clone()));
            if !record.remove.remove(&entry) {
                record.add.insert(entry);
            }
        }
        Ok(())
    }
}

/// Overlays the differences on a walk over the base. `base` must contain `limit` rows plus one for
/// each key in `differs`, or all rows of the range.
fn overlay_changes<V>(
    base: Vec<(Vec<u8>, V)>,
    differs: BTreeMap<Vec<u8>, Option<V>>,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, V)> {
    let mut rows: BTreeMap<_, _> = base.into_iter().collect();
    for (key, value) in differs {
        match value {
            Some(value) => rows.insert(key, value),
            None => rows.remove(&key),
        };
    }
    match direction {
        Direction::Ascending => rows.into_iter().take(limit).collect(),
        Direction::Descending => rows.into_iter().rev().take(limit).collect(),
    }
}

fn contains_key(range: &Range, key: &[u8]) -> bool {
    key >= &*range.start && range.end.as_ref().is_none_or(|end| key < &**end)
}

#[async_trait]
impl Engine for StagedEngine {
    async fn apply(&self, _lane: Lane, set: ChangeSet) -> Result<ApplyResult, EngineError> {
        let changes = set.changes;
        let mut stored = Vec::with_capacity(changes.len());
        for change in &changes {
            let row = self.get(change.kind, std::slice::from_ref(&change.key));
            let row = row.await?.pop().flatten();
            let version = row.as_ref().map(|row| row.version);
            let is_expected = match change.expect {
                Expect::Absent => version.is_none(),
                Expect::Version(expected) => version == Some(expected),
                Expect::Any => true,
            };
            if !is_expected {
                return Err(EngineError::Conflict(vec![(
                    change.kind,
                    change.key.clone(),
                )]));
            }
            if let Action::Add(numbers) = &change.action {
                add_numbers(row.as_ref().map(|row| &*row.value), numbers)?;
            }
            stored.push(row);
        }
        let mut staged = self.lock_staged();
        let logged = changes.iter().filter(|change| change.is_logged);
        let changed = logged.map(|change| (change.kind, change.key.clone()));
        let newest = staged.log.last().map_or(self.from, |it| it.position);
        let position = newest.next();
        let logged = LogStep {
            position,
            changed: changed.collect(),
        };
        staged.log.push(logged);
        // Removals come first, so that an entry can move from one record to another.
        let (going, coming): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .zip(&stored)
            .partition(|(change, _)| change.action == Action::Delete);
        for (change, row) in going.into_iter().chain(coming) {
            staged.stage_change(change, row.as_ref())?;
        }
        let version = staged.version;
        drop(staged);
        self.head.send_replace(position);
        Ok(ApplyResult { position, version })
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        let mut rows = self.base.get(kind, keys).await?;
        let staged = self.lock_staged();
        for (row, key) in rows.iter_mut().zip(keys) {
            if let Some(record) = staged.records.get(&(kind as u8, key.clone())) {
                row.clone_from(&record.row);
            }
        }
        Ok(rows)
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        let differs: BTreeMap<_, _> = {
            let staged = self.lock_staged();
            let records = staged.records.iter();
            let here = records
                .filter(|((number, key), _)| *number == kind as u8 && contains_key(&range, key))
                .map(|((_, key), record)| (key.clone(), record.row.clone()));
            here.collect()
        };
        let base = self
            .base
            .read_page(kind, range, direction, limit + differs.len());
        Ok(overlay_changes(base.await?, differs, direction, limit))
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            let differs: BTreeMap<_, _> = {
                let staged = self.lock_staged();
                let entries = staged.entries.get(&index).into_iter().flatten();
                let here = entries.filter(|(key, _)| contains_key(range, key));
                here.map(|(key, record)| (key.clone(), record.clone()))
                    .collect()
            };
            let more = limit + differs.len();
            let base = self.base.entries(index, range.clone(), direction, more);
            found.push(overlay_changes(base.await?, differs, direction, limit));
        }
        Ok(found)
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        let mut found = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            let range = Range::with_prefix(prefix);
            let mut last = self.entries(index, range, Direction::Descending, 1).await?;
            let Some((entry, key)) = last.pop() else {
                found.push(None);
                continue;
            };
            let row = self.get(index.kind(), std::slice::from_ref(&key)).await?;
            let row = row.into_iter().flatten().next();
            let row = row.ok_or_else(|| EngineError::dangling_entry(index))?;
            found.push(Some(IndexedRecord { entry, key, row }));
        }
        Ok(found)
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        if after < self.from {
            return Ok(None);
        }
        let staged = self.lock_staged();
        let known = usize::try_from(after.steps_since(self.from)).unwrap_or(usize::MAX);
        Ok(staged
            .log
            .get(known..)
            .map(|steps| steps.iter().take(limit).cloned().collect()))
    }

    /// Changes that are not applied yet have no followers.
    async fn changes_after(
        &self,
        _after: LogPosition,
        _bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        Ok(None)
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.base.row_count().await
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        Ok(*self.head.borrow())
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.head.subscribe()
    }

    fn is_shared(&self) -> bool {
        self.base.is_shared()
    }
}

#[cfg(test)]
mod tests;
