//! Tests of verifying a store.

use super::{Findings, verify};
use crate::{
    domain::{Client, DeliveryState, Name, Rates, RecordId, Role},
    store::{
        Index, Kind, Lane, Store,
        engine::{Action, Change, Entry, Expect},
        samples,
    },
};

async fn findings(store: &Store) -> Findings {
    verify(store, &|_| {}).await
}

async fn with_clients() -> Store {
    let store = Store::in_memory();
    let mut changes = store.changes();
    for number in 0..3 {
        changes.insert(&Client {
            id: RecordId::from_parts(0, u128::from(number)),
            name: Name::parse(&format!("client {number}")).unwrap(),
            role: Role::Viewer,
            rates: Rates::default(),
            key_hash: [number; 32],
            create_ms: 0,
            last_used_ms: None,
        });
    }
    store.apply(Lane::Admin, changes).await.unwrap();
    store
}

async fn apply(store: &Store, change: Change) {
    let applied = store.engine().apply(Lane::Admin, vec![change]).await;
    applied.unwrap();
}

fn change(kind: Kind, key: &[u8]) -> Change {
    Change {
        kind,
        key: key.into(),
        expect: Expect::Absent,
        action: Action::Put(b"nonsense".into()),
        remove: Vec::new(),
        add: Vec::new(),
    }
}

#[tokio::test]
async fn a_whole_store_has_no_faults() {
    let findings = findings(&with_clients().await).await;
    assert_eq!(findings.told, Vec::<String>::new());
    assert_eq!(findings.records["client"], 3);
    assert_eq!((findings.entries, findings.log_steps), (3, 1));
    assert!(findings.is_complete);
}

#[tokio::test]
async fn how_far_it_is_ends_at_all_there_is() {
    let store = with_clients().await;
    let last = std::sync::Mutex::new((0, 0));
    verify(&store, &|progress| {
        *last.lock().unwrap() = (progress.done, progress.total);
    })
    .await;
    assert_eq!(*last.lock().unwrap(), (7, 7));
}

#[tokio::test]
async fn what_does_not_belong_together_is_told() {
    let entry = |byte| Entry {
        index: Index::ClientByKey,
        key: vec![byte; 32],
    };
    let touched = Change {
        expect: Expect::Version(1),
        action: Action::Touch,
        ..change(Kind::Client, b"client 1")
    };
    let cases = [
        (change(Kind::Rule, b"r"), "rule `r` cannot be read"),
        (
            Change {
                remove: vec![entry(1)],
                ..touched.clone()
            },
            "client `client 1` is not found by ClientByKey",
        ),
        // As many entries as before, and one of them is another.
        (
            Change {
                remove: vec![entry(1)],
                add: vec![entry(9)],
                ..touched.clone()
            },
            "client `client 1` is not found by ClientByKey",
        ),
        (
            Change {
                add: vec![entry(9)],
                ..touched
            },
            "the index ClientByKey has 4 entries, and its records ask for 3",
        ),
    ];
    for (damage, expected) in cases {
        let store = with_clients().await;
        apply(&store, damage).await;
        let findings = findings(&store).await;
        assert!(findings.faults > 0);
        let is_told = findings.told.iter().any(|fault| fault.contains(expected));
        assert!(is_told, "{expected}: {:?}", findings.told);
    }
}

#[tokio::test]
async fn what_refers_to_nothing_is_told() {
    let store = Store::in_memory();
    let mut changes = store.changes();
    let mut rule = samples::rule("page");
    rule.trigger_names = vec![samples::name("disk")];
    rule.destination_names = vec![samples::name("pager")];
    changes.insert(&rule);
    let leased = DeliveryState::Leased { until_ms: 1 };
    changes.insert(&samples::delivery(1, leased));
    changes.insert(&samples::attempt(2, 1));
    changes.insert(&samples::delivery(3, DeliveryState::Dead));
    changes.insert(&samples::attempt(3, 5));
    store.apply(Lane::Admin, changes).await.unwrap();
    let findings = findings(&store).await;
    assert_eq!(findings.faults, 5, "{:?}", findings.told);
    for expected in [
        "rule `page` names the trigger `disk`",
        "rule `page` names the destination `pager`",
        "is under way, and its attempt 1 is not there",
        "attempt 1 belongs to delivery",
        "is there, and only 1 were begun",
    ] {
        let is_told = findings.told.iter().any(|fault| fault.contains(expected));
        assert!(is_told, "{expected}: {:?}", findings.told);
    }
}
