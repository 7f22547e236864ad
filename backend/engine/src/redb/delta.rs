//! Changes after a position in the log, read in one short transaction.

use super::{error::Failure, log, rows, view::Rows};
use crate::{
    kind::Kind,
    log::{ChangedRecord, DELTA_STEPS_MAX, Delta},
    position::LogPosition,
    read::{Direction, Range, Row},
};

/// Reads the changes after a position; returns `None` if the position is not in the log.
pub(super) fn read_after(
    rows: &impl Rows,
    position: LogPosition,
    bytes_max: usize,
) -> Result<Option<Delta>, Failure> {
    let head = LogPosition::from_number(log::log_head(rows)?.sequence);
    let Some(steps) = log::read_after(rows, position, DELTA_STEPS_MAX)? else {
        return Ok(None);
    };
    let (named, through) = Delta::changed_records(steps, bytes_max);
    let mut delta = Delta {
        through: through.unwrap_or(position),
        head,
        ..Delta::default()
    };
    for (number, key) in named {
        let Some(kind) = Kind::from_number(number) else {
            continue;
        };
        let attempts = match kind {
            Kind::Delivery => read_with_prefix(rows, Kind::Attempt, &key)?,
            _ => Vec::new(),
        };
        delta.changed.push(ChangedRecord {
            kind,
            row: rows::read_record(rows, kind, &key)?,
            attempts: attempts.into_iter().map(|(_, row)| row).collect(),
            key,
        });
    }
    if delta.through == delta.head {
        for kind in Delta::UNLOGGED {
            let found = read_with_prefix(rows, kind, &[])?.into_iter();
            delta
                .unlogged
                .extend(found.map(|(key, row)| (kind, key, row)));
        }
    }
    Ok(Some(delta))
}

fn read_with_prefix(
    rows: &impl Rows,
    kind: Kind,
    prefix: &[u8],
) -> Result<Vec<(Vec<u8>, Row)>, Failure> {
    let range = Range::with_prefix(prefix);
    rows::read_page(rows, kind, &range, Direction::Ascending, usize::MAX)
}
