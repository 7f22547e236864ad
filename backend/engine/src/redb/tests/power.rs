//! Tests of power failures and crashes: no confirmed set is lost, and sets are atomic.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{SETTINGS, Settings, SimulatedDisk, open_with};
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    error::EngineError,
    index::Index,
    kind::Kind,
    read::{Direction, Range},
    redb::RedbEngine,
    testing::walks::walk_length,
};

const CRASHES_MAX: usize = 3;
const KEYS: u8 = 24;
const INDEXES: [Index; 3] = [
    Index::OccurrenceByEvent,
    Index::OccurrenceByState,
    Index::OccurrenceByReview,
];

/// Values by key; absent if deleted or never written.
type Model = BTreeMap<u8, Vec<u8>>;

/// A set in flight.
struct Step(Vec<Part>);

/// One record of a set; `None` stands for an absent record.
struct Part {
    key: u8,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

#[tokio::test]
async fn power_loss_keeps_acknowledged_writes() {
    let lives = walk_length("BELLWETHER_POWER_LIVES");
    for seed in 0..lives {
        live(seed).await;
    }
}

async fn live(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let disk = SimulatedDisk::default();
    let settings = Settings {
        quick_repair_from: if seed % 4 < 2 { 0 } else { u64::MAX },
        // From constant flushes to flushes only when the log is full.
        memory_bytes: [0, 8 * 1024, 64 * 1024, usize::MAX][random.random_range(0..4)],
        log_bytes: [8 * 1024, 128 * 1024][random.random_range(0..2)],
        fan: random.random_range(2..5),
        ..SETTINGS
    };
    if seed.is_multiple_of(3) {
        disk.evict_failed_pages();
    }
    let open = || open_with(&disk, settings);
    let mut model = Model::new();
    // Crashes during creation are handled by the caller, which creates the file under another name.
    drop(open().unwrap());
    for _ in 0..random.random_range(1..=CRASHES_MAX) {
        let operations = random.random_range(0..400);
        if random.random_bool(0.2) {
            // The power may already fail during opening, perhaps in the middle of a repair.
            disk.fail_power_after(random.random_range(0..60));
        }
        let mut in_flight = Vec::new();
        if let Ok(engine) = open() {
            disk.fail_power_after(operations);
            if random.random_bool(0.4) {
                // Syncs fail before the power does.
                let failures = random.random_range(1..5);
                disk.fail_some_after(random.random_range(0..=operations), failures);
            }
            in_flight = work(&engine, &mut model, &mut random).await;
        }
        if random.random_bool(0.3) {
            disk.kill_process();
        } else {
            disk.restore_power(&mut random);
        }
        let engine = open().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        settle(&engine, &mut model, in_flight, seed).await;
        assert_eq!(contents(&engine).await, model, "seed {seed}");
    }
}

/// Writes until the power fails. Returns the sets with an unknown outcome.
async fn work(engine: &RedbEngine, model: &mut Model, random: &mut StdRng) -> Vec<Step> {
    for _ in 0..200 {
        let mut keys: Vec<u8> = (0..KEYS).collect();
        let mut steps = Vec::new();
        let mut sets = Vec::new();
        for _ in 0..random.random_range(1..=6) {
            let (mut step, mut set) = (Vec::new(), Vec::new());
            for _ in 0..random.random_range(1..=3) {
                let key = keys.swap_remove(random.random_range(0..keys.len()));
                let before = model.get(&key).cloned();
                let length = random.random_range(1..3_000);
                let after = random
                    .random_bool(0.8)
                    .then(|| vec![random.random(); length]);
                if before.is_none() && after.is_none() {
                    continue;
                }
                let Ok(change) = change(engine, key, before.as_ref(), after.as_ref()).await else {
                    return Vec::new();
                };
                set.push(change);
                step.push(Part { key, before, after });
            }
            steps.push(Step(step));
            sets.push(set);
        }
        let applied = sets
            .into_iter()
            .map(|set| engine.apply(Lane::Bulk, set.into()));
        let mut unsure = Vec::new();
        for (step, result) in steps.into_iter().zip(join_all(applied).await) {
            match result {
                Ok(_) => step.apply_to(model),
                Err(EngineError::Indeterminate(_)) => unsure.push(step),
                Err(EngineError::Unavailable(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        if !unsure.is_empty() {
            return unsure;
        }
    }
    Vec::new()
}

impl Step {
    fn apply_to(self, model: &mut Model) {
        for part in self.0 {
            match part.after {
                Some(value) => drop(model.insert(part.key, value)),
                None => drop(model.remove(&part.key)),
            }
        }
    }
}

/// Applies the sets with an unknown outcome to the model. Each must have been applied completely or
/// not at all.
async fn settle(engine: &RedbEngine, model: &mut Model, steps: Vec<Step>, seed: u64) {
    let found = contents(engine).await;
    for step in steps {
        let has = |value: fn(&Part) -> &Option<Vec<u8>>| {
            let mut parts = step.0.iter();
            parts.all(|part| found.get(&part.key) == value(part).as_ref())
        };
        if has(|part| &part.after) {
            step.apply_to(model);
        } else {
            assert!(
                has(|part| &part.before),
                "seed {seed}: part of a set was written"
            );
        }
    }
}

async fn change(
    engine: &RedbEngine,
    key: u8,
    before: Option<&Vec<u8>>,
    after: Option<&Vec<u8>>,
) -> Result<Change, EngineError> {
    let row = engine.get(Kind::Occurrence, &[vec![key]]).await?.remove(0);
    let action = after.map_or(Action::Delete, |value| Action::Put(value.clone()));
    let expect = row.map_or(Expect::Absent, |row| Expect::Version(row.version));
    Ok(Change {
        remove: before.map_or_else(Vec::new, |value| entries_of(key, value)),
        add: after.map_or_else(Vec::new, |value| entries_of(key, value)),
        ..Change::new(Kind::Occurrence, &[key], expect, action)
    })
}

fn entries_of(key: u8, value: &[u8]) -> Vec<Entry> {
    let entry = |index| Entry {
        index,
        key: vec![value[0], key],
    };
    INDEXES.map(entry).into()
}

/// Returns all records, checking that records and entries match.
async fn contents(engine: &RedbEngine) -> Model {
    let (all, ascending) = (Range::with_prefix(b""), Direction::Ascending);
    let page = engine.read_page(Kind::Occurrence, all.clone(), ascending, 1_000);
    let rows = page.await.unwrap().into_iter();
    let model: Model = rows.map(|(key, row)| (key[0], row.value)).collect();
    let leads = model
        .iter()
        .map(|(key, value)| (vec![value[0], *key], vec![*key]));
    let mut leads: Vec<_> = leads.collect();
    leads.sort();
    for index in INDEXES {
        let found = engine.entries(index, all.clone(), ascending, 1_000).await;
        assert_eq!(found.unwrap(), leads);
    }
    model
}
