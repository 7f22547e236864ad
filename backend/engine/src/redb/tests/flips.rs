//! Tests of single bit flips on disk: the result is an error or correct data.

use rand::{SeedableRng, rngs::StdRng};

use super::{NARROW, SimulatedDisk, open, open_with};
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    error::EngineError,
    index::Index,
    kind::Kind,
    position::LogPosition,
    read::{Direction, Range},
    testing::walks::walk_length,
};

const RECORDS: u32 = 600;

/// Returns a disk with records, written by an engine that was closed or killed.
async fn fill_disk(is_killed: bool) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let engine = open_with(&disk, NARROW).unwrap();
    for number in 0..RECORDS {
        let key = number.to_be_bytes().to_vec();
        let put = Action::Put(key.repeat(40));
        let change = Change {
            add: vec![Entry {
                index: Index::OccurrenceByState,
                key: key.clone(),
            }],
            ..Change::new(Kind::Occurrence, &key, Expect::Absent, put)
        };
        engine.apply(Lane::Bulk, vec![change].into()).await.unwrap();
    }
    drop(engine);
    let engine = open(&disk).unwrap();
    // This commit may be lost: a flipped bit in the last commit looks like a torn write.
    let last = Change::new(Kind::Health, b"last", Expect::Absent, Action::Put(vec![1]));
    engine.apply(Lane::Bulk, vec![last].into()).await.unwrap();
    // Copy the disk first: dropping the engine writes to it.
    let killed = disk.copy();
    drop(engine);
    if is_killed { killed } else { disk }
}

/// Reads all records. Returns `None` if corruption is reported.
async fn read_through(disk: &SimulatedDisk) -> Option<()> {
    let refuses = |error: EngineError| match error {
        EngineError::Corrupt(_) | EngineError::Incomplete(_) | EngineError::Unavailable(_) => {
            None::<()>
        }
        other => panic!("{other:?}"),
    };
    let engine = match open(disk) {
        Ok(engine) => engine,
        Err(error) => return refuses(error),
    };
    for number in 0..RECORDS {
        let key = number.to_be_bytes().to_vec();
        match engine
            .get(Kind::Occurrence, std::slice::from_ref(&key))
            .await
        {
            Ok(rows) => assert_eq!(rows[0].as_ref().unwrap().value, key.repeat(40)),
            Err(error) => return refuses(error),
        }
    }
    let all = || Range::with_prefix(b"");
    let entries = engine.entries(
        Index::OccurrenceByState,
        all(),
        Direction::Ascending,
        10_000,
    );
    match entries.await {
        Ok(entries) => assert_eq!(entries.len(), RECORDS as usize),
        Err(error) => return refuses(error),
    }
    match engine.log_after(LogPosition::START, 10_000).await {
        Ok(log) => assert!(log.unwrap().len() >= RECORDS as usize),
        Err(error) => return refuses(error),
    }
    Some(())
}

#[tokio::test]
async fn flipped_bit_is_detected_or_harmless() {
    let (closed, killed) = (fill_disk(false).await, fill_disk(true).await);
    let mut noticed = 0;
    for seed in 0..walk_length("BELLWETHER_FLIPS") {
        let disk = if seed % 3 == 2 { &killed } else { &closed };
        let flipped = disk.with_flipped_bit(&mut StdRng::seed_from_u64(seed));
        if seed % 3 == 1 {
            flipped.forget_checksums();
        }
        noticed += u64::from(read_through(&flipped).await.is_none());
    }
    assert!(noticed > 0, "no flip hit data in use");
}

#[tokio::test]
async fn journal_avoids_full_scan_after_a_kill() {
    let disk = fill_disk(true).await;
    disk.read_bytes();
    drop(open(&disk).unwrap());
    let with_journal = disk.read_bytes();
    let disk = fill_disk(true).await;
    disk.forget_journal();
    disk.read_bytes();
    drop(open(&disk).unwrap());
    let without = disk.read_bytes();
    // With debug assertions, the engine walks the store once in either case.
    assert!(
        with_journal * 2 < without,
        "{with_journal} and {without} bytes were read"
    );
}
