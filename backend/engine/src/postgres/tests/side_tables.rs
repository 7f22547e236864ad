//! Tests of entries in side tables.

use super::{fresh, open};
use crate::{
    Engine,
    change::{Action, Change, Entry, Expect, Lane},
    error::EngineError,
    index::Index,
    kind::Kind,
    read::{Direction, Range},
};

const BESIDE: [Index; 4] = [
    Index::OccurrenceByEvent,
    Index::OccurrenceByStart,
    Index::OccurrenceByReview,
    Index::OccurrenceBySeverity,
];

fn entry(index: Index, key: &str) -> Entry {
    let key = key.into();
    Entry { index, key }
}

fn put(key: &str, expect: Expect) -> Change {
    let value = Action::Put(b"value".into());
    Change::new(Kind::Occurrence, key.as_bytes(), expect, value)
}

fn comes(key: &str) -> Change {
    let add = BESIDE.map(|index| entry(index, key));
    Change {
        add: add.into(),
        ..put(key, Expect::Absent)
    }
}

/// Returns a change that replaces these entries of an existing record.
fn move_change(key: &str, version: u64, entries: &[(Index, &str, &str)]) -> Change {
    let (remove, add) = entries
        .iter()
        .map(|(index, old, new)| (entry(*index, old), entry(*index, new)))
        .unzip();
    Change {
        remove,
        add,
        ..put(key, Expect::Version(version))
    }
}

/// Returns all entries of the indexes as `entry>record`.
async fn lying(engine: &dyn Engine) -> [String; 4] {
    let mut all = <[String; 4]>::default();
    for (index, text) in BESIDE.into_iter().zip(&mut all) {
        let entries = engine.entries(index, Range::with_prefix(&[]), Direction::Ascending, 9);
        let leads = entries.await.unwrap().into_iter().map(|(entry, record)| {
            let of = |bytes| String::from_utf8(bytes).unwrap();
            format!("{}>{}", of(entry), of(record))
        });
        *text = leads.collect::<Vec<_>>().join(" ");
    }
    all
}

#[tokio::test]
async fn replacing_one_entry_keeps_the_others() {
    let Some(address) = fresh().await else { return };
    let engine = open(&address).await;
    let apply = async |changes: Vec<Change>| {
        let applied = engine.apply(Lane::Bulk, changes.into()).await;
        applied.map(|applied| applied.version)
    };
    let [_, _, review, severity] = BESIDE;
    let version = apply(vec![comes("a"), comes("b")]).await.unwrap();
    let one = move_change("a", version, &[(review, "a", "r")]);
    let other = move_change("b", version, &[(severity, "b", "s"), (review, "b", "t")]);
    let version = apply(vec![one, other]).await.unwrap();
    let expected = ["a>a b>b", "a>a b>b", "r>a t>b", "a>a s>b"];
    assert_eq!(lying(&engine).await, expected);

    // The two records swap entries.
    let one = move_change("a", version, &[(review, "r", "t")]);
    let other = move_change("b", version, &[(review, "t", "r")]);
    let version = apply(vec![one, other]).await.unwrap();
    assert_eq!(lying(&engine).await[2], "r>b t>a");

    let wrong = move_change("a", version, &[(review, "r", "u")]);
    let refused = apply(vec![wrong]).await;
    assert!(
        matches!(refused, Err(EngineError::Corrupt(_))),
        "{refused:?}"
    );
    let conflicting = move_change("a", version, &[(severity, "a", "s")]);
    let refused = apply(vec![conflicting]).await;
    assert!(
        matches!(refused, Err(EngineError::Conflict(_))),
        "{refused:?}"
    );
    assert_eq!(lying(&engine).await[2..], ["r>b t>a", "a>a s>b"]);

    let gone = Change {
        remove: vec![entry(review, "t"), entry(severity, "a")],
        ..Change::new(
            Kind::Occurrence,
            b"a",
            Expect::Version(version),
            Action::Delete,
        )
    };
    apply(vec![gone]).await.unwrap();
    assert_eq!(lying(&engine).await, ["b>b", "b>b", "r>b", "s>b"]);
    apply(vec![comes("a")]).await.unwrap();
}

#[tokio::test]
async fn inconsistent_entry_changes_are_refused() {
    let Some(address) = fresh().await else { return };
    let engine = open(&address).await;
    let apply = async |change| engine.apply(Lane::Bulk, vec![change].into()).await;
    let version = apply(comes("a")).await.unwrap().version;
    let expect = Expect::Version(version);
    let entries = || vec![entry(BESIDE[2], "a")];
    let without = Change {
        remove: entries(),
        ..put("a", expect)
    };
    let second = Change {
        add: vec![entry(BESIDE[2], "b")],
        ..put("a", expect)
    };
    let touch = Change {
        remove: entries(),
        add: entries(),
        ..Change::new(Kind::Occurrence, b"a", expect, Action::Touch)
    };
    for odd in [without, second, touch] {
        let refused = apply(odd).await;
        assert!(
            matches!(refused, Err(EngineError::Corrupt(_))),
            "{refused:?}"
        );
    }
    assert_eq!(lying(&engine).await, ["a>a"; 4]);
}
