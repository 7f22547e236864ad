//! A checksum for every block of the file, so that no changed byte is ever taken for data.
//!
//! redb verifies its pages when it repairs, not when it reads: a flipped bit in a branch page hides
//! records, and no checksum inside a record can tell. So the sums of all blocks are held in memory,
//! kept beside the file when it is closed, and compared with every block that is read.

use std::{
    io,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::StorageBackend;

use super::medium::Medium;

const BLOCK_BYTES: usize = 4096;
/// Stands for a sum that is not known yet.
const UNKNOWN: u32 = 0;
const LAYOUT: u32 = 1;

/// A file whose blocks are compared with their checksums.
#[derive(Debug)]
pub(super) struct Blocks {
    file: Box<dyn StorageBackend>,
    medium: Arc<dyn Medium>,
    sums: RwLock<Vec<u32>>,
    /// Whether something was written that was not synced, or failed to be.
    is_unsynced: AtomicBool,
}

impl Blocks {
    /// Opens the file with the sums that were kept for it; answers whether there were any.
    pub(super) fn open(medium: Arc<dyn Medium>) -> io::Result<(Self, bool)> {
        let file = medium.open()?;
        let block_count = usize_of(file.len()?)?.div_ceil(BLOCK_BYTES);
        let kept = medium.checksums().and_then(|kept| decode(&kept));
        let mut blocks = Self {
            file,
            medium,
            sums: RwLock::new(vec![UNKNOWN; block_count]),
            is_unsynced: AtomicBool::new(false),
        };
        let is_known = match kept {
            // The first block changes with every commit, so it tells whether the sums are of this
            // state of the file.
            Some(sums) if sums.len() == block_count && blocks.first_block_has(sums[0])? => {
                blocks.sums = RwLock::new(sums);
                true
            }
            _ => block_count == 0,
        };
        Ok((blocks, is_known))
    }

    fn first_block_has(&self, expected: u32) -> io::Result<bool> {
        let (_, block) = self.covering(0, 1)?;
        Ok(sum(&block) == expected)
    }

    /// Reads the whole blocks that a stretch touches; answers where they begin.
    fn covering(&self, offset: u64, length: usize) -> io::Result<(u64, Vec<u8>)> {
        let block_bytes = BLOCK_BYTES as u64;
        let start = offset / block_bytes * block_bytes;
        let end = (offset + length as u64).next_multiple_of(block_bytes);
        let end = end.min(self.file.len()?).max(start);
        let mut bytes = vec![0; usize_of(end - start)?];
        self.file.read(start, &mut bytes)?;
        Ok((start, bytes))
    }

    /// Compares whole blocks with their sums, and learns those that are not known.
    fn verify(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let first = usize_of(start)? / BLOCK_BYTES;
        let mut unknown = Vec::new();
        {
            let sums = self.sums.read().unwrap_or_else(PoisonError::into_inner);
            for (index, block) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
                match (sums.get(index).copied().unwrap_or(UNKNOWN), sum(block)) {
                    (UNKNOWN, found) => unknown.push((index, found)),
                    (known, found) if known == found => {}
                    _ => return Err(damaged(index)),
                }
            }
        }
        if !unknown.is_empty() {
            let mut sums = self.sums.write().unwrap_or_else(PoisonError::into_inner);
            for (index, found) in unknown {
                if let Some(sum) = sums.get_mut(index) {
                    *sum = found;
                }
            }
        }
        Ok(())
    }

    fn set_sums(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let first = usize_of(start)? / BLOCK_BYTES;
        let mut sums = self.sums.write().unwrap_or_else(PoisonError::into_inner);
        for (index, block) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
            if let Some(known) = sums.get_mut(index) {
                *known = sum(block);
            }
        }
        Ok(())
    }
}

impl StorageBackend for Blocks {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if is_whole(offset, out.len()) {
            self.file.read(offset, out)?;
            return self.verify(offset, out);
        }
        let (start, bytes) = self.covering(offset, out.len())?;
        self.verify(start, &bytes)?;
        let from = usize_of(offset - start)?;
        let wanted = bytes.get(from..from + out.len());
        out.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.is_unsynced.store(true, Ordering::Release);
        let is_whole = self.file.len()?.is_multiple_of(BLOCK_BYTES as u64);
        self.file.set_len(length)?;
        let mut sums = self.sums.write().unwrap_or_else(PoisonError::into_inner);
        let zeros = sum(&[0; BLOCK_BYTES]);
        sums.resize(usize_of(length)?.div_ceil(BLOCK_BYTES), zeros);
        if !is_whole || !length.is_multiple_of(BLOCK_BYTES as u64) {
            sums.fill(UNKNOWN);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.is_unsynced.store(false, Ordering::Release);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.is_unsynced.store(true, Ordering::Release);
        if is_whole(offset, data.len()) {
            self.file.write(offset, data)?;
            return self.set_sums(offset, data);
        }
        let (start, mut bytes) = self.covering(offset, data.len())?;
        self.verify(start, &bytes)?;
        let from = usize_of(offset - start)?;
        let place = bytes.get_mut(from..from + data.len());
        place
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(data);
        self.file.write(offset, data)?;
        self.set_sums(start, &bytes)
    }

    fn close(&self) -> io::Result<()> {
        let is_kept = !self.is_unsynced.load(Ordering::Acquire) && {
            let sums = self.sums.read().unwrap_or_else(PoisonError::into_inner);
            // Without them the file is read through at the next start, so a failure costs time only.
            self.medium.keep_checksums(&encode(&sums)).is_ok()
        };
        tracing::debug!(is_kept, "closed the store");
        self.file.close()
    }
}

fn is_whole(offset: u64, length: usize) -> bool {
    offset.is_multiple_of(BLOCK_BYTES as u64) && length.is_multiple_of(BLOCK_BYTES)
}

/// The checksum of a block; never [`UNKNOWN`].
fn sum(block: &[u8]) -> u32 {
    crc32c::crc32c(block).max(UNKNOWN + 1)
}

fn damaged(index: usize) -> io::Error {
    let why = format!("block {index} of the store's file was changed on disk");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn usize_of(number: u64) -> io::Result<usize> {
    usize::try_from(number).map_err(io::Error::other)
}

fn encode(sums: &[u32]) -> Vec<u8> {
    let body = std::iter::once(&LAYOUT).chain(sums);
    let body: Vec<u8> = body.flat_map(|sum| sum.to_be_bytes()).collect();
    [&crc32c::crc32c(&body).to_be_bytes(), body.as_slice()].concat()
}

fn decode(kept: &[u8]) -> Option<Vec<u32>> {
    let (checksum, body) = kept.split_first_chunk::<4>()?;
    let (numbers, rest) = body.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes));
    let is_intact = rest.is_empty() && *checksum == crc32c::crc32c(body).to_be_bytes();
    (is_intact && numbers.next() == Some(LAYOUT)).then(|| numbers.collect())
}
