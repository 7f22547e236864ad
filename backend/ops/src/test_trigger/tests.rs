//! Tests of the limits of trigger tests.

use super::*;
use crate::{
    domain::RecordId,
    matching::compile,
    samples::{self, HurriedClock, START_MS},
    store::Lane,
};

const STORED: u32 = 5_000;

async fn run() -> TestRun {
    let store = Store::in_memory();
    let mut changes = store.new_changes();
    for number in 0..STORED {
        let at_ms = START_MS - i64::from(number);
        changes.insert(&Occurrence {
            key: RecordId::from_parts(1, u128::from(number)),
            number: number + 1,
            start_ms: at_ms,
            last_seen_ms: at_ms,
            ..samples::occurrence()
        });
    }
    store.apply(Lane::Bulk, changes).await.unwrap();
    let draft = compile(&samples::trigger("everything").query).unwrap();
    TestRun::new(store, draft, None, Filter::default())
}

#[tokio::test]
async fn scan_limit_ends_the_test_and_returns_the_position() {
    let mut run = run().await;
    let clock = crate::clock::ManualClock::starting_at(0);
    run.run(&clock, 4_000).await.unwrap();
    let test = run.results().clone();
    assert!(test.stopped_early && !run.is_finished());
    assert_eq!((test.scanned, test.matched), (4_000, 4_000));
    assert_eq!(test.reached_ms, Some(START_MS - 3_999));
}

#[tokio::test]
async fn time_limit_ends_the_test_and_returns_the_position() {
    let mut run = run().await;
    run.run(&HurriedClock::default(), usize::MAX).await.unwrap();
    let test = run.results();
    assert!(test.stopped_early);
    assert!(test.scanned > 0 && test.reached_ms.is_some());
}

#[tokio::test]
async fn unlimited_test_scans_all_occurrences() {
    let mut run = run().await;
    let clock = crate::clock::ManualClock::starting_at(0);
    run.run(&clock, usize::MAX).await.unwrap();
    assert!(run.is_finished() && !run.results().stopped_early);
    assert_eq!(run.results().scanned, STORED as usize);
}
