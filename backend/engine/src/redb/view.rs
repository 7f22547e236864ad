//! A reader's view: in-memory rows over runs over the tree. The newest row wins.

use std::{ops::Bound, sync::Arc};

use redb::ReadableTable;

use super::{
    closed::ClosedReason, error::Failure, filter, layers::Layers, memtable::Memtable, merge::Merge,
    tree::Tree,
};
use crate::read::Direction;

/// A callback for the key and cell of each row; returns whether to continue.
pub(super) type VisitRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Failure> + 'a;

pub(super) type KeyAndCell = (Vec<u8>, Vec<u8>);

pub(super) trait Rows {
    fn get<T>(
        &self,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure>;

    /// Visits the rows from `start` (inclusive) to `end` (exclusive).
    fn walk_range(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Failure>;

    /// Returns the last row from `start` (inclusive) to `end` (exclusive).
    fn last_row(&self, start: &[u8], end: &[u8]) -> Result<Option<KeyAndCell>, Failure> {
        let mut found = None;
        self.walk_range(start, end, Direction::Descending, &mut |key, cell| {
            found = Some((key.to_vec(), cell.to_vec()));
            Ok(false)
        })?;
        Ok(found)
    }
}

pub(super) struct TableRows<'a, T>(pub(super) &'a T);

impl<T: ReadableTable<&'static [u8], &'static [u8]>> Rows for TableRows<'_, T> {
    fn get<U>(
        &self,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> Result<U, Failure>,
    ) -> Result<Option<U>, Failure> {
        let cell = self.0.get(key)?;
        cell.map(|cell| take(cell.value())).transpose()
    }

    fn walk_range(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Failure> {
        if end <= start {
            return Ok(());
        }
        let mut found = self.0.range(start..end)?;
        loop {
            let next = match direction {
                Direction::Ascending => found.next(),
                Direction::Descending => found.next_back(),
            };
            match next.transpose()? {
                Some((key, cell)) if visit(key.value(), cell.value())? => {}
                _ => return Ok(()),
            }
        }
    }

    fn last_row(&self, start: &[u8], end: &[u8]) -> Result<Option<KeyAndCell>, Failure> {
        let mut cursor = self.0.upper_bound(Bound::Excluded(end))?;
        let found = cursor.peek_prev()?;
        let found = found.map(|(key, cell)| (key.value().to_vec(), cell.value().to_vec()));
        Ok(found.filter(|(key, _)| key.as_slice() >= start))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) active: &'a Memtable,
    pub(super) moving: Option<&'a Memtable>,
    pub(super) tree: &'a Result<Arc<Tree>, ClosedReason>,
}

impl<'a> View<'a> {
    pub(super) fn from_layers(layers: &'a Layers) -> Self {
        Self::with_active(&layers.active, layers)
    }

    pub(super) fn with_active(active: &'a Memtable, layers: &'a Layers) -> Self {
        Self {
            active,
            moving: layers.moving.as_ref().map(|moving| &moving.memory),
            tree: &layers.tree,
        }
    }

    fn memtables(&self) -> impl Iterator<Item = &'a Memtable> {
        let memories = [Some(self.active), self.moving];
        memories.into_iter().flatten().filter(|it| !it.is_empty())
    }

    pub(super) fn row_count(&self) -> Result<u64, Failure> {
        let in_memory: usize = self.memtables().map(Memtable::row_count).sum();
        Ok(self.tree()?.row_count()? + in_memory as u64)
    }

    /// Returns the tree, which is only required for rows that are not in memory.
    pub(super) fn tree(&self) -> Result<&'a Tree, Failure> {
        self.tree
            .as_deref()
            .map_err(|closed| Failure::Closed(closed.clone()))
    }
}

fn is_in_runs(key: &[u8]) -> bool {
    filter::SPACE.contains_key(key)
}

impl Rows for View<'_> {
    fn get<T>(
        &self,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        for memory in self.memtables() {
            if let Some(slot) = memory.get(key) {
                return slot.map(take).transpose();
            }
        }
        let tree = self.tree()?;
        if is_in_runs(key) {
            let event = filter::event_prefix(key);
            let runs = tree.runs.iter();
            for (_, entries) in runs.filter(|(run, _)| run.filter.may_contain(event)) {
                if let Some(cell) = entries.get(key)? {
                    let cell = Some(cell.value()).filter(|cell| !cell.is_empty());
                    return cell.map(take).transpose();
                }
            }
            if !tree.may_have_legacy_entries(Some(event)) {
                return Ok(None);
            }
        } else if tree.is_certainly_absent(key) {
            return Ok(None);
        }
        TableRows(&tree.rows).get(key, take)
    }

    fn walk_range(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Failure> {
        if end <= start {
            return Ok(());
        }
        let mut merge = Merge::new(direction);
        for memory in self.memtables() {
            merge.add_memory(memory.iter_range(start, end, direction));
        }
        let tree = self.tree()?;
        let range = (Bound::Included(start), Bound::Excluded(end));
        let mut is_in_rows = true;
        if is_in_runs(start) {
            let event = filter::common_event(start, end);
            for (run, entries) in &tree.runs {
                if event.is_none_or(|event| run.filter.may_contain(event)) {
                    merge.add_table(entries, range)?;
                }
            }
            is_in_rows = tree.may_have_legacy_entries(event);
        }
        if is_in_rows && merge.is_empty() {
            return TableRows(&tree.rows).walk_range(start, end, direction, visit);
        }
        if is_in_rows {
            merge.add_table(&tree.rows, range)?;
        }
        while let Some(found) = merge.next()? {
            if let Some(cell) = found.cell()
                && !visit(found.key(), cell)?
            {
                break;
            }
        }
        Ok(())
    }
}
