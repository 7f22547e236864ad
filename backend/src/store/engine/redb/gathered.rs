//! Writes that wait for the next sync, so that neighbours reach the disk in one piece.

use std::{collections::BTreeMap, ops::Range};

/// Bytes that are written at once; readers wait that long at most.
const RUN_BYTES: usize = 256 * 1024;

/// Writes that wait, by where they begin in the file.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Where the bytes of each lie.
    pieces: BTreeMap<u64, Range<usize>>,
    bytes: Vec<u8>,
}

/// What waits for a stretch of the file.
#[derive(Debug)]
pub(super) enum Waits<'a> {
    /// Nothing.
    Nothing,
    /// All of it.
    Whole(&'a [u8]),
    /// A part of it, or more than it.
    Partly,
}

impl Gathered {
    /// How many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What waits for a stretch.
    pub(super) fn waits(&self, offset: u64, length: usize) -> Waits<'_> {
        let end = offset + length as u64;
        let Some((begin, piece)) = self.pieces.range(..end).next_back() else {
            return Waits::Nothing;
        };
        if *begin == offset && piece.len() == length {
            Waits::Whole(&self.bytes[piece.clone()])
        } else if begin + piece.len() as u64 > offset {
            Waits::Partly
        } else {
            Waits::Nothing
        }
    }

    /// Takes a write; what waits for the stretch must be nothing or the whole.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        if let Some(piece) = self.pieces.get(&offset)
            && piece.len() == data.len()
        {
            self.bytes[piece.clone()].copy_from_slice(data);
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(data);
        self.pieces.insert(offset, start..self.bytes.len());
    }

    /// Puts the first pieces that lie side by side into `run`; answers where they begin. They wait
    /// until they are forgotten.
    pub(super) fn first_run(&self, run: &mut Vec<u8>) -> Option<u64> {
        run.clear();
        let begin = *self.pieces.first_key_value()?.0;
        for (offset, piece) in &self.pieces {
            let is_next = *offset == begin + run.len() as u64;
            if !is_next || (!run.is_empty() && run.len() + piece.len() > RUN_BYTES) {
                break;
            }
            run.extend_from_slice(&self.bytes[piece.clone()]);
        }
        Some(begin)
    }

    /// Forgets what begins before a place of the file.
    pub(super) fn forget_before(&mut self, end: u64) {
        while let Some(first) = self.pieces.first_entry()
            && *first.key() < end
        {
            first.remove();
        }
        if self.pieces.is_empty() {
            self.bytes.clear();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Gathered, Waits};

    #[test]
    fn neighbours_make_a_run_in_whatever_order_they_came() {
        let mut gathered = Gathered::default();
        for (offset, byte) in [(8, 3), (0, 1), (4, 2), (20, 4), (4, 5)] {
            gathered.add(offset, &[byte; 4]);
        }
        let mut run = Vec::new();
        assert_eq!(gathered.first_run(&mut run), Some(0));
        assert_eq!(run, [[1; 4], [5; 4], [3; 4]].concat());
        gathered.forget_before(12);
        assert_eq!(gathered.first_run(&mut run), Some(20));
        assert_eq!(run, [4; 4]);
        gathered.forget_before(24);
        assert_eq!(gathered.first_run(&mut run), None);
    }

    #[test]
    fn a_stretch_waits_as_a_whole_or_in_part_or_not() {
        let mut gathered = Gathered::default();
        gathered.add(8, &[1; 8]);
        assert!(matches!(gathered.waits(8, 8), Waits::Whole([1, ..])));
        for (offset, length) in [(8, 4), (4, 8), (12, 8), (0, 32)] {
            assert!(matches!(gathered.waits(offset, length), Waits::Partly));
        }
        for (offset, length) in [(0, 8), (16, 8)] {
            assert!(matches!(gathered.waits(offset, length), Waits::Nothing));
        }
    }
}
