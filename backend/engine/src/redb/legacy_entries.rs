//! Entries by event that an earlier version of the service put among the other rows: they stay there
//! as the oldest of all, and a filter of them is made while the store is in use.

use std::sync::OnceLock;

use redb::{ReadableTable, ReadableTableMetadata};

use super::{
    cell::Table,
    fault::Fault,
    filter::{self, Filter},
};

/// Entries that are read at a time.
const SLICE: usize = 50_000;
/// An entry by event has at least so many neighbours in the tree, its record among them.
const ROWS_EACH: u64 = 4;

/// Of which events there are entries among the other rows: of all, until that is known.
#[derive(Debug, Default)]
pub(super) struct LegacyEntries(OnceLock<Filter>);

impl LegacyEntries {
    pub(super) fn may_have(&self, event: u128) -> bool {
        let filter = self.0.get();
        filter.is_none_or(|filter| filter.may_have(event))
    }

    pub(super) fn is_filtered(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Old entries being read.
#[derive(Debug)]
pub(super) struct Scan {
    filter: Filter,
    next: Vec<u8>,
    end: Vec<u8>,
}

impl Scan {
    pub(super) fn begin(rows: &Table) -> Result<Self, Fault> {
        let (next, end) = filter::SPACE.bounds();
        Ok(Self {
            filter: Filter::for_events(rows.len()? / ROWS_EACH),
            next,
            end,
        })
    }

    /// Reads some; answers whether there are more. Entries that go meanwhile do no harm, and none
    /// are added.
    pub(super) fn slice(&mut self, rows: &Table, old: &LegacyEntries) -> Result<bool, Fault> {
        let range = self.next.as_slice()..self.end.as_slice();
        for (count, entry) in ReadableTable::range(rows, range)?.enumerate() {
            let key = entry?.0;
            let key = key.value();
            if count == SLICE {
                let next = key.to_vec();
                self.next = next;
                return Ok(true);
            }
            self.filter.add(filter::event_of(key));
        }
        let filter = std::mem::replace(&mut self.filter, Filter::for_events(0));
        // Another reading of the same entries comes to the same.
        drop(old.0.set(filter));
        Ok(false)
    }
}
