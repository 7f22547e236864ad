//! Entries by event that an earlier version of the service stored among the other rows. They remain
//! there as the oldest layer, and a filter for them is built in the background.

use std::sync::OnceLock;

use redb::{ReadableTable, ReadableTableMetadata};

use super::{
    cell::Table,
    error::Failure,
    filter::{self, Filter},
};

/// Entries read at a time.
const SLICE: usize = 50_000;
/// Minimum number of rows in the tree for each entry by event, including the row of its record.
const ROWS_EACH: u64 = 4;

/// The events with entries among the other rows; all events until the filter is built.
#[derive(Debug, Default)]
pub(super) struct LegacyEntries(OnceLock<Filter>);

impl LegacyEntries {
    pub(super) fn may_contain(&self, event: u128) -> bool {
        let filter = self.0.get();
        filter.is_none_or(|filter| filter.may_contain(event))
    }

    pub(super) fn is_filtered(&self) -> bool {
        self.0.get().is_some()
    }
}

#[derive(Debug)]
pub(super) struct Scan {
    filter: Filter,
    next: Vec<u8>,
    end: Vec<u8>,
}

impl Scan {
    pub(super) fn start(rows: &Table) -> Result<Self, Failure> {
        let (next, end) = filter::SPACE.bounds();
        Ok(Self {
            filter: Filter::for_events(rows.len()? / ROWS_EACH),
            next,
            end,
        })
    }

    /// Scans some rows. Returns whether there are more. Concurrent deletes are harmless, and no
    /// entries are added.
    pub(super) fn scan_slice(
        &mut self,
        rows: &Table,
        old: &LegacyEntries,
    ) -> Result<bool, Failure> {
        let range = self.next.as_slice()..self.end.as_slice();
        for (count, entry) in ReadableTable::range(rows, range)?.enumerate() {
            let key = entry?.0;
            let key = key.value();
            if count == SLICE {
                let next = key.to_vec();
                self.next = next;
                return Ok(true);
            }
            self.filter.add(filter::event_prefix(key));
        }
        let filter = std::mem::replace(&mut self.filter, Filter::for_events(0));
        // A concurrent scan of the same entries has the same result.
        drop(old.0.set(filter));
        Ok(false)
    }
}
