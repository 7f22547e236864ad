//! Tests of several processes on one store.

use futures_util::future::join_all;

use super::{fresh, open};
use crate::{
    Engine,
    change::{Action, Change, Expect, Lane},
    conformance::change,
    conformance::together,
    conformance::walk,
    error::EngineError,
    kind::Kind,
    position::LogPosition,
};

#[tokio::test]
async fn engines_read_and_follow_each_others_writes() {
    let Some(address) = fresh().await else { return };
    let (one, other) = (open(&address).await, open(&address).await);
    let mut signal = other.log_signal();
    let put = Change::new(Kind::Rule, b"a", Expect::Absent, Action::Put(b"1".into()));
    let applied = one.apply(Lane::Admin, vec![put].into()).await.unwrap();
    let rows = other.get(Kind::Rule, &[b"a".to_vec()]).await.unwrap();
    assert_eq!(rows[0].as_ref().unwrap().version, applied.version);
    assert_eq!(other.log_head().await.unwrap(), applied.position);
    let after = other.log_after(applied.position, 1).await.unwrap();
    assert_eq!(after, Some(Vec::new()), "also before it has caught up");
    signal
        .wait_for(|head| *head == applied.position)
        .await
        .unwrap();
    assert_eq!(other.last_changed(&[Kind::Rule]), applied.position);
    assert!(other.last_changed(&[Kind::Client]) < applied.position);
    let steps = other
        .log_after(applied.position.previous(), 9)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(steps[0].changed, [(Kind::Rule, b"a".to_vec())]);
}

#[tokio::test]
async fn three_engines_lose_no_update_and_leave_no_log_gap() {
    let Some(address) = fresh().await else { return };
    let engines = [
        open(&address).await,
        open(&address).await,
        open(&address).await,
    ];
    let put = Change::new(Kind::Rule, b"n", Expect::Absent, Action::Put(vec![0]));
    engines[0]
        .apply(Lane::Admin, vec![put].into())
        .await
        .unwrap();
    let count = async |engine: &dyn Engine, lane| {
        let mut positions = Vec::new();
        while positions.len() < 20 {
            let rows = engine.get(Kind::Rule, &[b"n".to_vec()]).await.unwrap();
            let row = rows[0].clone().unwrap();
            let action = Action::Put(vec![row.value[0] + 1]);
            let put = Change::new(Kind::Rule, b"n", Expect::Version(row.version), action);
            match engine.apply(lane, vec![put].into()).await {
                Ok(applied) => positions.push(applied.position.to_number()),
                Err(EngineError::Conflict(names)) => {
                    assert_eq!(names, [(Kind::Rule, b"n".to_vec())]);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        positions
    };
    let lanes = engines
        .iter()
        .flat_map(|it| [(it, Lane::Admin), (it, Lane::Bulk)]);
    let positions = join_all(lanes.map(|(engine, lane)| count(engine, lane))).await;
    let rows = engines[0].get(Kind::Rule, &[b"n".to_vec()]).await.unwrap();
    assert_eq!(rows[0].as_ref().unwrap().value, [120]);
    let mut positions: Vec<_> = positions.into_iter().flatten().collect();
    positions.sort_unstable();
    let mut signal = engines[1].log_signal();
    signal
        .wait_for(|head| head.to_number() == 121)
        .await
        .unwrap();
    let steps = engines[1]
        .log_after(LogPosition::START, 1_000)
        .await
        .unwrap()
        .unwrap();
    let dense: Vec<u64> = (1..=121).collect();
    let log: Vec<_> = steps.iter().map(|step| step.position.to_number()).collect();
    assert_eq!(log, dense, "no position is missing");
    assert_eq!(
        positions,
        dense[1..],
        "each commit has a position of its own"
    );
}

#[tokio::test]
async fn conformance_holds_across_three_engines() {
    for prove in 0..6 {
        let Some(address) = fresh().await else { return };
        let engines = [
            open(&address).await,
            open(&address).await,
            open(&address).await,
        ];
        let spread = super::Spread::over(engines);
        match prove {
            0 => together::one_of_many_concurrent_inserts_succeeds(&spread).await,
            1 => together::concurrent_updates_are_not_lost(&spread).await,
            2 => together::concurrent_additions_neither_conflict_nor_get_lost(&spread).await,
            3 => together::conflict_does_not_affect_other_sets(&spread).await,
            4 => change::set_conflicts_once_its_definitions_changed(&spread).await,
            _ => walk::removed_records_are_skipped(&spread).await,
        }
    }
}
