//! Tests of failing operations and of a full disk.

use std::{io::ErrorKind, time::Duration};

use super::{NARROW, SETTINGS, Settings, SimulatedDisk, open, open_with};
use crate::{
    Condition, Engine,
    change::{Action, ApplyResult, Change, Expect, Lane},
    error::EngineError,
    kind::Kind,
    redb::RedbEngine,
};

/// The error message of an injected failure.
const OWN_FAULT: &str = "the operation failed";
/// Time within which the engine must recover.
const PATIENCE: Duration = Duration::from_secs(60);

fn put(kind: Kind, number: u32, expect: Expect) -> Change {
    Change {
        adds: kind == Kind::Occurrence,
        ..Change::new(
            kind,
            &number.to_be_bytes(),
            expect,
            Action::Put(vec![1; 2_000]),
        )
    }
}

async fn insert(engine: &RedbEngine, number: u32) -> Result<ApplyResult, EngineError> {
    let change = put(Kind::Occurrence, number, Expect::Absent);
    engine.apply(Lane::Bulk, vec![change].into()).await
}

async fn exists(engine: &RedbEngine, number: u32) -> bool {
    let keys = [number.to_be_bytes().to_vec()];
    let rows = engine.get(Kind::Occurrence, &keys).await.unwrap();
    rows[0].is_some()
}

/// Writes while some disk operations fail, and checks that no confirmed write is lost.
async fn fails_at(settings: Settings, operation: u64, failures: u64) -> u32 {
    let context = format!("operation {operation}, {failures} times");
    let disk = SimulatedDisk::default();
    if operation.is_multiple_of(3) {
        disk.evict_failed_pages();
    }
    let engine = open_with(&disk, settings).unwrap();
    let (mut done, mut not_done) = (Vec::new(), Vec::new());
    disk.fail_some_after(operation, failures);
    for number in 0..25 {
        match insert(&engine, number).await {
            Ok(_) => done.push(number),
            Err(EngineError::Indeterminate(_)) => {}
            Err(EngineError::Unavailable(_)) => not_done.push(number),
            Err(other) => panic!("{context}: {other:?}"),
        }
    }
    disk.fail_after(u64::MAX);
    let healed = async {
        while insert(&engine, 100).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let healed = tokio::time::timeout(PATIENCE, healed).await;
    healed.unwrap_or_else(|_late| panic!("{context}: it does not continue"));
    let check = async |engine: &RedbEngine, done: &[u32], when: &str| {
        for number in done {
            assert!(
                exists(engine, *number).await,
                "{context}, {when}: {number} is lost"
            );
        }
        for number in &not_done {
            assert!(
                !exists(engine, *number).await,
                "{context}, {when}: {number} exists"
            );
        }
    };
    check(&engine, &done, "meanwhile").await;
    let dark = disk.without_unsynced();
    check(&open_with(&dark, settings).unwrap(), &done, "without power").await;
    if failures.is_multiple_of(2) {
        disk.kill_process();
    }
    drop(engine);
    let engine = open_with(&disk, settings).unwrap();
    check(&engine, &done, "after a start").await;
    // Pages that were read but not covered by a successful sync must be written before further
    // changes depend on them.
    insert(&engine, 101).await.unwrap();
    done.push(101);
    let dark = disk.without_unsynced();
    check(
        &open_with(&dark, settings).unwrap(),
        &done,
        "without power after a start",
    )
    .await;
    u32::from(done.len() < 26)
}

#[tokio::test]
async fn failed_operations_are_reported_and_writes_continue() {
    let mut failures = 0;
    for (settings, operations) in [(NARROW, 90), (SETTINGS, 30)] {
        for operation in 0..operations {
            failures += fails_at(settings, operation, 1 + operation % 4).await;
        }
    }
    assert!(failures > 10, "only {failures} failures were detected");
}

/// Writes and closes while some disk operations fail, and checks that no confirmed write is lost.
/// Returns whether closing succeeded.
async fn closes_at(settings: Settings, operation: u64, failures: u64, kind: ErrorKind) -> bool {
    let context = format!("operation {operation}, {failures} times, {kind}");
    let disk = SimulatedDisk::default();
    let engine = open_with(&disk, settings).unwrap();
    let mut done = Vec::new();
    disk.fail_with(kind);
    disk.fail_some_after(operation, failures);
    for number in 0..10 {
        if insert(&engine, number).await.is_ok() {
            done.push(number);
        }
    }
    let is_closed = engine.close().await.is_ok();
    drop(engine);
    disk.fail_after(u64::MAX);
    for disk in [disk.without_unsynced(), disk] {
        if is_closed {
            // A closed store is complete without its log.
            disk.edit_bytes(1, Vec::clear);
            disk.edit_bytes(2, Vec::clear);
        }
        let engine = open_with(&disk, settings).unwrap();
        for number in &done {
            let exists = exists(&engine, *number).await;
            assert!(exists, "{context}: {number} is lost, closed: {is_closed}");
        }
    }
    is_closed
}

#[tokio::test]
async fn cleanly_closed_store_has_all_data_in_its_file() {
    for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
        for (settings, operations) in [(NARROW, 120), (SETTINGS, 60)] {
            for failures in [1, u64::MAX] {
                let mut closed = 0;
                for operation in 0..operations {
                    closed += u64::from(closes_at(settings, operation, failures, kind).await);
                }
                // Closing mostly succeeds after a single failure, and mostly fails after several.
                let is_fine = closed > operations / 2;
                assert_eq!(is_fine, failures == 1, "{closed} of {operations}, {kind}");
            }
        }
    }
}

#[tokio::test]
async fn reads_wait_while_file_is_reopened() {
    let disk = SimulatedDisk::default();
    let engine = open(&disk).unwrap();
    insert(&engine, 0).await.unwrap();
    let mut failures = 0;
    for number in 1..200 {
        disk.fail_after(u64::from(number) % 11);
        let write = insert(&engine, number);
        let keys = [0_u32.to_be_bytes().to_vec()];
        let read = engine.get(Kind::Occurrence, &keys);
        let (written, read) = tokio::join!(write, read);
        failures += u32::from(written.is_err());
        match read {
            Ok(rows) => assert!(rows[0].is_some(), "{number}"),
            // The injected failure hit this read itself.
            Err(error) => assert!(error.to_string().contains(OWN_FAULT), "{number}: {error}"),
        }
        disk.fail_after(u64::MAX);
    }
    assert!(failures > 50, "only {failures} writes failed");
}

#[tokio::test]
async fn full_disk_allows_deletes_and_reuses_space() {
    // The disk fills while the log grows, while rows are moved, or while runs are merged.
    for settings in [SETTINGS, NARROW] {
        fills_and_empties(settings).await;
    }
}

async fn fills_and_empties(settings: Settings) {
    let disk = SimulatedDisk::default();
    let engine = open_with(&disk, settings).unwrap();
    for number in 0..100 {
        insert(&engine, number).await.unwrap();
    }
    disk.limit_space(300_000, 400_000);
    let mut last = 100;
    let error = loop {
        match insert(&engine, last).await {
            Ok(_) => last += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, EngineError::Full(_)), "{error:?}");
    assert!(last > 110, "only {last} fit");
    assert!(exists(&engine, last - 1).await && !exists(&engine, last).await);
    for number in 0..50_u32 {
        let keys = [number.to_be_bytes().to_vec()];
        let rows = engine.get(Kind::Occurrence, &keys).await.unwrap();
        let expect = Expect::Version(rows[0].as_ref().unwrap().version);
        let delete = Change {
            action: Action::Delete,
            adds: false,
            ..put(Kind::Occurrence, number, expect)
        };
        engine.apply(Lane::Bulk, vec![delete].into()).await.unwrap();
    }
    let admin = put(Kind::Rule, 1, Expect::Absent);
    engine.apply(Lane::Admin, vec![admin].into()).await.unwrap();
    for lane in [Lane::Bulk, Lane::Leader, Lane::Owner] {
        let added = put(Kind::Occurrence, last, Expect::Absent);
        let refused = engine.apply(lane, vec![added].into()).await;
        assert!(
            matches!(refused, Err(EngineError::Full(_))),
            "{lane:?}: {refused:?}"
        );
    }
    disk.free_space();
    insert(&engine, last).await.unwrap();
    for number in 50..last {
        assert!(exists(&engine, number).await);
    }
}

#[tokio::test]
async fn queued_writes_complete_when_engine_is_dropped() {
    let disk = SimulatedDisk::default();
    let engine = open(&disk).unwrap();
    for number in 0..20 {
        let change = put(Kind::Rule, number, Expect::Absent);
        let write = engine.apply(Lane::Bulk, vec![change].into());
        // The call is dropped at its first await.
        drop(tokio::time::timeout(Duration::ZERO, write).await);
    }
    drop(engine);
    let engine = open(&disk).unwrap();
    let keys: Vec<_> = (0..20_u32)
        .map(|number| number.to_be_bytes().to_vec())
        .collect();
    let rows = engine.get(Kind::Rule, &keys).await.unwrap();
    assert!(rows.iter().all(Option::is_some));
}

#[tokio::test]
async fn failing_disk_is_reported_until_a_write_succeeds() {
    let disk = SimulatedDisk::default();
    let engine = open(&disk).unwrap();
    insert(&engine, 0).await.unwrap();
    assert_eq!(engine.condition(), Condition::Writable);
    disk.fail_some_after(0, u64::MAX);
    insert(&engine, 1).await.unwrap_err();
    assert_eq!(engine.condition().as_str(), "unwritable");
    disk.fail_after(u64::MAX);
    let healed = async {
        let mut number = 2;
        while insert(&engine, number).await.is_err() {
            number += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, healed).await.unwrap();
    assert_eq!(engine.condition(), Condition::Writable);
}
