//! Data folders that earlier versions wrote, as they lie on disks: every later version opens them.
//!
//! `BELLWETHER_WRITE_LAYOUT=FOLDER cargo test --package bellwether-backend layouts` writes a folder
//! of the newest layout, with records of every kind. It is committed once, when the layout is new.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tempfile::TempDir;

use super::open;
use crate::{
    config::Config,
    domain::{
        Attempt, Client, Delivery, DeliveryState, Destination, Health, Occurrence, Receipt,
        Revision, Rule, Trigger,
    },
    store::{Direction, Kind, Lane, Range, Record, Store, samples, verify},
};

/// Layout 1, of version 0.1.0.
const LAYOUT_1: [(&str, &[u8]); 3] = [
    ("store.redb", include_bytes!("layouts/1/store.redb")),
    ("format", include_bytes!("layouts/1/format")),
    ("secret.key", include_bytes!("layouts/1/secret.key")),
];

fn deliveries() -> Vec<Delivery> {
    let states = [
        DeliveryState::Pending { due_ms: 1 },
        DeliveryState::Leased { until_ms: 2 },
        DeliveryState::Retry { due_ms: 3 },
        DeliveryState::Delivered,
        DeliveryState::Dead,
        DeliveryState::Cancelled,
    ];
    let numbered = (1..).zip(states);
    numbered
        .map(|(number, state)| samples::delivery(number, state))
        .collect()
}

async fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let key = format!("1 {}\n", STANDARD.encode([7; 32]));
    fs::write(folder.join("secret.key"), key).unwrap();
    let store = open(&Config::new(folder)).await.unwrap();
    let mut changes = store.changes();
    changes.insert(&samples::trigger("disk"));
    for destination in samples::destinations() {
        changes.insert(&destination);
    }
    changes.insert(&samples::rule("page"));
    changes.insert(&samples::client("console"));
    changes.insert(&samples::occurrence(1));
    changes.insert(&samples::judged_occurrence());
    for (number, delivery) in (1..).zip(deliveries()) {
        changes.insert(&delivery);
        changes.insert(&samples::attempt(number, 1));
    }
    changes.insert(&samples::health());
    changes.insert(&samples::receipt());
    for revision in samples::revisions() {
        changes.insert(&revision);
    }
    store.apply(Lane::Admin, changes).await.unwrap();
}

async fn all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range::under(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100).await;
    page.unwrap().into_iter().map(|it| it.value).collect()
}

fn first_layout() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in LAYOUT_1 {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// Writes every record of a kind again, as any change of it would.
async fn rewrite<T: Record>(store: &Store) {
    let range = Range::under(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100).await;
    let mut changes = store.changes();
    for stored in page.unwrap() {
        changes.update(&stored, &stored.value);
    }
    assert!(!changes.is_empty(), "there is one of every kind");
    store.apply(Lane::Admin, changes).await.unwrap();
}

#[tokio::test]
async fn what_the_first_layout_holds_is_changed_as_what_is_written_now() {
    let folder = first_layout();
    let config = Config::new(folder.path());
    let store = open(&config).await.unwrap();
    let before = verify(&store, &|_| {}).await;
    rewrite::<Trigger>(&store).await;
    rewrite::<Destination>(&store).await;
    rewrite::<Rule>(&store).await;
    rewrite::<Client>(&store).await;
    rewrite::<Occurrence>(&store).await;
    rewrite::<Delivery>(&store).await;
    rewrite::<Attempt>(&store).await;
    rewrite::<Health>(&store).await;
    rewrite::<Receipt>(&store).await;
    rewrite::<Revision>(&store).await;
    drop(store);
    let store = open(&config).await.unwrap();
    let after = verify(&store, &|_| {}).await;
    assert_eq!(after.told, Vec::<String>::new());
    assert_eq!(
        (after.records, after.entries),
        (before.records, before.entries)
    );
    assert_eq!(all::<Delivery>(&store).await, deliveries());
    assert_eq!(all::<Destination>(&store).await, samples::destinations());
}

#[tokio::test]
async fn a_folder_of_the_first_layout_opens_with_all_that_is_in_it() {
    if let Some(folder) = std::env::var_os("BELLWETHER_WRITE_LAYOUT") {
        write(Path::new(&folder)).await;
    }
    let folder = first_layout();
    let store = open(&Config::new(folder.path())).await.unwrap();
    assert_eq!(all::<Trigger>(&store).await, [samples::trigger("disk")]);
    assert_eq!(all::<Destination>(&store).await, samples::destinations());
    assert_eq!(all::<Rule>(&store).await, [samples::rule("page")]);
    assert_eq!(all::<Client>(&store).await, [samples::client("console")]);
    let occurrences = [samples::occurrence(1), samples::judged_occurrence()];
    assert_eq!(all::<Occurrence>(&store).await, occurrences);
    assert_eq!(all::<Delivery>(&store).await, deliveries());
    let attempts: Vec<_> = (1..=6).map(|it| samples::attempt(it, 1)).collect();
    assert_eq!(all::<Attempt>(&store).await, attempts);
    assert_eq!(all::<Health>(&store).await, [samples::health()]);
    assert_eq!(all::<Receipt>(&store).await, [samples::receipt()]);
    assert_eq!(all::<Revision>(&store).await, samples::revisions());
    let findings = verify(&store, &|_| {}).await;
    assert_eq!(findings.told, Vec::<String>::new());
    // Facts are read by nobody else: one of every other kind is in it.
    assert_eq!(findings.records.len(), Kind::ALL.len() - 1);
}
