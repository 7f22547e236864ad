//! The observed state of a store: whether it accepts events and can be read.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{change::DiskShare, error::EngineError};

const MEBIBYTE: u64 = 1024 * 1024;
/// Divisor of the floor below which the service's own work is refused as well.
const OWN_FLOOR_SHARE: u64 = 4;
/// Time for which writes that require no space do not end [`Condition::Full`].
const FULL_TIME_MIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    pub free_bytes: u64,
    /// Threshold below which events from senders are refused.
    pub floor_bytes: u64,
}

impl FreeSpace {
    pub fn available_share(self) -> DiskShare {
        if self.free_bytes >= self.floor_bytes {
            DiskShare::AboveFloor
        } else if self.free_bytes >= self.floor_bytes / OWN_FLOOR_SHARE {
            DiskShare::Reserve
        } else {
            DiskShare::All
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Writable,
    /// Events are refused; the free space is reserved for the service's own work.
    Short(FreeSpace),
    Full(String),
    /// Writes fail; reads may succeed.
    Unwritable(String),
    Damaged(String),
    /// The database does not respond, or this node has no connections to it.
    Unreachable,
}

impl Condition {
    /// Returns the state for an amount of free space; [`Condition::Writable`] if the amount is
    /// unknown.
    pub fn from_free_space(space: Option<FreeSpace>) -> Self {
        match space {
            Some(space) if space.available_share() != DiskShare::AboveFloor => Self::Short(space),
            _ => Self::Writable,
        }
    }

    /// Returns the state that a failed write indicates, or `None` if only that write was refused.
    pub fn from_error(error: &EngineError) -> Option<Self> {
        match error {
            EngineError::Full(why) => Some(Self::Full(why.clone())),
            EngineError::Corrupt(why) | EngineError::Incomplete(why) => {
                Some(Self::Damaged(why.clone()))
            }
            EngineError::Unavailable(why) => Some(Self::Unwritable(why.clone())),
            EngineError::Indeterminate(why) => Some(Self::Unwritable(why.to_string())),
            EngineError::Conflict(_) | EngineError::Forbidden(_) => None,
        }
    }

    pub fn accepts_events(&self) -> bool {
        *self == Self::Writable
    }

    pub fn can_be_read(&self) -> bool {
        !matches!(self, Self::Damaged(_) | Self::Unreachable)
    }

    /// Whether the state was observed in a write, so that only another write can clear it.
    pub fn must_be_cleared_by_write(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Unwritable(_) | Self::Damaged(_))
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Writable => "writable",
            Self::Short(_) => "short",
            Self::Full(_) => "full",
            Self::Unwritable(_) => "unwritable",
            Self::Damaged(_) => "damaged",
            Self::Unreachable => "unreachable",
        }
    }

    pub const WORDS: [&'static str; 6] = [
        "writable",
        "short",
        "full",
        "unwritable",
        "damaged",
        "unreachable",
    ];
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writable => f.write_str("events are accepted"),
            Self::Short(space) => write!(
                f,
                "events are refused: the store's disk has {} MiB free; {} MiB are required",
                space.free_bytes / MEBIBYTE,
                space.floor_bytes / MEBIBYTE
            ),
            Self::Full(why) => write!(f, "events are refused: the disk is full ({why})"),
            Self::Unwritable(why) => {
                write!(f, "events are refused: the store is not writable ({why})")
            }
            Self::Damaged(why) => write!(f, "events are refused: the store is damaged ({why})"),
            Self::Unreachable => f.write_str("events are refused: the store is unreachable"),
        }
    }
}

/// The state indicated by an engine's last write.
#[derive(Debug, Default)]
pub(crate) struct ObservedCondition(Mutex<Option<(Condition, Instant)>>);

impl ObservedCondition {
    fn lock_last(&self) -> MutexGuard<'_, Option<(Condition, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record_failure(&self, error: &EngineError) {
        if let Some(condition) = Condition::from_error(error) {
            *self.lock_last() = Some((condition, Instant::now()));
        }
    }

    pub(crate) fn record_success(&self) {
        *self.lock_last() = None;
    }

    /// Records a successful write that may have needed no space. [`Condition::Full`] stays in place
    /// for [`FULL_TIME_MIN`] after it was last observed.
    pub(crate) fn record_in_place_success(&self) {
        if !self.was_full_within(FULL_TIME_MIN) {
            self.record_success();
        }
    }

    /// Returns the state, or `None` if the last write succeeded.
    pub(crate) fn condition(&self) -> Option<Condition> {
        self.lock_last()
            .as_ref()
            .map(|(condition, _)| condition.clone())
    }

    pub(crate) fn was_full_within(&self, time: Duration) -> bool {
        let last = self.lock_last();
        let found = last.as_ref();
        found.is_some_and(|(it, at)| matches!(it, Condition::Full(_)) && at.elapsed() < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_determines_disk_share() {
        let table = [
            (u64::MAX, 64, DiskShare::AboveFloor),
            (64, 64, DiskShare::AboveFloor),
            (63, 64, DiskShare::Reserve),
            (16, 64, DiskShare::Reserve),
            (15, 64, DiskShare::All),
            (0, 64, DiskShare::All),
            (0, 0, DiskShare::AboveFloor),
        ];
        for (free, floor, expected) in table {
            let space = FreeSpace {
                free_bytes: free,
                floor_bytes: floor,
            };
            assert_eq!(space.available_share(), expected, "{free} of {floor}");
            let condition = Condition::from_free_space(Some(space));
            assert_eq!(
                condition.accepts_events(),
                expected == DiskShare::AboveFloor
            );
        }
        assert_eq!(Condition::from_free_space(None), Condition::Writable);
    }

    #[test]
    fn only_store_failures_change_condition() {
        let full = || EngineError::Full("no space".into());
        let observed = ObservedCondition::default();
        observed.record_failure(&EngineError::conflict());
        observed.record_failure(&EngineError::Forbidden("no".into()));
        assert_eq!(observed.condition(), None);
        for (error, word) in [
            (full(), "full"),
            (EngineError::Corrupt("torn".into()), "damaged"),
            (EngineError::Unavailable("read-only".into()), "unwritable"),
            (EngineError::Indeterminate("lost".into()), "unwritable"),
        ] {
            observed.record_failure(&error);
            let condition = observed.condition().unwrap();
            assert_eq!(condition.as_str(), word);
            assert!(!condition.accepts_events() && condition.must_be_cleared_by_write());
            assert!(Condition::WORDS.contains(&condition.as_str()));
        }
        observed.record_in_place_success();
        assert_eq!(observed.condition(), None);
        observed.record_failure(&full());
        observed.record_in_place_success();
        assert!(observed.was_full_within(Duration::MAX));
        observed.record_success();
        assert!(observed.condition().is_none() && !observed.was_full_within(Duration::MAX));
    }
}
