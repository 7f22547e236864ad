//! Conformance tests of listing records and entries, and of reading the log.

use std::collections::BTreeMap;

use super::{apply, change, entry, insert, read};
use crate::{
    Action, ApplyResult, Change, Direction, Engine, Expect, Index, Kind, LogPosition, LogStep,
    Range,
};

fn range(start: &[u8], end: Option<&[u8]>) -> Range {
    Range {
        start: start.into(),
        end: end.map(Into::into),
    }
}

/// Returns ranges over the keys `a`, `b`, `ba`, `c` and `ÿÿ`, each with a limit and the keys
/// inside.
fn stretches() -> Vec<(Range, usize, Vec<&'static [u8]>)> {
    let all: Vec<&[u8]> = vec![b"a", b"b", b"ba", b"c", &[255, 255]];
    vec![
        (range(b"", None), 10, all.clone()),
        (range(b"", None), 2, all.clone()),
        (range(b"", None), 0, all),
        (range(b"b", Some(b"c")), 10, vec![b"b", b"ba"]),
        (range(b"b", Some(b"ba")), 10, vec![b"b"]),
        (range(b"b\0", None), 10, vec![b"ba", b"c", &[255, 255]]),
        (Range::with_prefix(b"b"), 10, vec![b"b", b"ba"]),
        (Range::with_prefix(&[255]), 10, vec![&[255, 255]]),
        (range(b"c", Some(b"a")), 10, vec![]),
        (range(b"c", Some(b"c")), 10, vec![]),
    ]
}

/// Returns the expected keys of a walk, given the keys in its range.
fn expected_keys(lying: &[&[u8]], direction: Direction, limit: usize) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = lying.iter().map(|key| key.to_vec()).collect();
    if direction == Direction::Descending {
        keys.reverse();
    }
    keys.truncate(limit);
    keys
}

pub async fn records_are_paged_in_both_directions(engine: &dyn Engine) {
    for key in [&b"c"[..], b"a", b"ba", &[255, 255], b"b"] {
        apply(engine, vec![insert(Kind::Health, key, key)])
            .await
            .unwrap();
    }
    for (range, limit, lying) in stretches() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let page = engine.read_page(Kind::Health, range.clone(), direction, limit);
            let page = page.await.unwrap();
            assert!(page.iter().all(|(key, row)| *key == row.value));
            let keys: Vec<_> = page.into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, expected_keys(&lying, direction, limit), "{range:?}");
        }
    }
}

pub async fn entries_are_listed_in_both_directions(engine: &dyn Engine) {
    for key in [&b"c"[..], b"a", b"ba", &[255, 255], b"b"] {
        let with = Change {
            add: vec![entry(Index::DeliveryByRule, key)],
            ..insert(Kind::Delivery, key, b"")
        };
        apply(engine, vec![with]).await.unwrap();
    }
    for (range, limit, lying) in stretches() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let found = engine.entries(Index::DeliveryByRule, range.clone(), direction, limit);
            let found = found.await.unwrap();
            assert!(found.iter().all(|(key, record)| key == record));
            let keys: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, expected_keys(&lying, direction, limit), "{range:?}");
        }
    }
}

pub async fn last_record_is_found_under_each_prefix(engine: &dyn Engine) {
    for key in [&b"a1"[..], b"a2", b"b9", b"c"] {
        let with = Change {
            add: vec![entry(Index::OccurrenceByEvent, key)],
            ..insert(Kind::Occurrence, &[b"of ", key].concat(), key)
        };
        apply(engine, vec![with]).await.unwrap();
    }
    let prefixes = [&b"b"[..], b"a", b"none", b"a", b"d"].map(<[u8]>::to_vec);
    let found = engine
        .last_with_prefix(Index::OccurrenceByEvent, &prefixes)
        .await;
    let mut lead = Vec::new();
    for found in found.unwrap() {
        let Some(found) = found else {
            lead.push(None);
            continue;
        };
        assert_eq!(found.key, [b"of ", &found.entry[..]].concat());
        let row = read(engine, Kind::Occurrence, &found.key).await;
        assert_eq!(row, Some((found.row.value, found.row.version)));
        lead.push(Some(found.entry));
    }
    let entry = |key: &[u8]| Some(key.to_vec());
    assert_eq!(lead, [entry(b"b9"), entry(b"a2"), None, entry(b"a2"), None]);
    // So many keys that they are not read on the caller's thread.
    let many = vec![b"a".to_vec(); 1_500];
    let found = engine
        .last_with_prefix(Index::OccurrenceByEvent, &many)
        .await;
    let found = found.unwrap().into_iter().flatten();
    assert_eq!(found.filter(|found| found.entry == b"a2").count(), 1_500);
}

pub async fn many_ranges_are_listed_in_one_call(engine: &dyn Engine) {
    for key in [&b"a1"[..], b"a2", b"b1", b"c1", b"c2", b"c3"] {
        let with = Change {
            add: vec![entry(Index::OccurrenceByState, key)],
            ..insert(Kind::Occurrence, key, b"")
        };
        apply(engine, vec![with]).await.unwrap();
    }
    let ranges = [&b"c"[..], b"none", b"a", b"", b"a"].map(Range::with_prefix);
    let index = Index::OccurrenceByState;
    for direction in [Direction::Ascending, Direction::Descending] {
        for limit in [0, 1, 2, 100] {
            let together = engine.read_ranges(index, &ranges, direction, limit);
            let together = together.await.unwrap();
            let counts = engine.count_ranges(index, &ranges, limit).await.unwrap();
            assert_eq!((together.len(), counts.len()), (ranges.len(), ranges.len()));
            for ((range, found), count) in ranges.iter().zip(together).zip(counts) {
                let alone = engine.entries(index, range.clone(), direction, limit);
                assert_eq!(found, alone.await.unwrap(), "{range:?} {limit}");
                assert_eq!(count, found.len(), "{range:?} {limit}");
            }
        }
    }
    let none = engine
        .read_ranges(index, &[], Direction::Ascending, 1)
        .await;
    assert_eq!(none.unwrap(), Vec::<Vec<_>>::new());
}

pub async fn kinds_and_indexes_are_separate(engine: &dyn Engine) {
    let with = Change {
        add: vec![
            entry(Index::DeliveryByEvent, b"k"),
            entry(Index::DeliveryByDestination, b"k"),
        ],
        ..insert(Kind::Delivery, b"k", b"delivery")
    };
    apply(engine, vec![with, insert(Kind::Attempt, b"k", b"attempt")])
        .await
        .unwrap();
    let (value, _) = read(engine, Kind::Attempt, b"k").await.unwrap();
    assert_eq!(value, b"attempt");
    assert_eq!(read(engine, Kind::Occurrence, b"k").await, None);
    for (index, count) in [
        (Index::DeliveryByDue, 0),
        (Index::DeliveryByEvent, 1),
        (Index::DeliveryByDestination, 1),
        (Index::DeliveryByRule, 0),
    ] {
        let found = engine.entries(index, Range::with_prefix(b""), Direction::Ascending, 10);
        assert_eq!(found.await.unwrap().len(), count, "{index:?}");
    }
}

/// Returns an index key that consists of an event id and an occurrence number.
fn of_event(number: u32) -> Vec<u8> {
    let spread = u128::from(number / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    [&spread.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

pub async fn removed_records_are_skipped(engine: &dyn Engine) {
    const RECORDS: u32 = 400;
    let (mut records, mut entries) = (BTreeMap::new(), BTreeMap::new());
    // Remove and recreate records in several rounds, so that removals shadow rows, and rows shadow
    // removals.
    for round in 0..6_u32 {
        for number in (0..RECORDS).filter(|number| (number * 7 + round) % 3 == 0) {
            let key = number.to_be_bytes().to_vec();
            let change = match records.remove(&key) {
                Some(version) => {
                    entries.remove(&of_event(number));
                    Change {
                        remove: vec![entry(Index::OccurrenceByEvent, &of_event(number))],
                        ..change(
                            Kind::Occurrence,
                            &key,
                            Expect::Version(version),
                            Action::Delete,
                        )
                    }
                }
                None => Change {
                    add: vec![entry(Index::OccurrenceByEvent, &of_event(number))],
                    ..insert(Kind::Occurrence, &key, &[7; 40])
                },
            };
            let is_delete = change.action == Action::Delete;
            let version = apply(engine, vec![change]).await.unwrap().version;
            if !is_delete {
                records.insert(key.clone(), version);
                entries.insert(of_event(number), key);
            }
        }
        for start in [0, 1, RECORDS / 2, RECORDS - 3].map(u32::to_be_bytes) {
            for (direction, limit) in [(Direction::Ascending, 9), (Direction::Descending, 500)] {
                let range = range(&start, None);
                let page = engine.read_page(Kind::Occurrence, range, direction, limit);
                let page = page.await.unwrap().into_iter();
                let lying: Vec<_> = records.range(start.to_vec()..).collect();
                let lying: Vec<_> = lying.into_iter().map(|(key, _)| key.as_slice()).collect();
                let found: Vec<_> = page.map(|(key, _)| key).collect();
                assert_eq!(
                    found,
                    expected_keys(&lying, direction, limit),
                    "round {round}"
                );
            }
        }
        let found = engine.entries(
            Index::OccurrenceByEvent,
            Range::with_prefix(b""),
            Direction::Ascending,
            1_000,
        );
        let lying: Vec<_> = entries.clone().into_iter().collect();
        assert_eq!(found.await.unwrap(), lying, "round {round}");
        let prefixes: Vec<_> = (0..RECORDS).map(|it| of_event(it)[..16].to_vec()).collect();
        let last = engine
            .last_with_prefix(Index::OccurrenceByEvent, &prefixes)
            .await;
        for (prefix, found) in prefixes.iter().zip(last.unwrap()) {
            let mut under = entries.iter().filter(|(key, _)| key.starts_with(prefix));
            let lying = under
                .next_back()
                .map(|(key, lead)| (key.clone(), lead.clone()));
            let found = found.map(|found| (found.entry, found.key));
            assert_eq!(found, lying, "round {round}");
        }
    }
}

pub async fn last_change_is_reported_per_kind(engine: &dyn Engine) {
    let mut last = BTreeMap::new();
    for round in 0..40_u8 {
        let kinds: Vec<_> = Kind::ALL.into_iter().collect();
        let set: Vec<_> = kinds
            .into_iter()
            .filter(|kind| round % (1 + *kind as u8) == 0)
            .map(|kind| insert(kind, &[round], b""))
            .collect();
        let changed: Vec<_> = set.iter().map(|change| change.kind as u8).collect();
        let position = apply(engine, set).await.unwrap().position;
        last.extend(changed.into_iter().map(|kind| (kind, position)));
        for kind in Kind::ALL {
            let truth = last.get(&(kind as u8)).copied().unwrap_or_default();
            assert!(engine.last_changed(&[kind]) >= truth, "{kind:?}");
        }
        let newest = last
            .values()
            .copied()
            .reduce(LogPosition::later)
            .unwrap_or_default();
        assert!(engine.last_changed(&Kind::ALL) >= newest);
    }
}

pub async fn log_reports_changes_since_a_position(engine: &dyn Engine) {
    let start = engine.log_head().await.unwrap();
    let set = vec![
        insert(Kind::Occurrence, b"o", b""),
        insert(Kind::Delivery, b"d", b""),
        insert(Kind::Attempt, b"a", b""),
    ];
    let ApplyResult {
        position: first,
        version,
    } = apply(engine, set).await.unwrap();
    let second = apply(engine, vec![insert(Kind::Meta, b"m", b"")])
        .await
        .unwrap()
        .position;
    let expect = Expect::Version(version);
    let delete = change(Kind::Delivery, b"d", expect, Action::Delete);
    let third = apply(engine, vec![delete]).await.unwrap().position;
    let logged = |position, changed: &[(Kind, &[u8])]| LogStep {
        position,
        changed: changed
            .iter()
            .map(|(kind, key)| (*kind, key.to_vec()))
            .collect(),
    };
    let expected = [
        logged(first, &[(Kind::Occurrence, b"o"), (Kind::Delivery, b"d")]),
        logged(second, &[]),
        logged(third, &[(Kind::Delivery, b"d")]),
    ];
    let after = async |position, limit| engine.log_after(position, limit).await.unwrap();
    assert_eq!(after(start, 10).await.unwrap(), expected);
    assert_eq!(after(start, 2).await.unwrap(), expected[..2]);
    assert_eq!(after(second, 10).await.unwrap(), expected[2..]);
    assert_eq!(after(third, 10).await, Some(Vec::new()));
    assert_eq!(after(third.next(), 10).await, None);
    assert_eq!(engine.log_head().await.unwrap(), third);
}

pub async fn log_signal_follows_log_head(engine: &dyn Engine) {
    let mut signal = engine.log_signal();
    let head = engine.log_head().await.unwrap();
    assert_eq!(*signal.borrow_and_update(), head);
    let position = apply(engine, vec![insert(Kind::Rule, b"a", b"")])
        .await
        .unwrap()
        .position;
    assert!(
        *engine.log_signal().borrow() >= position,
        "it is visible immediately"
    );
    signal.changed().await.unwrap();
    assert_eq!(*signal.borrow_and_update(), position);
}

pub async fn delta_returns_current_records(engine: &dyn Engine) {
    let start = engine.log_head().await.unwrap();
    let set = vec![
        insert(Kind::Occurrence, b"o", b"1"),
        insert(Kind::Delivery, b"d", b"1"),
        insert(Kind::Attempt, b"d1", b"a"),
        insert(Kind::Attempt, b"e1", b"other"),
        insert(Kind::Health, b"h", b"1"),
    ];
    let ApplyResult {
        position: first,
        version,
    } = apply(engine, set).await.unwrap();
    let delete = change(
        Kind::Occurrence,
        b"o",
        Expect::Version(version),
        Action::Delete,
    );
    let second = apply(engine, vec![delete]).await.unwrap().position;
    let delta =
        async |position, bytes_max| engine.changes_after(position, bytes_max).await.unwrap();

    let all = delta(start, usize::MAX).await.unwrap();
    assert_eq!((all.through, all.head), (second, second));
    let changed: Vec<_> = all.changed.iter().map(|found| &found.key[..]).collect();
    assert_eq!(changed, [b"o", b"d"]);
    assert_eq!(all.changed[0].row, None);
    assert_eq!(all.changed[1].row.as_ref().unwrap().value, b"1");
    let attempts: Vec<_> = all.changed[1].attempts.iter().collect();
    assert_eq!(attempts.len(), 1, "only its own");
    assert_eq!(attempts[0].value, b"a");
    let unlogged: Vec<_> = all.unlogged.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(unlogged, [Kind::Health]);

    let part = delta(start, 1).await.unwrap();
    assert_eq!((part.through, part.head), (first, second));
    assert_eq!(part.changed[0].row, None, "reads return the current state");
    assert_eq!(part.unlogged, []);
    let rest = delta(part.through, 1).await.unwrap();
    assert_eq!((rest.through, rest.head), (second, second));
    assert_eq!(delta(second, 1).await.unwrap().changed, []);
    assert_eq!(delta(second.next(), 1).await, None);
}
