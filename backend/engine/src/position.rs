//! Positions in the change log.

use std::fmt;

/// How far a position is set ahead of that of a backup at the least, in commits.
const LIFE: u64 = 1 << 40;
/// Positions that a millisecond of a life has for itself: more than there can be commits.
const PLACES_PER_MS: u64 = 1 << 14;

/// A position in the change log of a store: all commits up to it are before it.
///
/// Its content concerns the engine alone. An engine with a log for each writer would have a number for each of
/// them, and of two positions neither might be before the other: so they are only partly ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Hash)]
pub struct LogPosition(u64);

impl LogPosition {
    /// Before the first commit.
    pub const START: Self = Self(0);

    /// The number that files, tokens and metrics have for it.
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// The position of a number that was in a file or a token; it need not be in any log.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The first position that has everything before it that this one and another one have.
    #[must_use]
    pub fn later_of(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// About how many commits lie between an earlier position and this one; 0 where it is not earlier.
    pub const fn steps_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Where the log of a store begins that is restored at that time from a backup up to this position: far
    /// beyond what the old service wrote later, so that no token of its life is taken for one of the new life.
    /// Of two lives that one backup was restored to, the later begins beyond all that the earlier wrote.
    #[must_use]
    pub fn of_a_later_life(self, now_ms: i64) -> Self {
        let by_time = u64::try_from(now_ms).unwrap_or_default();
        let by_time = by_time.saturating_mul(PLACES_PER_MS);
        Self(by_time.max(self.0.saturating_add(LIFE)))
    }

    /// The one in the middle between this and a later one.
    pub(crate) const fn middle(self, later: Self) -> Self {
        Self(self.0 + later.steps_since(self) / 2)
    }

    /// Returns the position of the next commit.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the position of the commit before this one.
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
