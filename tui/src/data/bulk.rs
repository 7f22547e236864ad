//! Bulk changes of deliveries, and their tallies.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    SendAgain,
    Cancel,
}

/// The number of deliveries that were or would be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BulkTally {
    pub(crate) count: i64,
    pub(crate) destinations: BTreeMap<String, i64>,
    /// Number of unchanged deliveries, by reason.
    pub(crate) skipped: BTreeMap<&'static str, i64>,
}

impl BulkTally {
    /// Adds the tally of another call.
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
