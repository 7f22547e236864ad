//! What a set of changes expects, compared with what is there: all of it, before any of it is
//! written.

use super::{
    cell::{self, Space},
    fault::Fault,
    set::{Becomes, Following, Set},
    view::{Rows, View},
};
use crate::{
    change::{Expect, sum},
    fault::{EngineError, RecordName},
};

/// Compares a set with what is there, and answers the rows that follow from it. `definitions` is the newest position at which something changed
/// that decisions rest on.
///
/// # Errors
/// [`Fault::Asked`] when an expectation does not hold.
pub(super) fn compare(
    set: &Set,
    view: &View<'_>,
    definitions: u64,
) -> Result<Vec<Following>, Fault> {
    let mut following = Vec::new();
    if set.is_twofold
        || set
            .rests_on
            .is_some_and(|position| position.to_number() < definitions)
    {
        return Err(EngineError::conflict().into());
    }
    let mut contested = Vec::new();
    for expected in &set.expected {
        let found = view.get(&expected.key, |cell| {
            let (version, value) = cell::open_record(&expected.key, cell)?;
            let is_known = matches!(expected.becomes, Becomes::Known);
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
            Becomes::Known => {}
            Becomes::Same => following.extend(value.map(|it| (expected.key.clone(), Some(it)))),
            Becomes::Sum(numbers) => {
                let sum = sum(value.as_deref(), numbers)?;
                following.push((expected.key.clone(), sum));
            }
        }
    }
    absent(set, view, true, &mut contested)?;
    uncontested(&mut contested)?;
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
    absent(set, view, false, &mut contested)?;
    uncontested(&mut contested)?;
    Ok(following)
}

/// # Errors
/// [`Fault::Asked`] when a record is not as it was expected.
fn uncontested(contested: &mut Vec<RecordName>) -> Result<(), Fault> {
    if contested.is_empty() {
        return Ok(());
    }
    Err(EngineError::Conflict(std::mem::take(contested)).into())
}

/// Finds the records, or those with entries, that must be new and are there.
fn absent(
    set: &Set,
    view: &View<'_>,
    records: bool,
    contested: &mut Vec<RecordName>,
) -> Result<(), Fault> {
    let fresh = set.fresh.iter().filter(|fresh| fresh.is_record == records);
    for fresh in fresh.filter(|fresh| !fresh.is_own) {
        let key = set.key(*fresh);
        let is_there = view.get(key, |cell| {
            cell::open(key, cell)?;
            Ok(())
        })?;
        let is_there = is_there.is_some();
        if is_there && !set.removes(key) {
            contested.extend(set.record(*fresh));
        }
    }
    Ok(())
}
