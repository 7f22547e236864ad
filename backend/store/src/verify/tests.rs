//! Tests of verifying a store.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{Findings, verify, verify_running_store};
use crate::{
    domain::{Client, DeliveryState, Name, Rates, RecordId, Role, Rule, Trigger},
    engine::{Action, Change, Entry, Expect, Index, Kind, Lane},
    record::Store,
    samples,
};

async fn findings(store: &Store) -> Findings {
    verify(store, &|_| {}).await
}

async fn with_clients() -> Store {
    let store = Store::in_memory();
    let mut changes = store.new_changes();
    for number in 0..3 {
        changes.insert(&Client {
            id: RecordId::from_parts(0, u128::from(number)),
            name: Name::parse(&format!("client {number}")).unwrap(),
            role: Role::Viewer,
            rates: Rates::default(),
            dialects: std::collections::BTreeSet::new(),
            scope: crate::domain::KeyScope::default(),
            certificates: std::collections::BTreeSet::new(),
            key_hash: [number; 32],
            create_ms: 0,
            last_used_ms: None,
            last_used_from: None,
            expire_ms: None,
            previous: None,
        });
    }
    store.apply(Lane::Admin, changes).await.unwrap();
    store
}

/// Applies a change that expects the current version of its record.
async fn apply(store: &Store, mut change: Change) {
    if let Expect::Version(version) = &mut change.expect {
        let keys = [change.key.clone()];
        let rows = store.engine().get(change.kind, &keys).await.unwrap();
        *version = rows[0].as_ref().unwrap().version;
    }
    let applied = store.engine().apply(Lane::Admin, vec![change].into()).await;
    applied.unwrap();
}

fn change(kind: Kind, key: &[u8]) -> Change {
    Change::new(kind, key, Expect::Absent, Action::Put(b"nonsense".into()))
}

#[tokio::test]
async fn intact_store_has_no_errors() {
    let findings = findings(&with_clients().await).await;
    assert_eq!(findings.descriptions, Vec::<String>::new());
    assert_eq!(findings.records["client"], 3);
    assert_eq!((findings.entries, findings.log_steps), (3, 1));
    assert!(findings.is_complete);
}

#[tokio::test]
async fn progress_ends_at_the_total() {
    let store = with_clients().await;
    let last = std::sync::Mutex::new((0, 0));
    verify(&store, &|progress| {
        *last.lock().unwrap() = (progress.done, progress.total);
    })
    .await;
    assert_eq!(*last.lock().unwrap(), (7, 7));
}

#[tokio::test]
async fn inconsistent_records_and_entries_are_reported() {
    let entry = |byte| Entry {
        index: Index::ClientByKey,
        key: vec![byte; 32],
    };
    let touched = Change {
        expect: Expect::Version(1),
        action: Action::Touch,
        ..change(Kind::Client, b"client 1")
    };
    let is_counted = "the index ClientByKey has 4 entries, but its records require 3";
    let is_not_its_own = "ClientByKey has an entry that points to client `client 1`";
    let unreadable = "rule `r` cannot be read";
    let not_found = "client `client 1` is missing from the index ClientByKey";
    let cases = [
        (change(Kind::Rule, b"r"), [unreadable; 2]),
        (
            Change {
                remove: vec![entry(1)],
                ..touched.clone()
            },
            [not_found; 2],
        ),
        // The number of entries is right, but one entry differs.
        (
            Change {
                remove: vec![entry(1)],
                add: vec![entry(9)],
                ..touched.clone()
            },
            [not_found; 2],
        ),
        (
            Change {
                add: vec![entry(9)],
                ..touched
            },
            [is_counted, is_not_its_own],
        ),
    ];
    for (damage, [at_rest, in_use]) in cases {
        let store = with_clients().await;
        apply(&store, damage).await;
        for (findings, expected) in [
            (findings(&store).await, at_rest),
            (verify_running_store(&store, &|_| {}).await, in_use),
        ] {
            assert!(findings.errors > 0);
            let is_reported = findings
                .descriptions
                .iter()
                .any(|error| error.contains(expected));
            assert!(is_reported, "{expected}: {:?}", findings.descriptions);
        }
    }
}

#[tokio::test]
async fn dangling_entries_are_reported_while_store_is_in_use() {
    let store = with_clients().await;
    let deleted = Change {
        expect: Expect::Version(1),
        action: Action::Delete,
        ..change(Kind::Client, b"client 1")
    };
    apply(&store, deleted).await;
    let findings = verify_running_store(&store, &|_| {}).await;
    assert_eq!(findings.errors, 1, "{:?}", findings.descriptions);
    assert!(findings.descriptions[0].contains("points to client `client 1` but does not match it"));
}

/// Creates, changes and deletes clients, rules and triggers as fast as possible, each with all of
/// its index entries.
async fn keep_changing(store: &Store, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for number in 0_u64..2_000 {
        let name = format!("{seed} {}", random.random_range(0..20));
        let mut changes = store.new_changes();
        let stored = store.get::<Client>(name.clone().into()).await.unwrap();
        let mut client = samples::client(&name);
        client.key_hash[..8].copy_from_slice(&number.to_be_bytes());
        client.key_hash[8] = u8::try_from(seed).unwrap();
        let (trigger, mut rule) = (samples::trigger(&name), samples::rule(&name));
        (rule.trigger_names, rule.destination_names) = (vec![trigger.name.clone()], Vec::new());
        match stored {
            None => {
                changes.insert(&client);
                changes.insert(&rule);
                changes.insert(&trigger);
            }
            Some(stored) if random.random_bool(0.5) => changes.update(&stored, &client),
            Some(stored) => {
                changes.delete(&stored);
                let key = || name.clone().into_bytes();
                changes.delete(&store.get::<Rule>(key()).await.unwrap().unwrap());
                changes.delete(&store.get::<Trigger>(key()).await.unwrap().unwrap());
            }
        }
        store.apply(Lane::Bulk, changes).await.unwrap();
        tokio::task::yield_now().await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn concurrent_changes_are_not_reported_as_errors() {
    let store = with_clients().await;
    let checking = async {
        for _ in 0..5 {
            let findings = verify_running_store(&store, &|_| {}).await;
            assert_eq!(findings.descriptions, Vec::<String>::new());
            assert!(findings.is_complete);
        }
    };
    tokio::select! {
        () = keep_changing(&store, 1) => {}
        () = keep_changing(&store, 2) => {}
        () = checking => {}
    }
    let head = store.engine().log_head().await.unwrap();
    assert!(
        head.to_number() > 100,
        "only {head} changes were made meanwhile"
    );
}

#[tokio::test]
async fn dangling_references_are_reported() {
    let store = Store::in_memory();
    let mut changes = store.new_changes();
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
    assert_eq!(findings.errors, 5, "{:?}", findings.descriptions);
    for expected in [
        "rule `page` refers to the trigger `disk`",
        "rule `page` refers to the destination `pager`",
        "is in progress, but its attempt 1 does not exist",
        "attempt 1 belongs to delivery",
        "exists, but only 1 were started",
    ] {
        let is_reported = findings
            .descriptions
            .iter()
            .any(|error| error.contains(expected));
        assert!(is_reported, "{expected}: {:?}", findings.descriptions);
    }
}
