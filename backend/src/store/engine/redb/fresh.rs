//! Rows that must all be new: laid out and sorted before they wait for the writer, then put into
//! the table in runs, so that neighbours share the way to their leaf.

use std::{collections::BTreeMap, ops::Bound};

use redb::CursorError;

use super::{
    cell::{self, Space},
    fault::Fault,
    transaction::RowsMut,
};

/// Fewer neighbours than this are put one by one: a run costs more to begin.
const RUN_MIN: usize = 4;

/// Rows in the order of their keys, of which none may be in the table yet.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Where a row lies in the bytes: its key, then its cell up to the end.
#[derive(Debug, Clone, Copy)]
struct Place {
    key: usize,
    cell: usize,
    end: usize,
    is_record: bool,
}

/// Collects rows, in any order.
#[derive(Debug, Default)]
pub(super) struct FreshBuilder {
    bytes: Vec<u8>,
    /// By the first byte of their keys: within a space they often come sorted.
    places: BTreeMap<u8, Vec<Place>>,
}

impl FreshBuilder {
    /// With room for so many bytes.
    pub(super) fn with_room(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            places: BTreeMap::new(),
        }
    }

    /// Adds a record; it gets its version when it is put.
    pub(super) fn record(&mut self, space: Space, key: &[u8], value: &[u8]) {
        self.row(space, key, |bytes| cell::begin_record(bytes, value));
    }

    /// Adds an entry that leads to a record.
    pub(super) fn entry(&mut self, space: Space, key: &[u8], target: &[u8]) {
        self.row(space, key, |bytes| cell::begin(bytes, target));
    }

    fn row(&mut self, space: Space, key: &[u8], begin: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        space.append_key(key, &mut self.bytes);
        let cell = self.bytes.len();
        begin(&mut self.bytes);
        let is_record = matches!(space, Space::Records(_));
        let place = Place {
            key: start,
            cell,
            end: self.bytes.len(),
            is_record,
        };
        if !is_record {
            let (key, cell) = self.bytes[start..].split_at_mut(cell - start);
            cell::seal_in_place(key, cell);
        }
        self.places
            .entry(self.bytes[start])
            .or_default()
            .push(place);
    }

    /// The rows, sorted.
    pub(super) fn finish(self) -> Fresh {
        let bytes = self.bytes;
        let key = |place: &Place| &bytes[place.key..place.cell];
        let mut places = Vec::with_capacity(self.places.values().map(Vec::len).sum());
        for mut of_space in self.places.into_values() {
            of_space.sort_by(|one, other| key(one).cmp(key(other)));
            places.append(&mut of_space);
        }
        Fresh { bytes, places }
    }
}

impl Fresh {
    fn key(&self, at: usize) -> &[u8] {
        let place = &self.places[at];
        &self.bytes[place.key..place.cell]
    }

    fn cell(&self, at: usize) -> &[u8] {
        let place = &self.places[at];
        &self.bytes[place.cell..place.end]
    }

    /// Puts all rows into the table, or none when one of them is there already; answers whether it
    /// did.
    pub(super) fn put(&mut self, rows: &mut RowsMut<'_>, version: u64) -> Result<bool, Fault> {
        for place in self.places.iter().filter(|place| place.is_record) {
            let row = &mut self.bytes[place.key..place.end];
            let (key, cell) = row.split_at_mut(place.cell - place.key);
            cell::seal_record_in_place(key, version, cell);
        }
        // The space whose rows turned out to lie apart.
        let mut scattered = None;
        let mut done = 0;
        while done < self.places.len() {
            let space = self.key(done)[0];
            let count = if scattered != Some(space) && self.has_neighbours(done) {
                self.put_run(rows, done)?
            } else {
                self.put_one(rows, done)?
            };
            if count == 0 {
                self.take_back(rows, done)?;
                return Ok(false);
            }
            if count < RUN_MIN {
                scattered = Some(space);
            }
            done += count;
        }
        Ok(true)
    }

    /// Whether enough rows of the same space follow.
    fn has_neighbours(&self, at: usize) -> bool {
        let last = at + RUN_MIN - 1;
        last < self.places.len() && self.key(last)[0] == self.key(at)[0]
    }

    /// Puts one row; answers how many were put.
    fn put_one(&self, rows: &mut RowsMut<'_>, at: usize) -> Result<usize, Fault> {
        let old = rows.insert(self.key(at), self.cell(at))?;
        let Some(old) = old.map(|old| old.value().to_vec()) else {
            return Ok(1);
        };
        rows.insert(self.key(at), old.as_slice())?;
        Ok(0)
    }

    /// Puts the rows that belong before the next one of the table; answers how many were put.
    fn put_run(&self, rows: &mut RowsMut<'_>, from: usize) -> Result<usize, Fault> {
        let mut cursor = rows.lower_bound_mut(Bound::Included(self.key(from)))?;
        let next = cursor.peek_next()?.map(|(key, _)| key.value().to_vec());
        let mut count = 0;
        for at in from..self.places.len() {
            let key = self.key(at);
            let is_past = next.as_deref().is_some_and(|next| key >= next);
            if is_past || (at > from && key == self.key(at - 1)) {
                break;
            }
            match cursor.insert_before(key, self.cell(at)) {
                Ok(()) => count += 1,
                Err(CursorError::Storage(error)) => return Err(error.into()),
                Err(other) => return Err(out_of_order(&other)),
            }
        }
        cursor.close()?;
        Ok(count)
    }

    fn take_back(&self, rows: &mut RowsMut<'_>, count: usize) -> Result<(), Fault> {
        for at in 0..count {
            rows.remove(self.key(at))?;
        }
        Ok(())
    }
}

fn out_of_order(error: &CursorError) -> Fault {
    let why = format!("the rows of the store are out of order: {error}");
    Fault::File(redb::Error::Corrupted(why))
}
