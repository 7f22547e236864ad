//! Tests of the audit log operations.

use std::{sync::Arc, time::Duration};

use super::{AuditFilter, AuditLog};
use crate::{
    clock::ManualClock,
    domain::{AuditAction, AuditEntry, SharedSettings, Trigger},
    page::PageRequest,
    samples as service,
    store::{
        Direction, Lane, Range, Store,
        audit::{Actor, run_as},
        record::chain_entry,
        verify,
    },
    testing::samples,
};

const NOW_MS: i64 = 1_800_000_000_000;

fn jane() -> Actor {
    Actor {
        client: "jane".into(),
        address: None,
        agent: String::new(),
        method: "/bellwether.v1.TriggerService/CreateTrigger",
        time_ms: NOW_MS,
        scope: Arc::default(),
    }
}

async fn put(store: &Store, name: &str) {
    let work = async {
        let mut changes = store.new_changes();
        let stored = store.get::<Trigger>(name.into()).await.unwrap();
        match stored {
            None => changes.insert(&samples::trigger(name)),
            Some(stored) => {
                let mut new = stored.value.clone();
                new.revision += 1;
                changes.update(&stored, &new);
            }
        }
        store.apply(Lane::Admin, changes).await.unwrap();
    };
    run_as(jane(), work).await;
}

async fn log(store: &Store) -> (AuditLog, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::starting_at(NOW_MS));
    let values = SharedSettings {
        audit_retention: Duration::from_secs(60),
        ..SharedSettings::default()
    };
    service::save_settings(store, values).await;
    let log = AuditLog::new(store.clone(), Arc::clone(&clock) as _);
    (log, clock)
}

async fn all(log: &AuditLog, filter: &AuditFilter) -> Vec<AuditEntry> {
    let mut all = Vec::new();
    let mut page = PageRequest {
        size: 2,
        ..PageRequest::default()
    };
    loop {
        let (found, token) = log.list(filter, &page).await.unwrap();
        all.extend(found);
        if token.is_empty() {
            return all;
        }
        page.token = token;
    }
}

async fn audit_errors(store: &Store) -> Vec<String> {
    verify(store, &|_| {}).await.descriptions
}

#[tokio::test]
async fn caller_changes_are_audited_and_internal_ones_are_not() {
    let store = Store::in_memory();
    let mut changes = store.new_changes();
    changes.insert(&samples::trigger("by itself"));
    store.apply(Lane::Admin, changes).await.unwrap();
    for _ in 0..3 {
        put(&store, "disk").await;
    }
    put(&store, "load").await;
    let (log, _) = log(&store).await;
    let entries = all(&log, &AuditFilter::default()).await;
    let recorded: Vec<_> = entries
        .iter()
        .map(|it| (it.number, it.action, it.names[0].as_str()))
        .collect();
    let expected = [
        (4, AuditAction::Created, "load"),
        (3, AuditAction::Updated, "disk"),
        (2, AuditAction::Updated, "disk"),
        (1, AuditAction::Created, "disk"),
    ];
    assert_eq!(recorded, expected);
    let of_disk = AuditFilter {
        kinds: vec!["trigger".into()],
        names: vec!["disk".into()],
        ..AuditFilter::default()
    };
    let numbers: Vec<_> = all(&log, &of_disk)
        .await
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(audit_errors(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn concurrent_changes_form_one_chain_without_conflicts() {
    let store = Store::in_memory();
    let names: Vec<_> = (0..50).map(|it| format!("trigger {it}")).collect();
    let puts = names.iter().map(|name| put(&store, name));
    futures_util::future::join_all(puts).await;
    let (log, _) = log(&store).await;
    assert_eq!(all(&log, &AuditFilter::default()).await.len(), 50);
    assert_eq!(audit_errors(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn failed_change_leaves_no_gap_in_the_chain() {
    let store = Store::in_memory();
    put(&store, "disk").await;
    let twice = async {
        let mut changes = store.new_changes();
        changes.insert(&samples::trigger("disk"));
        store.apply(Lane::Admin, changes).await.unwrap_err();
    };
    run_as(jane(), twice).await;
    put(&store, "load").await;
    let (log, _) = log(&store).await;
    let numbers: Vec<_> = all(&log, &AuditFilter::default()).await;
    assert_eq!(
        numbers.iter().map(|it| it.number).collect::<Vec<_>>(),
        [2, 1]
    );
    assert_eq!(audit_errors(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn modified_or_missing_entries_are_detected() {
    let entries = async |store: &Store| {
        let page = store.page::<AuditEntry>(Range::with_prefix(&[]), Direction::Ascending, 3);
        page.await.unwrap()
    };
    let store = Store::in_memory();
    for _ in 0..3 {
        put(&store, "disk").await;
    }
    let mut changes = store.new_changes();
    changes.delete(&entries(&store).await[1]);
    store.apply(Lane::Admin, changes).await.unwrap();
    let errors = audit_errors(&store).await.join("; ");
    assert!(errors.contains("are missing"), "{errors}");
    // Fixing the hash of a modified entry breaks the chain at the next one.
    let store = Store::in_memory();
    for _ in 0..3 {
        put(&store, "disk").await;
    }
    let entry = entries(&store).await.remove(1);
    let changed = AuditEntry {
        client: "john".into(),
        ..entry.value.clone()
    };
    let mut changes = store.new_changes();
    changes.update(&entry, &chain_entry(changed, 2, entry.value.previous));
    store.apply(Lane::Admin, changes).await.unwrap();
    let errors = audit_errors(&store).await.join("; ");
    assert!(errors.contains("does not follow"), "{errors}");
}

#[tokio::test]
async fn expired_entries_are_deleted_and_the_chain_continues() {
    let store = Store::in_memory();
    for _ in 0..3 {
        put(&store, "disk").await;
    }
    let (log, clock) = log(&store).await;
    assert_eq!(log.delete_expired().await.unwrap(), 0);
    clock.advance(Duration::from_secs(61));
    assert_eq!(log.delete_expired().await.unwrap(), 2);
    put(&store, "disk").await;
    let entries = all(&log, &AuditFilter::default()).await;
    assert_eq!(
        entries.iter().map(|it| it.number).collect::<Vec<_>>(),
        [4, 3]
    );
    assert_eq!(audit_errors(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn refused_calls_are_audited_once_a_minute_with_count() {
    let store = Store::in_memory();
    let (log, clock) = log(&store).await;
    let counts = async || {
        let entries = all(&log, &AuditFilter::default()).await;
        entries.iter().map(|it| it.count).collect::<Vec<_>>()
    };
    log.flush(false).await;
    for _ in 0..3 {
        log.record_refused(jane(), "this requires the role `editor`");
        log.flush(false).await;
    }
    assert_eq!(counts().await, [1]);
    clock.advance(Duration::from_secs(61));
    log.flush(false).await;
    assert_eq!(counts().await, [2, 1]);
    for number in 0..1_000 {
        let address = std::net::Ipv4Addr::from_bits(number).into();
        log.record_refused(
            Actor {
                address: Some(address),
                ..jane()
            },
            "no key",
        );
    }
    log.flush(false).await;
    let counts = counts().await;
    assert!(counts.len() < 110, "{}", counts.len());
    assert_eq!(counts.iter().sum::<u32>(), 1_003);
}
