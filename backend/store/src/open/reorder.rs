//! Rebuilds the order entries of occurrences of older layouts.
//!
//! Up to layout 2, entries with equal sort keys were ordered by record key. Progress is stored with
//! each step, so that an interrupted start can continue.

use crate::{
    domain::Occurrence,
    engine::{
        Action, Change, Direction, EngineError, Entry, Expect, Index, Kind, Lane, Range, Row,
    },
    record::{Record, Store, bytes::Key},
};

const STEP: usize = 1_000;
const STEPS_PER_REPORT: usize = 100;
const MARK: &[u8] = b"reordered";

pub(super) async fn reorder_entries(store: &Store) -> Result<(), EngineError> {
    let mut steps = 0_usize;
    while reorder_step(store, STEP).await? {
        steps += 1;
        if steps.is_multiple_of(STEPS_PER_REPORT) {
            tracing::info!(done = steps * STEP, "reordering occurrences");
        }
    }
    let Some(mark) = read_mark(store).await? else {
        return Ok(());
    };
    let gone = fact_change(Expect::Version(mark.version), Action::Delete);
    store.engine().apply(Lane::Admin, vec![gone].into()).await?;
    Ok(())
}

async fn reorder_step(store: &Store, count: usize) -> Result<bool, EngineError> {
    let mark = read_mark(store).await?;
    let mut range = Range::with_prefix(&[]);
    if let Some(mark) = &mark {
        range.exclude_through(&mark.value);
    }
    let engine = store.engine();
    let page = engine.read_page(Kind::Occurrence, range, Direction::Ascending, count);
    let page = page.await?;
    let Some((last, _)) = page.last() else {
        return Ok(false);
    };
    let expect = mark.map_or(Expect::Absent, |mark| Expect::Version(mark.version));
    let marked = fact_change(expect, Action::Put(last.clone()));
    // Unreadable records are skipped. They are reported when they are used, and by a verification.
    let changes = page.iter().filter_map(|(key, row)| {
        let occurrence = store.decode::<Occurrence>(&row.value).ok()?;
        Some(entry_change(key, row, &occurrence))
    });
    let changes: Vec<_> = changes.collect();
    let all: Vec<_> = changes.iter().cloned().chain([marked.clone()]).collect();
    match engine.apply(Lane::Admin, all.into()).await {
        // An entry is missing: only the affected occurrences are skipped.
        Err(EngineError::Corrupt(_)) => apply_individually(store, changes, marked).await?,
        applied => drop(applied?),
    }
    Ok(true)
}

async fn apply_individually(
    store: &Store,
    changes: Vec<Change>,
    marked: Change,
) -> Result<(), EngineError> {
    for change in changes {
        match store.engine().apply(Lane::Admin, vec![change].into()).await {
            Err(EngineError::Corrupt(why)) => {
                tracing::error!(why, "cannot determine the order of an occurrence");
            }
            applied => drop(applied?),
        }
    }
    store
        .engine()
        .apply(Lane::Admin, vec![marked].into())
        .await?;
    Ok(())
}

fn entry_change(key: &[u8], row: &Row, occurrence: &Occurrence) -> Change {
    let mut add = occurrence.entries();
    add.retain(|entry| ORDERS.contains(&entry.index));
    Change {
        remove: old_entries(occurrence),
        add,
        is_logged: false,
        ..Change::new(
            Kind::Occurrence,
            key,
            Expect::Version(row.version),
            Action::Touch,
        )
    }
}

const ORDERS: [Index; 3] = [
    Index::OccurrenceByState,
    Index::OccurrenceByStart,
    Index::OccurrenceBySeverity,
];

fn old_entries(occurrence: &Occurrence) -> Vec<Entry> {
    let state = Key::new()
        .byte(occurrence.status as u8)
        .byte(occurrence.severity as u8)
        .time_ms(occurrence.last_seen_ms);
    let start = Key::new().time_ms(occurrence.start_ms);
    let entry = |index, key: Key| Entry {
        index,
        key: key.id(occurrence.key).build(),
    };
    vec![
        entry(Index::OccurrenceByState, state),
        entry(Index::OccurrenceByStart, start),
    ]
}

async fn read_mark(store: &Store) -> Result<Option<Row>, EngineError> {
    let rows = store.engine().get(Kind::Meta, &[MARK.into()]).await;
    Ok(rows?.pop().flatten())
}

fn fact_change(expect: Expect, action: Action) -> Change {
    Change {
        is_logged: false,
        ..Change::new(Kind::Meta, MARK, expect, action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{samples, verify};

    async fn old_store(count: u32) -> Store {
        let store = Store::in_memory();
        for number in 1..=count {
            let occurrence = samples::occurrence(number);
            let mut changes = store.new_changes();
            changes.insert(&occurrence);
            store.apply(Lane::Admin, changes).await.unwrap();
            let key = occurrence.key();
            let keys = std::slice::from_ref(&key);
            let rows = store.engine().get(Kind::Occurrence, keys).await;
            let row = rows.unwrap().pop().flatten().unwrap();
            let newer = entry_change(&key, &row, &occurrence);
            let back = Change {
                add: newer.remove,
                remove: newer.add,
                ..newer
            };
            let applied = store.engine().apply(Lane::Admin, vec![back].into());
            applied.await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn interrupted_reorder_resumes() {
        for steps in 0..4 {
            let store = old_store(5).await;
            assert!(verify(&store, &|_| {}).await.errors > 0);
            for _ in 0..steps {
                reorder_step(&store, 2).await.unwrap();
            }
            reorder_entries(&store).await.unwrap();
            let findings = verify(&store, &|_| {}).await;
            assert_eq!((findings.errors, findings.descriptions), (0, Vec::new()));
            assert!(read_mark(&store).await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn damaged_record_does_not_block_reorder() {
        let store = old_store(3).await;
        let damaged = samples::occurrence(2);
        let rows = store.engine().get(Kind::Occurrence, &[damaged.key()]).await;
        let version = Expect::Version(rows.unwrap().pop().flatten().unwrap().version);
        let lost = Change {
            remove: old_entries(&damaged)[..1].to_vec(),
            ..Change::new(Kind::Occurrence, &damaged.key(), version, Action::Touch)
        };
        let applied = store.engine().apply(Lane::Admin, vec![lost].into());
        applied.await.unwrap();
        reorder_entries(&store).await.unwrap();
        let all = Range::with_prefix(&[]);
        let placed = store.engine().count(Index::OccurrenceBySeverity, all, 9);
        assert_eq!(placed.await.unwrap(), 2);
    }
}
