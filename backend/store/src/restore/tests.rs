//! Tests of backup and restore, on real files.

mod database;
mod faults;
mod history;

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tempfile::TempDir;

use super::{Restore, RestoreError, RestoreReport, restore};
use crate::{
    backup::{BackupError, BackupFolder, Keys, Reader, Step},
    domain::{Client, Delivery, DeliveryState, Occurrence, Settings},
    engine::{Direction, Kind, Lane, LogPosition, Range},
    location::Location,
    record::{Record, Store},
    samples,
};

const KEY: [u8; 32] = [7; 32];
const NOW_MS: i64 = 1_800_000_000_000;

/// A modification of a backup folder.
type Damage = Box<dyn Fn(&Path)>;
/// A modification of the steps in a backup.
type Forgery = Box<dyn FnOnce(&mut Vec<Vec<u8>>)>;

struct Setup {
    folder: TempDir,
    accept_unproven: bool,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("keys")).unwrap();
        let key = format!("1 {}\n", STANDARD.encode(KEY));
        fs::write(folder.path().join("keys/secret.key"), key).unwrap();
        fs::write(folder.path().join("keys/admin.key"), "admin\n").unwrap();
        Self {
            folder,
            accept_unproven: false,
        }
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    fn keys(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    fn config(&self) -> Location {
        Location::folder(self.folder.path().join("restored"))
    }

    async fn restore(&self, hold_due_by_ms: Option<i64>) -> Result<RestoreReport, RestoreError> {
        let from = self.backup();
        let how = Restore {
            from: &from,
            key_file: None,
            hold_due_by_ms,
            now_ms: NOW_MS,
            accept_unproven: self.accept_unproven,
        };
        restore(&self.config(), &how, &|_, _, _| {}).await
    }
}

/// Creates a store with all kinds of records.
async fn store(setup: &Setup) -> Store {
    let folder = setup.folder.path().join("old");
    fs::create_dir(&folder).unwrap();
    fs::copy(setup.keys().join("secret.key"), folder.join("secret.key")).unwrap();
    let store = crate::open(&Location::folder(folder)).await.unwrap();
    let mut changes = store.new_changes();
    changes.insert(&samples::trigger("disk"));
    for destination in samples::destinations() {
        changes.insert(&destination);
    }
    changes.insert(&samples::rule("page"));
    changes.insert(&samples::client("console"));
    for number in 1..=50 {
        changes.insert(&samples::occurrence(number));
    }
    changes.insert(&samples::delivery(1, DeliveryState::Delivered));
    changes.insert(&samples::attempt(1, 1));
    changes.insert(&samples::delivery(2, DeliveryState::Pending { due_ms: 5 }));
    changes.insert(&samples::delivery(3, DeliveryState::Leased { until_ms: 6 }));
    let mut in_flight = samples::attempt(3, 1);
    in_flight.outcome = None;
    changes.insert(&in_flight);
    changes.insert(&samples::delivery(4, DeliveryState::Retry { due_ms: 99 }));
    changes.insert(&samples::health());
    changes.insert(&samples::receipt());
    for revision in samples::revisions() {
        changes.insert(&revision);
    }
    store.apply(Lane::Admin, changes).await.unwrap();
    store
}

async fn write(target: &mut BackupFolder, reader: &mut Reader) -> Option<Step> {
    let step = reader.next().await.unwrap()?;
    target.add(step.clone()).unwrap();
    Some(step)
}

async fn back_up(store: &Store, setup: &Setup, keys: Keys<'_>) {
    let mut target = BackupFolder::open(&setup.backup()).unwrap();
    let mut reader = Reader::start(store.clone(), target.resume_position())
        .await
        .unwrap();
    let mut end = None;
    while let Some(step) = write(&mut target, &mut reader).await {
        end = step.end.or(end);
    }
    target.finish(end.unwrap(), keys).unwrap();
}

async fn all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range::with_prefix(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 1_000).await;
    page.unwrap().into_iter().map(|it| it.value).collect()
}

#[tokio::test]
async fn restore_reproduces_backup_with_a_later_log() {
    let setup = Setup::new();
    let old = store(&setup).await;
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    let restored = setup.restore(None).await.unwrap();
    assert_eq!((restored.waiting, restored.held), (3, 0));
    assert!(restored.has_admin_key);
    let new = crate::open(&setup.config()).await.unwrap();
    assert_eq!(all::<Occurrence>(&new).await, all::<Occurrence>(&old).await);
    assert_eq!(all::<Delivery>(&new).await, all::<Delivery>(&old).await);
    let destinations = all::<crate::domain::Destination>(&new).await;
    assert_eq!(destinations, samples::destinations(), "secrets open");
    let place = old.engine().log_head().await.unwrap();
    for later in [
        place,
        LogPosition::from_number(place.to_number() + 1_000_000),
    ] {
        let log = new.engine().log_after(later, 1).await.unwrap();
        assert_eq!(log, None, "a token from before the restore reports a gap");
    }
    let beginning = new.engine().log_head().await.unwrap();
    let of_a_later_life = place.first_after_restore(NOW_MS + 1);
    assert!(place < beginning && beginning < of_a_later_life);
    assert!(!setup.config().data_dir.join("restore.unfinished").exists());
    let again = setup.restore(None).await.unwrap_err();
    assert!(matches!(again, RestoreError::NotEmpty { .. }), "{again}");
}

#[tokio::test]
async fn changes_during_backup_are_included_as_of_its_end() {
    let setup = Setup::new();
    let old = store(&setup).await;
    let mut target = BackupFolder::open(&setup.backup()).unwrap();
    let mut reader = Reader::start(old.clone(), None).await.unwrap();
    let mut number = 0;
    let mut end = None;
    while let Some(step) = write(&mut target, &mut reader).await {
        end = step.end.or(end);
        if end.is_some() {
            break;
        }
        number += 1;
        let mut changes = old.new_changes();
        changes.insert(&samples::occurrence(100 + number));
        let occurrences = old
            .page::<Occurrence>(Range::with_prefix(&[]), Direction::Ascending, 3)
            .await
            .unwrap();
        let mut edited = occurrences[0].value.clone();
        edited.count += 1;
        changes.update(&occurrences[0], &edited);
        if number < 20 {
            changes.delete(&occurrences[1]);
            // Another occurrence with the same index entry.
            let mut follower = occurrences[1].value.clone();
            follower.key = samples::id(10_000 + u64::from(number));
            changes.insert(&follower);
        }
        old.apply(Lane::Admin, changes).await.unwrap();
        assert!(number < 1_000, "it ends while the store is being written");
        if number > 5 {
            let mut reader_end = None;
            while let Some(step) = write(&mut target, &mut reader).await {
                reader_end = step.end.or(reader_end);
            }
            end = reader_end;
            break;
        }
    }
    target
        .finish(end.unwrap(), Keys::Of(&setup.keys()))
        .unwrap();
    setup.restore(None).await.unwrap();
    let new = crate::open(&setup.config()).await.unwrap();
    assert_eq!(all::<Occurrence>(&new).await, all::<Occurrence>(&old).await);
    assert_eq!(all::<Delivery>(&new).await, all::<Delivery>(&old).await);
}

#[tokio::test]
async fn interrupted_backup_resumes() {
    let setup = Setup::new();
    let old = store(&setup).await;
    for (steps, cut) in [(2, 0), (2, 3), (1, 1)] {
        let mut target = BackupFolder::open(&setup.backup()).unwrap();
        let mut reader = Reader::start(old.clone(), target.resume_position())
            .await
            .unwrap();
        for _ in 0..steps {
            write(&mut target, &mut reader).await.unwrap();
        }
        drop(target);
        let piece = setup.backup().join("piece-000001");
        let bytes = fs::read(&piece).unwrap();
        fs::write(&piece, &bytes[..bytes.len() - cut]).unwrap();
        let unfinished = setup.restore(None).await.unwrap_err();
        let is_reported = matches!(
            unfinished,
            RestoreError::NoKey | RestoreError::Backup(BackupError::Unfinished(_))
        );
        assert!(is_reported, "{unfinished}");
    }
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    setup.restore(None).await.unwrap();
    let new = crate::open(&setup.config()).await.unwrap();
    assert_eq!(all::<Occurrence>(&new).await, all::<Occurrence>(&old).await);
}

#[tokio::test]
async fn backup_cannot_resume_from_another_store() {
    let setup = Setup::new();
    let old = store(&setup).await;
    let mut reader = Reader::start(old, None).await.unwrap();
    let place = reader.next().await.unwrap().unwrap().place;
    let other = crate::open(&setup.config()).await.unwrap();
    let refused = Reader::start(other, Some(&place)).await.unwrap_err();
    assert!(matches!(refused, BackupError::Foreign), "{refused}");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of damaged backups")]
async fn damaged_backup_leaves_no_store() {
    let change = |name: &'static str, change: fn(&mut Vec<u8>)| {
        move |folder: &Path| {
            let path = folder.join(name);
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
    };
    let remove =
        |name: &'static str| move |folder: &Path| fs::remove_file(folder.join(name)).unwrap();
    let foreign = format!("1 {}\n", STANDARD.encode([8; 32]));
    // A link to the same bytes is refused: its creator could change the bytes at any time.
    let link = |name: &'static str| {
        move |folder: &Path| {
            let elsewhere = folder.with_file_name(format!("elsewhere-{name}"));
            fs::rename(folder.join(name), &elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, folder.join(name)).unwrap();
        }
    };
    let pipe = |name: &'static str| {
        move |folder: &Path| {
            fs::remove_file(folder.join(name)).unwrap();
            let mut make = std::process::Command::new("mkfifo");
            assert!(make.arg(folder.join(name)).status().unwrap().success());
        }
    };
    let named = |other: &'static str| {
        move |folder: &Path| {
            let path = folder.join("manifest.json");
            let text = fs::read_to_string(&path).unwrap();
            let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
            manifest["backup"]["pieces"][0]["name"] = other.into();
            let sum = crc32c::crc32c(manifest["backup"].to_string().as_bytes());
            manifest["crc32c"] = sum.into();
            fs::write(path, manifest.to_string()).unwrap();
        }
    };
    let elsewhere = "symbolic link not allowed";
    let cases: [(Damage, &str); 17] = [
        (Box::new(link("piece-000001")), elsewhere),
        (Box::new(link("manifest.json")), elsewhere),
        (Box::new(link("secret.key")), elsewhere),
        (Box::new(link("admin.key")), elsewhere),
        (Box::new(pipe("piece-000001")), "not a regular file"),
        (Box::new(pipe("manifest.json")), "not a regular file"),
        (Box::new(pipe("secret.key")), "not a regular file"),
        (Box::new(named("../piece-000001")), "cannot be read"),
        (Box::new(named("/etc/piece-000001")), "cannot be read"),
        (
            Box::new(change("piece-000001", |bytes| bytes[300] ^= 1)),
            "was modified",
        ),
        (
            Box::new(change("piece-000001", |bytes| bytes.truncate(900))),
            "was modified",
        ),
        (Box::new(remove("piece-000001")), "is missing"),
        (Box::new(remove("manifest.json")), "no backup in"),
        (
            Box::new(change("manifest.json", |bytes| bytes[100] ^= 1)),
            "cannot be read",
        ),
        (
            Box::new(change("manifest.json", |bytes| {
                let text = String::from_utf8(bytes.clone()).unwrap();
                *bytes = text.replace("\"layout\": 2", "\"layout\": 3").into();
            })),
            "newer version",
        ),
        (Box::new(remove("secret.key")), "--secret-key"),
        (
            Box::new(move |folder: &Path| fs::write(folder.join("secret.key"), &foreign).unwrap()),
            "the keys are from another service",
        ),
    ];
    for (damage, expected) in cases {
        let setup = Setup::new();
        back_up(&store(&setup).await, &setup, Keys::Of(&setup.keys())).await;
        damage(&setup.backup());
        let error = setup.restore(None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        let left = fs::read_dir(setup.config().data_dir).map_or(0, Iterator::count);
        assert!(left <= 1, "nothing but the lock remains after: {error}");
    }
}

#[tokio::test]
async fn held_deliveries_wait_after_restore() {
    let setup = Setup::new();
    back_up(&store(&setup).await, &setup, Keys::Of(&setup.keys())).await;
    let restored = setup.restore(Some(50)).await.unwrap();
    assert_eq!((restored.waiting, restored.held), (1, 2));
    assert!(restored.is_quiet);
    let new = crate::open(&setup.config()).await.unwrap();
    let settings = new.get::<Settings>(Settings::NAME.into()).await.unwrap();
    assert_eq!(settings.unwrap().value.values.quiet_since_ms, Some(50));
    let deliveries = all::<Delivery>(&new).await;
    let held = deliveries
        .iter()
        .filter(|it| it.last_error.starts_with("held because"));
    let held: Vec<_> = held.collect();
    assert_eq!(held.len(), 2);
    for delivery in held {
        assert!(matches!(delivery.state, DeliveryState::Retry { due_ms } if due_ms > 50_000));
    }
}

#[tokio::test]
async fn backup_without_keys_requires_a_key_file() {
    let setup = Setup::new();
    back_up(&store(&setup).await, &setup, Keys::LeftOut).await;
    let error = setup.restore(None).await.unwrap_err();
    assert!(matches!(error, RestoreError::NoKey), "{error}");
    let (from, key_file) = (setup.backup(), setup.keys().join("secret.key"));
    let how = Restore {
        from: &from,
        key_file: Some(&key_file),
        hold_due_by_ms: None,
        now_ms: NOW_MS,
        accept_unproven: false,
    };
    let restored = restore(&setup.config(), &how, &|_, _, _| {}).await.unwrap();
    assert!(!restored.has_admin_key);
    let finished = BackupFolder::open(&from).unwrap_err();
    assert!(matches!(finished, BackupError::Finished(_)), "{finished}");
}

/// Modifies the steps of a backup as an attacker could, with correct checksums.
fn forge(setup: &Setup, change: impl FnOnce(&mut Vec<Vec<u8>>), layout: u32) {
    let piece = setup.backup().join("piece-000001");
    let bytes = fs::read(&piece).unwrap();
    let (head, mut rest) = bytes.split_at(12);
    let mut steps = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (step, after) = after[4..].split_at(u32::from_be_bytes(*length) as usize);
        steps.push(step.to_vec());
        rest = after;
    }
    change(&mut steps);
    let mut bytes = head.to_vec();
    for step in steps {
        bytes.extend(u32::try_from(step.len()).unwrap().to_be_bytes());
        bytes.extend(crc32c::crc32c(&step).to_be_bytes());
        bytes.extend(step);
    }
    fs::write(piece, &bytes).unwrap();
    let manifest = setup.backup().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut text: serde_json::Value = serde_json::from_str(&text).unwrap();
    text["backup"]["layout"] = layout.into();
    text["backup"]["pieces"][0]["bytes"] = bytes.len().into();
    text["backup"]["pieces"][0]["crc32c"] = crc32c::crc32c(&bytes).into();
    text["crc32c"] = crc32c::crc32c(text["backup"].to_string().as_bytes()).into();
    fs::write(manifest, text.to_string()).unwrap();
}

#[tokio::test]
async fn forged_backup_with_valid_checksums_is_refused() {
    // Change the byte that makes a viewer an admin, and the byte that makes a secret go to another
    // port.
    let replace = |from: &'static [u8], to: &'static [u8]| {
        move |steps: &mut Vec<Vec<u8>>| {
            let mut found = 0;
            for step in steps {
                let last = step.len() - from.len();
                for at in (0..last)
                    .filter(|at| step[*at..].starts_with(from))
                    .collect::<Vec<_>>()
                {
                    step[at..at + from.len()].copy_from_slice(to);
                    found += 1;
                }
            }
            assert!(found > 0);
        }
    };
    let forgeries: [(Forgery, u32, &str); 6] = [
        (
            Box::new(replace(b"console\x18\x04", b"console\x18\x05")),
            2,
            "modified after",
        ),
        (
            Box::new(replace(b"example.com", b"example.org")),
            2,
            "modified after",
        ),
        (Box::new(|steps| drop(steps.remove(1))), 2, "modified after"),
        (Box::new(|steps| steps.swap(0, 1)), 2, "modified after"),
        (
            Box::new(|steps| steps.truncate(1)),
            2,
            "its last step is missing",
        ),
        (Box::new(|_| {}), 1, "--accept-unproven"),
    ];
    for (number, (forgery, layout, expected)) in forgeries.into_iter().enumerate() {
        let setup = Setup::new();
        back_up(&store(&setup).await, &setup, Keys::Of(&setup.keys())).await;
        forge(&setup, forgery, layout);
        let error = setup.restore(None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{number} {expected}: {error}");
        let left = fs::read_dir(setup.config().data_dir).map_or(0, Iterator::count);
        assert!(left <= 1, "nothing but the lock remains after: {error}");
    }
}

#[tokio::test]
async fn unproven_backup_requires_explicit_acceptance() {
    let mut setup = Setup::new();
    let old = store(&setup).await;
    let mut target = BackupFolder::open(&setup.backup()).unwrap();
    let mut reader = Reader::start(old.clone(), None).await.unwrap();
    let mut end = None;
    while let Some(mut step) = reader.next().await.unwrap() {
        for record in &mut step.records {
            if let (Kind::Client | Kind::Destination, Some(value)) =
                (record.kind, &mut record.value)
            {
                *value = [&[1], &value[37..]].concat();
            }
        }
        end = step.end.clone().or(end);
        target.add(step).unwrap();
    }
    target
        .finish(end.unwrap(), Keys::Of(&setup.keys()))
        .unwrap();
    let error = setup.restore(None).await.unwrap_err().to_string();
    assert!(error.contains("modified after"), "{error}");
    let forget_time = |steps: &mut Vec<Vec<u8>>| {
        for step in steps.iter_mut() {
            *step = Step::without_proof(step);
        }
    };
    forge(&setup, forget_time, 1);
    let error = setup.restore(None).await.unwrap_err().to_string();
    assert!(error.contains("--accept-unproven"), "{error}");
    setup.accept_unproven = true;
    setup.restore(None).await.unwrap();
    let new = crate::open(&setup.config()).await.unwrap();
    assert_eq!(all::<Client>(&new).await, all::<Client>(&old).await);
    let destinations = all::<crate::domain::Destination>(&new).await;
    assert_eq!(destinations, samples::destinations());
}
