//! Random walks, compared step by step with the engine in memory.

use std::collections::{BTreeSet, HashMap};

use proptest::{
    prelude::{Just, Strategy, any, prop_oneof},
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use super::{change, entry, read};
use crate::{
    Action, Change, Direction, Engine, EngineError, Entry, Expect, Index, Kind, Lane, LogPosition,
    Range, RecordName, Row, memory::MemoryEngine,
};

const KINDS: [Kind; 4] = [Kind::Rule, Kind::Occurrence, Kind::Delivery, Kind::Attempt];
/// Two indexes of occurrences: the entries of the first stay, those of the second move.
const INDEXES: [Index; 2] = [Index::OccurrenceByEvent, Index::OccurrenceByState];
const STEPS: usize = 200;
const WALKS: usize = 8;

/// A planned change; its expected version is determined when it is applied.
#[derive(Debug, Clone)]
struct Intent {
    kind: Kind,
    key: u8,
    value: Option<Vec<u8>>,
    entry: u8,
    is_touch: bool,
    is_stale: bool,
}

fn intent() -> impl Strategy<Value = Intent> {
    let kind = (0..KINDS.len()).prop_map(|at| KINDS[at]);
    let value = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 1..40).prop_map(Some),
        1 => Just(None),
    ];
    (kind, 0..12_u8, value, 0..6_u8, 0..8_u8, 0..12_u8).prop_map(
        |(kind, key, value, entry, touch, stale)| Intent {
            kind,
            key,
            value,
            entry,
            is_touch: touch == 0,
            is_stale: stale == 0,
        },
    )
}

/// Derives the entries of a record from its value, so that they can be computed again.
fn entries_of(key: u8, value: &[u8]) -> Vec<Entry> {
    let shared = value.first().copied().unwrap_or_default();
    vec![
        entry(INDEXES[0], &[shared]),
        entry(INDEXES[1], &[shared, key]),
    ]
}

async fn changes_of(model: &dyn Engine, intents: &[Intent]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for intent in intents {
        let key = vec![intent.key];
        if changes
            .iter()
            .any(|other| other.kind == intent.kind && other.key == key)
        {
            continue;
        }
        let found = read(model, intent.kind, &key).await;
        let expect = match &found {
            Some((_, version)) => Expect::Version(version - u64::from(intent.is_stale)),
            None if intent.is_stale => Expect::Version(1),
            None => Expect::Absent,
        };
        let mut value = intent.value.clone();
        if let Some(value) = &mut value {
            value[0] = intent.entry;
        }
        let old = found.map(|(old, _)| entries_of(intent.key, &old));
        let action = match (&value, &old) {
            _ if intent.is_touch && old.is_some() => Action::Touch,
            (None, None) => continue,
            (None, Some(_)) => Action::Delete,
            (Some(value), _) => Action::Put(value.clone()),
        };
        let is_touch = action == Action::Touch;
        let mut change = change(intent.kind, &key, expect, action);
        if intent.kind == Kind::Occurrence && !is_touch {
            change.remove = old.unwrap_or_default();
            change.add = value.map_or_else(Vec::new, |value| entries_of(intent.key, &value));
        }
        changes.push(change);
    }
    changes
}

/// Generates a key range, a direction and a limit.
fn stretch() -> impl Strategy<Value = (Range, Direction, usize)> {
    let end = prop_oneof![1 => Just(None), 3 => (0..14_u8).prop_map(|end| Some(vec![end]))];
    let direction = prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)];
    (0..12_u8, end, direction, 0..8_usize).prop_map(|(start, end, direction, limit)| {
        let start = vec![start];
        (Range { start, end }, direction, limit)
    })
}

/// Reads a key range by every kind of read.
async fn seen_in(
    engine: &dyn Engine,
    versions: &Versions,
    (range, direction, limit): (Range, Direction, usize),
) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut records = Vec::new();
    for kind in KINDS {
        let page = engine.read_page(kind, range.clone(), direction, limit);
        records.push(versions.translate(page.await.unwrap()));
    }
    let mut entries = Vec::new();
    for index in INDEXES {
        let found = engine.entries(index, range.clone(), direction, limit);
        let count = engine.count(index, range.clone(), limit);
        let last = engine.last_with_prefix(index, std::slice::from_ref(&range.start));
        entries.push((
            found.await.unwrap(),
            count.await.unwrap(),
            last.await
                .unwrap()
                .pop()
                .flatten()
                .map(|it| (it.entry, it.key, it.row.value)),
        ));
    }
    (records, entries)
}

/// Reads all rows that an engine stores.
async fn stored_rows(
    engine: &dyn Engine,
    versions: &Versions,
) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut records = Vec::new();
    for kind in KINDS {
        let page = engine.read_page(kind, Range::with_prefix(b""), Direction::Ascending, 1_000);
        records.push(versions.translate(page.await.unwrap()));
    }
    let mut entries = Vec::new();
    for index in INDEXES {
        let found = engine.entries(index, Range::with_prefix(b""), Direction::Descending, 1_000);
        entries.push(found.await.unwrap());
    }
    let log = engine.log_after(LogPosition::START, 10_000).await.unwrap();
    (records, entries, log)
}

/// Applies random changes to a new engine and to the model, and compares them after each step.
pub async fn random_walks_match_the_model(engine: &dyn Engine) {
    let model = MemoryEngine::new();
    let mut runner = TestRunner::new(Config::default());
    let steps = proptest::collection::vec(proptest::collection::vec(intent(), 1..5), STEPS);
    let (mut versions, same) = (Versions::default(), Versions::default());
    for _ in 0..WALKS {
        let steps = steps.new_tree(&mut runner).unwrap().current();
        for (number, intents) in steps.iter().enumerate() {
            let changes = changes_of(&model, intents).await;
            let ours = engine.apply(Lane::Admin, versions.expected(&changes).into());
            let ours = ours.await;
            let theirs = model.apply(Lane::Admin, changes.clone().into()).await;
            match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => {
                    assert_eq!(ours.position, theirs.position);
                    versions.note(theirs.version, ours.version);
                }
                (Err(EngineError::Conflict(ours)), Err(EngineError::Conflict(theirs))) => {
                    let names = |names: &[RecordName]| -> BTreeSet<_> {
                        let names = names.iter();
                        names
                            .map(|(kind, key)| (*kind as u8, key.clone()))
                            .collect()
                    };
                    assert_eq!(names(ours), names(theirs), "step {number}: {changes:?}");
                }
                _ => panic!("step {number}: {ours:?}, the model {theirs:?}: {changes:?}"),
            }
            let stretch = stretch().new_tree(&mut runner).unwrap().current();
            let ours = seen_in(engine, &same, stretch.clone()).await;
            let theirs = seen_in(&model, &versions, stretch.clone()).await;
            assert_eq!(ours, theirs, "step {number}: {stretch:?}");
        }
        assert_eq!(
            stored_rows(engine, &same).await,
            stored_rows(&model, &versions).await
        );
    }
}

/// The engine's version for each version of the model, since the two number versions differently.
#[derive(Debug, Default)]
struct Versions {
    ours: HashMap<u64, u64>,
}

impl Versions {
    fn note(&mut self, theirs: u64, ours: u64) {
        self.ours.insert(theirs, ours);
    }

    fn translate(&self, page: Vec<(Vec<u8>, Row)>) -> Vec<(Vec<u8>, Row)> {
        let ours = |version| self.ours.get(&version).copied().unwrap_or(version);
        let rows = page.into_iter().map(|(key, row)| {
            let version = ours(row.version);
            (key, Row { version, ..row })
        });
        rows.collect()
    }

    /// Returns the changes with the versions that the engine expects. A version that is stale for
    /// the model is stale for the engine too.
    fn expected(&self, changes: &[Change]) -> Vec<Change> {
        let mut changes = changes.to_vec();
        for change in &mut changes {
            if let Expect::Version(version) = &mut change.expect {
                *version = self.ours.get(version).copied().unwrap_or_default();
            }
        }
        changes
    }
}
