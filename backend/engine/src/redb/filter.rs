//! A blocked Bloom filter over the events in a run.

use super::cell::Space;
use crate::index::Index;

/// Bits per event, for about 1 % false positives.
const BITS_EACH: u64 = 12;
/// Words per block. All bits of an event are in one block, the size of a cache line.
const BLOCK_WORDS: u64 = 8;
const BITS_SET: u32 = 5;
/// Length of an event's id, the prefix of its entries' keys.
const EVENT_BYTES: usize = 16;

/// The space of rows that are stored in runs.
pub(super) const SPACE: Space = Space::Entries(Index::OccurrenceByEvent);

pub(super) fn event_prefix(key: &[u8]) -> u128 {
    let event = Space::strip_prefix_byte(key);
    let mut padded = [0; EVENT_BYTES];
    let length = event.len().min(EVENT_BYTES);
    padded[..length].copy_from_slice(&event[..length]);
    u128::from_be_bytes(padded)
}

/// Returns the event that all keys of a range belong to, or `None` if there may be several.
pub(super) fn common_event(start: &[u8], end: &[u8]) -> Option<u128> {
    if Space::strip_prefix_byte(start).len() < EVENT_BYTES {
        return None;
    }
    let (first, past) = (event_prefix(start), event_prefix(end));
    let is_whole =
        start.first() == end.first() && Space::strip_prefix_byte(end).len() == EVENT_BYTES;
    let is_one = first == past || (is_whole && first.checked_add(1) == Some(past));
    is_one.then_some(first)
}

/// A set of events that may be present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    pub(super) fn for_events(count: u64) -> Self {
        let blocks = (count * BITS_EACH).div_ceil(64 * BLOCK_WORDS).max(1);
        let words = usize::try_from(blocks * BLOCK_WORDS).unwrap_or(usize::MAX);
        Self {
            words: vec![0; words],
        }
    }

    pub(super) fn add(&mut self, event: u128) {
        for (word, bit) in self.bit_positions(event) {
            self.words[word] |= bit;
        }
    }

    /// Whether an event may be present; false is definite.
    pub(super) fn may_contain(&self, event: u128) -> bool {
        let mut bits = self.bit_positions(event);
        bits.all(|(word, bit)| self.words[word] & bit != 0)
    }

    fn bit_positions(&self, event: u128) -> impl Iterator<Item = (usize, u64)> + use<> {
        let low = u64::try_from(event & u128::from(u64::MAX)).unwrap_or_default();
        let high = u64::try_from(event >> 64).unwrap_or_default();
        let (choice, mut positions) = (mix_bits(high ^ low.rotate_left(32)), mix_bits(low ^ high));
        let blocks = self.words.len() as u64 / BLOCK_WORDS;
        // The upper half of the product is evenly distributed below the number of blocks.
        let block = (u128::from(choice) * u128::from(blocks)) >> 64;
        let first = usize::try_from(block).unwrap_or_default() * 8;
        (0..BITS_SET).map(move |_| {
            let position = positions % (64 * BLOCK_WORDS);
            positions >>= 9;
            let word = usize::try_from(position / 64).unwrap_or_default();
            (first + word, 1 << (position % 64))
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let is_whole = rest.is_empty() && !words.is_empty() && words.len() % 8 == 0;
        is_whole.then(|| Self {
            words: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        })
    }
}

fn mix_bits(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Filter, SPACE, common_event, event_prefix};
    use crate::read::Range;

    #[test]
    fn filter_finds_added_events_with_few_false_positives() {
        let mut filter = Filter::for_events(10_000);
        for event in 0..10_000_u128 {
            filter.add(event << 3);
        }
        let filter = Filter::from_bytes(&filter.to_bytes()).unwrap();
        assert!((0..10_000_u128).all(|event| filter.may_contain(event << 3)));
        let wrong = (0..10_000_u128).filter(|event| filter.may_contain((event << 3) + 1));
        let wrong = wrong.count();
        assert!(wrong < 300, "{wrong} of 10,000 absent keys may be present");
        assert_eq!(Filter::from_bytes(b"short"), None);
        assert_eq!(Filter::from_bytes(b""), None);
    }

    #[test]
    fn range_within_one_event_is_recognized() {
        let event_of_range = |range: &Range| {
            let range = SPACE.range(range);
            common_event(&range.start, &range.end.unwrap())
        };
        let event = [7; 16];
        let id = u128::from_be_bytes(event);
        assert_eq!(event_prefix(&SPACE.key(&event)), id);
        assert_eq!(event_of_range(&Range::with_prefix(&event)), Some(id));
        let longer = [&event[..], &[1, 2, 3, 4]].concat();
        assert_eq!(event_of_range(&Range::with_prefix(&longer)), Some(id));
        let rest = Range {
            start: longer,
            ..Range::with_prefix(&event)
        };
        assert_eq!(event_of_range(&rest), Some(id));
        let two = Range {
            start: event.into(),
            end: Some([8; 16].into()),
        };
        for several in [
            Range::with_prefix(&event[..15]),
            Range::with_prefix(b""),
            two,
        ] {
            assert_eq!(event_of_range(&several), None);
        }
        // The last event: its range ends with the space.
        let last = Range::with_prefix(&[255; 16]);
        assert_eq!(event_of_range(&last), None);
    }
}
