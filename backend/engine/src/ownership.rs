//! Ownership of slots: destinations are hashed into slots, and each slot is owned by one of the
//! processes that share a store. A process with its own store owns all slots.

/// Number of slots; fixed forever.
pub const SLOTS: usize = 256;
/// The slot of the leader, after the regular ones.
pub(crate) const LEAD: i16 = 256;

/// Returns the slot for a key; stable across versions.
pub fn slot_for_key(key: &[u8]) -> u8 {
    let [low, ..] = hash_bytes(key).to_le_bytes();
    low
}

/// Returns the slot whose owner reviews a record: one of 16, so that a commit with many records
/// depends on few slots. Stable across versions.
pub fn review_slot_for_key(key: &[u8]) -> u8 {
    slot_for_key(key) & 0xf0
}

/// Hashes bytes; stable across versions.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// A precondition of a set of changes: the process still owns a slot in the same epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    pub slot: u16,
    /// Increases whenever the slot changes its owner.
    pub epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedSlot {
    pub epoch: u64,
    /// Set if another process is to own the slot. No new work starts then, and once no work is in
    /// flight, this number is passed to [`crate::Cluster::vacate`].
    pub leaving: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedSlots {
    All,
    /// The slots that are `Some`.
    Slots(Box<[Option<OwnedSlot>; SLOTS]>),
}

impl OwnedSlots {
    pub fn empty() -> Self {
        Self::Slots(Box::new([None; SLOTS]))
    }

    pub fn find(&self, slot: u8) -> Option<OwnedSlot> {
        match self {
            Self::All => Some(OwnedSlot {
                epoch: 0,
                leaving: None,
            }),
            Self::Slots(slots) => slots[usize::from(slot)],
        }
    }

    pub fn slots_to_leave(&self) -> Vec<(u8, u64)> {
        let all = (0..=u8::MAX).filter_map(|slot| Some((slot, self.find(slot)?.leaving?)));
        all.collect()
    }

    pub fn count(&self) -> usize {
        (0..=u8::MAX)
            .filter(|slot| self.find(*slot).is_some())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_stable_and_evenly_distributed() {
        let slots = [&b""[..], b"a", b"hook", &[7; 16]].map(slot_for_key);
        assert_eq!(slots, PINNED);
        let mut counts = [0_u32; SLOTS];
        for number in 0..25_600_u64 {
            let id = [7_u64.to_be_bytes(), number.to_be_bytes()].concat();
            counts[usize::from(slot_for_key(&id))] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 50 && *most < 150, "{least} to {most}");
    }

    const PINNED: [u8; 4] = [38, 91, 95, 235];
}
