//! Reading rows, inside any transaction.

use std::ops::Bound;

use redb::ReadableTable;

use super::{
    cell::{self, Space},
    fault::Fault,
};
use crate::store::engine::{Direction, Index, Kind, Range, Row};

/// A table as transactions of either sort give it.
pub(super) trait Rows: ReadableTable<&'static [u8], &'static [u8]> {}

impl<T: ReadableTable<&'static [u8], &'static [u8]>> Rows for T {}

/// Reads one record.
pub(super) fn record(rows: &impl Rows, kind: Kind, key: &[u8]) -> Result<Option<Row>, Fault> {
    let key = Space::Records(kind).key(key);
    let cell = rows.get(key.as_slice())?;
    let row = cell.map(|cell| row(&key, cell.value())).transpose()?;
    Ok(row)
}

/// Walks records.
pub(super) fn page(
    rows: &impl Rows,
    kind: Kind,
    range: &Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Row)>, Fault> {
    walk(
        rows,
        Space::Records(kind),
        range,
        direction,
        limit,
        |key, cell| Ok((Space::strip(key).to_vec(), row(key, cell)?)),
    )
}

/// An entry's key, and the key of the record it leads to.
pub(super) type Lead = (Vec<u8>, Vec<u8>);

/// Walks entries.
pub(super) fn entries(
    rows: &impl Rows,
    index: Index,
    range: &Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Lead>, Fault> {
    walk(
        rows,
        Space::Entries(index),
        range,
        direction,
        limit,
        |key, cell| Ok((Space::strip(key).to_vec(), cell::open(key, cell)?.to_vec())),
    )
}

/// The last entry under a prefix.
pub(super) fn last_under(
    rows: &impl Rows,
    index: Index,
    prefix: &[u8],
) -> Result<Option<Lead>, Fault> {
    let Range { start, end } = Space::Entries(index).range(&Range::under(prefix));
    let end = end.unwrap_or_default();
    let mut cursor = rows.upper_bound(Bound::Excluded(end.as_slice()))?;
    let Some((key, cell)) = cursor.peek_prev()? else {
        return Ok(None);
    };
    let key = key.value();
    if key < start.as_slice() {
        return Ok(None);
    }
    let target = cell::open(key, cell.value())?;
    Ok(Some((Space::strip(key).to_vec(), target.to_vec())))
}

/// Counts entries, at most `limit`; answers where to go on too, when there may be more.
pub(super) fn count(
    rows: &impl Rows,
    index: Index,
    range: &Range,
    limit: usize,
) -> Result<(usize, Option<Vec<u8>>), Fault> {
    let Range { start, end } = Space::Entries(index).range(range);
    let end = end.unwrap_or_default();
    if end <= start {
        return Ok((0, None));
    }
    let mut count = 0;
    for entry in rows.range(start.as_slice()..end.as_slice())? {
        let (key, cell) = entry?;
        let key = key.value();
        if count == limit {
            return Ok((count, Some(Space::strip(key).to_vec())));
        }
        cell::open(key, cell.value())?;
        count += 1;
    }
    Ok((count, None))
}

/// Walks rows of a space and takes each apart by its whole key and its cell.
pub(super) fn walk<T>(
    rows: &impl Rows,
    space: Space,
    range: &Range,
    direction: Direction,
    limit: usize,
    take: impl Fn(&[u8], &[u8]) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let Range { start, end } = space.range(range);
    let end = end.unwrap_or_default();
    if end <= start {
        return Ok(Vec::new());
    }
    let mut found = rows.range(start.as_slice()..end.as_slice())?;
    let mut taken = Vec::new();
    while taken.len() < limit {
        let next = match direction {
            Direction::Ascending => found.next(),
            Direction::Descending => found.next_back(),
        };
        let Some((key, cell)) = next.transpose()? else {
            break;
        };
        taken.push(take(key.value(), cell.value())?);
    }
    Ok(taken)
}

fn row(key: &[u8], cell: &[u8]) -> Result<Row, Fault> {
    let (version, value) = cell::open_record(key, cell)?;
    Ok(Row {
        version,
        value: value.to_vec(),
    })
}
