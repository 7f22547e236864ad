//! Checks all expectations of a set before anything is written.

use super::{
    cell::{self, Space},
    error::Failure,
    set::{ComputedRow, EncodedSet, ValueEffect},
    view::{Rows, View},
};
use crate::{
    change::{Expect, add_numbers},
    error::{EngineError, RecordName},
};

/// Checks a set against the current rows, and returns the rows whose values depend on them.
/// `definitions` is the newest position at which a definition changed.
///
/// # Errors
///
/// Returns [`Failure::Request`] if an expectation is not met.
pub(super) fn compare_set(
    set: &EncodedSet,
    view: &View<'_>,
    definitions: u64,
) -> Result<Vec<ComputedRow>, Failure> {
    let mut following = Vec::new();
    if set.has_duplicate_changes
        || set
            .rests_on
            .is_some_and(|position| position.to_number() < definitions)
    {
        return Err(EngineError::conflict().into());
    }
    let mut contested = Vec::new();
    for expected in &set.expected {
        let found = view.get(&expected.key, |cell| {
            let (version, value) = cell::open_record_cell(&expected.key, cell)?;
            let is_known = matches!(expected.becomes, ValueEffect::Overwrite);
            Ok((version, (!is_known).then(|| value.to_vec())))
        })?;
        let version = found.as_ref().map(|(version, _)| *version);
        let holds = match expected.expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
            Expect::Any => true,
        };
        if !holds {
            contested.extend(Space::record(&expected.key));
        }
        let value = found.and_then(|(_, value)| value);
        match &expected.becomes {
            ValueEffect::Overwrite => {}
            ValueEffect::Same => following.extend(value.map(|it| (expected.key.clone(), Some(it)))),
            ValueEffect::Sum(numbers) => {
                let sum = add_numbers(value.as_deref(), numbers)?;
                following.push((expected.key.clone(), sum));
            }
        }
    }
    check_absent(set, view, true, &mut contested)?;
    ensure_no_conflicts(&mut contested)?;
    let mut last: Option<&[u8]> = None;
    for removed in &set.removed {
        let found = view.get(&removed.key, |cell| {
            Ok(cell::open_cell(&removed.key, cell)? == removed.target)
        })?;
        if found != Some(true) || last == Some(&removed.key) {
            return Err(EngineError::missing_entry(removed.index).into());
        }
        last = Some(&removed.key);
    }
    check_absent(set, view, false, &mut contested)?;
    ensure_no_conflicts(&mut contested)?;
    Ok(following)
}

fn ensure_no_conflicts(contested: &mut Vec<RecordName>) -> Result<(), Failure> {
    if contested.is_empty() {
        return Ok(());
    }
    Err(EngineError::Conflict(std::mem::take(contested)).into())
}

/// Finds records that must be new but exist, and records whose entries must be new but exist.
fn check_absent(
    set: &EncodedSet,
    view: &View<'_>,
    records: bool,
    contested: &mut Vec<RecordName>,
) -> Result<(), Failure> {
    let fresh = set.fresh.iter().filter(|fresh| fresh.is_record == records);
    for fresh in fresh.filter(|fresh| !fresh.is_own) {
        let key = set.key(*fresh);
        let is_there = view.get(key, |cell| {
            cell::open_cell(key, cell)?;
            Ok(())
        })?;
        let is_there = is_there.is_some();
        if is_there && !set.is_removal(key) {
            contested.extend(set.record(*fresh));
        }
    }
    Ok(())
}
