//! The change log: its entries, and the records that they name.

use std::collections::BTreeSet;

use super::{kind::Kind, position::LogPosition, read::Row};

/// Assumed size of a record of a delta before it is read.
const DELTA_RECORD_BYTES: usize = 1024;
pub(super) const DELTA_STEPS_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStep {
    pub position: LogPosition,
    /// The changed records as `(kind, key)`, except for changes that are not logged.
    pub changed: Vec<(Kind, Vec<u8>)>,
}

/// A record named by the change log, as of the time it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRecord {
    pub kind: Kind,
    pub key: Vec<u8>,
    /// The record; `None` if it was deleted.
    pub row: Option<Row>,
    /// For a delivery, its attempts: they only change together with the delivery.
    pub attempts: Vec<Row>,
}

/// The changes after a position in the log, all read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Last position included.
    pub through: LogPosition,
    /// The newest position at that time; equal to `through` if the delta is complete.
    pub head: LogPosition,
    pub changed: Vec<ChangedRecord>,
    /// If the delta is complete, all records of the kinds that are not logged, except attempts.
    pub unlogged: Vec<(Kind, Vec<u8>, Row)>,
}

impl Delta {
    /// The kinds of [`Delta::unlogged`]: small records whose changes are not logged.
    pub const UNLOGGED: [Kind; 5] = [
        Kind::Meta,
        Kind::Health,
        Kind::Counter,
        Kind::Budget,
        Kind::Expectation,
    ];

    /// Returns the records named by log steps, without duplicates, and the last step used. Stops
    /// when the assumed size of the records reaches `bytes_max`.
    pub(super) fn changed_records(
        steps: Vec<LogStep>,
        bytes_max: usize,
    ) -> (BTreeSet<(u8, Vec<u8>)>, Option<LogPosition>) {
        let (mut named, mut through, mut bytes) = (BTreeSet::new(), None, 0);
        for step in steps {
            if bytes >= bytes_max {
                break;
            }
            through = Some(step.position);
            for (kind, key) in step.changed {
                bytes += DELTA_RECORD_BYTES;
                named.insert((kind as u8, key));
            }
        }
        (named, through)
    }
}
