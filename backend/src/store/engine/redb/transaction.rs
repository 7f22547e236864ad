//! Sets of changes inside one write transaction. What a set expects is compared with what its own
//! writes replace, and a set that is refused is taken back, so that the others stay as they are.

use redb::Table;

use super::{
    cell::{self, Space},
    fault::Fault,
    set::Set,
};
use crate::store::engine::{Action, Change, EngineError, Expect};

/// The table of a write transaction.
pub(super) type RowsMut<'txn> = Table<'txn, &'static [u8], &'static [u8]>;

/// Applies a set of changes; those of earlier sets in the transaction are seen.
///
/// # Errors
/// With [`Fault::Asked`] nothing of the set was written.
pub(super) fn apply(rows: &mut RowsMut<'_>, version: u64, set: &mut Set) -> Result<(), Fault> {
    let mut work = Work {
        rows,
        replaced: Vec::new(),
    };
    let mut result = work.apply(version, &set.changes);
    if result.is_ok() && !set.fresh.put(work.rows, version)? {
        result = Err(EngineError::Conflict.into());
    }
    if let Err(Fault::Asked(_)) = &result {
        work.take_back()?;
    }
    result
}

/// A set on its way into the table.
struct Work<'set, 'txn> {
    rows: &'set mut RowsMut<'txn>,
    /// Keys written and what they held before, oldest first.
    replaced: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Work<'_, '_> {
    fn apply(&mut self, version: u64, changes: &[Change]) -> Result<(), Fault> {
        for change in changes {
            self.change(version, change)?;
        }
        for change in changes {
            for entry in &change.remove {
                let key = Space::Entries(entry.index).key(&entry.key);
                let removed = self.remove(&key)?;
                let target = removed.map(|cell| cell::open(&key, cell)).transpose()?;
                if target != Some(&change.key) {
                    return Err(EngineError::missing(entry.index).into());
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, version: u64, change: &Change) -> Result<(), Fault> {
        let key = Space::Records(change.kind).key(&change.key);
        let sealed = |value: &[u8]| cell::seal(&key, &[&version.to_be_bytes(), value]);
        let old = match &change.action {
            Action::Put(value) => self.insert(&key, &sealed(value))?,
            Action::Delete => self.remove(&key)?,
            Action::Touch => {
                let old = self.remove(&key)?;
                let cell = old.map(|old| cell::open_record(&key, old)).transpose()?;
                if let Some(cell) = cell.map(|(_, value)| sealed(value)) {
                    self.rows.insert(key.as_slice(), cell.as_slice())?;
                }
                self.last_replaced()
            }
        };
        let old = old.map(|old| cell::open_record(&key, old)).transpose()?;
        let holds = match change.expect {
            Expect::Absent => old.is_none(),
            Expect::Version(expected) => old.is_some_and(|(found, _)| found == expected),
        };
        if holds {
            Ok(())
        } else {
            Err(EngineError::Conflict.into())
        }
    }

    /// Writes a row; answers what it held.
    fn insert(&mut self, key: &[u8], cell: &[u8]) -> Result<Option<&[u8]>, Fault> {
        let old = self.rows.insert(key, cell)?;
        let old = old.map(|old| old.value().to_vec());
        self.replaced.push((key.to_vec(), old));
        Ok(self.last_replaced())
    }

    /// Removes a row; answers what it held.
    fn remove(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        let old = self.rows.remove(key)?;
        let old = old.map(|old| old.value().to_vec());
        self.replaced.push((key.to_vec(), old));
        Ok(self.last_replaced())
    }

    fn last_replaced(&self) -> Option<&[u8]> {
        self.replaced.last()?.1.as_deref()
    }

    fn take_back(self) -> Result<(), Fault> {
        for (key, old) in self.replaced.into_iter().rev() {
            match old {
                Some(cell) => drop(self.rows.insert(key.as_slice(), cell.as_slice())?),
                None => drop(self.rows.remove(key.as_slice())?),
            }
        }
        Ok(())
    }
}
