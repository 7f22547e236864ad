//! Sorted rows that are in the log but not yet in the tree. Copies are cheap and immutable, so
//! readers do not block other threads.

use std::sync::Arc;

use super::{
    arena::Arena,
    batch::{self, BatchRow},
    ordered::{self, Keys, NewState, PersistentMap},
};
use crate::read::Direction;

/// Approximate memory of a row in addition to its bytes.
const ROW_BYTES: usize = 48;

/// A row's cell; `None` if the row was deleted.
pub(super) type Slot<'a> = Option<&'a [u8]>;

/// The location of a row, the head of its key, and whether no lower layer has its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArenaSpan {
    head: [u64; 2],
    buffer: u32,
    at: u32,
    is_new: bool,
}

impl Keys for Arena {
    type Item = ArenaSpan;

    fn key_head(&self, position: ArenaSpan) -> u128 {
        let [high, low] = position.head;
        (u128::from(high) << 64) | u128::from(low)
    }

    fn key(&self, position: ArenaSpan) -> &[u8] {
        decode_row(self, position).map_or(&[], |row| row.key)
    }
}

fn decode_row(arena: &Arena, position: ArenaSpan) -> Option<BatchRow<'_>> {
    batch::parse_row(arena.get(position.buffer), position.at as usize)
}

#[derive(Debug, Clone, Default)]
pub(super) struct Memtable {
    positions: PersistentMap<ArenaSpan>,
    arena: Arc<Arena>,
    bytes: usize,
    rows: usize,
}

impl Memtable {
    /// A row that is inserted and deleted here leaves no tombstone; otherwise a scan of a queue
    /// would step over every entry that was removed from it.
    pub(super) fn add(&mut self, batch: Vec<u8>) {
        self.bytes += batch.len();
        let arena = Arc::clone(&self.arena);
        let buffer = arena.add(batch);
        for (at, row) in batch::iter_rows(arena.get(buffer)) {
            let at = u32::try_from(at).expect("a set of changes is far below 4 GiB");
            self.bytes += ROW_BYTES;
            self.rows += 1;
            let head = ordered::key_head(row.key).to_be_bytes();
            let head = head.as_chunks::<8>().0;
            let head = [head[0], head[1]].map(u64::from_be_bytes);
            self.positions
                .put(&*arena, row.key, |found: Option<ArenaSpan>| {
                    let is_new = found.map_or(row.is_new, |found| found.is_new);
                    if row.cell.is_none() && found.is_some() && is_new {
                        return NewState::Nothing;
                    }
                    NewState::Item(ArenaSpan {
                        head,
                        buffer,
                        at,
                        is_new,
                    })
                });
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn row_count(&self) -> usize {
        self.rows
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Looks up a key; returns `None` if lower layers must be read.
    pub(super) fn get(&self, key: &[u8]) -> Option<Slot<'_>> {
        let position = self.positions.get(&*self.arena, key)?;
        decode_row(&self.arena, position).map(|row| row.cell)
    }

    /// Iterates over the rows from `start` (inclusive) to `end` (exclusive).
    pub(super) fn iter_range<'a>(
        &'a self,
        start: &'a [u8],
        end: &'a [u8],
        direction: Direction,
    ) -> Walk<'a> {
        let from = match direction {
            Direction::Ascending => start,
            Direction::Descending => end,
        };
        Walk {
            positions: self.positions.walk(&*self.arena, from, direction),
            arena: &self.arena,
            range: start..end,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Walk<'a> {
    positions: ordered::Walk<'a, ArenaSpan>,
    arena: &'a Arena,
    range: std::ops::Range<&'a [u8]>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (&'a [u8], Slot<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let row = decode_row(self.arena, self.positions.next()?)?;
        self.range.contains(&row.key).then_some((row.key, row.cell))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::batch::Batch, Memtable};
    use crate::read::Direction;

    fn collect_rows(memory: &Memtable) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let walked = memory.iter_range(b"", b"\xFF", Direction::Ascending);
        walked
            .map(|(key, slot)| (key.to_vec(), slot.map(<[u8]>::to_vec)))
            .collect()
    }

    #[test]
    fn removal_leaves_tombstone_only_for_rows_on_disk() {
        let mut memory = Memtable::default();
        let mut batch = Batch::default();
        batch.add_sealed(b"new", b"1");
        batch.add_removal(b"old");
        memory.add(batch.into_bytes());
        let before = memory.clone();
        let mut batch = Batch::default();
        batch.add_removal(b"new");
        batch.add_sealed(b"old", b"2");
        memory.add(batch.into_bytes());
        assert_eq!(
            collect_rows(&memory),
            [(b"old".to_vec(), Some(b"2".to_vec()))]
        );
        let mut batch = Batch::default();
        batch.add_removal(b"old");
        memory.add(batch.into_bytes());
        assert_eq!(collect_rows(&memory), [(b"old".to_vec(), None)]);
        assert_eq!((memory.get(b"old"), memory.get(b"new")), (Some(None), None));
        let then = [
            (b"new".to_vec(), Some(b"1".to_vec())),
            (b"old".to_vec(), None),
        ];
        assert_eq!(collect_rows(&before), then, "a copy does not change");
    }
}
