//! A journal of block checksums, written before each sync of the file, so that a store need not be
//! scanned after a crash.
//!
//! The journal is not synced. It is valid until the machine restarts, which the medium checks. Its
//! checksums are verified before use, and a store that differs from them is scanned.

use std::io::{self, Write};

/// Minimum size at which the journal is restarted. The threshold is higher for a journal that
/// starts out large.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The number of a block and its checksum.
pub(super) type BlockChecksum = (u32, u32);

pub(super) struct Journal {
    to: Box<dyn Write + Send + Sync>,
    bytes: usize,
    bytes_max: usize,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Journal");
        shown.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Journal {
    pub(super) fn new(to: Box<dyn Write + Send + Sync>, start_bytes: usize) -> Self {
        Self {
            to,
            bytes: 0,
            bytes_max: BYTES_MAX.max(start_bytes),
        }
    }

    pub(super) fn append(&mut self, changed: &[BlockChecksum]) -> io::Result<()> {
        let note = encode_note(changed);
        self.bytes += note.len();
        self.to.write_all(&note)
    }

    pub(super) fn exceeds_limit(&self) -> bool {
        self.bytes > self.bytes_max
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JournalContent {
    /// The newest checksum of each block, in journal order.
    pub(super) sums: Vec<BlockChecksum>,
    /// The last two checksums of the first block, whose checksum is recorded before the block is
    /// written.
    pub(super) first: Vec<u32>,
}

/// Encodes an entry: its checksum, the number of block checksums, and the block checksums.
pub(super) fn encode_note(sums: &[BlockChecksum]) -> Vec<u8> {
    let count = u32::try_from(sums.len()).unwrap_or(u32::MAX);
    let mut note = Vec::with_capacity(8 + 8 * sums.len());
    note.extend_from_slice(&[0; 4]);
    note.extend_from_slice(&count.to_be_bytes());
    for (block, sum) in sums {
        note.extend_from_slice(&block.to_be_bytes());
        note.extend_from_slice(&sum.to_be_bytes());
    }
    let checksum = crc32c::crc32c(&note[4..]);
    note[..4].copy_from_slice(&checksum.to_be_bytes());
    note
}

/// Reads the entries up to the first incomplete one, which was being written during the crash.
pub(super) fn read_journal(mut journal: &[u8]) -> JournalContent {
    let mut noted = JournalContent::default();
    while let Some((sums, rest)) = read_note(journal) {
        for (block, sum) in sums {
            if block == 0 {
                noted.first.push(sum);
            }
            noted.sums.push((block, sum));
        }
        journal = rest;
    }
    let older = noted.first.len().saturating_sub(2);
    noted.first.drain(..older);
    noted
}

fn read_note(journal: &[u8]) -> Option<(Vec<BlockChecksum>, &[u8])> {
    let (checksum, rest) = journal.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
    let (note, after) = rest.split_at_checked(count.checked_mul(8)?.checked_add(4)?)?;
    if crc32c::crc32c(note).to_be_bytes() != *checksum {
        return None;
    }
    let (numbers, _) = note[4..].as_chunks::<4>();
    let (pairs, _) = numbers.as_chunks::<2>();
    let pair = |pair: &[[u8; 4]; 2]| (u32::from_be_bytes(pair[0]), u32::from_be_bytes(pair[1]));
    Some((pairs.iter().map(pair).collect(), after))
}

#[cfg(test)]
mod tests {
    use super::{JournalContent, encode_note, read_journal};

    #[test]
    fn journal_is_read_up_to_first_incomplete_note() {
        let notes = [
            encode_note(&[(0, 7), (3, 1)]),
            encode_note(&[(0, 8)]),
            encode_note(&[(0, 9), (3, 2)]),
        ];
        let journal = notes.concat();
        let whole = JournalContent {
            sums: vec![(0, 7), (3, 1), (0, 8), (0, 9), (3, 2)],
            first: vec![8, 9],
        };
        assert_eq!(read_journal(&journal), whole);
        let cut = JournalContent {
            sums: vec![(0, 7), (3, 1), (0, 8)],
            first: vec![7, 8],
        };
        for end in notes[0].len() + notes[1].len()..journal.len() {
            assert_eq!(read_journal(&journal[..end]), cut);
        }
        assert_eq!(read_journal(b""), JournalContent::default());
    }
}
