//! What is read: records, and stretches of records and of index entries.

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Rises with every change of the record; versions are not reused after a delete. It is no position
    /// in the change log.
    pub version: u64,
    /// The encoded record.
    pub value: Vec<u8>,
}

/// An index entry as it is read: its key, and the key of the record that it leads to.
pub type Lead = (Vec<u8>, Vec<u8>);

/// An index entry and the record that it leads to, read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entry's key.
    pub entry: Vec<u8>,
    /// The record's key.
    pub key: Vec<u8>,
    /// The record.
    pub row: Row,
}

/// The way to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Ascending,
    /// From large keys to small ones.
    Descending,
}

/// A stretch of keys to walk: from `start` (included) to `end` (not included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key after the stretch; none means no end.
    pub end: Option<Vec<u8>>,
}

impl Range {
    /// All keys that start with a prefix.
    pub fn under(prefix: &[u8]) -> Self {
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

    /// Leaves out everything up to a key.
    pub fn go_on_after(&mut self, key: &[u8]) {
        self.start = [key, &[0]].concat();
    }
}
