//! A set of changes as the writer takes it: what can be laid out before is, by whoever asks.

use super::{
    cell::Space,
    fresh::{Fresh, FreshBuilder},
    log::Names,
};
use crate::store::engine::{Action, Change, Expect, Lane};

/// A set of changes, laid out.
#[derive(Debug)]
pub(super) struct Set {
    /// Changes of records that are there, and removals of entries, in the order of the records.
    pub(super) changes: Vec<Change>,
    /// Records and entries that are new.
    pub(super) fresh: Fresh,
    /// What the change log says of it.
    pub(super) names: Names,
    /// Whether it adds to the store: such sets stop first when room runs out. What people change,
    /// and what moves deliveries on, goes on.
    pub(super) adds: bool,
    /// About how much memory it takes.
    pub(super) bytes: usize,
}

impl Set {
    /// Lays changes out.
    pub(super) fn new(lane: Lane, changes: Vec<Change>) -> Self {
        let bytes: usize = changes.iter().map(bytes_of).sum();
        let mut names = Names::default();
        let mut fresh = FreshBuilder::with_room(bytes);
        let mut left = Vec::new();
        let mut adds = false;
        for change in changes {
            adds |= change.adds;
            if change.is_logged {
                names.add(change.kind, &change.key);
            }
            for entry in &change.add {
                fresh.entry(Space::Entries(entry.index), &entry.key, &change.key);
            }
            match (&change.action, change.expect) {
                (Action::Put(value), Expect::Absent) => {
                    fresh.record(Space::Records(change.kind), &change.key, value);
                    debug_assert!(change.remove.is_empty(), "nothing leads to a new record");
                }
                _ => left.push(change),
            }
        }
        // In the order of the rows, so that neighbours meet a page while it is at hand.
        left.sort_by(|one, other| (one.kind as u8, &one.key).cmp(&(other.kind as u8, &other.key)));
        Self {
            changes: left,
            fresh: fresh.finish(),
            names,
            adds: adds && lane == Lane::Bulk,
            bytes,
        }
    }
}

fn bytes_of(change: &Change) -> usize {
    let value_bytes = match &change.action {
        Action::Put(value) => value.len(),
        Action::Delete | Action::Touch => 0,
    };
    let entries = change.add.iter().chain(&change.remove);
    let entries_bytes: usize = entries
        .map(|entry| entry.key.len() + change.key.len())
        .sum();
    size_of::<Change>() + change.key.len() + value_bytes + entries_bytes
}
