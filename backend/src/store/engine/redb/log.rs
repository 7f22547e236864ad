//! The change log as rows: one a commit, the oldest forgotten in small steps.

use super::{
    cell::{self, Space},
    fault::Fault,
    rows::{self, Rows},
    transaction::RowsMut,
};
use crate::{
    limits::{STORE_LOG_CHANGES_MAX, STORE_LOG_COMMITS_MAX},
    store::engine::{Direction, EngineError, Kind, Logged, Range},
};

/// Every so many commits, so many of the oldest may go.
const STEP: u64 = 64;

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    /// The newest commit.
    pub(super) sequence: u64,
    /// Changes logged since the store was made.
    changes: u64,
}

impl Head {
    /// Where a log begins that tells nothing up to a place.
    pub(super) fn at(sequence: u64) -> Self {
        Self {
            sequence,
            changes: 0,
        }
    }

    /// Where the log ends after one more commit.
    pub(super) fn after(self, names: &Names) -> Self {
        Self {
            sequence: self.sequence + 1,
            changes: self.changes + names.count,
        }
    }
}

/// The records that a commit changes, as the log keeps them.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    count: u64,
}

impl Names {
    /// Adds a record.
    pub(super) fn add(&mut self, kind: Kind, key: &[u8]) {
        let key_bytes = u32::try_from(key.len()).expect("a record's key is far below 4 GiB");
        self.bytes.push(kind as u8);
        self.bytes.extend_from_slice(&key_bytes.to_be_bytes());
        self.bytes.extend_from_slice(key);
        self.count += 1;
    }

    /// Adds those of another set.
    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
    }
}

/// Reads where the log ends.
pub(super) fn head(rows: &impl Rows) -> Result<Head, Fault> {
    let newest = walk(rows, 0, Direction::Descending, 1)?.pop();
    Ok(newest.map_or_else(Head::default, |(head, _)| head))
}

/// Reads what comes after a place; none when that place is not in the log.
pub(super) fn after(
    rows: &impl Rows,
    sequence: u64,
    limit: usize,
) -> Result<Option<Vec<Logged>>, Fault> {
    let head = head(rows)?;
    let oldest = walk(rows, 0, Direction::Ascending, 1)?.pop();
    let oldest = oldest.map_or(head.sequence + 1, |(oldest, _)| oldest.sequence);
    if sequence.saturating_add(1) < oldest || sequence > head.sequence {
        return Ok(None);
    }
    let newer = walk(rows, sequence + 1, Direction::Ascending, limit)?;
    let logged = newer.into_iter().map(|(head, changed)| Logged {
        sequence: head.sequence,
        changed,
    });
    Ok(Some(logged.collect()))
}

/// Logs a commit, and forgets some of the oldest when there are too many.
pub(super) fn append(rows: &mut RowsMut<'_>, head: Head, names: &Names) -> Result<(), Fault> {
    let key = Space::Log.key(&head.sequence.to_be_bytes());
    let cell = cell::seal(&key, &[&head.changes.to_be_bytes(), &names.bytes]);
    rows.insert(key.as_slice(), cell.as_slice())?;
    if head.sequence.is_multiple_of(STEP) {
        trim(rows, head)?;
    }
    Ok(())
}

fn trim(rows: &mut RowsMut<'_>, head: Head) -> Result<(), Fault> {
    let steps = usize::try_from(2 * STEP).unwrap_or(usize::MAX);
    for (old, _) in walk(rows, 0, Direction::Ascending, steps)? {
        let commits = head.sequence - old.sequence;
        let changes = head.changes - old.changes;
        if commits < STORE_LOG_COMMITS_MAX && changes < STORE_LOG_CHANGES_MAX {
            break;
        }
        let key = Space::Log.key(&old.sequence.to_be_bytes());
        rows.remove(key.as_slice())?;
    }
    Ok(())
}

type Entry = (Head, Vec<(Kind, Vec<u8>)>);

fn walk(
    rows: &impl Rows,
    from: u64,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    let range = Range {
        start: from.to_be_bytes().into(),
        end: None,
    };
    rows::walk(rows, Space::Log, &range, direction, limit, |key, cell| {
        let entry = decode(Space::strip(key), cell::open(key, cell)?);
        let damaged = || EngineError::Corrupt("an entry of the change log cannot be read".into());
        Ok(entry.ok_or_else(damaged)?)
    })
}

fn decode(key: &[u8], body: &[u8]) -> Option<Entry> {
    let sequence = u64::from_be_bytes(key.try_into().ok()?);
    let (total, mut rest) = body.split_first_chunk()?;
    let mut changed = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        let (key_bytes, after) = after.split_first_chunk()?;
        let key_bytes = usize::try_from(u32::from_be_bytes(*key_bytes)).ok()?;
        let (key, after) = after.split_at_checked(key_bytes)?;
        changed.push((Kind::from_number(*kind)?, key.to_vec()));
        rest = after;
    }
    let head = Head {
        sequence,
        changes: u64::from_be_bytes(*total),
    };
    Some((head, changed))
}
