//! An order-independent tally of index entries. Compares the entries that records require with
//! those of an index, without looking up each entry.

use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct EntryTally {
    pub(super) count: u64,
    sum: u128,
}

impl EntryTally {
    pub(super) fn add(&mut self, key: &[u8], target: &[u8]) {
        let hash = Sha256::new()
            .chain_update((key.len() as u64).to_be_bytes())
            .chain_update(key)
            .chain_update(target)
            .finalize();
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        self.count += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(half));
    }
}

#[cfg(test)]
mod tests {
    use super::EntryTally;

    fn tally_entries(entries: &[(&[u8], &[u8])]) -> EntryTally {
        let mut tally = EntryTally::default();
        for (key, target) in entries {
            tally.add(key, target);
        }
        tally
    }

    #[test]
    fn tally_depends_on_content_but_not_order() {
        let some = tally_entries(&[(b"a", b"1"), (b"b", b"2")]);
        assert_eq!(some, tally_entries(&[(b"b", b"2"), (b"a", b"1")]));
        for other in [
            tally_entries(&[(b"a", b"2"), (b"b", b"1")]),
            tally_entries(&[(b"a1", b""), (b"b", b"2")]),
            tally_entries(&[(b"a", b"1")]),
            tally_entries(&[(b"a", b"1"), (b"a", b"1")]),
        ] {
            assert_ne!(some, other);
        }
    }
}
