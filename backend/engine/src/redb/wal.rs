//! The log in front of the tree: two files used in turns. A group of sets is one frame, one write
//! and one sync; what was answered is in it.
//!
//! A frame begins at a multiple of 512 bytes and carries its checksum, the life of the store that it
//! belongs to, and its position in the change log. Files are filled with zeros before they are written
//! to, and are never cut: to overwrite is cheaper than to grow. What an earlier use of a file left
//! behind the newest frame is of another life, or of an earlier position.

use std::io;

use redb::StorageBackend;

use super::{fault::Fault, medium::Medium};
use crate::fault::EngineError;

/// The checksum, the length of the rows, the life, the position.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8;
const SECTOR_BYTES: usize = 512;
/// A file begins with so many bytes, and grows by as much as it has,
const FIRST_BYTES: u64 = 256 * 1024;
/// but by no more than this.
const GROWTH_MAX: u64 = 4 * 1024 * 1024;
/// Zeros written at a time.
const ZEROS: usize = 256 * 1024;

/// The log.
#[derive(Debug)]
pub(super) struct Wal {
    files: [LogFile; 2],
    /// Which file is written.
    active: usize,
    /// Where its next frame begins.
    offset: u64,
    /// A file is not made longer than this, unless one frame needs it.
    bytes_max: u64,
    life: u64,
    /// The frame that is being made, or was made last.
    frame: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    file: Box<dyn StorageBackend>,
    /// How far it can be written to.
    length: u64,
}

/// Why a frame was not written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) error: io::Error,
    /// Whether it may be on disk anyway.
    pub(super) is_open: bool,
}

/// A group as it was read.
#[derive(Debug)]
pub(super) struct Frame {
    position: u64,
    /// Its rows, as a batch has them.
    pub(super) rows: Vec<u8>,
}

impl Wal {
    /// Opens the files, and makes them where they are missing.
    pub(super) fn open(medium: &dyn Medium, bytes_max: u64) -> io::Result<Self> {
        let open = |number| {
            let file = medium.open_log(number)?;
            let length = file.len()?;
            let mut file = LogFile { file, length };
            if length < FIRST_BYTES {
                file.grow(FIRST_BYTES)?;
            }
            io::Result::Ok(file)
        };
        Ok(Self {
            files: [open(0)?, open(1)?],
            active: 0,
            offset: 0,
            bytes_max,
            life: 0,
            frame: Vec::new(),
        })
    }

    /// Reads the frames of a life that follow a position, in order.
    ///
    /// # Errors
    /// Where a frame is missing that a later one follows.
    pub(super) fn read(&self, life: u64, after: u64) -> Result<Vec<Frame>, Fault> {
        let mut found = Vec::new();
        for file in &self.files {
            let length = usize::try_from(file.length).map_err(io::Error::other)?;
            let mut bytes = vec![0; length];
            file.file.read(0, &mut bytes)?;
            frames(&bytes, life, after, &mut found);
        }
        found.sort_by_key(|frame| frame.position);
        found.dedup_by_key(|frame| frame.position);
        let follows = |(frame, position): (&Frame, u64)| frame.position == position;
        if !found.iter().zip(after + 1..).all(follows) {
            let why = "a part of its log is missing that later parts follow";
            return Err(EngineError::Corrupt(why.into()).into());
        }
        Ok(found)
    }

    /// Begins with empty files, for frames of a life.
    pub(super) fn begin(&mut self, life: u64) {
        (self.active, self.offset, self.life) = (0, 0, life);
    }

    /// Begins a frame.
    pub(super) fn begin_frame(&mut self, position: u64) {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; 8]);
        self.frame.extend_from_slice(&self.life.to_be_bytes());
        self.frame.extend_from_slice(&position.to_be_bytes());
    }

    /// Adds rows to the frame.
    pub(super) fn push(&mut self, rows: &[u8]) {
        self.frame.extend_from_slice(rows);
    }

    /// Makes the frame whole.
    pub(super) fn end_frame(&mut self) {
        let rows_bytes = u32::try_from(self.frame.len() - HEAD_BYTES);
        let rows_bytes = rows_bytes.expect("a group is far below 4 GiB");
        self.frame[4..8].copy_from_slice(&rows_bytes.to_be_bytes());
        let checksum = crc32c::crc32c(&self.frame[4..]);
        self.frame[..4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The rows of the frame that was made last.
    pub(super) fn rows(&self) -> &[u8] {
        let rows_bytes = self.frame[4..8].try_into().map_or(0, u32::from_be_bytes);
        &self.frame[HEAD_BYTES..HEAD_BYTES + rows_bytes as usize]
    }

    /// Whether the frame has room in the file that is written.
    pub(super) fn fits(&self) -> bool {
        self.offset + self.frame.len().next_multiple_of(SECTOR_BYTES) as u64 <= self.bytes_max
    }

    /// How full the file is that is written: from 0 to 1.
    pub(super) fn fill(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let share = self.offset as f64 / self.bytes_max as f64;
        share
    }

    /// Writes the frame that was made last, and syncs it.
    ///
    /// # Errors
    /// After one that leaves open what is on disk, the frame must be written to the other file: no
    /// position of the log has two contents.
    pub(super) fn append(&mut self) -> Result<(), Unwritten> {
        self.frame
            .resize(self.frame.len().next_multiple_of(SECTOR_BYTES), 0);
        let file = &mut self.files[self.active];
        let end = self.offset + self.frame.len() as u64;
        if end > file.length {
            let step = file.length.clamp(FIRST_BYTES, GROWTH_MAX);
            let most = (file.length + step).min(self.bytes_max);
            let grown = file.grow(most.max(end));
            grown.map_err(|error| Unwritten {
                error,
                is_open: false,
            })?;
        }
        let file = &file.file;
        let written = file.write(self.offset, &self.frame);
        let synced = written.and_then(|()| file.sync_data());
        synced.map_err(|error| Unwritten {
            error,
            is_open: true,
        })?;
        self.offset = end;
        Ok(())
    }

    /// Continues in the other file, whose frames must all be in the tree.
    pub(super) fn turn(&mut self) {
        (self.active, self.offset) = (1 - self.active, 0);
    }
}

impl LogFile {
    /// Makes it longer, with zeros.
    fn grow(&mut self, length: u64) -> io::Result<()> {
        let old = self.length;
        let grown = self.file.set_len(length).and_then(|()| {
            let zeros = vec![0; ZEROS];
            let mut at = old;
            while at < length {
                let count = (length - at).min(ZEROS as u64);
                let zeros = &zeros[..usize::try_from(count).unwrap_or(ZEROS)];
                self.file.write(at, zeros)?;
                at += count;
            }
            Ok(())
        });
        match grown {
            Ok(()) => self.length = length,
            // What was taken is given back, as far as that goes.
            Err(_) => drop(self.file.set_len(old)),
        }
        grown
    }
}

/// Finds all whole frames of a life whose position follows another: also those behind one that is
/// not whole, which they report on.
fn frames(bytes: &[u8], life: u64, after: u64, found: &mut Vec<Frame>) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        match frame(rest, life) {
            Some((position, rows)) => {
                at += (HEAD_BYTES + rows.len()).next_multiple_of(SECTOR_BYTES);
                if position > after {
                    let rows = rows.to_vec();
                    found.push(Frame { position, rows });
                }
            }
            None => at += SECTOR_BYTES,
        }
    }
}

/// The frame that begins here, if it is whole and of that life.
fn frame(bytes: &[u8], life: u64) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_be_bytes);
    if number(8) != life {
        return None;
    }
    let checksum: [u8; 4] = head[..4].try_into().ok()?;
    let rows_bytes = u32::from_be_bytes(head[4..8].try_into().ok()?) as usize;
    let rows = rest.get(..rows_bytes)?;
    let sum = crc32c::crc32c(&bytes[4..HEAD_BYTES + rows_bytes]);
    (sum.to_be_bytes() == checksum).then_some((number(16), rows))
}
