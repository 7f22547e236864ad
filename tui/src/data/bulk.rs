//! Bulk changes of deliveries, and their tallies.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    SendAgain,
    Cancel,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BulkTally {
    pub(crate) count: i64,
    pub(crate) destinations: BTreeMap<String, i64>,
    pub(crate) skipped: BTreeMap<&'static str, i64>,
}

impl BulkTally {
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
