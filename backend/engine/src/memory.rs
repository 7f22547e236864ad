//! An engine without a disk: the reference for the other engines, used in tests.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Engine,
    change::{Action, ApplyResult, Change, ChangeSet, Entry, Expect, Lane, add_numbers},
    condition::{Condition, FreeSpace, ObservedCondition},
    error::EngineError,
    index::Index,
    kind::Kind,
    log::{ChangedRecord, DELTA_STEPS_MAX, Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexedRecord, Range, Row},
};

const LOG_LENGTH_MAX: usize = 100_000;
const VERSION_STEP: u64 = 3;

#[derive(Debug, Default)]
pub struct MemoryEngine {
    tables: Mutex<Tables>,
    head: watch::Sender<LogPosition>,
    is_shared: bool,
    space: Mutex<Option<FreeSpace>>,
    /// The failure that a test injects into every write.
    observed: ObservedCondition,
}

#[derive(Debug, Default)]
struct Tables {
    records: HashMap<Kind, BTreeMap<Vec<u8>, Row>>,
    indexes: HashMap<Index, BTreeMap<Vec<u8>, Vec<u8>>>,
    log: VecDeque<LogStep>,
    head: LogPosition,
    /// The newest version; deliberately different from log positions, so that mixing them up fails.
    version: u64,
    /// The newest position at which a definition changed.
    definitions: LogPosition,
}

impl MemoryEngine {
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty engine that claims to be shared with other processes.
    pub fn new_shared() -> Self {
        Self {
            is_shared: true,
            ..Self::default()
        }
    }

    pub fn set_free_space(&self, space: Option<FreeSpace>) {
        *self.space.lock().unwrap_or_else(PoisonError::into_inner) = space;
    }

    /// Makes every write fail with `error` from now on. `None` restores normal operation.
    pub fn fail_writes(&self, error: Option<&EngineError>) {
        match error {
            Some(error) => self.observed.record_failure(error),
            None => self.observed.record_success(),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A set is checked before any write, so a panic leaves the tables consistent.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn check(&self, set: &ChangeSet) -> Result<(), EngineError> {
        if set
            .rests_on
            .is_some_and(|position| position < self.definitions)
        {
            return Err(EngineError::conflict());
        }
        let changes = &set.changes;
        let (mut changed, mut added) = (HashSet::new(), HashSet::new());
        for change in changes {
            let is_new = changed.insert((change.kind, &change.key));
            if !is_new || !change.add.iter().all(|entry| added.insert(entry)) {
                return Err(EngineError::conflict());
            }
        }
        let mut contested = Vec::new();
        for change in changes {
            let rows = self.records.get(&change.kind);
            let version = rows.and_then(|rows| Some(rows.get(&change.key)?.version));
            let holds = match change.expect {
                Expect::Absent => version.is_none(),
                Expect::Version(expected) => version == Some(expected),
                Expect::Any => true,
            };
            if !holds {
                contested.push((change.kind, change.key.clone()));
            }
            if let Action::Add(numbers) = &change.action {
                let row = rows.and_then(|rows| rows.get(&change.key));
                add_numbers(row.map(|row| &*row.value), numbers)?;
            }
        }
        if !contested.is_empty() {
            return Err(EngineError::Conflict(contested));
        }
        let target = |entry: &Entry| self.indexes.get(&entry.index)?.get(&entry.key);
        let mut removed = HashSet::new();
        for change in changes {
            for entry in &change.remove {
                if target(entry) != Some(&change.key) || !removed.insert(entry) {
                    return Err(EngineError::missing_entry(entry.index));
                }
            }
        }
        for change in changes {
            let mut added_entries = change.add.iter().filter(|entry| !removed.contains(entry));
            if added_entries.any(|entry| target(entry).is_some()) {
                contested.push((change.kind, change.key.clone()));
            }
        }
        match contested.as_slice() {
            [] => Ok(()),
            _ => Err(EngineError::Conflict(contested)),
        }
    }

    fn log_after(&self, after: LogPosition, limit: usize) -> Option<Vec<LogStep>> {
        let oldest = self.log.front();
        let oldest = oldest.map_or(self.head.next(), |logged| logged.position);
        if after.next() < oldest || after > self.head {
            return None;
        }
        let first = self.log.partition_point(|logged| logged.position <= after);
        Some(self.log.range(first..).take(limit).cloned().collect())
    }

    fn write(&mut self, version: u64, change: &Change) {
        let rows = self.records.entry(change.kind).or_default();
        match &change.action {
            Action::Put(value) => {
                rows.insert(
                    change.key.clone(),
                    Row {
                        version,
                        value: value.clone(),
                    },
                );
            }
            Action::Delete => {
                rows.remove(&change.key);
            }
            Action::Touch => {
                if let Some(row) = rows.get_mut(&change.key) {
                    row.version = version;
                }
            }
            Action::Check => {}
            Action::Add(numbers) => {
                let row = rows.get(&change.key);
                let sum = add_numbers(row.map(|row| &*row.value), numbers);
                match sum.expect("it was checked to be numbers") {
                    Some(value) => rows.insert(change.key.clone(), Row { version, value }),
                    None => rows.remove(&change.key),
                };
            }
        }
        for entry in &change.add {
            self.indexes
                .entry(entry.index)
                .or_default()
                .insert(entry.key.clone(), change.key.clone());
        }
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    fn free_space(&self) -> Option<FreeSpace> {
        *self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn condition(&self) -> Condition {
        let shown = self.observed.condition();
        shown.unwrap_or_else(|| Condition::from_free_space(self.free_space()))
    }

    async fn apply(&self, lane: Lane, set: ChangeSet) -> Result<ApplyResult, EngineError> {
        if let Some(condition) = self.observed.condition() {
            return Err(EngineError::Unavailable(condition.to_string()));
        }
        let left_for = self.free_space().map(FreeSpace::available_share);
        if left_for.is_some_and(|it| set.is_rejected_for_space(lane, it)) {
            return Err(EngineError::Full("not enough free space".into()));
        }
        let mut tables = self.tables();
        tables.check(&set)?;
        let changes = set.changes;
        let position = tables.head.next();
        tables.version += VERSION_STEP;
        let version = tables.version;
        for entry in changes.iter().flat_map(|change| &change.remove) {
            tables
                .indexes
                .entry(entry.index)
                .or_default()
                .remove(&entry.key);
        }
        for change in &changes {
            tables.write(version, change);
            if change.defines {
                tables.definitions = position;
            }
        }
        let logged = changes
            .into_iter()
            .filter(|change| change.is_logged && change.action != Action::Check)
            .map(|change| (change.kind, change.key))
            .collect();
        tables.log.push_back(LogStep {
            position,
            changed: logged,
        });
        if tables.log.len() > LOG_LENGTH_MAX {
            tables.log.pop_front();
        }
        tables.head = position;
        self.head.send_replace(position);
        Ok(ApplyResult { position, version })
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        let tables = self.tables();
        let rows = tables.records.get(&kind);
        Ok(keys
            .iter()
            .map(|key| rows.and_then(|rows| rows.get(key)).cloned())
            .collect())
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        let tables = self.tables();
        Ok(tables
            .records
            .get(&kind)
            .map_or_else(Vec::new, |rows| walk_rows(rows, range, direction, limit)))
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<(Vec<u8>, Vec<u8>)>>, EngineError> {
        let tables = self.tables();
        let nothing = BTreeMap::new();
        let entries = tables.indexes.get(&index).unwrap_or(&nothing);
        let ranges = ranges.iter().cloned();
        Ok(ranges
            .map(|range| walk_rows(entries, range, direction, limit))
            .collect())
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        let tables = self.tables();
        let nothing = BTreeMap::new();
        let entries = tables.indexes.get(&index).unwrap_or(&nothing);
        let last = |prefix: &Vec<u8>| {
            let last = walk_rows(
                entries,
                Range::with_prefix(prefix),
                Direction::Descending,
                1,
            )
            .pop();
            let Some((entry, key)) = last else {
                return Ok(None);
            };
            let rows = tables.records.get(&index.kind());
            let row = rows.and_then(|rows| rows.get(&key)).cloned();
            let row = row.ok_or_else(|| EngineError::dangling_entry(index))?;
            Ok(Some(IndexedRecord { entry, key, row }))
        };
        prefixes.iter().map(last).collect()
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        Ok(self.tables().log_after(after, limit))
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        let tables = self.tables();
        let Some(steps) = tables.log_after(after, DELTA_STEPS_MAX) else {
            return Ok(None);
        };
        let (named, through) = Delta::changed_records(steps, bytes_max);
        let through = through.unwrap_or(after);
        let all = |kind| tables.records.get(&kind).into_iter().flatten();
        let changed = named.into_iter().filter_map(|(number, key)| {
            let kind = Kind::from_number(number)?;
            let rows = tables.records.get(&kind);
            let attempts = tables.records.get(&Kind::Attempt);
            let attempts = attempts.filter(|_| kind == Kind::Delivery).into_iter();
            let attempts = attempts.flat_map(|rows| rows.range(key.clone()..));
            let attempts = attempts.take_while(|(attempt, _)| attempt.starts_with(&key));
            Some(ChangedRecord {
                kind,
                row: rows.and_then(|rows| rows.get(&key)).cloned(),
                attempts: attempts.map(|(_, row)| row.clone()).collect(),
                key,
            })
        });
        let mut delta = Delta {
            through,
            head: tables.head,
            changed: changed.collect(),
            unlogged: Vec::new(),
        };
        if delta.through == delta.head {
            for kind in Delta::UNLOGGED {
                let rows = all(kind).map(|(key, row)| (kind, key.clone(), row.clone()));
                delta.unlogged.extend(rows);
            }
        }
        Ok(Some(delta))
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        let tables = self.tables();
        let records: usize = tables.records.values().map(BTreeMap::len).sum();
        let entries: usize = tables.indexes.values().map(BTreeMap::len).sum();
        Ok((records + entries + tables.log.len()) as u64)
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        Ok(self.tables().head)
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.head.subscribe()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }
}

fn walk_rows<V: Clone>(
    rows: &BTreeMap<Vec<u8>, V>,
    range: Range,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, V)> {
    if range.end.as_ref().is_some_and(|end| *end <= range.start) {
        return Vec::new();
    }
    let end = range.end.map_or(Bound::Unbounded, Bound::Excluded);
    let found = rows.range((Bound::Included(range.start), end));
    let copy = |(key, value): (&Vec<u8>, &V)| (key.clone(), value.clone());
    match direction {
        Direction::Ascending => found.take(limit).map(copy).collect(),
        Direction::Descending => found.rev().take(limit).map(copy).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryEngine;
    use crate::conformance;

    conformance!((MemoryEngine::new(), ()));
}
