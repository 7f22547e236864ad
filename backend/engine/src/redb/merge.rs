//! Ordered merge of rows of several layers; for equal keys, the uppermost layer wins.

use std::ops::Bound;

use redb::{AccessGuard, ReadableTable};

use super::{
    cell::Table,
    error::Failure,
    memtable::{self, Slot},
};
use crate::read::Direction;

pub(super) struct Merge<'a> {
    /// The uppermost layer first, each with its next row.
    layers: Vec<(Source<'a>, Option<NextRow<'a>>)>,
    direction: Direction,
}

enum Source<'a> {
    Memory(memtable::Walk<'a>),
    Table(redb::Range<'a, &'static [u8], &'static [u8]>),
}

/// A row of one layer. A row without a cell is a tombstone.
pub(super) enum NextRow<'a> {
    Memory(&'a [u8], Slot<'a>),
    Table(
        AccessGuard<'a, &'static [u8]>,
        AccessGuard<'a, &'static [u8]>,
    ),
}

impl NextRow<'_> {
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Self::Memory(key, _) => key,
            Self::Table(key, _) => key.value(),
        }
    }

    pub(super) fn cell(&self) -> Option<&[u8]> {
        match self {
            Self::Memory(_, slot) => *slot,
            Self::Table(_, cell) => Some(cell.value()).filter(|cell| !cell.is_empty()),
        }
    }
}

impl Default for Merge<'_> {
    fn default() -> Self {
        Self::new(Direction::Ascending)
    }
}

impl<'a> Merge<'a> {
    pub(super) fn new(direction: Direction) -> Self {
        Self {
            layers: Vec::new(),
            direction,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Adds in-memory rows below all other layers.
    pub(super) fn add_memory(&mut self, mut walk: memtable::Walk<'a>) {
        if let Some((key, slot)) = walk.next() {
            let next = NextRow::Memory(key, slot);
            self.layers.push((Source::Memory(walk), Some(next)));
        }
    }

    /// Adds a table below all other layers.
    pub(super) fn add_table(
        &mut self,
        table: &'a Table,
        range: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<(), Failure> {
        let mut source = Source::Table(ReadableTable::range::<&[u8]>(table, range)?);
        if let Some(next) = source.next(self.direction)? {
            self.layers.push((source, Some(next)));
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<NextRow<'a>>, Failure> {
        let mut best: Option<(usize, &[u8])> = None;
        for (at, (_, next)) in self.layers.iter().enumerate() {
            let Some(key) = next.as_ref().map(NextRow::key) else {
                continue;
            };
            let is_better = best.is_none_or(|(_, best)| match self.direction {
                Direction::Ascending => key < best,
                Direction::Descending => key > best,
            });
            if is_better {
                best = Some((at, key));
            }
        }
        let Some((best, _)) = best else {
            return Ok(None);
        };
        let (upper, lower) = self.layers.split_at_mut(best + 1);
        let (source, next) = &mut upper[best];
        let after = source.next(self.direction)?;
        let found = std::mem::replace(next, after);
        let key = found.as_ref().map(NextRow::key);
        for (source, next) in lower {
            if next.is_some() && next.as_ref().map(NextRow::key) == key {
                *next = source.next(self.direction)?;
            }
        }
        Ok(found)
    }
}

impl<'a> Source<'a> {
    fn next(&mut self, direction: Direction) -> Result<Option<NextRow<'a>>, Failure> {
        match self {
            Self::Memory(walk) => Ok(walk.next().map(|(key, slot)| NextRow::Memory(key, slot))),
            Self::Table(range) => {
                let next = match direction {
                    Direction::Ascending => range.next(),
                    Direction::Descending => range.next_back(),
                };
                Ok(next
                    .transpose()?
                    .map(|(key, cell)| NextRow::Table(key, cell)))
            }
        }
    }
}
