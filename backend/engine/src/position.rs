//! Positions in the change log.

use std::fmt;

/// Minimum distance of a restored store's positions from those of the backup.
const LIFE: u64 = 1 << 40;
/// Positions reserved per millisecond; more than there can be commits.
const PLACES_PER_MS: u64 = 1 << 14;

/// A position in the change log of a store. It covers all commits up to that position.
///
/// The content of a position is private to the engine. An engine with one log per writer would
/// store a number for each, so positions are only partially ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Hash)]
pub struct LogPosition(u64);

impl LogPosition {
    pub const START: Self = Self(0);

    /// Returns the number that represents the position in files, tokens and metrics.
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// Creates a position from a number in a file or token. The position need not exist in any log.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the first position that covers both positions.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Returns the approximate number of commits between `earlier` and this position; 0 if
    /// `earlier` is not before it.
    pub const fn steps_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the first position of a store restored at `now_ms` from a backup up to this
    /// position. It is far beyond all positions that the old service wrote after the backup, so
    /// tokens of the old store are never valid in the new one. If a backup is restored twice, the
    /// later store begins beyond all positions of the earlier one.
    #[must_use]
    pub fn first_after_restore(self, now_ms: i64) -> Self {
        let by_time = u64::try_from(now_ms).unwrap_or_default();
        let by_time = by_time.saturating_mul(PLACES_PER_MS);
        Self(by_time.max(self.0.saturating_add(LIFE)))
    }

    pub(crate) const fn midpoint(self, later: Self) -> Self {
        Self(self.0 + later.steps_since(self) / 2)
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0 - 1)
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
