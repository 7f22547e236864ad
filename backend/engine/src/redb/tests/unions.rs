//! Tests that merging runs drops deleted entries.

use std::time::{Duration, Instant};

use super::{NARROW, SETTINGS, Settings, SimulatedDisk, open_with};
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    index::Index,
    kind::Kind,
    read::{Direction, Range},
    redb::RedbEngine,
};

/// Records per set.
const EACH: u32 = 50;
/// Number of sets whose records exist at a time.
const REMAINING: u32 = 10;
const SETS: u32 = 600;

const PATIENCE: Duration = Duration::from_secs(60);

fn entry(number: u32) -> Entry {
    // The order looks random, like that of event ids.
    let event = u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    Entry {
        index: Index::OccurrenceByEvent,
        key: event.to_be_bytes().into(),
    }
}

fn added(number: u32) -> Change {
    Change {
        add: vec![entry(number)],
        ..Change::new(
            Kind::Occurrence,
            &number.to_be_bytes(),
            Expect::Absent,
            Action::Put(b"it".into()),
        )
    }
}

async fn removed(engine: &RedbEngine, numbers: impl Iterator<Item = u32>) -> Vec<Change> {
    let mut changes = Vec::new();
    for number in numbers {
        let key = number.to_be_bytes();
        let rows = engine.get(Kind::Occurrence, &[key.into()]).await.unwrap();
        let version = rows.into_iter().flatten().next().unwrap().version;
        changes.push(Change {
            remove: vec![entry(number)],
            ..Change::new(
                Kind::Occurrence,
                &key,
                Expect::Version(version),
                Action::Delete,
            )
        });
    }
    changes
}

fn entries_in_runs(engine: &RedbEngine) -> u64 {
    let layers = engine.shared.layers.get();
    let tree = layers.tree.as_ref().unwrap();
    tree.runs.iter().map(|(run, _)| run.count).sum()
}

/// Adds sets. With each, deletes the records of an earlier set.
async fn add_and_remove(engine: &RedbEngine, sets: std::ops::Range<u32>) {
    for set in sets {
        let of = |set: u32| set * EACH..(set + 1) * EACH;
        let mut changes: Vec<_> = of(set).map(added).collect();
        if let Some(old) = set.checked_sub(REMAINING) {
            changes.extend(removed(engine, of(old)).await);
        }
        engine.apply(Lane::Bulk, changes.into()).await.unwrap();
    }
}

async fn has_little(engine: &RedbEngine) {
    let begun = Instant::now();
    // At most half of the entries are tombstones or deleted by one.
    let most = u64::from(2 * REMAINING * EACH);
    while entries_in_runs(engine) > most {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} entries remain of {}",
            entries_in_runs(engine),
            REMAINING * EACH
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let all = Range::with_prefix(b"");
    let stored = engine.count(Index::OccurrenceByEvent, all.clone(), usize::MAX);
    assert_eq!(stored.await.unwrap(), (REMAINING * EACH) as usize);
    let shown = engine.entries(
        Index::OccurrenceByEvent,
        all,
        Direction::Ascending,
        usize::MAX,
    );
    assert_eq!(shown.await.unwrap().len(), (REMAINING * EACH) as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn balanced_adds_and_removals_do_not_grow_runs() {
    for fan in [2, 8, 1_000] {
        let disk = SimulatedDisk::default();
        let settings = Settings { fan, ..NARROW };
        let engine = open_with(&disk, settings).unwrap();
        add_and_remove(&engine, 0..SETS).await;
        has_little(&engine).await;
        // The number of tombstones must survive a restart.
        drop(engine);
        let engine = open_with(&disk, settings).unwrap();
        add_and_remove(&engine, SETS..SETS + 20).await;
        has_little(&engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_removals_trigger_no_merge() {
    let disk = SimulatedDisk::default();
    let settings = Settings {
        memory_bytes: NARROW.memory_bytes,
        fan: 1_000,
        ..SETTINGS
    };
    let engine = open_with(&disk, settings).unwrap();
    for set in 0..20 {
        let changes: Vec<_> = (set * EACH..(set + 1) * EACH).map(added).collect();
        engine.apply(Lane::Bulk, changes.into()).await.unwrap();
    }
    let few = removed(&engine, 0..EACH).await;
    engine.apply(Lane::Bulk, few.into()).await.unwrap();
    let layers = engine.shared.layers.get();
    let tree = layers.tree.as_ref().unwrap();
    assert!(tree.runs.len() > 1, "{} runs", tree.runs.len());
}
