//! The encoding of rows in the file: a key that begins with its space, and a value with a checksum.
//!
//! All rows except entries by event are in one table. redb does not verify what it reads, so the
//! checksum detects rows that were corrupted on disk.

use redb::{ReadOnlyTable, TableDefinition};

use crate::{
    error::{EngineError, RecordName},
    index::Index,
    kind::Kind,
    read::Range,
};

pub(super) const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");
pub(super) type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

const CHECKSUM_BYTES: usize = 4;
const VERSION_BYTES: usize = 8;
/// The first number of an index; kinds have lower ones.
const FIRST_INDEX: u8 = 0x40;
const LOG: u8 = 0x80;

/// The namespace of a row. The numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Records(Kind),
    Entries(Index),
    Log,
}

impl Space {
    fn prefix_byte(self) -> u8 {
        match self {
            Self::Records(kind) => kind as u8,
            Self::Entries(index) => FIRST_INDEX + index as u8,
            Self::Log => LOG,
        }
    }

    pub(super) fn key(self, key: &[u8]) -> Vec<u8> {
        [&[self.prefix_byte()], key].concat()
    }

    pub(super) fn append_key(self, key: &[u8], bytes: &mut Vec<u8>) {
        bytes.push(self.prefix_byte());
        bytes.extend_from_slice(key);
    }

    /// Returns a lower bound of the keys in this space, and the first key after them.
    pub(super) fn bounds(self) -> (Vec<u8>, Vec<u8>) {
        (vec![self.prefix_byte()], vec![self.prefix_byte() + 1])
    }

    pub(super) fn contains_key(self, key: &[u8]) -> bool {
        key.first() == Some(&self.prefix_byte())
    }

    pub(super) fn range(self, range: &Range) -> Range {
        let end = match &range.end {
            Some(end) => self.key(end),
            None => vec![self.prefix_byte() + 1],
        };
        Range {
            start: self.key(&range.start),
            end: Some(end),
        }
    }

    pub(super) fn record(key: &[u8]) -> Option<RecordName> {
        let kind = Kind::from_number(*key.first()?)?;
        Some((kind, Self::strip_prefix_byte(key).to_vec()))
    }

    pub(super) fn index(key: &[u8]) -> Option<Index> {
        let of = |index: &Index| FIRST_INDEX + *index as u8 == key[0];
        Index::ALL.into_iter().find(|it| !key.is_empty() && of(it))
    }

    pub(super) fn strip_prefix_byte(key: &[u8]) -> &[u8] {
        key.get(1..).unwrap_or_default()
    }
}

/// Prefixes the parts with a checksum over the key and the parts.
pub(super) fn seal_cell(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let part_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let mut cell = Vec::with_capacity(CHECKSUM_BYTES + part_bytes);
    cell.extend_from_slice(&[0; CHECKSUM_BYTES]);
    for part in parts {
        cell.extend_from_slice(part);
    }
    seal_in_place(key, &mut cell);
    cell
}

/// Appends a cell, which must still be sealed.
pub(super) fn begin_cell(bytes: &mut Vec<u8>, body: &[u8]) {
    bytes.extend_from_slice(&[0; CHECKSUM_BYTES]);
    bytes.extend_from_slice(body);
}

/// Appends the cell of a record, which must still be sealed with its version.
pub(super) fn begin_record_cell(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend_from_slice(&[0; CHECKSUM_BYTES + VERSION_BYTES]);
    bytes.extend_from_slice(value);
}

/// Seals a cell started with [`begin_cell`].
pub(super) fn seal_in_place(key: &[u8], cell: &mut [u8]) {
    if let Some((position, body)) = cell.split_first_chunk_mut::<CHECKSUM_BYTES>() {
        *position = checksum(key, body).to_be_bytes();
    }
}

/// Seals a cell started with [`begin_record_cell`].
pub(super) fn seal_record_in_place(key: &[u8], version: u64, cell: &mut [u8]) {
    if let Some(position) = cell.get_mut(CHECKSUM_BYTES..CHECKSUM_BYTES + VERSION_BYTES) {
        position.copy_from_slice(&version.to_be_bytes());
    }
    seal_in_place(key, cell);
}

/// Verifies and removes the checksum.
///
/// # Errors
///
/// Returns [`EngineError::Corrupt`] if key and value were not written together.
pub(super) fn open_cell<'a>(key: &[u8], cell: &'a [u8]) -> Result<&'a [u8], EngineError> {
    let body = cell.split_first_chunk::<CHECKSUM_BYTES>();
    let body = body.filter(|(stored, body)| **stored == checksum(key, body).to_be_bytes());
    body.map(|(_, body)| body).ok_or_else(|| {
        EngineError::Corrupt(format!("checksum mismatch in row {}", DisplayKey(key)))
    })
}

/// Splits a record's cell into version and value, after verifying its checksum.
pub(super) fn open_record_cell<'a>(
    key: &[u8],
    cell: &'a [u8],
) -> Result<(u64, &'a [u8]), EngineError> {
    let body = open_cell(key, cell)?.split_first_chunk::<VERSION_BYTES>();
    let (version, value) = body
        .ok_or_else(|| EngineError::Corrupt(format!("row {} has no version", DisplayKey(key))))?;
    Ok((u64::from_be_bytes(*version), value))
}

fn checksum(key: &[u8], body: &[u8]) -> u32 {
    // The length separates key and body, so that no byte can move between them.
    let checksum = crc32c::crc32c(&(key.len() as u64).to_be_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(checksum, key), body)
}

struct DisplayKey<'a>(&'a [u8]);

impl std::fmt::Display for DisplayKey<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Space, open_cell, open_record_cell, seal_cell};
    use crate::{index::Index, kind::Kind, read::Range};

    #[test]
    fn cell_opens_only_under_its_own_key() {
        let cell = seal_cell(b"key", &[b"va", b"lue"]);
        assert_eq!(open_cell(b"key", &cell).unwrap(), b"value");
        assert!(open_cell(b"kez", &cell).is_err());
        assert!(open_cell(b"ke", &cell).is_err());
        for at in 0..cell.len() {
            let mut changed = cell.clone();
            changed[at] ^= 4;
            assert!(open_cell(b"key", &changed).is_err(), "byte {at}");
            assert!(open_cell(b"key", &cell[..at]).is_err(), "cut at {at}");
        }
        assert!(open_record_cell(b"key", &cell).is_err());
    }

    #[test]
    fn key_spaces_do_not_overlap() {
        let all = Range {
            start: Vec::new(),
            end: None,
        };
        let kinds = [Kind::Meta, Kind::Health].map(Space::Records);
        let indexes = [Index::OccurrenceByEvent, Index::DeliveryByState].map(Space::Entries);
        let spaces: Vec<_> = kinds
            .into_iter()
            .chain(indexes)
            .chain([Space::Log])
            .collect();
        for pair in spaces.windows(2) {
            let (first, second) = (pair[0].range(&all), pair[1].range(&all));
            assert!(first.end.unwrap() <= second.start);
        }
    }
}
