//! A store in a database that is being restored. It cannot be opened before the restore is
//! finished.

use std::{fs, sync::Arc};

use bellwether_process::plain_file;

use super::{DatabaseLocation, write_new_file};
use crate::{
    engine::{
        Action, Change, EngineError, Expect, Kind, Lane, LogPosition,
        postgres::{Layout, PostgresEngine, clear_tables, migrate},
    },
    location::DatabaseConfig,
    open::{Checks, KEY_FILE_BYTES_MAX, LocationErrors, OpenError, format, key_check},
    record::Store,
    seal::Sealer,
};

/// Key of the marker of a store being restored. It exists from before the first record is written
/// until after the last one.
const MARKER: &[u8] = b"restoring";

#[derive(Debug)]
pub(crate) struct DatabaseDraft {
    location: DatabaseLocation,
    store: Store,
    created_key_file: bool,
}

impl DatabaseDraft {
    /// Begins a restore in a schema without a store, with the content of the key file and the first
    /// position of the change log. The remains of an interrupted restore are removed.
    pub(crate) async fn start(
        database: &DatabaseConfig,
        key: &[u8],
        first_position: LogPosition,
    ) -> Result<Self, OpenError> {
        let location = DatabaseLocation::from_config(database)?;
        let found = location.status().await?;
        found
            .check_server()
            .map_err(|why| location.refusal_error(why))?;
        let nodes = found.store.iter().flat_map(|store| &store.nodes);
        let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            return Err(location.refusal_error(format!("in use; stop these: {names}")));
        }
        if found.layout.is_some() {
            Layout::check(found.layout).map_err(|why| location.refusal_error(why))?;
            reject_existing_store(&location).await?;
        } else {
            let made = migrate(&location.address).await;
            made.map_err(|source| location.store_error(source))?;
        }
        let created_key_file = put_keys(&location, key)?;
        let begun = Self::create(&location, &database.node_name, first_position).await;
        match begun {
            Ok(store) => Ok(Self {
                location,
                store,
                created_key_file,
            }),
            Err(error) => {
                remove_draft(&location, created_key_file).await;
                Err(error)
            }
        }
    }

    async fn create(
        location: &DatabaseLocation,
        node: &str,
        first_position: LogPosition,
    ) -> Result<Store, OpenError> {
        let emptied = clear_tables(&location.address, first_position).await;
        emptied.map_err(|source| location.store_error(source))?;
        let missing = || location.key_error("deleted concurrently".into());
        let sealer = location.read_key()?.ok_or_else(missing)?;
        let store = location.open(node, sealer).await?;
        let put = Action::Put(b"a backup".to_vec());
        let marked = mark_as_draft(&store, Expect::Absent, put).await;
        marked.map_err(|source| location.store_error(source))?;
        Ok(store)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) async fn check_keys(&self) -> Result<Checks, OpenError> {
        key_check::verify_keys(&self.store, self.store.sealer(), &self.location).await
    }

    pub(crate) async fn finish(self) -> Result<(), OpenError> {
        let Self {
            location, store, ..
        } = self;
        let finished = async {
            format::write_version(&store).await?;
            let rows = store.engine().get(Kind::Meta, &[MARKER.into()]).await?;
            let version = rows.into_iter().flatten().next().map(|row| row.version);
            let version = version.unwrap_or_default();
            mark_as_draft(&store, Expect::Version(version), Action::Delete).await
        };
        let finished = finished.await;
        let closed = store.engine().close().await;
        finished
            .and(closed)
            .map_err(|source| location.store_error(source))
    }

    pub(crate) async fn discard(self) {
        let Self {
            location, store, ..
        } = self;
        drop(store.engine().close().await);
        drop(store);
        remove_draft(&location, self.created_key_file).await;
    }
}

pub(super) async fn check_schema(
    store: &Store,
    location: &DatabaseLocation,
) -> Result<(), OpenError> {
    match is_marked_as_draft(store).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(location.refusal_error(
            "a backup is being restored there, or `bellwether restore` was interrupted; rerun it",
        )),
        Err(source) => Err(location.store_error(source)),
    }
}

/// Rejects a schema that contains a store, unless it is empty and incomplete.
async fn reject_existing_store(location: &DatabaseLocation) -> Result<(), OpenError> {
    let to_error = |source| location.store_error(source);
    let engine = PostgresEngine::open(location.address.clone(), None).await;
    let engine = Arc::new(engine.map_err(to_error)?);
    let store = Store::new(engine, Arc::new(Sealer::with_random_key()));
    let is_store = format::stored_version(&store)
        .await
        .map_err(to_error)?
        .is_some();
    if is_store && !is_marked_as_draft(&store).await.map_err(to_error)? {
        return Err(
            location.refusal_error("the schema already has a store; set another with store.schema")
        );
    }
    Ok(())
}

async fn is_marked_as_draft(store: &Store) -> Result<bool, EngineError> {
    let rows = store.engine().get(Kind::Meta, &[MARKER.into()]).await?;
    Ok(rows.iter().any(Option::is_some))
}

async fn mark_as_draft(store: &Store, expect: Expect, action: Action) -> Result<(), EngineError> {
    let change = Change {
        is_logged: false,
        ..Change::new(Kind::Meta, MARKER, expect, action)
    };
    let marked = store.engine().apply(Lane::Admin, vec![change].into());
    marked.await.map(drop)
}

/// Writes the key file for the nodes. Returns whether the file was created.
fn put_keys(location: &DatabaseLocation, key: &[u8]) -> Result<bool, OpenError> {
    if location.read_key()?.is_none() {
        return write_new_file(&location.key_file, key).map(|()| true);
    }
    let there = plain_file::read_file(&location.key_file, KEY_FILE_BYTES_MAX);
    let is_same = there.is_ok_and(|there| there == key);
    let other = || {
        location.key_error(
            "it contains keys other than those of the backup; move it away, or name another file \
             with store.secret_key_file"
                .into(),
        )
    };
    is_same.then_some(false).ok_or_else(other)
}

async fn remove_draft(location: &DatabaseLocation, created_key_file: bool) {
    // If the removal fails, the remains are incomplete, and the next restore removes them.
    drop(clear_tables(&location.address, LogPosition::START).await);
    if created_key_file {
        drop(fs::remove_file(&location.key_file));
    }
}
