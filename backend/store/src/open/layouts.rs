//! Data folders of earlier versions as they are on disk, which every later version can open.
//!
//! `BELLWETHER_WRITE_LAYOUT=FOLDER cargo test --package bellwether-backend layouts` writes a folder
//! of the newest layout, with records of every kind. The folder is committed to the repository
//! once, when the layout is new.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tempfile::TempDir;

use super::{OpenError, faults::Faults, open_read_only, rotate_key};
use crate::{
    domain::{
        Attempt, Client, Delivery, DeliveryState, Destination, Health, Occurrence, Receipt,
        RecordId, Revision, Rule, Secret, Settings, Trigger,
    },
    engine::{Action, Change, Direction, Expect, Index, Kind, Lane, Range},
    location::Location,
    record::{Record, Store},
    samples,
    seal::{SealContext, Sealer},
    verify,
};

/// Maximum time for which a folder stays in use after its store was dropped: a completed read can
/// hold the store a moment longer.
const RELEASED_AFTER: Duration = Duration::from_secs(5);

pub(super) async fn open_store(config: &Location) -> Result<Store, OpenError> {
    retry_until_released(async || super::open(config).await).await
}

async fn retry_until_released<T>(
    act: impl AsyncFn() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let end = Instant::now() + RELEASED_AFTER;
    loop {
        match act().await {
            Err(OpenError::InUse(_)) if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other => return other,
        }
    }
}

const LAYOUT_1: [(&str, &[u8]); 3] = [
    ("store.redb", include_bytes!("layouts/1/store.redb")),
    ("format", include_bytes!("layouts/1/format")),
    ("secret.key", include_bytes!("layouts/1/secret.key")),
];

/// Layout 2 after the service was killed: all data is in the log.
const LAYOUT_2: [(&str, &[u8]); 4] = [
    ("store.redb", include_bytes!("layouts/2/store.redb")),
    ("store.log.0", include_bytes!("layouts/2/store.log.0")),
    ("format", include_bytes!("layouts/2/format")),
    ("secret.key", include_bytes!("layouts/2/secret.key")),
];

const LAYOUT_3: [(&str, &[u8]); 4] = [
    ("store.redb", include_bytes!("layouts/3/store.redb")),
    ("store.log.0", include_bytes!("layouts/3/store.log.0")),
    ("format", include_bytes!("layouts/3/format")),
    ("secret.key", include_bytes!("layouts/3/secret.key")),
];

const LAYOUT_4: [(&str, &[u8]); 4] = [
    ("store.redb", include_bytes!("layouts/4/store.redb")),
    ("store.log.0", include_bytes!("layouts/4/store.log.0")),
    ("format", include_bytes!("layouts/4/format")),
    ("secret.key", include_bytes!("layouts/4/secret.key")),
];

const LAYOUT_5: [(&str, &[u8]); 4] = [
    ("store.redb", include_bytes!("layouts/5/store.redb")),
    ("store.log.0", include_bytes!("layouts/5/store.log.0")),
    ("format", include_bytes!("layouts/5/format")),
    ("secret.key", include_bytes!("layouts/5/secret.key")),
];

fn sample_deliveries() -> Vec<Delivery> {
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

async fn write_records(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let used = tempfile::tempdir().unwrap();
    let key = format!("1 {}\n", STANDARD.encode([7; 32]));
    fs::write(used.path().join("secret.key"), key).unwrap();
    let store = open_store(&Location::folder(used.path())).await.unwrap();
    let mut changes = store.new_changes();
    changes.insert(&samples::trigger("disk"));
    for destination in samples::destinations() {
        changes.insert(&destination);
    }
    changes.insert(&samples::rule("page"));
    changes.insert(&samples::client("console"));
    changes.insert(&samples::occurrence(1));
    changes.insert(&samples::evaluated_occurrence());
    for (number, delivery) in (1..).zip(sample_deliveries()) {
        changes.insert(&delivery);
        changes.insert(&samples::attempt(number, 1));
    }
    changes.insert(&samples::health());
    changes.insert(&samples::receipt());
    for revision in samples::revisions() {
        changes.insert(&revision);
    }
    store.apply(Lane::Admin, changes).await.unwrap();
    for (name, _) in LAYOUT_5 {
        let mut bytes = fs::read(used.path().join(name)).unwrap();
        if name.starts_with("store.log") {
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            bytes.truncate(end + 1);
        }
        fs::write(folder.join(name), bytes).unwrap();
    }
}

async fn read_all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range::with_prefix(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100).await;
    page.unwrap().into_iter().map(|it| it.value).collect()
}

fn create_folder(layout: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in layout {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

async fn rewrite<T: Record>(store: &Store) {
    let range = Range::with_prefix(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100).await;
    let mut changes = store.new_changes();
    for stored in page.unwrap() {
        changes.update(&stored, &stored.value);
    }
    assert!(!changes.is_empty(), "one of every kind exists");
    store.apply(Lane::Admin, changes).await.unwrap();
}

#[tokio::test]
async fn records_of_first_layout_can_be_rewritten() {
    let folder = create_folder(&LAYOUT_1);
    let config = Location::folder(folder.path());
    let store = open_store(&config).await.unwrap();
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
    let store = open_store(&config).await.unwrap();
    let after = verify(&store, &|_| {}).await;
    assert_eq!(after.descriptions, Vec::<String>::new());
    assert_eq!(
        (after.records, after.entries),
        (before.records, before.entries)
    );
    assert_eq!(read_all::<Delivery>(&store).await, sample_deliveries());
    assert_eq!(
        read_all::<Destination>(&store).await,
        samples::destinations()
    );
}

#[tokio::test]
async fn folder_of_first_layout_opens_with_all_data() {
    assert_all_records(&create_folder(&LAYOUT_1)).await;
}

#[tokio::test]
async fn folders_of_killed_services_open_with_logged_data() {
    if let Some(folder) = std::env::var_os("BELLWETHER_WRITE_LAYOUT") {
        write_records(Path::new(&folder)).await;
    }
    for layout in [LAYOUT_2, LAYOUT_3, LAYOUT_4, LAYOUT_5] {
        assert_all_records(&create_folder(&layout)).await;
    }
}

#[tokio::test]
async fn deleting_records_removes_entries_of_first_layout() {
    let folder = create_folder(&LAYOUT_1);
    let config = Location::folder(folder.path());
    let by_event = async |store: &Store| {
        let (index, all) = (Index::OccurrenceByEvent, Range::with_prefix(&[]));
        store.engine().count(index, all, 100).await.unwrap()
    };
    let store = open_store(&config).await.unwrap();
    assert_eq!(by_event(&store).await, 2);
    for left in [1, 0] {
        let range = Range::with_prefix(&[]);
        let page = store.page::<Occurrence>(range, Direction::Ascending, 1);
        let mut changes = store.new_changes();
        changes.delete(&page.await.unwrap()[0]);
        store.apply(Lane::Admin, changes).await.unwrap();
        assert_eq!(by_event(&store).await, left);
    }
    drop(store);
    for _ in 0..2 {
        let store = open_store(&config).await.unwrap();
        assert_eq!(by_event(&store).await, 0);
        let mut changes = store.new_changes();
        let again = samples::occurrence(1);
        changes.insert(&again);
        store.apply(Lane::Admin, changes).await.unwrap();
        assert_eq!(by_event(&store).await, 1);
        let stored = store.get::<Occurrence>(again.key()).await.unwrap();
        let mut changes = store.new_changes();
        changes.delete(&stored.unwrap());
        store.apply(Lane::Admin, changes).await.unwrap();
        assert_eq!(by_event(&store).await, 0);
    }
}

#[tokio::test]
async fn opening_first_layout_updates_the_format_file() {
    let folder = create_folder(&LAYOUT_1);
    let config = Location::folder(folder.path());
    let before = fs::read_to_string(folder.path().join("format")).unwrap();
    drop(open_read_only(folder.path(), 1024 * 1024).await.unwrap());
    let read = fs::read_to_string(folder.path().join("format")).unwrap();
    assert_eq!(read, before, "a read-only user changes nothing");
    for _ in 0..2 {
        let store = open_store(&config).await.unwrap();
        let rows = store.engine().get(Kind::Meta, &[b"format".to_vec()]).await;
        let row = rows.unwrap().pop().unwrap().unwrap();
        assert_eq!(row.value, 5_u32.to_be_bytes());
    }
    // An older version reads this file first and stops.
    let after = fs::read_to_string(folder.path().join("format")).unwrap();
    assert_eq!((before.as_str(), after.as_str()), ("1\n", "5\n"));
}

#[tokio::test]
async fn upgrade_keeps_a_copy_of_the_older_layout() {
    for (layout, files) in [
        (1, &LAYOUT_1[..]),
        (2, &LAYOUT_2),
        (3, &LAYOUT_3),
        (4, &LAYOUT_4),
    ] {
        let folder = create_folder(files);
        let copy = folder.path().join(format!("layout-{layout}"));
        fs::create_dir(folder.path().join(format!("layout-{layout}.new"))).unwrap();
        drop(open_read_only(folder.path(), 1024 * 1024).await.unwrap());
        assert!(!copy.exists(), "a read-only user changes nothing");
        for _ in 0..2 {
            drop(open_store(&Location::folder(folder.path())).await.unwrap());
            for (name, bytes) in files {
                assert!(fs::read(copy.join(name)).unwrap() == *bytes, "{name}");
            }
        }
        let again = create_folder(&[]);
        for (name, _) in files {
            fs::copy(copy.join(name), again.path().join(name)).unwrap();
        }
        assert_all_records(&again).await;
    }
}

#[tokio::test]
async fn failed_upgrade_or_rotation_loses_no_data() {
    let (mut failed, mut hit) = (0, 0);
    // EIO and ENOSPC, at steps that affect different calls.
    for (error, step) in [(5, 17), (28, 23)] {
        for failures in [1, u64::MAX] {
            for calls in (0..).step_by(step) {
                let context = format!("error {error} from call {calls} on, {failures} times");
                let folder = create_folder(&LAYOUT_2);
                let config = Location::folder(folder.path());
                let faults = Faults::fail_after(folder.path(), calls, failures, error);
                let rotated = rotate_key(&config, true).await;
                let was_hit = faults.was_hit();
                drop(faults);
                (failed, hit) = (
                    failed + usize::from(rotated.is_err()),
                    hit + usize::from(was_hit),
                );
                let keys = fs::read_to_string(folder.path().join("secret.key")).unwrap();
                if rotated.is_ok() {
                    assert!(keys.starts_with("2 ") || keys.contains("\n2 "), "{context}");
                    assert!(!keys.starts_with("1 "), "{context}: the old key exists");
                }
                assert_all_records(&folder).await;
                let again = retry_until_released(async || rotate_key(&config, true).await).await;
                assert!(again.is_ok(), "{context}: {again:?}");
                assert_all_records(&folder).await;
                if !was_hit {
                    break;
                }
            }
        }
    }
    assert!(failed > hit / 2, "{failed} of {hit} were detected");
}

/// Checks that a folder written by [`write_records`] can be opened and contains all records.
async fn assert_all_records(folder: &TempDir) {
    let store = open_store(&Location::folder(folder.path())).await.unwrap();
    assert_eq!(
        read_all::<Trigger>(&store).await,
        [samples::trigger("disk")]
    );
    assert_eq!(
        read_all::<Destination>(&store).await,
        samples::destinations()
    );
    assert_eq!(read_all::<Rule>(&store).await, [samples::rule("page")]);
    assert_eq!(
        read_all::<Client>(&store).await,
        [samples::client("console")]
    );
    let occurrences = [samples::occurrence(1), samples::evaluated_occurrence()];
    assert_eq!(read_all::<Occurrence>(&store).await, occurrences);
    assert_eq!(read_all::<Delivery>(&store).await, sample_deliveries());
    let attempts: Vec<_> = (1..=6).map(|it| samples::attempt(it, 1)).collect();
    assert_eq!(read_all::<Attempt>(&store).await, attempts);
    assert_eq!(read_all::<Health>(&store).await, [samples::health()]);
    assert_eq!(read_all::<Receipt>(&store).await, [samples::receipt()]);
    assert_eq!(read_all::<Revision>(&store).await, samples::revisions());
    let findings = verify(&store, &|_| {}).await;
    assert_eq!(findings.descriptions, Vec::<String>::new());
    let kinds = Kind::ALL.into_iter().filter(|it| *it != Kind::Counter);
    for kind in kinds {
        // Facts are not counted; kinds with higher numbers are not in these layouts.
        let numbers = Kind::Trigger as u8..=Kind::Revision as u8;
        let is_read = findings.records.contains_key(kind.as_str());
        assert_eq!(is_read, numbers.contains(&(kind as u8)), "{kind:?}");
    }
}

/// Overwrites a record as an attacker with access to the disk could, with correct checksums.
async fn forge_value(store: &Store, kind: Kind, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let keys = [key.as_bytes().to_vec()];
    let row = store.engine().get(kind, &keys).await.unwrap().remove(0);
    let row = row.unwrap();
    let mut value = row.value;
    change(&mut value);
    let expect = Expect::Version(row.version);
    let put = Change::new(kind, key.as_bytes(), expect, Action::Put(value));
    let applied = store.engine().apply(Lane::Admin, vec![put].into()).await;
    applied.unwrap();
}

#[tokio::test]
async fn forged_clients_and_destinations_are_refused_in_any_layout() {
    for layout in [&LAYOUT_1[..], &LAYOUT_3, &LAYOUT_4] {
        let folder = create_folder(layout);
        drop(open_store(&Location::folder(folder.path())).await.unwrap());
        let store = open_store(&Location::folder(folder.path())).await.unwrap();
        let client = async || store.get::<Client>(b"console".into()).await;
        let written = client()
            .await
            .unwrap()
            .unwrap()
            .value
            .encode(store.sealer());
        // The role follows the name: an editor becomes an admin.
        forge_value(&store, Kind::Client, "console", |value| {
            let at = value
                .windows(9)
                .position(|it| it == b"console\x18\x04")
                .unwrap();
            value[at + 8] = 5;
        })
        .await;
        let refused = client().await.unwrap_err().to_string();
        assert!(
            refused.contains("was not written by this service"),
            "{refused}"
        );
        forge_value(&store, Kind::Client, "console", |value| {
            *value = [&[1], &value[37..]].concat();
        })
        .await;
        assert!(client().await.is_err());
        forge_value(&store, Kind::Client, "console", |value| *value = written).await;
        assert!(client().await.is_ok());

        let destination = async |name: &str| store.get::<Destination>(name.into()).await;
        assert!(destination("to 0").await.is_ok());
        let mut other = Vec::new();
        forge_value(&store, Kind::Destination, "to 1", |value| {
            other.clone_from(value);
        })
        .await;
        forge_value(&store, Kind::Destination, "to 0", |value| *value = other).await;
        let refused = destination("to 0").await.unwrap_err().to_string();
        assert!(refused.contains("under another record's key"), "{refused}");
        let findings = verify(&store, &|_| {}).await;
        assert!(findings.errors > 0);
        drop(store);
        let store = open_store(&Location::folder(folder.path())).await.unwrap();
        let found = store.get::<Destination>(b"to 0".into()).await;
        assert!(found.is_err(), "nor after a restart");
    }
}

struct Definitions<T>(T, T);

impl<T: Record + PartialEq> Definitions<T> {
    async fn are_stored(&self, store: &Store) -> Result<bool, String> {
        let found = store.get::<T>(self.0.key()).await;
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.is_some_and(|it| it.value == self.0))
    }

    /// Overwrites the first record as an attacker with access to the disk could, with correct
    /// checksums.
    async fn forge_each(&self, store: &Store, bytes: &[u8]) {
        let keys = [self.0.key()];
        let row = store.engine().get(T::KIND, &keys).await.unwrap().remove(0);
        let expect = Expect::Version(row.unwrap().version);
        let put = Change::new(T::KIND, &keys[0], expect, Action::Put(bytes.to_vec()));
        let applied = store.engine().apply(Lane::Admin, vec![put].into()).await;
        applied.unwrap();
    }

    async fn assert_refused(&self, config: &Location, bytes: &[u8], why: &str) {
        let store = open_store(config).await.unwrap();
        self.forge_each(&store, bytes).await;
        let refused = self.are_stored(&store).await.unwrap_err();
        assert!(refused.contains(why), "{}: {refused}", T::KIND.as_str());
        drop(store);
        // The error persists after a restart, and a check of the store reports it.
        let store = open_store(config).await.unwrap();
        assert!(
            self.are_stored(&store).await.is_err(),
            "{}",
            T::KIND.as_str()
        );
        let descriptions = verify(&store, &|_| {}).await.descriptions;
        let is_reported =
            |it: &String| it.contains("cannot be read") || it.contains("another record's key");
        assert!(
            descriptions.iter().any(is_reported),
            "{}: {descriptions:?}",
            T::KIND.as_str()
        );
    }

    async fn assert_proven(self, config: &Location) {
        let store = open_store(config).await.unwrap();
        let mut changes = store.new_changes();
        changes.insert(&self.0);
        changes.insert(&self.1);
        store.apply(Lane::Admin, changes).await.unwrap();
        let written = self.0.encode(store.sealer());
        let other = self.1.encode(store.sealer());
        drop(store);
        let mut flipped = written.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let stripped = [&[1], &written[37..]].concat();
        let foreign = self.0.encode(&Sealer::new(&[(1, [9; 32])]));
        let unwritten = "was not written by this service";
        self.assert_refused(config, &flipped, unwritten).await;
        self.assert_refused(config, &stripped, unwritten).await;
        self.assert_refused(config, &foreign, unwritten).await;
        self.assert_refused(config, &other, "under another record's key")
            .await;
        let store = open_store(config).await.unwrap();
        self.forge_each(&store, &written).await;
        assert_eq!(
            self.are_stored(&store).await,
            Ok(true),
            "{}",
            T::KIND.as_str()
        );
    }
}

#[tokio::test]
async fn forged_definitions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = Location::folder(folder.path().join("data"));
    Definitions(samples::trigger("a"), samples::trigger("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::rule("a"), samples::rule("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::silence("a"), samples::silence("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::calendar("a"), samples::calendar("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::inhibition("a"), samples::inhibition("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::mapping("a"), samples::mapping("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::view("a"), samples::view("b"))
        .assert_proven(&config)
        .await;
    Definitions(samples::enrichment("a"), samples::enrichment("b"))
        .assert_proven(&config)
        .await;
    let other = Settings {
        name: samples::name("b"),
        ..samples::settings()
    };
    Definitions(samples::settings(), other)
        .assert_proven(&config)
        .await;
    let mut destinations = samples::destinations().into_iter();
    let (one, other) = (destinations.next().unwrap(), destinations.next().unwrap());
    Definitions(one, other).assert_proven(&config).await;
    let [one, other] = samples::revisions();
    Definitions(one, other).assert_proven(&config).await;
}

fn text_of_layout_4(sealer: &Sealer) -> Vec<u8> {
    let context = SealContext {
        record: RecordId::from_bytes([0; 16]),
        field: "check",
    };
    sealer.seal(context, &Secret::new("bellwether, proven"))
}

#[tokio::test]
async fn records_of_earlier_layout_are_proven_only_once() {
    let sealer = Sealer::new(&[(1, [7; 32])]);
    let trigger = async |store: &Store| store.get::<Trigger>(b"disk".into()).await;
    // The forged check is next to that of the newest key, in its place, or under an unknown key
    // number.
    let (record, key) = ("was not written by this service", "is encrypted with key");
    for (number, why) in [(1, record), (2, key), (3, key)] {
        let folder = create_folder(&LAYOUT_4);
        let config = Location::folder(folder.path());
        let store = open_store(&config).await.unwrap();
        let found = trigger(&store).await.unwrap().unwrap().value;
        drop(store);
        retry_until_released(async || rotate_key(&config, false).await)
            .await
            .unwrap();
        let store = open_store(&config).await.unwrap();
        forge_value(&store, Kind::Trigger, "disk", |value| {
            *value = [&[1], &found.encode(&sealer)[37..]].concat();
        })
        .await;
        let key = [b"seal/".as_slice(), &u32::to_be_bytes(number)].concat();
        let stored = store.engine().get(Kind::Meta, std::slice::from_ref(&key));
        let stored = stored.await.unwrap().remove(0);
        let expect = stored.map_or(Expect::Absent, |row| Expect::Version(row.version));
        let put = Action::Put(text_of_layout_4(&sealer));
        let put = vec![Change::new(Kind::Meta, &key, expect, put)];
        store.engine().apply(Lane::Admin, put.into()).await.unwrap();
        drop(store);
        let refused = open_store(&config).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{number}: {refused}");
    }
}
