//! Keys whose bytes sort in the order of their parts.

use crate::domain::{EventId, Occurrence, RecordId, RevisionId, RevisionKind};

#[derive(Debug)]
pub struct Key(Vec<u8>);

const KEY_BYTES: usize = 64;

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

impl Key {
    pub fn new() -> Self {
        Self(Vec::with_capacity(KEY_BYTES))
    }

    #[must_use]
    pub fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    #[must_use]
    pub fn number(mut self, number: u32) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Appends a time in milliseconds since 1970. Earlier times sort first.
    #[must_use]
    pub fn time_ms(mut self, at_ms: i64) -> Self {
        let sortable = at_ms.cast_unsigned() ^ (1 << 63);
        self.0.extend_from_slice(&sortable.to_be_bytes());
        self
    }

    #[must_use]
    pub fn id(mut self, id: RecordId) -> Self {
        self.0.extend_from_slice(&id.to_bytes());
        self
    }

    #[must_use]
    pub fn event(mut self, event: EventId) -> Self {
        self.0.extend_from_slice(&event.to_bytes());
        self
    }

    /// Appends the tie-breaker for occurrences with equal sort keys. It never changes: start in ms
    /// (8 bytes), sort key of the event id as text (8 bytes), number (4 bytes).
    #[must_use]
    pub fn tie_breaker(mut self, occurrence: &Occurrence) -> Self {
        self = self.time_ms(occurrence.start_ms);
        let order = occurrence.event.sort_prefix();
        self.0.extend_from_slice(&order.to_be_bytes());
        self.number(occurrence.number)
    }

    /// Appends a revision of a trigger or rule; revisions of one name are adjacent, oldest first.
    #[must_use]
    pub fn revision(self, of: RevisionKind, which: &RevisionId) -> Self {
        let named = self.byte(of as u8).name(which.name.as_str()).id(which.id);
        named.remainder(&which.revision.to_be_bytes())
    }

    /// Appends a name and a terminating NUL, which names never contain.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self
    }

    /// Appends raw bytes. Only allowed as the last part of a key.
    #[must_use]
    pub fn remainder(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn build(self) -> Vec<u8> {
        self.0
    }
}

/// Reads the time written by [`Key::time_ms`] at an offset of a key.
pub fn read_time_ms(key: &[u8], at: usize) -> Option<i64> {
    let bytes = key.get(at..at + 8)?.try_into().ok()?;
    Some((u64::from_be_bytes(bytes) ^ (1 << 63)).cast_signed())
}

/// Reads the id written by [`Key::id`] at an offset of a key.
pub fn read_id(key: &[u8], at: usize) -> Option<RecordId> {
    Some(RecordId::from_bytes(key.get(at..at + 16)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_moments_sort_chronologically() {
        let moments = [i64::MIN, -1, 0, 1, 1_700_000_000_000, i64::MAX];
        let keys = moments.map(|at_ms| Key::new().time_ms(at_ms).build());
        assert!(keys.is_sorted());
        assert_eq!(keys.map(|key| read_time_ms(&key, 0).unwrap()), moments);
    }
}
