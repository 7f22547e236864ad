//! The stored form of values: prefixed with a checksum over key and bytes, so that a flipped bit is
//! detected even where the database keeps no checksums.

use crate::{error::EngineError, kind::Kind};

const SUM_BYTES: usize = 4;

/// Prefixes a value with its checksum. Counters have none, since the database adds to them itself.
pub(super) fn seal_cell(kind: Kind, key: &[u8], value: &[u8]) -> Vec<u8> {
    if kind == Kind::Counter {
        return value.to_vec();
    }
    let mut cell = Vec::with_capacity(SUM_BYTES + value.len());
    cell.extend_from_slice(&compute_checksum(kind, key, value).to_be_bytes());
    cell.extend_from_slice(value);
    cell
}

/// Verifies the checksum and returns the value. A counter is returned without trailing zeros.
pub(super) fn open_cell(kind: Kind, key: &[u8], cell: &[u8]) -> Result<Vec<u8>, EngineError> {
    if kind == Kind::Counter {
        let mut numbers = cell;
        while let Some((before, [0, 0, 0, 0, 0, 0, 0, 0])) = numbers.split_last_chunk() {
            numbers = before;
        }
        return Ok(numbers.to_vec());
    }
    let parts = cell.split_first_chunk::<SUM_BYTES>();
    let whole =
        parts.filter(|(found, value)| **found == compute_checksum(kind, key, value).to_be_bytes());
    let (_, value) = whole.ok_or_else(|| {
        let word = kind.as_str();
        EngineError::Corrupt(format!("checksum mismatch in a {word}"))
    })?;
    Ok(value.to_vec())
}

fn compute_checksum(kind: Kind, key: &[u8], value: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&[kind as u8]);
    crc32c::crc32c_append(crc32c::crc32c_append(sum, key), value)
}

#[cfg(test)]
mod tests {
    use super::{open_cell, seal_cell};
    use crate::kind::Kind;

    #[test]
    fn flipped_bit_wrong_key_or_wrong_kind_is_detected() {
        let cell = seal_cell(Kind::Rule, b"key", b"value");
        assert_eq!(open_cell(Kind::Rule, b"key", &cell).unwrap(), b"value");
        for at in 0..cell.len() {
            let mut flipped = cell.clone();
            flipped[at] ^= 1;
            assert!(
                open_cell(Kind::Rule, b"key", &flipped).is_err(),
                "byte {at}"
            );
        }
        assert!(open_cell(Kind::Rule, b"other", &cell).is_err());
        assert!(open_cell(Kind::Trigger, b"key", &cell).is_err());
        assert!(open_cell(Kind::Rule, b"key", b"").is_err());
    }
}
