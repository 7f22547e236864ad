//! Sets of changes inside one write transaction: checked first, so that a refused one leaves the
//! others as they are.

use std::collections::HashSet;

use redb::Table;

use super::{
    cell::{self, Space},
    fault::Fault,
    rows,
};
use crate::store::engine::{Action, Change, EngineError, Expect};

/// The table of a write transaction.
pub(super) type RowsMut<'txn> = Table<'txn, &'static [u8], &'static [u8]>;

/// Applies a set of changes; those of earlier sets in the transaction are seen.
///
/// # Errors
/// With [`Fault::Asked`] nothing of the set was written.
pub(super) fn apply(rows: &mut RowsMut<'_>, version: u64, changes: &[Change]) -> Result<(), Fault> {
    check(rows, changes)?;
    for entry in changes.iter().flat_map(|change| &change.remove) {
        let key = Space::Entries(entry.index).key(&entry.key);
        rows.remove(key.as_slice())?;
    }
    for change in changes {
        write(rows, version, change)?;
    }
    Ok(())
}

fn check(rows: &RowsMut<'_>, changes: &[Change]) -> Result<(), Fault> {
    let mut removed = HashSet::new();
    for change in changes {
        let version = rows::version(rows, change.kind, &change.key)?;
        let holds = match change.expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        };
        if !holds {
            return Err(EngineError::Conflict.into());
        }
        for entry in &change.remove {
            let target = rows::target(rows, entry.index, &entry.key)?;
            if target.as_ref() != Some(&change.key) {
                let what = format!("an entry of {:?} is missing", entry.index);
                return Err(EngineError::Corrupt(what).into());
            }
            removed.insert(entry);
        }
    }
    let mut added = HashSet::new();
    for entry in changes.iter().flat_map(|change| &change.add) {
        let is_taken =
            !removed.contains(entry) && rows::target(rows, entry.index, &entry.key)?.is_some();
        if is_taken || !added.insert(entry) {
            return Err(EngineError::Conflict.into());
        }
    }
    Ok(())
}

fn write(rows: &mut RowsMut<'_>, version: u64, change: &Change) -> Result<(), Fault> {
    let key = Space::Records(change.kind).key(&change.key);
    let put = |rows: &mut RowsMut<'_>, value: &[u8]| {
        let cell = cell::seal(&key, &[&version.to_be_bytes(), value]);
        rows.insert(key.as_slice(), cell.as_slice()).map(drop)
    };
    match &change.action {
        Action::Put(value) => put(rows, value)?,
        Action::Delete => drop(rows.remove(key.as_slice())?),
        Action::Touch => {
            let row = rows::record(rows, change.kind, &change.key)?;
            // The check found it at the version that the change names.
            put(rows, &row.map(|row| row.value).unwrap_or_default())?;
        }
    }
    for entry in &change.add {
        let key = Space::Entries(entry.index).key(&entry.key);
        let cell = cell::seal(&key, &[&change.key]);
        rows.insert(key.as_slice(), cell.as_slice())?;
    }
    Ok(())
}
