//! Records, and ranges of records and of index entries.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Increases with every change of the record. Versions are not reused after a delete. A version
    /// is not a position in the change log.
    pub version: u64,
    pub value: Vec<u8>,
}

/// An index entry: its key, and the key of its record.
pub type IndexEntry = (Vec<u8>, Vec<u8>);

/// An index entry and its record, read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedRecord {
    pub entry: Vec<u8>,
    pub key: Vec<u8>,
    pub row: Row,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// A range of keys from `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub start: Vec<u8>,
    /// The first key after the range; `None` means no end.
    pub end: Option<Vec<u8>>,
}

impl Range {
    pub fn with_prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self {
            start: prefix.to_vec(),
            end: (!end.is_empty()).then_some(end),
        }
    }

    pub fn exclude_through(&mut self, key: &[u8]) {
        self.start = [key, &[0]].concat();
    }
}
