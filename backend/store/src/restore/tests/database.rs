//! Tests of restoring into a database: the store cannot be opened before it is complete.

use std::{fs, path::Path};

use super::{
    NOW_MS, Restore, RestoreError, RestoreReport, Setup, all, back_up, restore, store as filled,
};
use crate::{
    backup::Keys,
    domain::{Delivery, Destination, Occurrence, Secret},
    engine::{Lane, LogPosition},
    location::{DatabaseConfig, Location},
    open,
    open::{DatabaseDraft, create_in_database},
    record::Store,
    samples,
    server::free_schema,
};

/// Returns the location of a database without a store, whose key file is in `folder`.
pub(super) fn database(folder: &Path) -> Option<Location> {
    let (url, password, schema) = free_schema()?;
    let database = DatabaseConfig {
        url,
        password: Some(Secret::new(password)),
        schema,
        node_name: "restores".into(),
        secret_key_file: folder.join("of-database.key"),
        connections: 6,
        require_standby: false,
    };
    Some(Location {
        database: Some(database),
        ..Location::folder("unused")
    })
}

async fn into(config: &Location, setup: &Setup) -> Result<RestoreReport, RestoreError> {
    let from = setup.backup();
    let how = Restore {
        from: &from,
        key_file: None,
        hold_due_by_ms: None,
        now_ms: NOW_MS,
        accept_unproven: false,
    };
    restore(config, &how, &|_, _, _| {}).await
}

fn message_of<T: std::fmt::Debug, E: std::fmt::Display>(result: Result<T, E>) -> String {
    result.map_or_else(|error| error.to_string(), |found| panic!("{found:?}"))
}

#[tokio::test]
async fn backup_is_restored_into_a_database_only_once() {
    let setup = Setup::new();
    let Some(config) = database(setup.folder.path()) else {
        return;
    };
    let old = filled(&setup).await;
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    let restored = into(&config, &setup).await.unwrap();
    assert_eq!((restored.waiting, restored.held), (3, 0));
    let new = open(&config).await.unwrap();
    assert_eq!(all::<Occurrence>(&new).await, all::<Occurrence>(&old).await);
    assert_eq!(all::<Delivery>(&new).await, all::<Delivery>(&old).await);
    let destinations = all::<Destination>(&new).await;
    assert_eq!(destinations, samples::destinations(), "secrets open");
    let head = |store: &Store| {
        let engine = std::sync::Arc::clone(store.engine());
        async move { engine.log_head().await.unwrap() }
    };
    assert!(head(&new).await.steps_since(head(&old).await) > 1 << 40);
    let refused = message_of(into(&config, &setup).await);
    assert!(refused.contains("stop these: restores"), "{refused}");
    new.engine().close().await.unwrap();
    let refused = message_of(into(&config, &setup).await);
    assert!(
        refused.contains("the schema already has a store"),
        "{refused}"
    );
}

#[tokio::test]
async fn interrupted_database_restore_is_unusable_but_restartable() {
    let setup = Setup::new();
    let Some(config) = database(setup.folder.path()) else {
        return;
    };
    let database = config.database.as_ref().unwrap();
    let old = filled(&setup).await;
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    let key = fs::read(setup.keys().join("secret.key")).unwrap();
    let draft = DatabaseDraft::start(database, &key, LogPosition::from_number(77))
        .await
        .unwrap();
    let mut changes = draft.store().new_past_changes();
    changes.insert(&samples::occurrence(1));
    let filled = draft.store().apply(Lane::Bulk, changes).await;
    filled.unwrap();
    let refused = message_of(into(&config, &setup).await);
    assert!(refused.contains("stop these: restores"), "{refused}");
    draft.store().engine().close().await.unwrap();
    drop(draft);

    let refused = message_of(open(&config).await);
    assert!(
        refused.contains("`bellwether restore` was interrupted"),
        "{refused}"
    );
    let refused = message_of(create_in_database(database).await);
    assert!(
        refused.contains("`bellwether restore` was interrupted"),
        "{refused}"
    );
    into(&config, &setup).await.unwrap();
    let new = open(&config).await.unwrap();
    assert_eq!(all::<Occurrence>(&new).await, all::<Occurrence>(&old).await);
}

#[tokio::test]
async fn refused_database_restore_leaves_no_store_or_key() {
    let setup = Setup::new();
    let Some(config) = database(setup.folder.path()) else {
        return;
    };
    let key_file = config.database.as_ref().unwrap().secret_key_file.clone();
    let old = filled(&setup).await;
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    let other = "1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    fs::write(&key_file, other).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let refused = message_of(into(&config, &setup).await);
    assert!(
        refused.contains("keys other than those of the backup"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&key_file).unwrap(), other);
    fs::remove_file(&key_file).unwrap();

    let key = fs::read(setup.keys().join("secret.key")).unwrap();
    let draft = DatabaseDraft::start(
        config.database.as_ref().unwrap(),
        &key,
        LogPosition::from_number(77),
    );
    draft.await.unwrap().discard().await;
    assert!(!key_file.exists(), "it was created for this");
    let refused = message_of(open(&config).await);
    assert!(refused.contains("it is missing"), "{refused}");
    into(&config, &setup).await.unwrap();
}
