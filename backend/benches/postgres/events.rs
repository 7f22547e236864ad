//! An event as the engine stores it, and as a plain table would.

use bellwether_backend::store::{
    Index, Kind,
    engine::{Action, Change, Entry, Expect},
};

const VALUE_BYTES: usize = 500;

/// An occurrence of 500 bytes with five index entries, one of which moves at each repeat.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) key: Vec<u8>,
    /// Index keys by event, start, review and severity.
    pub(crate) columns: [Vec<u8>; 4],
    /// Index key by state and last event.
    pub(crate) state: Vec<u8>,
    number: u64,
    seen: u64,
}

const COLUMNS: [Index; 4] = [
    Index::OccurrenceByEvent,
    Index::OccurrenceByStart,
    Index::OccurrenceByReview,
    Index::OccurrenceBySeverity,
];

impl Event {
    pub(crate) fn numbered(number: u64) -> Self {
        let key = [[0; 8], number.to_be_bytes()].concat();
        // Spread like the id of an event.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let lead = |lead: &[u8]| [lead, &key].concat();
        let columns = [
            lead(&spread),
            lead(&[1]),
            lead(&[2]),
            lead(&[1, spread[0] % 5]),
        ];
        let state = [&[1][..], &number.to_be_bytes(), &key].concat();
        Self {
            key,
            columns,
            state,
            number,
            seen: number,
        }
    }

    pub(crate) fn value() -> Vec<u8> {
        vec![7; VALUE_BYTES]
    }

    fn entry(index: Index, key: &[u8]) -> Entry {
        Entry {
            index,
            key: key.into(),
        }
    }

    /// Returns the change that inserts the occurrence.
    pub(crate) fn appears(&self) -> Change {
        let columns = COLUMNS.iter().zip(&self.columns);
        let mut add: Vec<_> = columns
            .map(|(index, key)| Self::entry(*index, key))
            .collect();
        add.push(Self::entry(Index::OccurrenceByState, &self.state));
        let put = Action::Put(Self::value());
        Change {
            add,
            adds: true,
            ..Change::new(Kind::Occurrence, &self.key, Expect::Absent, put)
        }
    }

    /// Moves the index key by last event to the end, and returns the previous key.
    pub(crate) fn move_entry(&mut self) -> Vec<u8> {
        self.seen += 1 << 32;
        let state = [&[1][..], &self.seen.to_be_bytes(), &self.key].concat();
        std::mem::replace(&mut self.state, state)
    }

    /// Returns the change for a repeat.
    pub(crate) fn repeats(&mut self, version: u64) -> Change {
        let before = self.move_entry();
        let put = Action::Put(Self::value());
        Change {
            remove: vec![Self::entry(Index::OccurrenceByState, &before)],
            add: vec![Self::entry(Index::OccurrenceByState, &self.state)],
            ..Change::new(Kind::Occurrence, &self.key, Expect::Version(version), put)
        }
    }

    pub(crate) fn number(&self) -> i64 {
        i64::try_from(self.number).unwrap()
    }
}
