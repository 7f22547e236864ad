//! What the change log says: its steps, and the records that they name.

use std::collections::BTreeSet;

use super::{kind::Kind, position::LogPosition, read::Row};

/// What a record of a delta is taken to have, before it is read.
const DELTA_RECORD_BYTES: usize = 1024;
/// Steps of the log that a delta looks at.
pub(super) const DELTA_STEPS_MAX: usize = 1_000;

/// One step of the change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The commit's position in the log.
    pub position: LogPosition,
    /// The records that changed, as `(kind, key)`, but for changes that were not to be logged.
    pub changed: Vec<(Kind, Vec<u8>)>,
}

/// A record that was named by the change log, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The kind of record.
    pub kind: Kind,
    /// Its key.
    pub key: Vec<u8>,
    /// The record; none when it was gone.
    pub row: Option<Row>,
    /// For a delivery, its attempts: a change of these changes or touches it.
    pub attempts: Vec<Row>,
}

/// What changed after a position in the log, all of it read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Everything up to this position is in it.
    pub through: LogPosition,
    /// The newest position at that time. When it is `through`, nothing is left out.
    pub head: LogPosition,
    /// The records, each once.
    pub changed: Vec<Changed>,
    /// When nothing is left out: all records of the kinds that are not logged, but attempts.
    pub unlogged: Vec<(Kind, Vec<u8>, Row)>,
}

impl Delta {
    /// The kinds of [`Delta::unlogged`]: small records, of which no one says when they change.
    pub const UNLOGGED: [Kind; 5] = [
        Kind::Meta,
        Kind::Health,
        Kind::Counter,
        Kind::Budget,
        Kind::Expectation,
    ];

    /// The records that steps of the log name, each once, and the last of these steps. Steps are
    /// taken until their names have so many bytes.
    pub(super) fn named(
        steps: Vec<Logged>,
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
