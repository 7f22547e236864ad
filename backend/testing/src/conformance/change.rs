//! Changing records.

use super::{apply, change, entry, insert, is_conflict, read};
use crate::{
    Action, ApplyResult, Change, ChangeSet, Direction, Engine, EngineError, Expect, Index, Kind,
    Lane, LogPosition, Range, decode_numbers,
};

pub async fn written_records_read_back_unchanged(engine: &dyn Engine) {
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

pub async fn failed_expectation_rejects_the_whole_set(engine: &dyn Engine) {
    let ApplyResult { position, version } = apply(engine, vec![insert(Kind::Rule, b"a", b"1")])
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
    assert_eq!(engine.log_head().await.unwrap(), position);
}

/// Returns records with one entry each; the entries are in a different order than the records.
fn records_with_entries(keys: impl Iterator<Item = u8>) -> Vec<Change> {
    let with_entry = |key: u8| Change {
        add: vec![entry(Index::OccurrenceByStart, &[key.wrapping_mul(37)])],
        ..insert(Kind::Occurrence, &[key], &[key; 300])
    };
    keys.map(with_entry).collect()
}

async fn count(engine: &dyn Engine) -> (usize, usize) {
    let all = || Range::with_prefix(b"");
    let records = engine.read_page(Kind::Occurrence, all(), Direction::Ascending, 1_000);
    let entries = engine.count(Index::OccurrenceByStart, all(), 1_000);
    (records.await.unwrap().len(), entries.await.unwrap())
}

pub async fn one_conflict_rejects_a_long_set(engine: &dyn Engine) {
    let even = || (0..200).step_by(2);
    apply(engine, records_with_entries(even())).await.unwrap();
    assert_eq!(count(engine).await, (100, 100));
    let odd = || (1..200).step_by(2);
    for at in [0, 100, 198] {
        let met_record = records_with_entries(odd().chain([at]));
        let mut met_entry = records_with_entries(odd());
        met_entry[50]
            .add
            .push(entry(Index::OccurrenceByStart, &[at.wrapping_mul(37)]));
        let mut twice = records_with_entries(odd());
        let add = twice[51].add.clone();
        twice[50].add = add;
        for set in [met_record, met_entry, twice] {
            assert!(is_conflict(&apply(engine, set).await), "at {at}");
            assert_eq!(count(engine).await, (100, 100), "at {at}");
        }
    }
    apply(engine, records_with_entries(odd().chain(200..=255)))
        .await
        .unwrap();
    assert_eq!(count(engine).await, (256, 256));
}

pub async fn versions_increase_and_are_never_reused(engine: &dyn Engine) {
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

pub async fn touch_keeps_value_and_raises_version(engine: &dyn Engine) {
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

pub async fn entry_points_to_one_record(engine: &dyn Engine) {
    let entry = entry(Index::ClientByKey, b"hash");
    let adds = |key: &[u8]| Change {
        add: vec![entry.clone()],
        ..insert(Kind::Client, key, b"")
    };
    let first = apply(engine, vec![adds(b"a")]).await.unwrap().version;
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
            Range::with_prefix(b""),
            Direction::Ascending,
            10,
        )
        .await
        .unwrap();
    assert_eq!(found, [(b"hash".to_vec(), b"b".to_vec())]);
    let (two, three) = (adds(b"d"), adds(b"e"));
    assert!(is_conflict(&apply(engine, vec![two, three]).await));
}

pub async fn removed_entry_must_belong_to_the_changed_record(engine: &dyn Engine) {
    let theirs = entry(Index::RuleByTrigger, b"t");
    let with = |key: &[u8], entry| Change {
        add: vec![entry],
        ..insert(Kind::Rule, key, b"")
    };
    apply(engine, vec![with(b"a", theirs.clone())])
        .await
        .unwrap();
    let other = entry(Index::RuleByTrigger, b"u");
    let version = apply(engine, vec![with(b"b", other)])
        .await
        .unwrap()
        .version;
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

pub async fn set_changes_a_record_at_most_once(engine: &dyn Engine) {
    let first = insert(Kind::Rule, b"a", b"1");
    let twice = vec![first.clone(), insert(Kind::Rule, b"a", b"2")];
    assert!(is_conflict(&apply(engine, twice).await));
    let version = apply(engine, vec![first]).await.unwrap().version;
    let touch = change(Kind::Rule, b"a", Expect::Version(version), Action::Touch);
    assert!(is_conflict(
        &apply(engine, vec![touch.clone(), touch]).await
    ));
    assert_eq!(
        read(engine, Kind::Rule, b"a").await,
        Some((b"1".into(), version))
    );
}

pub async fn check_makes_no_change_and_enforces_the_version(engine: &dyn Engine) {
    let first = apply(engine, vec![insert(Kind::Rule, b"claim", b"1")]);
    let version = first.await.unwrap().version;
    let check = |version| Change {
        is_logged: false,
        ..change(
            Kind::Rule,
            b"claim",
            Expect::Version(version),
            Action::Check,
        )
    };
    let work = |key: &[u8]| insert(Kind::Delivery, key, b"");
    // Several changes may depend on one record concurrently.
    let sets = (0..8_u8).map(|number| apply(engine, vec![work(&[number]), check(version)]));
    let positions = futures_util::future::join_all(sets).await;
    let positions = positions.into_iter().map(|it| it.unwrap().position);
    let last = positions.reduce(LogPosition::later).unwrap();
    assert_eq!(
        read(engine, Kind::Rule, b"claim").await,
        Some((b"1".into(), version))
    );
    let steps = engine.log_after(last.previous(), 1).await.unwrap().unwrap();
    assert!(
        steps[0]
            .changed
            .iter()
            .all(|(kind, _)| *kind == Kind::Delivery),
        "a record that is only checked is not changed: {steps:?}"
    );
    let lost = apply(engine, vec![work(b"lost"), check(version + 1)]).await;
    assert!(is_conflict(&lost), "{lost:?}");
    assert_eq!(read(engine, Kind::Delivery, b"lost").await, None);
    let delete = change(
        Kind::Rule,
        b"claim",
        Expect::Version(version),
        Action::Delete,
    );
    apply(engine, vec![delete]).await.unwrap();
    assert!(is_conflict(
        &apply(engine, vec![work(b"late"), check(version)]).await
    ));
}

pub async fn set_conflicts_once_its_definitions_changed(engine: &dyn Engine) {
    let defines = |change: Change| Change {
        defines: true,
        ..change
    };
    let made = apply(engine, vec![defines(insert(Kind::Rule, b"r", b"1"))]);
    let made = made.await.unwrap();
    let rest_on = async |key: &[u8], rests_on| {
        let set = ChangeSet {
            changes: vec![insert(Kind::Occurrence, key, b"")],
            rests_on,
            ..ChangeSet::default()
        };
        engine.apply(Lane::Bulk, set).await
    };
    let before = rest_on(b"before", Some(made.position.previous())).await;
    assert!(is_conflict(&before), "{before:?}");
    rest_on(b"at", Some(made.position)).await.unwrap();
    // Changes other than definitions do not cause a conflict.
    let other = rest_on(b"still", Some(made.position)).await.unwrap();
    rest_on(b"ahead", Some(other.position)).await.unwrap();
    let edit = change(
        Kind::Rule,
        b"r",
        Expect::Version(made.version),
        Action::Put(b"2".into()),
    );
    let edited = apply(engine, vec![defines(edit)]).await.unwrap();
    let stale = rest_on(b"stale", Some(edited.position.previous())).await;
    assert!(is_conflict(&stale), "{stale:?}");
    assert_eq!(read(engine, Kind::Occurrence, b"stale").await, None);
    rest_on(b"new", Some(edited.position)).await.unwrap();
    rest_on(b"none", None).await.unwrap();
    // If a decision and an edit are concurrent, a decision that is based on the state before the
    // edit never comes after the edit in the log.
    for round in 0..20_u8 {
        let position = engine.log_head().await.unwrap();
        let edit = [defines(insert(Kind::Trigger, &[round], b""))];
        let key = [round];
        let (edited, decided) = tokio::join!(
            engine.apply(Lane::Admin, edit.to_vec().into()),
            rest_on(&key, Some(position)),
        );
        let edited = edited.unwrap();
        match decided {
            Ok(decided) => assert!(decided.position <= edited.position, "round {round}"),
            Err(error) => assert!(matches!(error, EngineError::Conflict(_)), "{error:?}"),
        }
    }
}

pub async fn conflict_names_unexpected_records(engine: &dyn Engine) {
    let existing = entry(Index::OccurrenceByEvent, b"event");
    let with = |key: &[u8]| Change {
        add: vec![existing.clone()],
        ..insert(Kind::Occurrence, key, b"")
    };
    let version = apply(engine, vec![with(b"a")]).await.unwrap().version;
    let put = |key: &[u8], version| {
        let action = Action::Put(b"2".into());
        change(Kind::Occurrence, key, Expect::Version(version), action)
    };
    let names = async |changes: Vec<Change>| match apply(engine, changes).await {
        Err(EngineError::Conflict(mut names)) => {
            names.sort_unstable_by(|one, other| one.1.cmp(&other.1));
            names
        }
        other => panic!("{other:?}"),
    };
    let of = |keys: &[&[u8]]| -> Vec<_> {
        let keys = keys.iter().map(|key| key.to_vec());
        keys.map(|key| (Kind::Occurrence, key)).collect()
    };
    let fresh = || insert(Kind::Delivery, b"d", b"");
    let found = names(vec![put(b"a", version + 1), put(b"b", version), fresh()]).await;
    assert_eq!(found, of(&[b"a", b"b"]));
    let again = insert(Kind::Occurrence, b"a", b"");
    assert_eq!(names(vec![fresh(), again]).await, of(&[b"a"]));
    // The error names the record that claims an existing entry, not the entry's owner.
    assert_eq!(names(vec![with(b"c"), fresh()]).await, of(&[b"c"]));
}

/// Returns a change that adds to a counter.
pub(super) fn addition(key: &[u8], numbers: &[i64]) -> Change {
    let add = Action::Add(numbers.into());
    change(Kind::Counter, key, Expect::Any, add)
}

async fn counter(engine: &dyn Engine, key: &[u8]) -> Option<Vec<i64>> {
    let (value, _) = read(engine, Kind::Counter, key).await?;
    Some(decode_numbers(&value).unwrap())
}

pub async fn additions_accumulate_and_zero_counters_are_removed(engine: &dyn Engine) {
    let steps: [(&[i64], Option<&[i64]>); 6] = [
        (&[1, 2], Some(&[1, 2])),
        (&[0, -2, 5], Some(&[1, 0, 5])),
        (&[i64::MAX], Some(&[i64::MAX, 0, 5])),
        (&[-i64::MAX, 0, -5], None),
        (&[0], None),
        (&[-3], Some(&[-3])),
    ];
    for (add, left) in steps {
        let applied = apply(engine, vec![addition(b"a", add)]).await.unwrap();
        let found = counter(engine, b"a").await;
        assert_eq!(found.as_deref(), left, "{add:?}");
        let version = read(engine, Kind::Counter, b"a").await.map(|it| it.1);
        assert_eq!(version, left.map(|_| applied.version));
    }
    let twice = vec![addition(b"b", &[1]), addition(b"b", &[1])];
    assert!(is_conflict(&apply(engine, twice).await));
    assert_eq!(counter(engine, b"b").await, None);
}

pub async fn addition_to_a_non_numeric_value_is_refused(engine: &dyn Engine) {
    let text = insert(Kind::Counter, b"a", b"no number");
    match apply(engine, vec![text]).await {
        // An engine that stores counters in columns rejects the addition.
        Err(EngineError::Corrupt(_)) => {
            assert_eq!(read(engine, Kind::Counter, b"a").await, None);
            return;
        }
        put => drop(put.unwrap()),
    }
    let set = vec![addition(b"b", &[1]), addition(b"a", &[1])];
    let refused = apply(engine, set).await;
    assert!(
        matches!(refused, Err(EngineError::Corrupt(_))),
        "{refused:?}"
    );
    assert_eq!(counter(engine, b"b").await, None);
    assert_eq!(
        read(engine, Kind::Counter, b"a").await.unwrap().0,
        b"no number"
    );
}

pub async fn addition_is_applied_only_with_its_set(engine: &dyn Engine) {
    let set = vec![addition(b"a", &[1]), insert(Kind::Rule, b"a", b"")];
    apply(engine, set.clone()).await.unwrap();
    assert!(is_conflict(&apply(engine, set).await));
    assert_eq!(counter(engine, b"a").await, Some(vec![1]));
}
