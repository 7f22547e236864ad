//! Tests of missing or truncated logs, and of closed stores, which require no log.

use super::{SETTINGS, Settings, SimulatedDisk, open, open_with};
use crate::{
    Engine,
    change::{Action, Change, Expect, Lane},
    error::EngineError,
    kind::Kind,
    redb::RedbEngine,
};

/// The minimum length of a log file.
const FIRST_BYTES: usize = 256 * 1024;
/// Number of rows that fit without growing the log file.
const FEW: u32 = 20;
/// Number of rows that make the log file grow.
const MANY: u32 = 400;

type Damage = fn(&mut Vec<u8>);

async fn insert(engine: &RedbEngine, number: u32) {
    let put = Action::Put(vec![1; 2_000]);
    let change = Change::new(Kind::Rule, &number.to_be_bytes(), Expect::Absent, put);
    engine.apply(Lane::Bulk, vec![change].into()).await.unwrap();
}

async fn count(engine: &RedbEngine, rows: u32) -> usize {
    let keys: Vec<_> = (0..rows).map(|it| it.to_be_bytes().to_vec()).collect();
    let found = engine.get(Kind::Rule, &keys).await.unwrap();
    found.into_iter().flatten().count()
}

/// Returns the disk of a process that was killed after writing `rows` rows; the first half was
/// written by an earlier process that closed the store.
async fn killed(rows: u32) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let engine = open(&disk).unwrap();
    for number in 0..rows / 2 {
        insert(&engine, number).await;
    }
    engine.close().await.unwrap();
    drop(engine);
    let engine = open(&disk).unwrap();
    for number in rows / 2..rows {
        insert(&engine, number).await;
    }
    disk.copy()
}

#[tokio::test]
async fn damaged_log_is_refused_after_a_kill() {
    let earlier = {
        let disk = SimulatedDisk::default();
        drop(open(&disk).unwrap());
        let mut file = Vec::new();
        disk.edit_bytes(1, |bytes| file.clone_from(bytes));
        file
    };
    let damages: [(u32, Damage, &str); 7] = [
        (FEW, Vec::clear, "is missing or empty"),
        (FEW, |file| file.truncate(20), "is not the one"),
        (FEW, |file| file.truncate(FIRST_BYTES / 2), "was truncated"),
        (FEW, |file| file.truncate(FIRST_BYTES - 1), "was truncated"),
        (FEW, |file| file.fill(0), "is not the one"),
        (MANY, |file| file.truncate(FIRST_BYTES), "was truncated"),
        (MANY, |file| file[512..].rotate_left(512), "has a gap"),
    ];
    for (rows, damage, expected) in damages {
        let disk = killed(rows).await;
        disk.edit_bytes(1, damage);
        let refused = open(&disk).unwrap_err();
        assert!(
            matches!(&refused, EngineError::Incomplete(why) if why.contains(expected)),
            "{expected}: {refused}"
        );
        assert!(refused.to_string().contains("log 0"), "{refused}");
        accepts(&disk, rows).await;
    }
    let disk = killed(FEW).await;
    disk.edit_bytes(1, |file| *file = earlier);
    let refused = open(&disk).unwrap_err().to_string();
    assert!(
        refused.contains("is not the one"),
        "from another run: {refused}"
    );
    // The other file was never written to, but must exist.
    let disk = killed(FEW).await;
    disk.edit_bytes(2, Vec::clear);
    let refused = open(&disk).unwrap_err().to_string();
    assert!(refused.contains("log 1 is missing or empty"), "{refused}");
    accepts(&disk, FEW).await;
}

/// Checks that a store opened with accepted loss has the remaining data, and is intact from then
/// on.
async fn accepts(disk: &SimulatedDisk, rows: u32) {
    let settings = Settings {
        accept_loss: true,
        ..SETTINGS
    };
    let engine = open_with(disk, settings).unwrap();
    let left = count(&engine, rows).await;
    assert!(left >= rows as usize / 2, "{left}");
    insert(&engine, rows).await;
    let disk = disk.copy();
    let engine = open(&disk).unwrap();
    assert_eq!(count(&engine, rows + 1).await, left + 1);
}

#[tokio::test]
async fn intact_log_is_accepted_after_a_kill() {
    for rows in [0, 1, FEW, MANY] {
        let engine = open(&killed(rows).await).unwrap();
        assert_eq!(count(&engine, rows).await, rows as usize);
    }
}

#[tokio::test]
async fn closed_store_is_complete_without_its_log() {
    let disk = killed(MANY).await;
    let engine = open(&disk).unwrap();
    insert(&engine, MANY).await;
    engine.close().await.unwrap();
    let refused = engine.apply(Lane::Bulk, Vec::new().into()).await;
    assert!(
        matches!(refused, Err(EngineError::Unavailable(_))),
        "{refused:?}"
    );
    engine.close().await.unwrap();
    drop(engine);
    disk.edit_bytes(1, Vec::clear);
    disk.edit_bytes(2, Vec::clear);
    let engine = open(&disk).unwrap();
    assert_eq!(count(&engine, MANY + 1).await, MANY as usize + 1);
}
