//! Changing records.

use super::{apply, change, entry, insert, is_conflict, read};
use crate::store::engine::{
    Action, Change, Direction, Engine, EngineError, Expect, Index, Kind, Range,
};

pub(in crate::store) async fn a_record_reads_as_it_was_written(engine: &dyn Engine) {
    let long = vec![7; 100_000];
    for (key, value) in [(&b"a"[..], &b"one"[..]), (b"b", b""), (&[0; 40], &long)] {
        apply(engine, vec![insert(Kind::Rule, key, value)])
            .await
            .unwrap();
    }
    let keys = [
        b"b".to_vec(),
        b"none".to_vec(),
        vec![0; 40],
        b"a".to_vec(),
        b"a".to_vec(),
    ];
    let rows = engine.get(Kind::Rule, &keys).await.unwrap();
    let values: Vec<_> = rows
        .into_iter()
        .map(|row| row.map(|row| row.value))
        .collect();
    let one = Some(b"one".to_vec());
    assert_eq!(
        values,
        [Some(Vec::new()), None, Some(long), one.clone(), one]
    );
    assert!(engine.get(Kind::Rule, &[]).await.unwrap().is_empty());
}

pub(in crate::store) async fn a_set_with_one_wrong_expectation_changes_nothing(
    engine: &dyn Engine,
) {
    let version = apply(engine, vec![insert(Kind::Rule, b"a", b"1")])
        .await
        .unwrap();
    let put = |key: &[u8], expect| change(Kind::Rule, key, expect, Action::Put(b"2".into()));
    let wrong = [
        put(b"a", Expect::Absent),
        put(b"a", Expect::Version(version + 1)),
        put(b"none", Expect::Version(version)),
        change(
            Kind::Rule,
            b"none",
            Expect::Version(version),
            Action::Delete,
        ),
        change(Kind::Rule, b"a", Expect::Version(0), Action::Touch),
    ];
    for wrong in wrong {
        let right = insert(Kind::Rule, b"b", b"2");
        for set in [
            vec![right.clone(), wrong.clone()],
            vec![wrong.clone(), right],
        ] {
            assert!(is_conflict(&apply(engine, set).await), "{wrong:?}");
        }
    }
    assert_eq!(
        read(engine, Kind::Rule, b"a").await,
        Some((b"1".into(), version))
    );
    assert_eq!(read(engine, Kind::Rule, b"b").await, None);
    assert_eq!(engine.log_head().await.unwrap(), version);
}

/// Records with an entry each, the entries in another order than the records.
fn many(keys: impl Iterator<Item = u8>) -> Vec<Change> {
    let with_entry = |key: u8| Change {
        add: vec![entry(Index::OccurrenceByStart, &[key.wrapping_mul(37)])],
        ..insert(Kind::Occurrence, &[key], &[key; 300])
    };
    keys.map(with_entry).collect()
}

async fn count(engine: &dyn Engine) -> (usize, usize) {
    let all = || Range::under(b"");
    let records = engine.page(Kind::Occurrence, all(), Direction::Ascending, 1_000);
    let entries = engine.count(Index::OccurrenceByStart, all(), 1_000);
    (records.await.unwrap().len(), entries.await.unwrap())
}

pub(in crate::store) async fn a_long_set_that_meets_one_record_or_entry_changes_nothing(
    engine: &dyn Engine,
) {
    let even = || (0..200).step_by(2);
    apply(engine, many(even())).await.unwrap();
    assert_eq!(count(engine).await, (100, 100));
    let odd = || (1..200).step_by(2);
    for at in [0, 100, 198] {
        let met_record = many(odd().chain([at]));
        let mut met_entry = many(odd());
        met_entry[50]
            .add
            .push(entry(Index::OccurrenceByStart, &[at.wrapping_mul(37)]));
        let mut twice = many(odd());
        twice[50].add = twice[51].add.clone();
        for set in [met_record, met_entry, twice] {
            assert!(is_conflict(&apply(engine, set).await), "at {at}");
            assert_eq!(count(engine).await, (100, 100), "at {at}");
        }
    }
    apply(engine, many(odd().chain(200..=255))).await.unwrap();
    assert_eq!(count(engine).await, (256, 256));
}

pub(in crate::store) async fn versions_rise_and_are_not_used_again(engine: &dyn Engine) {
    let mut last = 0;
    for _ in 0..3 {
        let put = |expect| change(Kind::Client, b"a", expect, Action::Put(b"x".into()));
        apply(engine, vec![put(Expect::Absent)]).await.unwrap();
        let (_, first) = read(engine, Kind::Client, b"a").await.unwrap();
        apply(engine, vec![put(Expect::Version(first))])
            .await
            .unwrap();
        let (_, second) = read(engine, Kind::Client, b"a").await.unwrap();
        assert!(last < first && first < second, "{last} {first} {second}");
        let delete = change(Kind::Client, b"a", Expect::Version(second), Action::Delete);
        apply(engine, vec![delete]).await.unwrap();
        assert_eq!(read(engine, Kind::Client, b"a").await, None);
        last = second;
    }
}

pub(in crate::store) async fn a_touch_keeps_the_value_and_raises_the_version(engine: &dyn Engine) {
    apply(engine, vec![insert(Kind::Trigger, b"a", b"1")])
        .await
        .unwrap();
    let (_, before) = read(engine, Kind::Trigger, b"a").await.unwrap();
    let touch = change(Kind::Trigger, b"a", Expect::Version(before), Action::Touch);
    apply(engine, vec![touch]).await.unwrap();
    let (value, after) = read(engine, Kind::Trigger, b"a").await.unwrap();
    assert_eq!(value, b"1");
    assert!(after > before);
    let delete = change(Kind::Trigger, b"a", Expect::Version(before), Action::Delete);
    assert!(is_conflict(&apply(engine, vec![delete]).await));
}

pub(in crate::store) async fn an_entry_leads_to_one_record(engine: &dyn Engine) {
    let entry = entry(Index::ClientByKey, b"hash");
    let adds = |key: &[u8]| Change {
        add: vec![entry.clone()],
        ..insert(Kind::Client, key, b"")
    };
    let first = apply(engine, vec![adds(b"a")]).await.unwrap();
    assert!(is_conflict(&apply(engine, vec![adds(b"b")]).await));
    let both = vec![insert(Kind::Client, b"c", b""), adds(b"b")];
    assert!(is_conflict(&apply(engine, both).await));
    let moves = Change {
        remove: vec![entry.clone()],
        ..change(Kind::Client, b"a", Expect::Version(first), Action::Delete)
    };
    apply(engine, vec![adds(b"b"), moves]).await.unwrap();
    let found = engine
        .entries(
            Index::ClientByKey,
            Range::under(b""),
            Direction::Ascending,
            10,
        )
        .await
        .unwrap();
    assert_eq!(found, [(b"hash".to_vec(), b"b".to_vec())]);
    let (two, three) = (adds(b"d"), adds(b"e"));
    assert!(is_conflict(&apply(engine, vec![two, three]).await));
}

pub(in crate::store) async fn an_entry_to_remove_must_lead_to_its_record(engine: &dyn Engine) {
    let theirs = entry(Index::RuleByTrigger, b"t");
    let with = |key: &[u8], entry| Change {
        add: vec![entry],
        ..insert(Kind::Rule, key, b"")
    };
    apply(engine, vec![with(b"a", theirs.clone())])
        .await
        .unwrap();
    let other = entry(Index::RuleByTrigger, b"u");
    let version = apply(engine, vec![with(b"b", other)]).await.unwrap();
    for gone in [theirs, entry(Index::RuleByTrigger, b"none")] {
        let delete = Change {
            remove: vec![gone],
            ..change(Kind::Rule, b"b", Expect::Version(version), Action::Delete)
        };
        let result = apply(engine, vec![delete]).await;
        assert!(matches!(result, Err(EngineError::Corrupt(_))), "{result:?}");
    }
    assert!(read(engine, Kind::Rule, b"b").await.is_some());
}

pub(in crate::store) async fn a_record_is_changed_once_in_a_set(engine: &dyn Engine) {
    let first = insert(Kind::Rule, b"a", b"1");
    let twice = vec![first.clone(), insert(Kind::Rule, b"a", b"2")];
    assert!(is_conflict(&apply(engine, twice).await));
    let version = apply(engine, vec![first]).await.unwrap();
    let touch = change(Kind::Rule, b"a", Expect::Version(version), Action::Touch);
    assert!(is_conflict(
        &apply(engine, vec![touch.clone(), touch]).await
    ));
    assert_eq!(
        read(engine, Kind::Rule, b"a").await,
        Some((b"1".into(), version))
    );
}
