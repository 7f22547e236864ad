//! What is done to many deliveries, and to how many.

use std::collections::BTreeMap;

/// What can be done to many deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    SendAgain,
    Cancel,
}

/// How many deliveries something was done to, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BulkTally {
    pub(crate) count: i64,
    /// By destination.
    pub(crate) destinations: BTreeMap<String, i64>,
    /// How many were left as they are, by the reason for people.
    pub(crate) skipped: BTreeMap<&'static str, i64>,
}

impl BulkTally {
    /// Adds what another call did.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        for (name, count) in other.destinations {
            *self.destinations.entry(name).or_default() += count;
        }
        for (reason, count) in other.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
    }
}
