//! The change log as rows: one per commit, trimmed in small steps.

use super::{
    cell::{self, Space},
    error::Failure,
    rows,
    view::{KeyAndCell, Rows},
};
use crate::{
    error::EngineError,
    kind::Kind,
    limits::{STORE_LOG_CHANGES_MAX, STORE_LOG_COMMITS_MAX},
    log::LogStep,
    position::LogPosition,
    read::{Direction, Range},
};

/// Number of commits between trims. Each trim removes at most twice as many old commits.
const STEP: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) sequence: u64,
    /// Changes logged since the store was created.
    changes: u64,
}

impl Head {
    pub(super) fn at_position(position: LogPosition) -> Self {
        Self {
            sequence: position.to_number(),
            changes: 0,
        }
    }

    pub(super) fn with_commit(self, names: &Names) -> Self {
        Self {
            sequence: self.sequence + 1,
            changes: self.changes + names.count,
        }
    }
}

/// The records changed by a commit, as encoded in the log.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    count: u64,
}

impl Names {
    pub(super) fn add(&mut self, kind: Kind, key: &[u8]) {
        let key_bytes = u32::try_from(key.len()).expect("a record's key is far below 4 GiB");
        self.bytes.push(kind as u8);
        self.bytes.extend_from_slice(&key_bytes.to_be_bytes());
        self.bytes.extend_from_slice(key);
        self.count += 1;
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
    }
}

pub(super) fn log_head(rows: &impl Rows) -> Result<Head, Failure> {
    let newest = walk_log(rows, 0, Direction::Descending, 1)?.pop();
    Ok(newest.map_or_else(Head::default, |(head, _)| head))
}

/// Reads the log entries after a position, or `None` if the position is not in the log.
pub(super) fn read_after(
    rows: &impl Rows,
    after: LogPosition,
    limit: usize,
) -> Result<Option<Vec<LogStep>>, Failure> {
    let (head, sequence) = (log_head(rows)?.sequence, after.to_number());
    if sequence >= head {
        return Ok((sequence == head).then(Vec::new));
    }
    // The log has no gaps after the oldest step.
    let next = walk_log(rows, sequence + 1, Direction::Ascending, limit.max(1))?;
    if next
        .first()
        .is_none_or(|(next, _)| next.sequence != sequence + 1)
    {
        return Ok(None);
    }
    let newer = next.into_iter().take(limit);
    let logged = newer.map(|(head, changed)| LogStep {
        position: LogPosition::from_number(head.sequence),
        changed,
    });
    Ok(Some(logged.collect()))
}

pub(super) fn log_key(sequence: u64) -> Vec<u8> {
    Space::Log.key(&sequence.to_be_bytes())
}

pub(super) fn log_row(head: Head, names: &Names) -> KeyAndCell {
    let key = log_key(head.sequence);
    let cell = cell::seal_cell(&key, &[&head.changes.to_be_bytes(), &names.bytes]);
    (key, cell)
}

/// Returns some of the oldest commits if there are too many. Checks only occasionally. `from` must
/// not be after the oldest commit.
pub(super) fn outdated_steps(rows: &impl Rows, head: Head, from: u64) -> Result<Vec<u64>, Failure> {
    if !head.sequence.is_multiple_of(STEP) {
        return Ok(Vec::new());
    }
    let steps = usize::try_from(2 * STEP).unwrap_or(usize::MAX);
    let oldest = walk_log(rows, from, Direction::Ascending, steps)?.into_iter();
    let is_outdated = |(old, _): &Entry| {
        let commits = head.sequence - old.sequence;
        let changes = head.changes - old.changes;
        commits >= STORE_LOG_COMMITS_MAX || changes >= STORE_LOG_CHANGES_MAX
    };
    let outdated = oldest.take_while(is_outdated);
    Ok(outdated.map(|(old, _)| old.sequence).collect())
}

type Entry = (Head, Vec<(Kind, Vec<u8>)>);

fn walk_log(
    rows: &impl Rows,
    from: u64,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Entry>, Failure> {
    let range = Range {
        start: from.to_be_bytes().into(),
        end: None,
    };
    rows::walk_space(rows, Space::Log, &range, direction, limit, |key, cell| {
        let entry = decode_entry(Space::strip_prefix_byte(key), cell::open_cell(key, cell)?);
        let damaged = || EngineError::Corrupt("an entry of the change log is unreadable".into());
        Ok(entry.ok_or_else(damaged)?)
    })
}

fn decode_entry(key: &[u8], body: &[u8]) -> Option<Entry> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Head, Names, log_row, outdated_steps, read_after};
    use crate::{
        position::LogPosition,
        read::Direction,
        redb::{
            error::Failure,
            view::{Rows, VisitRow},
        },
    };

    struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Rows for Map {
        fn get<T>(
            &self,
            key: &[u8],
            take: impl FnOnce(&[u8]) -> Result<T, Failure>,
        ) -> Result<Option<T>, Failure> {
            self.0.get(key).map(|cell| take(cell)).transpose()
        }

        fn walk_range(
            &self,
            start: &[u8],
            end: &[u8],
            direction: Direction,
            visit: &mut VisitRow<'_>,
        ) -> Result<(), Failure> {
            let mut found: Vec<_> = self.0.range(start.to_vec()..end.to_vec()).collect();
            if direction == Direction::Descending {
                found.reverse();
            }
            for (key, cell) in found {
                if !visit(key, cell)? {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn steps_beyond_the_change_limit_are_outdated() {
        let (mut map, mut head) = (Map(BTreeMap::new()), Head::default());
        let names = Names {
            count: 10_000,
            ..Names::default()
        };
        for _ in 0..128 {
            head = head.with_commit(&names);
            map.0.extend([log_row(head, &names)]);
        }
        let old: Vec<u64> = (1..=28).collect();
        assert_eq!(outdated_steps(&map, head, 0).unwrap(), old);
        assert_eq!(outdated_steps(&map, head, 10).unwrap(), old[9..]);
        assert!(
            outdated_steps(&map, head.with_commit(&names), 0)
                .unwrap()
                .is_empty()
        );
        for position in old {
            map.0.remove(&super::log_key(position));
        }
        assert!(outdated_steps(&map, head, 0).unwrap().is_empty());
        assert_eq!(
            read_after(&map, LogPosition::from_number(27), 10).unwrap(),
            None
        );
        let found = read_after(&map, LogPosition::from_number(28), 10)
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.len(), found[0].position),
            (10, LogPosition::from_number(29))
        );
        assert_eq!(
            read_after(&map, LogPosition::from_number(128), 10).unwrap(),
            Some(Vec::new())
        );
        assert_eq!(
            read_after(&map, LogPosition::from_number(129), 10).unwrap(),
            None
        );
    }
}
