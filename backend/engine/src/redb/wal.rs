//! The log in front of the tree: two files used alternately. A group of sets is one frame, written
//! with one write and one sync. The log contains every confirmed set that is not in the tree.
//!
//! A frame begins at a multiple of 512 bytes and contains its checksum, the generation of the store
//! that it belongs to, and its position in the change log. Files are filled with zeros in advance
//! and never truncated, because overwriting is cheaper than growing. Bytes after the newest frame
//! are from another generation or have an earlier position.
//!
//! After a failed sync, no later sync of the same file is trusted for the frame: the kernel marks
//! its pages clean, so a later success is no proof. The frame is written to the other file, or the
//! writer stops until that is possible. A sector belongs to one frame, so overwriting a frame
//! leaves the others intact.
//!
//! The first sector of each file is its mark: a frame before all others that contains the minimum
//! length of the file. This distinguishes a file that is missing, empty, truncated or from another
//! generation from one that was not written to yet.

use std::io;

use redb::StorageBackend;

use super::{error::Failure, file::Generation, medium::Medium};
use crate::error::EngineError;

/// Size of a frame's head: the checksum, the length of the rows, the generation, the position.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8;
const SECTOR_BYTES: usize = 512;
/// Initial size of a file. A full file doubles in size, but grows by at most [`GROWTH_MAX`] at a
/// time.
const FIRST_BYTES: u64 = 256 * 1024;
const GROWTH_MAX: u64 = 4 * 1024 * 1024;
/// Zeros written at a time.
const ZEROS: usize = 256 * 1024;

/// Offset of the first frame, after the mark.
const FRAMES_AT: u64 = SECTOR_BYTES as u64;
/// The position stored in a mark; lower than that of every frame.
const MARK: u64 = 0;

#[derive(Debug)]
pub(super) struct Wal {
    files: [LogFile; 2],
    active: usize,
    offset: u64,
    /// Maximum size of a file, unless a single frame requires more.
    bytes_max: u64,
    life: u64,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    file: Box<dyn StorageBackend>,
    name: String,
    /// The size allocated for writing.
    length: u64,
}

#[derive(Debug)]
pub(super) struct FrameFailure {
    pub(super) error: io::Error,
    /// Whether the frame may be on disk anyway.
    pub(super) is_open: bool,
}

#[derive(Debug)]
pub(super) struct Frame {
    position: u64,
    pub(super) rows: Vec<u8>,
}

impl Wal {
    pub(super) fn open(medium: &dyn Medium, bytes_max: u64) -> io::Result<Self> {
        let open = |number| {
            let file = medium.open_log(number)?;
            io::Result::Ok(LogFile {
                length: file.len()?,
                name: medium.log_name(number),
                file,
            })
        };
        Ok(Self {
            files: [open(0)?, open(1)?],
            active: 0,
            offset: FRAMES_AT,
            bytes_max,
            life: 0,
            frame: Vec::new(),
        })
    }

    /// Reads the frames of a generation after a position, in order.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Incomplete`] if a file differs from the state in which it was
    /// written, or if a frame is missing before a later one.
    pub(super) fn read(&self, life: Generation, after: u64) -> Result<Vec<Frame>, Failure> {
        if life.is_marked {
            for file in &self.files {
                file.check(life.number)?;
            }
        }
        let found = self.scan_frames(life.number, after)?;
        if !found.iter().zip(after + 1..).all(is_next_frame) {
            let [first, second] = self.files.each_ref().map(|file| file.name.as_str());
            let why = format!("its log ({first}, {second}) has a gap");
            return Err(EngineError::Incomplete(why).into());
        }
        Ok(found)
    }

    /// Reads the frames of a generation after a position, up to the first gap.
    pub(super) fn read_frames(&self, life: u64, after: u64) -> Result<Vec<Frame>, Failure> {
        let found = self.scan_frames(life, after)?.into_iter().zip(after + 1..);
        let left = found.take_while(|(frame, position)| is_next_frame((frame, *position)));
        Ok(left.map(|(frame, _)| frame).collect())
    }

    fn scan_frames(&self, life: u64, after: u64) -> Result<Vec<Frame>, Failure> {
        let mut found = Vec::new();
        for file in &self.files {
            find_frames(&file.read()?, life, after, &mut found);
        }
        found.sort_by_key(|frame| frame.position);
        found.dedup_by_key(|frame| frame.position);
        Ok(found)
    }

    /// Starts with empty files for a new generation. Older frames must already be in the tree.
    pub(super) fn start_generation(&mut self, life: u64) -> io::Result<()> {
        (self.active, self.offset, self.life) = (0, FRAMES_AT, life);
        for file in &mut self.files {
            if file.length < FIRST_BYTES {
                file.grow(FIRST_BYTES)?;
            }
            file.write_mark(life)?;
            file.file.sync_data()?;
        }
        Ok(())
    }

    pub(super) fn begin_frame(&mut self, position: u64) {
        begin_frame(&mut self.frame, self.life, position);
    }

    pub(super) fn push(&mut self, rows: &[u8]) {
        self.frame.extend_from_slice(rows);
    }

    pub(super) fn end_frame(&mut self) {
        end_frame(&mut self.frame);
    }

    pub(super) fn frame_rows(&self) -> &[u8] {
        let rows_bytes = self.frame[4..8].try_into().map_or(0, u32::from_be_bytes);
        &self.frame[HEAD_BYTES..HEAD_BYTES + rows_bytes as usize]
    }

    pub(super) fn frame_fits(&self) -> bool {
        self.offset + self.frame.len().next_multiple_of(SECTOR_BYTES) as u64 <= self.bytes_max
    }

    /// Returns the used fraction of the current file, from 0 to 1.
    pub(super) fn fill_ratio(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let share = self.offset as f64 / self.bytes_max as f64;
        share
    }

    /// Writes and syncs the last frame.
    ///
    /// # Errors
    ///
    /// If an error may have left the frame on disk, the frame must be written to the other file, so
    /// that no position has two contents.
    pub(super) fn append(&mut self) -> Result<(), FrameFailure> {
        self.frame
            .resize(self.frame.len().next_multiple_of(SECTOR_BYTES), 0);
        let file = &mut self.files[self.active];
        let end = self.offset + self.frame.len() as u64;
        if end > file.length {
            let step = file.length.clamp(FIRST_BYTES, GROWTH_MAX);
            let most = (file.length + step).min(self.bytes_max);
            // The mark states the length of the file, so the length must be durable first.
            let grown = file.grow(most.max(end));
            let grown = grown.and_then(|()| file.write_mark(self.life));
            grown.map_err(|error| FrameFailure {
                error,
                is_open: false,
            })?;
        }
        let file = &file.file;
        let written = file.write(self.offset, &self.frame);
        let synced = written.and_then(|()| file.sync_data());
        synced.map_err(|error| FrameFailure {
            error,
            is_open: true,
        })?;
        self.offset = end;
        Ok(())
    }

    /// Switches to the other file, whose frames must all be in the tree.
    pub(super) fn switch_file(&mut self) {
        (self.active, self.offset) = (1 - self.active, FRAMES_AT);
    }
}

impl LogFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.length).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the mark of a generation, with the current length of the file.
    fn write_mark(&self, life: u64) -> io::Result<()> {
        let mut mark = Vec::new();
        begin_frame(&mut mark, life, MARK);
        mark.extend(self.length.to_be_bytes());
        end_frame(&mut mark);
        mark.resize(SECTOR_BYTES, 0);
        self.file.write(0, &mark)
    }

    /// Checks that the mark belongs to the generation and that the file has the length stated in
    /// it.
    fn check(&self, life: u64) -> Result<(), Failure> {
        let Self { name, length, .. } = self;
        let why = if *length == 0 {
            format!("its log file {name} is missing or empty")
        } else {
            let bytes = self.read()?;
            match decode_frame(&bytes, life) {
                Some((MARK, rows)) => {
                    let expected = rows.try_into().map_or(u64::MAX, u64::from_be_bytes);
                    if *length >= expected {
                        return Ok(());
                    }
                    format!("its log file {name} was truncated to {length} of {expected} bytes")
                }
                _ => format!("its log file {name} is not the one last used"),
            }
        };
        Err(EngineError::Incomplete(why).into())
    }

    /// Extends the file with zeros and syncs it. After a failure the length is as before, so the
    /// next attempt writes the zeros again.
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
            self.file.sync_data()
        });
        match grown {
            Ok(()) => self.length = length,
            // Releases the allocated space if possible.
            Err(_) => drop(self.file.set_len(old)),
        }
        grown
    }
}

fn begin_frame(frame: &mut Vec<u8>, life: u64, position: u64) {
    frame.clear();
    frame.extend_from_slice(&[0; 8]);
    frame.extend_from_slice(&life.to_be_bytes());
    frame.extend_from_slice(&position.to_be_bytes());
}

fn end_frame(frame: &mut [u8]) {
    let rows_bytes = u32::try_from(frame.len() - HEAD_BYTES);
    let rows_bytes = rows_bytes.expect("a group is far below 4 GiB");
    frame[4..8].copy_from_slice(&rows_bytes.to_be_bytes());
    let checksum = crc32c::crc32c(&frame[4..]);
    frame[..4].copy_from_slice(&checksum.to_be_bytes());
}

fn is_next_frame((frame, position): (&Frame, u64)) -> bool {
    frame.position == position
}

/// Finds all whole frames of a generation after a position, including those after a gap, which
/// prove that frames are missing.
fn find_frames(bytes: &[u8], life: u64, after: u64, found: &mut Vec<Frame>) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        match decode_frame(rest, life) {
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

/// Decodes the frame at the start of the bytes, if it is whole and of that generation.
fn decode_frame(bytes: &[u8], life: u64) -> Option<(u64, &[u8])> {
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
