//! Tests that buffered changes are read as if they were applied, and are applied as they were read.

use std::sync::Arc;

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::StagedEngine;
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    error::EngineError,
    index::Index,
    kind::Kind,
    memory::MemoryEngine,
    read::{Direction, Range},
};

const INDEX: Index = Index::RuleByTrigger;

/// Returns the only index entry of a record: its value, followed by its key.
fn entries(key: u8, value: u8) -> Vec<Entry> {
    let of = |key: Vec<u8>| Entry { index: INDEX, key };
    vec![of(vec![value, key])]
}

/// Returns a change that sets or deletes a record, and expects the version in the engine.
async fn change(engine: &dyn Engine, key: u8, value: Option<u8>, touches: bool) -> Option<Change> {
    let rows = engine.get(Kind::Rule, &[vec![key]]).await.unwrap();
    let found = rows.into_iter().next().unwrap();
    let old = found.as_ref().map(|row| entries(key, row.value[0]));
    let expect = found.map_or(Expect::Absent, |row| Expect::Version(row.version));
    let (action, remove, add) = match (value, old) {
        (_, Some(_)) if touches => (Action::Touch, Vec::new(), Vec::new()),
        (None, None) => return None,
        (None, Some(old)) => (Action::Delete, old, Vec::new()),
        (Some(value), old) => {
            let new = entries(key, value);
            let old = old.unwrap_or_default();
            let gone = old.iter().filter(|it| !new.contains(it)).cloned();
            let come = new.iter().filter(|it| !old.contains(it)).cloned();
            (Action::Put(vec![value]), gone.collect(), come.collect())
        }
    };
    Some(Change {
        remove,
        add,
        ..Change::new(Kind::Rule, &[key], expect, action)
    })
}

/// Reads values and entries by key, in both directions and in short pages.
async fn all(engine: &dyn Engine) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    for direction in [Direction::Ascending, Direction::Descending] {
        for limit in [3, 100] {
            let range = || Range::with_prefix(&[]);
            let rows = engine
                .read_page(Kind::Rule, range(), direction, limit)
                .await;
            seen.extend(rows.unwrap().into_iter().map(|(key, row)| (key, row.value)));
            let entries = engine.entries(INDEX, range(), direction, limit).await;
            seen.extend(entries.unwrap());
        }
    }
    seen
}

#[tokio::test]
async fn staged_changes_behave_like_direct_changes() {
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let (plain, base) = (MemoryEngine::new(), Arc::new(MemoryEngine::new()));
        for _ in 0..3 {
            let stage = StagedEngine::new(base.clone()).await.unwrap();
            for _ in 0..20 {
                let (key, value) = (random.random_range(0..8), random.random_range(0..4));
                let value = random.random_bool(0.7).then_some(value);
                let touches = random.random_bool(0.2);
                let (here, there) = (
                    change(&plain, key, value, touches).await,
                    change(&stage, key, value, touches).await,
                );
                let (Some(here), Some(there)) = (here, there) else {
                    continue;
                };
                plain.apply(Lane::Admin, vec![here].into()).await.unwrap();
                stage.apply(Lane::Admin, vec![there].into()).await.unwrap();
                assert_eq!(all(&stage).await, all(&plain).await, "seed {seed}");
            }
            base.apply(Lane::Admin, stage.take_changes().into())
                .await
                .unwrap();
            assert_eq!(all(&*base).await, all(&plain).await, "seed {seed}");
        }
    }
}

#[tokio::test]
async fn stage_conflicts_with_concurrent_changes() {
    let base = Arc::new(MemoryEngine::new());
    let made = change(&*base, 1, Some(1), false).await.unwrap();
    base.apply(Lane::Admin, vec![made].into()).await.unwrap();
    for touches in [true, false] {
        let stage = StagedEngine::new(base.clone()).await.unwrap();
        let accepted = change(&stage, 1, Some(2), touches).await.unwrap();
        stage
            .apply(Lane::Admin, vec![accepted].into())
            .await
            .unwrap();
        let other = change(&*base, 1, Some(3), false).await.unwrap();
        base.apply(Lane::Admin, vec![other].into()).await.unwrap();
        let refused = base.apply(Lane::Admin, stage.take_changes().into()).await;
        assert!(
            matches!(refused, Err(EngineError::Conflict(_))),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn insert_and_delete_in_one_stage_leave_no_change() {
    let base = Arc::new(MemoryEngine::new());
    let stage = StagedEngine::new(base.clone()).await.unwrap();
    for value in [Some(1), None] {
        let change = change(&stage, 1, value, false).await.unwrap();
        stage.apply(Lane::Admin, vec![change].into()).await.unwrap();
    }
    assert_eq!(stage.take_changes(), Vec::new());
}
