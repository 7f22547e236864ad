//! Reads of rows from any source.

use super::{
    cell::{self, Space},
    error::Failure,
    view::Rows,
};
use crate::{
    error::EngineError,
    index::Index,
    kind::Kind,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

pub(super) fn read_record(
    rows: &impl Rows,
    kind: Kind,
    key: &[u8],
) -> Result<Option<Row>, Failure> {
    let key = Space::Records(kind).key(key);
    rows.get(&key, |cell| decode_row(&key, cell))
}

pub(super) fn read_page(
    rows: &impl Rows,
    kind: Kind,
    range: &Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Row)>, Failure> {
    walk_space(
        rows,
        Space::Records(kind),
        range,
        direction,
        limit,
        |key, cell| {
            Ok((
                Space::strip_prefix_byte(key).to_vec(),
                decode_row(key, cell)?,
            ))
        },
    )
}

pub(super) fn read_entries(
    rows: &impl Rows,
    index: Index,
    range: &Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<IndexEntry>, Failure> {
    walk_space(
        rows,
        Space::Entries(index),
        range,
        direction,
        limit,
        |key, cell| {
            Ok((
                Space::strip_prefix_byte(key).to_vec(),
                cell::open_cell(key, cell)?.to_vec(),
            ))
        },
    )
}

pub(super) fn last_with_prefix(
    rows: &impl Rows,
    index: Index,
    prefix: &[u8],
) -> Result<Option<IndexedRecord>, Failure> {
    let Range { start, end } = Space::Entries(index).range(&Range::with_prefix(prefix));
    let end = end.unwrap_or_default();
    let Some((key, cell)) = rows.last_row(&start, &end)? else {
        return Ok(None);
    };
    let target = cell::open_cell(&key, &cell)?;
    let row = read_record(rows, index.kind(), target)?;
    Ok(Some(IndexedRecord {
        row: row.ok_or_else(|| EngineError::dangling_entry(index))?,
        entry: Space::strip_prefix_byte(&key).to_vec(),
        key: target.to_vec(),
    }))
}

/// Counts entries, up to `limit`. Also returns where to continue if there may be more.
pub(super) fn count_range(
    rows: &impl Rows,
    index: Index,
    range: &Range,
    limit: usize,
) -> Result<(usize, Option<Vec<u8>>), Failure> {
    let Range { start, end } = Space::Entries(index).range(range);
    let end = end.unwrap_or_default();
    let (mut count, mut rest) = (0, None);
    rows.walk_range(&start, &end, Direction::Ascending, &mut |key, cell| {
        if count == limit {
            rest = Some(Space::strip_prefix_byte(key).to_vec());
            return Ok(false);
        }
        cell::open_cell(key, cell)?;
        count += 1;
        Ok(true)
    })?;
    Ok((count, rest))
}

/// Reads the rows of a space, converting each from its full key and cell.
pub(super) fn walk_space<T>(
    rows: &impl Rows,
    space: Space,
    range: &Range,
    direction: Direction,
    limit: usize,
    take: impl Fn(&[u8], &[u8]) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let Range { start, end } = space.range(range);
    let end = end.unwrap_or_default();
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    rows.walk_range(&start, &end, direction, &mut |key, cell| {
        found.push(take(key, cell)?);
        Ok(found.len() < limit)
    })?;
    Ok(found)
}

fn decode_row(key: &[u8], cell: &[u8]) -> Result<Row, Failure> {
    let (version, value) = cell::open_record_cell(key, cell)?;
    Ok(Row {
        version,
        value: value.to_vec(),
    })
}
