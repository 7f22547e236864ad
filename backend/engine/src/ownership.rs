//! Which of the processes that share a store does what: destinations are divided into slots, and each slot
//! has one owner. A process that has its store to itself owns all of them.

/// How many slots there are, for ever.
pub const SLOTS: usize = 256;
/// The slot after these: that of what one process does for all.
pub(crate) const LEAD: i16 = 256;

/// The slot of what a record with this key belongs to. It is the same in every version.
pub fn slot_of(key: &[u8]) -> u8 {
    let [low, ..] = mix(key).to_le_bytes();
    low
}

/// The slot by whose owner a record with this key is reviewed: one of 16, so that a commit about many records
/// rests on few slots. It is the same in every version.
pub fn review_slot_of(key: &[u8]) -> u8 {
    slot_of(key) & 0xf0
}

/// Spreads bytes over all numbers, the same way in every version.
pub(crate) fn mix(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// What a set of changes rests on: that the process still owns a slot, since the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The slot.
    pub slot: u16,
    /// It rises whenever the slot gets another owner.
    pub epoch: u64,
}

/// A slot that this process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedSlot {
    /// See [`Claim::epoch`].
    pub epoch: u64,
    /// Whether another process is to own it: nothing more begins then, and once nothing of it is under way
    /// that is reported with this number to [`crate::Cluster::vacate`].
    pub leaving: Option<u64>,
}

/// What one process owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owned {
    /// Everything, for ever.
    All,
    /// The slots that are there.
    Slots(Box<[Option<OwnedSlot>; SLOTS]>),
}

impl Owned {
    /// Nothing.
    pub fn none() -> Self {
        Self::Slots(Box::new([None; SLOTS]))
    }

    /// A slot, if this process owns it.
    pub fn slot(&self, slot: u8) -> Option<OwnedSlot> {
        match self {
            Self::All => Some(OwnedSlot {
                epoch: 0,
                leaving: None,
            }),
            Self::Slots(slots) => slots[usize::from(slot)],
        }
    }

    /// The slots that it owns and is to leave, with their numbers.
    pub fn leaving(&self) -> Vec<(u8, u64)> {
        let all = (0..=u8::MAX).filter_map(|slot| Some((slot, self.slot(slot)?.leaving?)));
        all.collect()
    }

    /// How many slots it owns.
    pub fn count(&self) -> usize {
        (0..=u8::MAX)
            .filter(|slot| self.slot(*slot).is_some())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slot_something_has_never_changes_and_all_slots_are_used() {
        let slots = [&b""[..], b"a", b"hook", &[7; 16]].map(slot_of);
        assert_eq!(slots, PINNED);
        let mut counts = [0_u32; SLOTS];
        for number in 0..25_600_u64 {
            let id = [7_u64.to_be_bytes(), number.to_be_bytes()].concat();
            counts[usize::from(slot_of(&id))] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 50 && *most < 150, "{least} to {most}");
    }

    const PINNED: [u8; 4] = [38, 91, 95, 235];
}
