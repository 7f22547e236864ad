//! What a set of changes expects, compared with what is there: all of it, before any of it is
//! written.

use super::{
    cell,
    fault::Fault,
    set::Set,
    view::{Rows, View},
};
use crate::store::engine::{EngineError, Expect};

/// The records that a set only touches, with their values.
pub(super) type Touched = Vec<(Vec<u8>, Vec<u8>)>;

/// Compares a set with what is there.
///
/// # Errors
/// [`Fault::Asked`] when an expectation does not hold.
pub(super) fn compare(set: &Set, view: &View<'_>) -> Result<Touched, Fault> {
    let mut touched = Touched::new();
    if set.is_twofold {
        return Err(EngineError::Conflict.into());
    }
    for expected in &set.expected {
        let found = view.get(&expected.key, |cell| {
            let (version, value) = cell::open_record(&expected.key, cell)?;
            Ok((version, expected.is_touch.then(|| value.to_vec())))
        })?;
        let version = found.as_ref().map(|(version, _)| *version);
        let holds = match expected.expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        };
        if !holds {
            return Err(EngineError::Conflict.into());
        }
        if let Some((_, Some(value))) = found {
            touched.push((expected.key.clone(), value));
        }
    }
    absent(set, view, true)?;
    let mut last: Option<&[u8]> = None;
    for removed in &set.removed {
        let found = view.get(&removed.key, |cell| {
            Ok(cell::open(&removed.key, cell)? == removed.target)
        })?;
        if found != Some(true) || last == Some(&removed.key) {
            return Err(EngineError::missing(removed.index).into());
        }
        last = Some(&removed.key);
    }
    absent(set, view, false)?;
    Ok(touched)
}

/// Whether none of the records, or of the entries, that must be new is there.
fn absent(set: &Set, view: &View<'_>, records: bool) -> Result<(), Fault> {
    let fresh = set.fresh.iter().filter(|fresh| fresh.is_record == records);
    for fresh in fresh.filter(|fresh| !fresh.is_own) {
        let key = set.key(*fresh);
        let is_there = view.get(key, |cell| {
            cell::open(key, cell)?;
            Ok(())
        })?;
        let is_there = is_there.is_some();
        if is_there && !set.removes(key) {
            return Err(EngineError::Conflict.into());
        }
    }
    Ok(())
}
