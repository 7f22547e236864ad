//! Tests of opening a data folder.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tempfile::TempDir;

use super::{OpenError, open, open_read_only, replace_file};
use crate::{
    domain::{
        DeliverySettings, Destination, DestinationKind, IntakeMapping, Name, RecordId, Secret,
        destination::{Header, HeaderValue, Webhook},
    },
    engine::{Action, Change, ChangeSet, DiskShare, EngineError, Expect, Kind, Lane},
    location::Location,
    record::{Record, Store},
    samples,
};

fn folder() -> (TempDir, Location) {
    let parent = tempfile::tempdir().unwrap();
    let config = Location::folder(parent.path().join("data"));
    (parent, config)
}

async fn refusal(config: &Location) -> OpenError {
    open(config).await.map(drop).unwrap_err()
}

/// Returns all files of a folder with their content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

fn webhook(token: &str, signing: &str) -> Destination {
    Destination {
        template_language: crate::domain::TemplateLanguage::Mustache,
        id: RecordId::from_parts(1, 2),
        name: Name::parse("pager").unwrap(),
        description: String::new(),
        tags: Vec::new(),
        kind: DestinationKind::Webhook(Webhook {
            url: "https://example.com".into(),
            headers: vec![Header {
                name: "authorization".into(),
                value: HeaderValue::Secret(Secret::new(token)),
            }],
            signing_secret: Secret::new(signing),
            ..Webhook::default()
        }),
        delivery: DeliverySettings::default(),
        revision: 1,
        create_ms: 0,
        update_ms: 0,
    }
}

async fn insert<T: Record>(store: &Store, record: &T) {
    let mut changes = store.new_changes();
    changes.insert(record);
    store.apply(Lane::Admin, changes).await.unwrap();
}

fn put(kind: Kind, key: &[u8]) -> Change {
    Change::new(kind, key, Expect::Absent, Action::Put(key.into()))
}

#[tokio::test]
async fn new_folder_is_private_and_persists_data() {
    let (_parent, config) = folder();
    let destination = webhook("token", "whsec_1");
    let store = open(&config).await.unwrap();
    insert(&store, &destination).await;
    drop(store);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&config.data_dir), 0o700);
    for path in content(&config.data_dir).keys() {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    let store = open(&config).await.unwrap();
    let found = store.get::<Destination>(destination.key()).await.unwrap();
    assert_eq!(found.unwrap().value, destination);
}

#[tokio::test]
async fn folder_in_use_is_refused_until_released() {
    let (_parent, config) = folder();
    let store = open(&config).await.unwrap();
    let error = refusal(&config).await;
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    assert!(error.to_string().contains("in use by another process"));
    drop(store);
    open(&config).await.unwrap();
}

#[tokio::test]
async fn foreign_folder_is_refused_and_left_unchanged() {
    let (_parent, config) = folder();
    fs::create_dir(&config.data_dir).unwrap();
    fs::write(config.data_dir.join("notes.txt"), "mine").unwrap();
    let before = content(&config.data_dir);
    let error = refusal(&config).await;
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    assert_eq!(content(&config.data_dir), before);
}

#[tokio::test]
async fn file_in_place_of_the_folder_is_refused() {
    let (_parent, config) = folder();
    fs::write(&config.data_dir, "mine").unwrap();
    let error = refusal(&config).await;
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
}

#[tokio::test]
async fn unreadable_store_is_refused_and_left_unchanged() {
    for bytes in [&b""[..], b"redb", &[0; 10_000]] {
        let (_parent, config) = folder();
        fs::create_dir(&config.data_dir).unwrap();
        fs::write(config.data_dir.join("store.redb"), bytes).unwrap();
        let before = content(&config.data_dir);
        let error = refusal(&config).await;
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
        assert_eq!(content(&config.data_dir), before);
    }
}

#[tokio::test]
async fn truncated_store_is_reported_as_damaged() {
    let (_parent, config) = folder();
    drop(open(&config).await.unwrap());
    let path = config.data_dir.join("store.redb");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refusal(&config).await;
    assert!(
        matches!(error, OpenError::Damaged { .. } | OpenError::Store { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn folder_of_newer_version_is_refused_and_left_unchanged() {
    let (_parent, config) = folder();
    drop(open(&config).await.unwrap());
    fs::write(config.data_dir.join("format"), "6\n").unwrap();
    let before = content(&config.data_dir);
    let error = refusal(&config).await;
    assert!(
        matches!(error, OpenError::Newer { found: 6, .. }),
        "{error}"
    );
    assert_eq!(content(&config.data_dir), before);
}

#[tokio::test]
async fn newer_store_is_refused_by_its_format_record() {
    let (_parent, config) = folder();
    let store = open(&config).await.unwrap();
    let rows = store.engine().get(Kind::Meta, &[b"format".to_vec()]).await;
    let version = rows.unwrap().pop().unwrap().unwrap().version;
    let change = Change {
        expect: Expect::Version(version),
        action: Action::Put(7_u32.to_be_bytes().into()),
        ..put(Kind::Meta, b"format")
    };
    store
        .engine()
        .apply(Lane::Admin, vec![change].into())
        .await
        .unwrap();
    drop(store);
    let error = refusal(&config).await;
    assert!(
        matches!(error, OpenError::Newer { found: 7, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn leftovers_of_interrupted_creation_are_replaced() {
    let (_parent, config) = folder();
    fs::create_dir(&config.data_dir).unwrap();
    fs::write(config.data_dir.join("store.redb.new"), [0; 5_000]).unwrap();
    drop(open(&config).await.unwrap());
    assert!(!config.data_dir.join("store.redb.new").exists());
    open(&config).await.unwrap();
}

#[tokio::test]
async fn missing_or_foreign_key_is_reported() {
    let (_parent, config) = folder();
    drop(open(&config).await.unwrap());
    let key_path = config.data_dir.join("secret.key");
    let foreign = format!("1 {}\n", STANDARD.encode([9; 32]));
    for (content, expected) in [
        (Some(foreign.as_str()), "encrypted with key 1"),
        (Some("1 c2hvcnQ=\n"), "line 1"),
        (Some("# nothing\n"), "contains no key"),
        (None, "missing"),
    ] {
        match content {
            Some(content) => fs::write(&key_path, content).unwrap(),
            None => fs::remove_file(&key_path).unwrap(),
        }
        let error = refusal(&config).await;
        assert!(matches!(error, OpenError::Key { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn old_key_can_be_removed_after_rotation() {
    let (_parent, config) = folder();
    let destination = webhook("token", "whsec_1");
    let store = open(&config).await.unwrap();
    insert(&store, &destination).await;
    let mapping = samples::mapping("page");
    insert(&store, &mapping).await;
    drop(store);
    let key_path = config.data_dir.join("secret.key");
    let second = format!("2 {}\n", STANDARD.encode([9; 32]));
    let both = fs::read_to_string(&key_path).unwrap() + &second;
    fs::write(&key_path, both).unwrap();
    drop(open(&config).await.unwrap());
    fs::write(&key_path, second).unwrap();
    let store = open(&config).await.unwrap();
    let found = store.get::<Destination>(destination.key()).await.unwrap();
    assert_eq!(found.unwrap().value, destination);
    let found = store.get::<IntakeMapping>(mapping.key()).await.unwrap();
    assert_eq!(found.unwrap().value, mapping);
}

#[tokio::test]
async fn no_secret_is_stored_in_plain_text() {
    let (_parent, config) = folder();
    let store = open(&config).await.unwrap();
    insert(&store, &webhook("canary-token-1", "whsec_canary-2")).await;
    drop(store);
    for (path, bytes) in content(&config.data_dir) {
        for canary in ["canary-token-1", "canary-2"] {
            let is_found = bytes
                .windows(canary.len())
                .any(|at| at == canary.as_bytes());
            assert!(!is_found, "{canary} is in {}", path.display());
        }
    }
}

#[tokio::test]
async fn free_space_limits_the_accepted_sets() {
    let disk = rustix::fs::statvfs(std::env::temp_dir()).unwrap();
    let free_bytes = disk.f_bavail * disk.f_frsize;
    // The minimum of free space, the change sets that are accepted, and whether events are
    // accepted.
    let all = [DiskShare::AboveFloor, DiskShare::Reserve, DiskShare::All];
    for (floor_bytes, accepted) in [
        (0, &all[..]),
        (2 * free_bytes, &all[1..]),
        (u64::MAX, &all[2..]),
    ] {
        let (_parent, mut config) = folder();
        config.options.free_space_floor_bytes = floor_bytes;
        let store = open(&config).await.unwrap();
        let engine = store.engine();
        assert_eq!(engine.condition().accepts_events(), accepted == all);
        let adding = |space| Change {
            adds: true,
            ..put(Kind::Occurrence, &[space as u8])
        };
        for lane in [Lane::Bulk, Lane::Leader, Lane::Owner] {
            for space in all {
                let set = ChangeSet {
                    space,
                    ..vec![adding(space)].into()
                };
                let applied = engine.apply(lane, set).await;
                let is_full = matches!(applied, Err(EngineError::Full(_)));
                assert_eq!(
                    is_full,
                    !accepted.contains(&space),
                    "{lane:?} {space:?}: {applied:?}"
                );
                let delete = Change {
                    action: Action::Delete,
                    expect: Expect::Any,
                    ..put(Kind::Occurrence, &[space as u8])
                };
                engine.apply(lane, vec![delete].into()).await.unwrap();
            }
        }
        for (lane, change) in [
            (Lane::Bulk, put(Kind::Attempt, b"1")),
            (Lane::Admin, adding(DiskShare::AboveFloor)),
        ] {
            engine.apply(lane, vec![change].into()).await.unwrap();
        }
    }
}

mod conforms_on_a_disk {
    use std::{fs::File, sync::Arc};

    use super::super::{Disk, DiskSpace, Folder};
    use crate::{
        engine::redb::{RedbEngine, Settings},
        testing::conformance,
    };

    conformance!({
        let parent = tempfile::tempdir().unwrap();
        // An engine on an empty file.
        let folder = Arc::new(Folder::claim(parent.path()).unwrap());
        File::create_new(folder.store_path()).unwrap();
        let disk = Disk::for_store(Arc::clone(&folder), DiskSpace::new(&folder, 0));
        let settings = Settings {
            quick_repair_from: 0,
            ..Settings::with_cache(1024 * 1024)
        };
        (RedbEngine::open(Arc::new(disk), settings).unwrap(), parent)
    });
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn folder_or_key_writable_by_others_is_refused() {
    use super::layouts::open_store;
    let (_parent, config) = folder();
    drop(open_store(&config).await.unwrap());
    let (data, key) = (&config.data_dir, config.data_dir.join("secret.key"));
    for (path, wrong, right) in [
        (data, 0o777, 0o700),
        (data, 0o702, 0o700),
        (&key, 0o602, 0o600),
    ] {
        set_mode(path, wrong);
        let refused = refusal(&config).await;
        assert!(matches!(refused, OpenError::Untrusted { .. }), "{refused}");
        assert!(refused.to_string().contains("chmod"), "{refused}");
        set_mode(path, right);
        drop(open_store(&config).await.unwrap());
    }
    // A key file that is readable by its group causes a warning in the log, not an error.
    set_mode(&key, 0o640);
    drop(open_store(&config).await.unwrap());
}

#[tokio::test]
async fn planted_symlink_cannot_redirect_writes() {
    let (parent, config) = folder();
    fs::create_dir(&config.data_dir).unwrap();
    let theirs = parent.path().join("theirs");
    fs::write(&theirs, "untouched").unwrap();
    for name in ["secret.key.new", "format.new", "store.journal.new"] {
        std::os::unix::fs::symlink(&theirs, config.data_dir.join(name)).unwrap();
    }
    drop(open(&config).await.unwrap());
    drop(open(&config).await.unwrap());
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "untouched");
    let log = config.data_dir.join("store.log.0");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&theirs, &log).unwrap();
    drop(open(&config).await.map(drop));
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "untouched");
}

#[tokio::test]
async fn folder_with_a_pipe_is_refused_without_blocking() {
    let (_keep, config) = folder();
    drop(open(&config).await.unwrap());
    let names = [
        "lock",
        "format",
        "store.redb",
        "store.log.0",
        "store.sums",
        "store.journal",
        "secret.key",
        "admin.key",
        "ballast",
        "addresses.json",
        "bellwether.toml",
    ];
    for name in names {
        let path = config.data_dir.join(name);
        let original = fs::read(&path).ok();
        if original.is_some() {
            fs::remove_file(&path).unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let refused = refusal(&config).await.to_string();
        let expected = format!("`{name}` in it is not a regular file");
        assert!(refused.contains(&expected), "{name}: {refused}");
        let read = open_read_only(&config.data_dir, 1024 * 1024).await;
        assert!(read.is_err(), "{name}");
        fs::remove_file(&path).unwrap();
        if let Some(original) = original {
            fs::write(&path, original).unwrap();
        }
    }
    drop(open(&config).await.unwrap());
}

#[test]
fn replaced_file_keeps_owner_and_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.key");
    replace_file(&path, b"first").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    for mode in [0o400, 0o600, 0o640, 0o660] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // Only the superuser can change the owner of a file.
        let is_set = chown(&path, Some(54_321), Some(54_322)).is_ok();
        let before = fs::metadata(&path).unwrap();
        assert_eq!(before.uid() == 54_321, is_set);
        replace_file(&path, format!("{mode:o}").as_bytes()).unwrap();
        let after = fs::metadata(&path).unwrap();
        let of = |it: &fs::Metadata| (it.uid(), it.gid(), it.mode());
        assert_eq!(of(&after), of(&before), "mode {mode:o}");
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{mode:o}"));
    }
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "no other file remains");
}
