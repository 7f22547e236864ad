//! A store with records that were created, edited, rotated, renamed and deleted is restored from a
//! backup byte by byte.

use std::{collections::BTreeMap, sync::Arc};

use super::{NOW_MS, Restore, Setup, all, back_up, restore, store};
use crate::{
    audit::{Actor, run_as},
    backup::Keys,
    domain::{AuditEntry, Client, KeyScope, Name},
    engine::{Direction, Kind, Lane, Range},
    location::Location,
    open::{open_read_only, rotate_key},
    record::{Record, Store},
    restore::rehearse,
    samples,
    server::free_schema,
    verify,
};

/// Runs `work` with an administrator as the author of its changes.
async fn audited<F: Future>(work: F) -> F::Output {
    let administrator = Actor {
        client: "admin".into(),
        address: Some([192, 0, 2, 7].into()),
        agent: String::new(),
        method: "/bellwether.v1.ClientService/RotateClientKey",
        time_ms: NOW_MS,
        scope: Arc::new(KeyScope::default()),
    };
    run_as(administrator, work).await
}

async fn create<T: Record>(store: &Store, new: &T) {
    let mut changes = store.new_changes();
    changes.insert(new);
    store.apply(Lane::Admin, changes).await.unwrap();
}

async fn edit<T: Record>(store: &Store, new: &T) {
    let old = store.get::<T>(new.key()).await.unwrap().unwrap();
    let mut changes = store.new_changes();
    changes.update(&old, new);
    store.apply(Lane::Admin, changes).await.unwrap();
}

async fn delete<T: Record>(store: &Store, old: &T) {
    let old = store.get::<T>(old.key()).await.unwrap().unwrap();
    let mut changes = store.new_changes();
    changes.delete(&old);
    store.apply(Lane::Admin, changes).await.unwrap();
}

/// Creates, edits and deletes a definition.
async fn come_and_go<T: Record>(store: &Store, it: T) {
    create(store, &it).await;
    edit(store, &it).await;
    delete(store, &it).await;
}

/// Makes every kind of change to definitions.
async fn live(store: &Store) {
    let rotated = samples::rotated_client("console");
    edit(store, &rotated).await;
    let mut ended = rotated.clone();
    ended.previous = None;
    edit(store, &ended).await;
    edit(store, &rotated).await;
    // A rename deletes one name and creates another.
    for name in ["ci", "build"] {
        let name = Name::parse(name).unwrap();
        let hash = [u8::try_from(name.as_str().len()).unwrap(); 32];
        let client = Client {
            name,
            key_hash: hash,
            id: samples::id(400 + u64::from(hash[0])),
            ..samples::client("console")
        };
        create(store, &client).await;
        if client.name.as_str() == "ci" {
            delete(store, &client).await;
        }
    }
    let others = [
        samples::scoped_client("cron"),
        samples::sender("mail"),
        samples::rotated_client("old"),
    ];
    for mut client in others {
        // No two clients have the same key.
        client.key_hash = [90; 32];
        if let Some(previous) = &mut client.previous {
            previous.hash = [91; 32];
        }
        come_and_go(store, client).await;
    }
    for mut destination in samples::destinations() {
        edit(store, &destination).await;
        let renamed = format!("once {}", destination.name.as_str());
        destination.name = Name::parse(&renamed).unwrap();
        come_and_go(store, destination).await;
    }
    for destination in samples::worded_destinations() {
        come_and_go(store, destination).await;
    }
    come_and_go(store, samples::reaching_webhook()).await;
    come_and_go(store, samples::budget_destination()).await;
    come_and_go(store, samples::mail_destination()).await;
    edit(store, &samples::trigger("disk")).await;
    come_and_go(store, samples::trigger("once")).await;
    for rule in [
        samples::rule("once"),
        samples::grouping_rule(),
        samples::paging_rule(),
    ] {
        come_and_go(store, rule).await;
    }
    come_and_go(store, samples::silence("db patch")).await;
    come_and_go(store, samples::nightly_silence()).await;
    come_and_go(store, samples::calendar("nights")).await;
    come_and_go(store, samples::inhibition("dead host")).await;
    come_and_go(store, samples::mapping("statuspage")).await;
    come_and_go(store, samples::view("databases")).await;
    come_and_go(store, samples::enrichment("hosts")).await;
    come_and_go(store, samples::heartbeat("backup")).await;
    come_and_go(store, samples::contact("ana")).await;
    come_and_go(store, samples::schedule("nights")).await;
    come_and_go(store, samples::policy("database")).await;
    come_and_go(store, samples::settings()).await;
    // The last audit entry is about a client with a rotated key, so a key rotation renews its
    // proof.
    edit(store, &rotated).await;
}

/// Returns all rows except counters and the store's own metadata.
async fn rows(store: &Store) -> BTreeMap<(u8, Vec<u8>), Vec<u8>> {
    let mut rows = BTreeMap::new();
    for kind in Kind::ALL {
        if matches!(kind, Kind::Meta | Kind::Counter) {
            continue;
        }
        let (range, limit) = (Range::with_prefix(&[]), usize::MAX);
        let page = store
            .engine()
            .read_page(kind, range, Direction::Ascending, limit);
        let page = page.await.unwrap().into_iter();
        rows.extend(page.map(|(key, row)| ((kind as u8, key), row.value)));
    }
    rows
}

async fn is_whole(store: &Store) {
    let findings = verify(store, &|_| {}).await;
    assert_eq!(findings.descriptions, Vec::<String>::new());
    assert!(findings.is_complete);
}

#[tokio::test]
async fn backup_after_rotations_and_deletions_is_restored_byte_by_byte() {
    let setup = Setup::new();
    let old = store(&setup).await;
    audited(live(&old)).await;
    let folder = setup.folder.path().join("old");
    old.engine().close().await.unwrap();
    drop(old);
    // Seal and authenticate all records again, twice, and remove the older keys.
    let location = Location::folder(&folder);
    rotate_key(&location, false).await.unwrap();
    rotate_key(&location, true).await.unwrap();
    let old = open_read_only(&folder, 1024 * 1024).await.unwrap();
    assert!(old.key_error.is_none());
    let old = old.store;
    is_whole(&old).await;
    assert!(all::<AuditEntry>(&old).await.len() > 100);
    let expected = rows(&old).await;
    back_up(&old, &setup, Keys::Of(&folder)).await;
    drop(old);

    let from = setup.backup();
    let how = Restore {
        from: &from,
        key_file: None,
        hold_due_by_ms: None,
        now_ms: NOW_MS,
        accept_unproven: false,
    };
    let rehearsed = rehearse(&how, &|_, _, _| {}).await.unwrap();
    let restored = setup.restore(None).await.unwrap();
    assert_eq!(rehearsed.findings.records, restored.findings.records);
    let new = crate::open(&setup.config()).await.unwrap();
    assert!(rows(&new).await == expected, "into a folder");
    is_whole(&new).await;
    // The restored store can be changed, rotated and backed up.
    audited(edit(&new, &samples::client("console"))).await;
    audited(live_on(&new)).await;
    is_whole(&new).await;
    new.engine().close().await.unwrap();
    drop(new);
    rotate_key(&setup.config(), false).await.unwrap();
    let new = crate::open(&setup.config()).await.unwrap();
    is_whole(&new).await;

    if free_schema().is_none() {
        return;
    }
    let config = super::database::database(setup.folder.path()).unwrap();
    restore(&config, &how, &|_, _, _| {}).await.unwrap();
    let new = crate::open(&config).await.unwrap();
    assert!(rows(&new).await == expected, "into a database");
    is_whole(&new).await;
}

/// Stores one more rotated client key, which extends the audit chain.
async fn live_on(store: &Store) {
    edit(store, &samples::rotated_client("console")).await;
}
