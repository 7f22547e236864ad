//! An append-only list of buffers that never move, so that readers require no lock.

use std::sync::{
    OnceLock,
    atomic::{AtomicU32, Ordering},
};

/// Capacity of the first shelf; each following shelf doubles it.
const FIRST_SHELF: u32 = 64;
/// Number of shelves; enough for any `u32`.
const SHELVES: usize = 27;

type Slot = OnceLock<Vec<u8>>;

#[derive(Debug, Default)]
pub(super) struct Arena {
    shelves: [OnceLock<Box<[Slot]>>; SHELVES],
    count: AtomicU32,
}

impl Arena {
    /// Stores a buffer and returns its number. Only one thread adds.
    pub(super) fn add(&self, buffer: Vec<u8>) -> u32 {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (shelf, at) = locate_buffer(number);
        let slots = self.shelves[shelf].get_or_init(|| {
            let count = (FIRST_SHELF as usize) << shelf;
            std::iter::repeat_with(OnceLock::new).take(count).collect()
        });
        // Each number is assigned once, so the slot is empty.
        slots[at].get_or_init(|| buffer);
        number
    }

    /// Returns a buffer, or an empty slice if the number is not assigned.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let (shelf, at) = locate_buffer(number);
        let slot = self.shelves[shelf].get().and_then(|slots| slots.get(at));
        slot.and_then(OnceLock::get).map_or(&[], Vec::as_slice)
    }
}

fn locate_buffer(number: u32) -> (usize, usize) {
    let number = u64::from(number) + u64::from(FIRST_SHELF);
    let shelf = number.ilog2() - FIRST_SHELF.ilog2();
    let at = number - (u64::from(FIRST_SHELF) << shelf);
    (shelf as usize, usize::try_from(at).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn buffers_are_found_by_number() {
        let arena = Arena::default();
        for number in 0..1_000_u32 {
            assert_eq!(arena.add(number.to_be_bytes().into()), number);
        }
        for number in 0..1_000_u32 {
            assert_eq!(arena.get(number), number.to_be_bytes());
        }
        assert!(arena.get(1_000).is_empty());
        assert!(arena.get(u32::MAX).is_empty());
    }
}
