//! Checksums for all blocks of the file, so that corrupted bytes are never used as data.
//!
//! redb verifies its pages when it repairs, not when it reads. A flipped bit in a branch page hides
//! records, which no checksum inside a record can detect. Therefore the checksums of all blocks are
//! kept in memory, compared with every block that is read, and stored next to the file when it is
//! closed. A journal records them in the meantime, for the next start after a crash.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::StorageBackend;

use super::{
    journal::{self, BlockChecksum, Journal},
    medium::Medium,
};

const BLOCK_BYTES: usize = 4096;
/// Placeholder for an unknown checksum.
const UNKNOWN: u32 = 0;
const LAYOUT: u32 = 1;

/// A file whose blocks are verified with checksums.
#[derive(Debug)]
pub(super) struct Blocks {
    file: Box<dyn StorageBackend>,
    medium: Arc<dyn Medium>,
    sums: RwLock<Vec<u32>>,
    notes: Mutex<JournalState>,
    /// Whether some writes are not synced, or the sync failed.
    is_unsynced: AtomicBool,
}

#[derive(Debug, Default)]
struct JournalState {
    changed: Vec<BlockChecksum>,
    journal: Option<Journal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChecksumSource {
    /// No checksums are stored. Each one is computed when its block is first read.
    Not,
    /// Stored when the file was closed.
    Kept,
    Noted,
}

impl Blocks {
    /// Opens the file with its known checksums; those in a journal are used only if `by_journal`.
    pub(super) fn open(
        medium: Arc<dyn Medium>,
        by_journal: bool,
    ) -> io::Result<(Self, ChecksumSource)> {
        let file = medium.open()?;
        let block_count = to_usize(file.len()?)?.div_ceil(BLOCK_BYTES);
        let mut blocks = Self {
            file,
            medium,
            sums: RwLock::new(vec![UNKNOWN; block_count]),
            notes: Mutex::default(),
            is_unsynced: AtomicBool::new(false),
        };
        if block_count == 0 {
            return Ok((blocks, ChecksumSource::Kept));
        }
        // The first block changes with every commit, so it shows whether the checksums belong to
        // this state of the file.
        let (_, first) = blocks.read_covering(0, 1)?;
        let first = compute_checksum(&first);
        let stored = blocks
            .medium
            .checksums()
            .and_then(|stored| decode_checksums(&stored));
        if let Some(sums) =
            stored.filter(|stored| stored.len() == block_count && stored[0] == first)
        {
            blocks.sums = RwLock::new(sums);
            return Ok((blocks, ChecksumSource::Kept));
        }
        let journal = by_journal.then(|| blocks.medium.journal()).flatten();
        let noted = journal.map(|journal| journal::read_journal(&journal));
        let Some(noted) = noted.filter(|noted| noted.first.contains(&first)) else {
            return Ok((blocks, ChecksumSource::Not));
        };
        let mut sums = vec![UNKNOWN; block_count];
        for (index, sum) in noted.sums {
            if let Some(known) = sums.get_mut(index as usize) {
                *known = sum;
            }
        }
        sums[0] = first;
        blocks.sums = RwLock::new(sums);
        Ok((blocks, ChecksumSource::Noted))
    }

    /// Starts a journal with all known checksums, which must have been verified.
    pub(super) fn begin_journal(&self) {
        let mut notes = self.lock_journal();
        let known: Vec<BlockChecksum> = {
            let sums = self.sums.read().unwrap_or_else(PoisonError::into_inner);
            let sums = (0..).zip(sums.iter().copied());
            sums.filter(|(_, sum)| *sum != UNKNOWN).collect()
        };
        let start = journal::encode_note(&known);
        let begun = self.medium.begin_journal(&start);
        notes.changed.clear();
        notes.journal = match begun {
            Ok(to) => to.map(|to| Journal::new(to, start.len())),
            Err(error) => {
                self.end_journal(&error);
                None
            }
        };
    }

    /// Without a journal the file is scanned after a crash, so an error only costs time.
    fn end_journal(&self, error: &io::Error) {
        tracing::debug!(%error, "no checksum journal");
        self.medium.end_journal();
    }

    fn lock_journal(&self) -> MutexGuard<'_, JournalState> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers checksums to be written to the journal at the next sync.
    fn queue_checksums(&self, changed: impl IntoIterator<Item = (usize, u32)>) {
        let mut notes = self.lock_journal();
        if notes.journal.is_some() {
            let numbered = changed.into_iter();
            let sums = numbered.filter_map(|(index, sum)| Some((u32::try_from(index).ok()?, sum)));
            notes.changed.extend(sums);
        }
    }

    /// Writes changed checksums to the journal, before the blocks are durable.
    fn write_journal(&self) {
        let mut notes = self.lock_journal();
        let JournalState { changed, journal } = &mut *notes;
        let Some(open) = journal.as_mut().filter(|_| !changed.is_empty()) else {
            return;
        };
        if let Err(error) = open.append(changed) {
            *journal = None;
            self.end_journal(&error);
        }
        changed.clear();
        if journal.as_ref().is_some_and(Journal::exceeds_limit) {
            drop(notes);
            self.begin_journal();
        }
    }

    fn read_covering(&self, offset: u64, length: usize) -> io::Result<(u64, Vec<u8>)> {
        let block_bytes = BLOCK_BYTES as u64;
        let start = offset / block_bytes * block_bytes;
        let end = (offset + length as u64).next_multiple_of(block_bytes);
        let end = end.min(self.file.len()?).max(start);
        let mut bytes = vec![0; to_usize(end - start)?];
        self.file.read(start, &mut bytes)?;
        Ok((start, bytes))
    }

    /// Verifies whole blocks, and records checksums that were unknown.
    fn verify(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let first = to_usize(start)? / BLOCK_BYTES;
        let mut unknown = Vec::new();
        {
            let sums = self.sums.read().unwrap_or_else(PoisonError::into_inner);
            for (index, block) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
                match (
                    sums.get(index).copied().unwrap_or(UNKNOWN),
                    compute_checksum(block),
                ) {
                    (UNKNOWN, found) => unknown.push((index, found)),
                    (known, found) if known == found => {}
                    _ => return Err(damaged_block(index)),
                }
            }
        }
        if !unknown.is_empty() {
            self.record_checksums(&unknown);
        }
        Ok(())
    }

    fn record_checksums(&self, found: &[(usize, u32)]) {
        {
            let mut sums = self.sums.write().unwrap_or_else(PoisonError::into_inner);
            for (index, found) in found {
                if let Some(sum) = sums.get_mut(*index) {
                    *sum = *found;
                }
            }
        }
        self.queue_checksums(found.iter().copied());
    }

    fn set_checksums(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let first = to_usize(start)? / BLOCK_BYTES;
        let blocks = bytes.chunks(BLOCK_BYTES).map(compute_checksum);
        let found: Vec<_> = (first..).zip(blocks).collect();
        self.record_checksums(&found);
        Ok(())
    }
}

/// The backend passed to redb, which shares the blocks with other handles.
#[derive(Debug, Clone)]
pub(super) struct BlockFile(pub(super) Arc<Blocks>);

impl StorageBackend for BlockFile {
    fn len(&self) -> io::Result<u64> {
        self.0.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}

impl Blocks {
    pub(super) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if is_block_aligned(offset, out.len()) {
            self.file.read(offset, out)?;
            return self.verify(offset, out);
        }
        let (start, bytes) = self.read_covering(offset, out.len())?;
        self.verify(start, &bytes)?;
        let from = to_usize(offset - start)?;
        let wanted = bytes.get(from..from + out.len());
        out.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.is_unsynced.store(true, Ordering::Release);
        let is_whole = self.file.len()?.is_multiple_of(BLOCK_BYTES as u64);
        self.file.set_len(length)?;
        let mut sums = self.sums.write().unwrap_or_else(PoisonError::into_inner);
        let zeros = compute_checksum(&[0; BLOCK_BYTES]);
        sums.resize(to_usize(length)?.div_ceil(BLOCK_BYTES), zeros);
        if !is_whole || !length.is_multiple_of(BLOCK_BYTES as u64) {
            sums.fill(UNKNOWN);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write_journal();
        self.file.sync_data()?;
        self.is_unsynced.store(false, Ordering::Release);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.is_unsynced.store(true, Ordering::Release);
        if is_block_aligned(offset, data.len()) {
            self.file.write(offset, data)?;
            return self.set_checksums(offset, data);
        }
        let (start, mut bytes) = self.read_covering(offset, data.len())?;
        self.verify(start, &bytes)?;
        let from = to_usize(offset - start)?;
        let position = bytes.get_mut(from..from + data.len());
        position
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(data);
        // The checksum is recorded before the write: after a crash in between, either checksum is
        // accepted.
        self.set_checksums(start, &bytes)?;
        self.write_journal();
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        let is_saved = !self.is_unsynced.load(Ordering::Acquire) && {
            let sums = self.sums.read().unwrap_or_else(PoisonError::into_inner);
            // Without checksums the file is scanned at the next start, so an error only costs time.
            self.medium
                .store_checksums(&encode_checksums(&sums))
                .is_ok()
        };
        if is_saved {
            self.medium.end_journal();
        }
        tracing::debug!(is_saved, "closed the store");
        self.file.close()
    }
}

fn is_block_aligned(offset: u64, length: usize) -> bool {
    offset.is_multiple_of(BLOCK_BYTES as u64) && length.is_multiple_of(BLOCK_BYTES)
}

/// Computes the checksum of a block; never [`UNKNOWN`].
fn compute_checksum(block: &[u8]) -> u32 {
    crc32c::crc32c(block).max(UNKNOWN + 1)
}

fn damaged_block(index: usize) -> io::Error {
    let why = format!("block {index} of the store's file was modified on disk");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn to_usize(number: u64) -> io::Result<usize> {
    usize::try_from(number).map_err(io::Error::other)
}

fn encode_checksums(sums: &[u32]) -> Vec<u8> {
    let body = std::iter::once(&LAYOUT).chain(sums);
    let body: Vec<u8> = body.flat_map(|sum| sum.to_be_bytes()).collect();
    [&crc32c::crc32c(&body).to_be_bytes(), body.as_slice()].concat()
}

fn decode_checksums(stored: &[u8]) -> Option<Vec<u32>> {
    let (checksum, body) = stored.split_first_chunk::<4>()?;
    let (numbers, rest) = body.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes));
    let is_intact = rest.is_empty() && *checksum == crc32c::crc32c(body).to_be_bytes();
    (is_intact && numbers.next() == Some(LAYOUT)).then(|| numbers.collect())
}
