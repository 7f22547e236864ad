//! Sets of changes as passed to a writer: encoded and checked for internal conflicts by the caller.

use std::collections::HashSet;

use super::{cell, layout, tally};
use crate::{
    change::{Action, Change, Entry, Expect, decode_numbers},
    error::EngineError,
    index::Index,
    kind::Kind,
    ownership::Claim,
    position::LogPosition,
};

#[derive(Debug)]
pub(super) struct EncodedSet {
    pub(super) changes: Vec<Change>,
    pub(super) rests_on: Option<LogPosition>,
    pub(super) claims: Vec<Claim>,
    pub(super) bytes: usize,
    /// Whether a record would get entries that its columns cannot hold.
    pub(super) is_unfit: bool,
}

impl EncodedSet {
    /// Encodes a set.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Conflict`] if the set changes a record twice or adds an entry twice,
    /// and [`EngineError::Corrupt`] if it is invalid regardless of the stored records.
    pub(super) fn new(set: crate::change::ChangeSet) -> Result<Self, EngineError> {
        let crate::change::ChangeSet {
            mut changes,
            rests_on,
            claims,
            space: _,
        } = set;
        let (mut records, mut added) = (HashSet::new(), HashSet::new());
        let mut is_unfit = false;
        for change in &changes {
            let is_new = records.insert((change.kind, &change.key));
            if !is_new || !change.add.iter().all(|entry| added.insert(entry)) {
                return Err(EngineError::conflict());
            }
            is_unfit |= has_duplicate_index(change) || !fits_columns(change);
            check_set(change)?;
        }
        let bytes = changes.iter().map(change_bytes).sum();
        for change in &mut changes {
            if let Action::Put(value) = &mut change.action {
                *value = cell::seal_cell(change.kind, &change.key, value);
            }
        }
        Ok(Self {
            changes,
            rests_on,
            claims,
            bytes,
            is_unfit,
        })
    }
}

fn has_duplicate_index(change: &Change) -> bool {
    let count = |index: Index| change.add.iter().filter(|it| it.index == index).count();
    let mut columns =
        layout::index_columns(change.kind).chain(layout::side_index_columns(change.kind));
    columns.any(|(index, _)| count(index) > 1)
}

/// Checks that only counters are added to, and that no other record uses [`Expect::Any`]. A counter
/// has several rows, so it is added to or inserted as a whole.
fn check_set(change: &Change) -> Result<(), EngineError> {
    let is_counter = change.kind == Kind::Counter;
    let of_others = change.add.iter().chain(&change.remove);
    let fits = match &change.action {
        Action::Add(numbers) => {
            let is_known = numbers.len() <= tally::NUMBERS;
            is_counter && is_known && !matches!(change.expect, Expect::Version(_))
        }
        Action::Put(value) if is_counter => {
            let is_known = decode_numbers(value)?.len() <= tally::NUMBERS;
            is_known && change.expect == Expect::Absent
        }
        _ => !is_counter && change.expect != Expect::Any,
    };
    let is_odd = !fits
        || of_others
            .into_iter()
            .any(|it| it.index.kind() != change.kind);
    if is_odd {
        let word = change.kind.as_str();
        return Err(EngineError::Corrupt(format!(
            "this store does not support this change to a {word}"
        )));
    }
    Ok(())
}

/// Whether the change of the column entries is supported. Where a row is found by one of its
/// entries, each entry is added, replaced or removed together with its record.
fn fits_columns(change: &Change) -> bool {
    let count = |of: &[Entry], index| of.iter().filter(|it| it.index == index).count();
    let mut beside = layout::side_index_columns(change.kind);
    match (&change.action, change.expect) {
        (Action::Put(_), Expect::Version(_)) => {
            beside.all(|(index, _)| count(&change.add, index) == count(&change.remove, index))
        }
        (Action::Touch | Action::Check, _) => {
            let mut columns = beside.chain(layout::index_columns(change.kind));
            columns.all(|(index, _)| count(&change.add, index) + count(&change.remove, index) == 0)
        }
        _ => true,
    }
}

fn change_bytes(change: &Change) -> usize {
    let value_bytes = match &change.action {
        Action::Put(value) => value.len(),
        Action::Add(numbers) => size_of_val(&**numbers),
        Action::Delete | Action::Touch | Action::Check => 0,
    };
    let entries = change.add.iter().chain(&change.remove);
    let entries_bytes: usize = entries.map(|it| it.key.len() + change.key.len()).sum();
    size_of::<Change>() + change.key.len() + value_bytes + entries_bytes
}
