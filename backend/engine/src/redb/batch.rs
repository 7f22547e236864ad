//! The encoding of rows in the log and in memory: consecutive in one buffer, so that rows are
//! encoded only once.

use super::cell::{self, Space};

/// Size of a row's head: the length of its key with two flags, and the length of its cell.
const HEAD_BYTES: usize = 8;
/// Flag of a deleted row; it has no cell.
const REMOVED: u32 = 1 << 31;
/// Flag of a row whose key did not exist before.
const NEW: u32 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchRow<'a> {
    pub(super) key: &'a [u8],
    /// `None` if the row was deleted.
    pub(super) cell: Option<&'a [u8]>,
    pub(super) is_new: bool,
}

/// Rows in the order they were written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: usize,
    cell: usize,
    end: usize,
}

impl Batch {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds a record, which must still be sealed with its version.
    pub(super) fn record(&mut self, space: Space, key: &[u8], value: &[u8], is_new: bool) -> Span {
        self.row(space, key, is_new, |bytes| {
            cell::begin_record_cell(bytes, value);
        })
    }

    pub(super) fn add_entry(&mut self, space: Space, key: &[u8], target: &[u8]) -> Span {
        let span = self.row(space, key, true, |bytes| cell::begin_cell(bytes, target));
        let row = &mut self.bytes[span.start + HEAD_BYTES..span.end];
        let (key, cell) = row.split_at_mut(span.cell - span.start - HEAD_BYTES);
        cell::seal_in_place(key, cell);
        span
    }

    pub(super) fn add_sealed(&mut self, key: &[u8], cell: &[u8]) {
        self.add_cell(key, cell, NEW);
    }

    pub(super) fn add_touched(&mut self, key: &[u8], version: u64, value: &[u8]) {
        let cell = cell::seal_cell(key, &[&version.to_be_bytes(), value]);
        self.add_cell(key, &cell, 0);
    }

    fn add_cell(&mut self, key: &[u8], cell: &[u8], marks: u32) {
        let start = self.begin_row(key.len(), marks);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(cell);
        self.end_row(start, cell.len());
    }

    pub(super) fn add_removal(&mut self, key: &[u8]) {
        let start = self.begin_row(key.len(), REMOVED);
        self.bytes.extend_from_slice(key);
        self.end_row(start, 0);
    }

    fn row(
        &mut self,
        space: Space,
        key: &[u8],
        is_new: bool,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Span {
        let marks = if is_new { NEW } else { 0 };
        let start = self.begin_row(key.len() + 1, marks);
        space.append_key(key, &mut self.bytes);
        let cell = self.bytes.len();
        fill(&mut self.bytes);
        let end = self.bytes.len();
        self.end_row(start, end - cell);
        Span { start, cell, end }
    }

    fn begin_row(&mut self, key_bytes: usize, marks: u32) -> usize {
        let start = self.bytes.len();
        let key_bytes = to_length(key_bytes) | marks;
        self.bytes.extend_from_slice(&key_bytes.to_be_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        start
    }

    fn end_row(&mut self, start: usize, cell_bytes: usize) {
        let position = &mut self.bytes[start + 4..start + HEAD_BYTES];
        position.copy_from_slice(&to_length(cell_bytes).to_be_bytes());
    }

    pub(super) fn seal(&mut self, span: Span, version: u64) {
        let row = &mut self.bytes[span.start + HEAD_BYTES..span.end];
        let (key, cell) = row.split_at_mut(span.cell - span.start - HEAD_BYTES);
        cell::seal_record_in_place(key, version, cell);
    }

    pub(super) fn cell(&self, span: Span) -> &[u8] {
        &self.bytes[span.cell..span.end]
    }

    pub(super) fn key(&self, span: Span) -> &[u8] {
        &self.bytes[span.start + HEAD_BYTES..span.cell]
    }
}

fn to_length(bytes: usize) -> u32 {
    let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes < NEW);
    bytes.expect("a key or a cell is far below 1 GiB")
}

/// Returns the row at an offset, or `None` if there is no whole row.
pub(super) fn parse_row(bytes: &[u8], at: usize) -> Option<BatchRow<'_>> {
    let (head, rest) = bytes.get(at..)?.split_first_chunk::<HEAD_BYTES>()?;
    let (marked, cell_bytes) = head.split_at(4);
    let marked = u32::from_be_bytes(marked.try_into().ok()?);
    let cell_bytes = u32::from_be_bytes(cell_bytes.try_into().ok()?) as usize;
    let key_bytes = (marked & !(REMOVED | NEW)) as usize;
    let (key, rest) = rest.split_at_checked(key_bytes)?;
    let cell = rest.get(..cell_bytes)?;
    Some(BatchRow {
        key,
        cell: (marked & REMOVED == 0).then_some(cell),
        is_new: marked & NEW != 0,
    })
}

/// Iterates over the rows of a batch with their offsets. Stops at malformed bytes.
pub(super) fn iter_rows(bytes: &[u8]) -> impl Iterator<Item = (usize, BatchRow<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let row = parse_row(bytes, at)?;
        let found = (at, row);
        at += HEAD_BYTES + row.key.len() + row.cell.map_or(0, <[u8]>::len);
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::{Batch, BatchRow, iter_rows};
    use crate::{
        kind::Kind,
        redb::cell::{self, Space},
    };

    #[test]
    fn added_rows_round_trip() {
        let mut batch = Batch::default();
        let span = batch.record(Space::Records(Kind::Rule), b"a", b"value", true);
        batch.add_removal(b"gone");
        batch.add_sealed(b"key", b"cell");
        batch.seal(span, 7);
        let key = [&[Kind::Rule as u8], &b"a"[..]].concat();
        let found: Vec<_> = iter_rows(batch.bytes()).map(|(_, row)| row).collect();
        assert_eq!(found[0].key, key);
        let cell = found[0].cell.unwrap();
        assert_eq!(
            cell::open_record_cell(&key, cell).unwrap(),
            (7, &b"value"[..])
        );
        let row = |key, cell, is_new| BatchRow { key, cell, is_new };
        assert_eq!(found[1], row(&b"gone"[..], None, false));
        assert_eq!(found[2], row(b"key", Some(&b"cell"[..]), true));
        assert_eq!(found.len(), 3);
    }
}
