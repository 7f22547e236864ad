//! Tests that readers see consistent, durable snapshots despite the writer and the mover.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use futures_util::future::join_all;

use super::{NARROW, SETTINGS, Settings, SimulatedDisk, open_with};
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    index::Index,
    kind::Kind,
    position::LogPosition,
    read::{Direction, Range},
    redb::RedbEngine,
};

const KEYS: u8 = 5;
const ROUNDS: u32 = 600;

/// Returns the changes of one round: each key's record, and its index entry, which contains the
/// number of the round.
fn round(number: u32, versions: Option<u64>) -> Vec<Change> {
    let entry = |key: u8, number: u32| Entry {
        index: Index::OccurrenceByEvent,
        key: [&[key; 16][..], &number.to_be_bytes()].concat(),
    };
    let change = |key: u8| {
        let put = Action::Put(number.to_be_bytes().into());
        let expect = versions.map_or(Expect::Absent, Expect::Version);
        Change {
            remove: versions
                .map(|_| entry(key, number - 1))
                .into_iter()
                .collect(),
            add: vec![entry(key, number)],
            ..Change::new(Kind::Occurrence, &[key], expect, put)
        }
    };
    (0..KEYS).map(change).collect()
}

async fn assert_is_one_snapshot(engine: &RedbEngine, direction: Direction) {
    let all = Range::with_prefix(b"");
    let page = engine.read_page(Kind::Occurrence, all.clone(), direction, 100);
    let page = page.await.unwrap();
    let rounds: BTreeSet<_> = page.iter().map(|(_, row)| row.value.clone()).collect();
    assert!(rounds.len() <= 1, "part of a set is visible: {page:?}");
    assert!(
        page.is_empty() || page.len() == usize::from(KEYS),
        "{page:?}"
    );
    let entries = engine.entries(Index::OccurrenceByEvent, all, direction, 100);
    let entries = entries.await.unwrap();
    let rounds: BTreeSet<_> = entries.iter().map(|(key, _)| key[16..].to_vec()).collect();
    assert!(rounds.len() <= 1, "part of a set is visible: {entries:?}");
    let is_whole = entries.is_empty() || entries.len() == usize::from(KEYS);
    assert!(is_whole, "{entries:?}");
    let prefixes: Vec<_> = (0..KEYS).map(|key| vec![key; 16]).collect();
    let last = engine
        .last_with_prefix(Index::OccurrenceByEvent, &prefixes)
        .await;
    let last: BTreeSet<_> = last
        .unwrap()
        .into_iter()
        .map(|found| found.map(|found| found.entry[16..].to_vec()))
        .collect();
    assert!(last.len() <= 1, "part of a set is visible: {last:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_during_flushes_and_merges_see_whole_sets() {
    let settings = [
        NARROW,
        Settings {
            memory_bytes: 0,
            ..NARROW
        },
        SETTINGS,
    ];
    for settings in settings {
        let disk = SimulatedDisk::default();
        let engine = open_with(&disk, settings).unwrap();
        let is_over = AtomicBool::new(false);
        let write = async {
            let mut version = None;
            for number in 0..ROUNDS {
                let set = round(number, version);
                let applied = engine.apply(Lane::Bulk, set.into()).await.unwrap();
                version = Some(applied.version);
            }
            is_over.store(true, Ordering::Relaxed);
        };
        let read = async {
            while !is_over.load(Ordering::Relaxed) {
                assert_is_one_snapshot(&engine, Direction::Ascending).await;
                assert_is_one_snapshot(&engine, Direction::Descending).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(write, read);
        assert_is_one_snapshot(&engine, Direction::Ascending).await;
    }
}

async fn numbers(engine: &RedbEngine) -> BTreeSet<Vec<u8>> {
    let all = Range::with_prefix(b"");
    let page = engine.read_page(Kind::Occurrence, all, Direction::Ascending, 10_000);
    page.await
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_see_only_durable_writes() {
    for settings in [NARROW, SETTINGS] {
        let disk = SimulatedDisk::default();
        let engine = open_with(&disk, settings).unwrap();
        let is_over = AtomicBool::new(false);
        let write = async {
            for group in 0..150_u32 {
                let sets = (0..4).map(|number| {
                    let key = (group * 4 + number).to_be_bytes();
                    let put = Action::Put(vec![1; 200]);
                    let change = Change::new(Kind::Occurrence, &key, Expect::Absent, put);
                    engine.apply(Lane::Bulk, vec![change].into())
                });
                for result in join_all(sets).await {
                    result.unwrap();
                }
            }
            is_over.store(true, Ordering::Relaxed);
        };
        let read = async {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) || reads < 5 {
                let seen = numbers(&engine).await;
                let left = disk.without_unsynced();
                let after = open_with(&left, settings).unwrap();
                let stored = numbers(&after).await;
                let lost: Vec<_> = seen.difference(&stored).collect();
                assert!(lost.is_empty(), "visible but not on disk: {lost:?}");
                reads += 1;
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(write, read);
    }
}

#[tokio::test]
async fn last_changed_is_tracked_per_kind() {
    let disk = SimulatedDisk::default();
    let engine = open_with(&disk, NARROW).unwrap();
    let put = |key: u8| {
        let put = Action::Put(vec![1; 200]);
        Change::new(Kind::Occurrence, &[key], Expect::Absent, put)
    };
    let rule = Change::new(Kind::Rule, b"r", Expect::Absent, Action::Put(b"1".into()));
    let changed = engine.apply(Lane::Admin, vec![rule].into()).await.unwrap();
    for key in 0..100 {
        engine
            .apply(Lane::Bulk, vec![put(key)].into())
            .await
            .unwrap();
    }
    assert_eq!(engine.last_changed(&[Kind::Rule]), changed.position);
    assert_eq!(engine.last_changed(&[Kind::Client]), LogPosition::START);
    let head = engine.log_head().await.unwrap();
    assert_eq!(engine.last_changed(&[Kind::Rule, Kind::Occurrence]), head);
    drop(engine);
    // After a restart, the positions are unknown, so any kind may have changed last.
    let engine = open_with(&disk, NARROW).unwrap();
    assert_eq!(engine.last_changed(&[Kind::Client]), head);
}
