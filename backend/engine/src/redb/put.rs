//! Writing of sorted rows into the tree: runs of neighbours share the descent to their leaf.

use std::{iter::Peekable, ops::Bound};

use redb::Table;

use super::{error::Failure, memtable::Slot, runs::cursor_failure};

pub(super) type RowsMut<'txn> = Table<'txn, &'static [u8], &'static [u8]>;

/// Minimum number of neighbours for which a cursor pays off.
const RUN_MIN: usize = 4;
/// Number of rows written one by one after a shorter run.
const SINGLES: usize = 64;

pub(super) fn put_rows<'a>(
    rows: &mut RowsMut<'_>,
    put: impl Iterator<Item = (&'a [u8], Slot<'a>)>,
) -> Result<(), Failure> {
    let mut left = put.peekable();
    let mut singles = 0;
    while let Some((key, slot)) = left.peek().copied() {
        match slot {
            None => drop(rows.remove(key)?),
            Some(_) if singles == 0 => {
                if put_run(rows, &mut left)? < RUN_MIN {
                    singles = SINGLES;
                }
                continue;
            }
            Some(cell) => {
                rows.insert(key, cell)?;
                singles -= 1;
            }
        }
        left.next();
    }
    Ok(())
}

/// Inserts the rows before the next existing one. Returns their number, at least one.
fn put_run<'a>(
    rows: &mut RowsMut<'_>,
    left: &mut Peekable<impl Iterator<Item = (&'a [u8], Slot<'a>)>>,
) -> Result<usize, Failure> {
    let Some((first, Some(cell))) = left.peek().copied() else {
        return Ok(0);
    };
    let mut cursor = rows.lower_bound_mut(Bound::Included(first))?;
    let next = cursor.peek_next()?.map(|(key, _)| key.value().to_vec());
    if next.as_deref() == Some(first) {
        cursor.close()?;
        rows.insert(first, cell)?;
        left.next();
        return Ok(1);
    }
    let mut count = 0;
    while let Some((key, Some(cell))) = left.peek().copied() {
        if next.as_deref().is_some_and(|next| key >= next) {
            break;
        }
        cursor.insert_before(key, cell).map_err(cursor_failure)?;
        count += 1;
        left.next();
    }
    cursor.close()?;
    Ok(count)
}
