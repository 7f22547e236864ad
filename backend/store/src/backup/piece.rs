//! One file of a backup, a piece: steps, each preceded by its length and checksum.

use std::{io, path::Path};

use bellwether_process::plain_file;
use sha2::{Digest, Sha256};

use super::step::Step;
use crate::limits::{BACKUP_MESSAGE_BYTES_MAX, BACKUP_PIECE_BYTES};

/// Magic bytes and version at the start of a piece.
pub(super) const HEAD: [u8; 12] = *b"BWBACKUP\0\0\0\x01";
/// Maximum bytes of a piece: it is closed once it is full, and its last step can be large.
const BYTES_MAX: u64 = BACKUP_PIECE_BYTES + 4 * BACKUP_MESSAGE_BYTES_MAX as u64;
const FRAME_BYTES: usize = 8;

pub(super) fn piece_name(number: usize) -> String {
    format!("piece-{number:06}")
}

pub(super) fn is_piece_name(name: &str) -> bool {
    let digits = name.strip_prefix("piece-");
    digits
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Encodes a step with its length and checksum.
pub(super) fn encode_frame(step: Step) -> io::Result<Vec<u8>> {
    let body = step.encode();
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(FRAME_BYTES + body.len());
    frame.extend(length.to_be_bytes());
    frame.extend(crc32c::crc32c(&body).to_be_bytes());
    frame.extend(body);
    Ok(frame)
}

#[derive(Debug)]
pub(super) struct PieceContent {
    bytes: Vec<u8>,
    steps: Vec<(usize, usize)>,
    pub(super) whole_bytes: usize,
}

impl PieceContent {
    /// Reads a piece and verifies the checksum of each step. The first damaged step and all later
    /// ones are omitted without an error.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let bytes = plain_file::read_no_link(path, BYTES_MAX)?;
        let mut content = Self {
            bytes,
            steps: Vec::new(),
            whole_bytes: 0,
        };
        if content.bytes.starts_with(&HEAD) {
            content.whole_bytes = HEAD.len();
            while let Some((start, end)) = content.next_step() {
                content.steps.push((start, end));
                content.whole_bytes = end;
            }
        }
        Ok(content)
    }

    fn next_step(&self) -> Option<(usize, usize)> {
        let rest = self.bytes.get(self.whole_bytes..)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let body = rest.get(..length)?;
        (crc32c::crc32c(body) == u32::from_be_bytes(*checksum)).then(|| {
            let start = self.whole_bytes + FRAME_BYTES;
            (start, start + length)
        })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.whole_bytes == self.bytes.len() && !self.bytes.is_empty()
    }

    pub(super) fn size_and_checksum(&self) -> (u64, u32) {
        (self.bytes.len() as u64, crc32c::crc32c(&self.bytes))
    }

    pub(super) fn complete_steps(&self) -> &[u8] {
        self.bytes.get(..self.whole_bytes).unwrap_or_default()
    }

    pub(super) fn steps_in_order(&self) -> impl DoubleEndedIterator<Item = Option<Step>> {
        let steps = self.steps.iter();
        steps.map(|(start, end)| Step::decode(self.bytes.get(*start..*end)?))
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }

    pub(super) fn steps_newest_first(&self) -> impl Iterator<Item = Option<Step>> {
        self.steps_in_order().rev()
    }
}
