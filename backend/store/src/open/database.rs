//! Opens the store in a database. Serving creates neither tables nor keys there.

mod draft;

pub(crate) use self::draft::DatabaseDraft;

use futures_util::future::BoxFuture;
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use bellwether_process::plain_file;

use super::{
    LocationErrors, OpenError, folder, format, key_check,
    key_file::{Change, first_key, parse_ring, read_text},
    trust::{KEY_FILE_BYTES_MAX, check_key_file},
};
use crate::{
    domain::Secret,
    engine::{
        EngineError,
        postgres::{
            Address, Layout, Node, PostgresEngine, Status, migrate, read_status, running_nodes,
        },
    },
    location::DatabaseConfig,
    record::Store,
    seal::Sealer,
};

const UNFINISHED: &str = "`bellwether store init` did not finish there; run it again";

#[derive(Debug)]
struct DatabaseLocation {
    address: Address,
    key_file: PathBuf,
}

impl DatabaseLocation {
    fn from_config(database: &DatabaseConfig) -> Result<Self, OpenError> {
        let DatabaseConfig {
            url,
            password,
            schema,
            secret_key_file,
            connections,
            require_standby,
            node_name: _,
        } = database;
        let address = Address::parse(url, password.as_ref().map(Secret::reveal), schema);
        let address = address.map_err(|why| OpenError::Database {
            // A malformed address could contain a password, so it is not shown.
            address: "the database".into(),
            why,
        })?;
        Ok(Self {
            address: address
                .with_connections(*connections)
                .with_required_standby(*require_standby),
            key_file: secret_key_file.clone(),
        })
    }

    fn refusal_error(&self, why: impl Into<String>) -> OpenError {
        OpenError::Database {
            address: self.address.to_string(),
            why: why.into(),
        }
    }

    async fn status(&self) -> Result<Status, OpenError> {
        let found = read_status(&self.address).await;
        found.map_err(|source| self.refusal_error(format!("cannot read its status: {source}")))
    }

    fn read_key(&self) -> Result<Option<Sealer>, OpenError> {
        check_key_file(&self.key_file)?;
        match plain_file::read_file(&self.key_file, KEY_FILE_BYTES_MAX) {
            Ok(text) => parse_ring(&text, &self.key_file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::io("read", &self.key_file, error)),
        }
    }

    async fn open(&self, node: &str, sealer: Sealer) -> Result<Store, OpenError> {
        let failed = |doing: &str, source| self.refusal_error(format!("{doing}: {source}"));
        let node = Node::join(&self.address, node).await;
        let node = node.map_err(|source| failed("joining the nodes", source))?;
        let engine = PostgresEngine::open(self.address.clone(), Some(node)).await;
        let engine = engine.map_err(|source| failed("opening its connections", source))?;
        Ok(Store::new(Arc::new(engine), Arc::new(sealer)))
    }
}

impl LocationErrors for DatabaseLocation {
    fn store_error(&self, source: EngineError) -> OpenError {
        self.refusal_error(source.to_string())
    }

    fn key_error(&self, why: String) -> OpenError {
        OpenError::Key {
            file: self.key_file.clone(),
            why,
        }
    }
}

pub(super) async fn open(database: &DatabaseConfig) -> Result<Store, OpenError> {
    let location = DatabaseLocation::from_config(database)?;
    let missing = || {
        location
            .key_error("it is missing; copy the file that `bellwether store init` created".into())
    };
    let sealer = location.read_key()?.ok_or_else(missing)?;
    let found = location.status().await?;
    found.check().map_err(|why| location.refusal_error(why))?;
    if database.require_standby && found.standbys.is_empty() {
        return Err(location.refusal_error(
            "no synchronous standby is configured (synchronous_standby_names is empty), but \
             store.require_standby requires one",
        ));
    }
    if found.replicas > 0 && found.standbys.is_empty() {
        tracing::warn!(
            replicas = found.replicas,
            "no standby is synchronous (synchronous_standby_names is empty): a failover can lose \
             confirmed events and edits"
        );
    }
    let store = location.open(&database.node_name, sealer).await?;
    match check_status(&store, &location).await {
        Ok(()) => Ok(store),
        Err(error) => {
            drop(store.engine().close().await);
            Err(error)
        }
    }
}

async fn check_status(store: &Store, location: &DatabaseLocation) -> Result<(), OpenError> {
    draft::check_schema(store, location).await?;
    let to_error = |source| location.store_error(source);
    let format = format::stored_version(store).await.map_err(to_error)?;
    let format = match format {
        Some(found) if found > format::NEWEST => {
            return Err(location.refusal_error(format!(
                "a later version wrote its records (format {found}, this version reads up to {}); \
                 start that version",
                format::NEWEST
            )));
        }
        Some(found) if found >= format::IN_DATABASE => found,
        _ => return Err(location.refusal_error(UNFINISHED)),
    };
    let checks = key_check::verify_keys(store, store.sealer(), location).await?;
    if checks.is_empty() {
        return Err(location.refusal_error(UNFINISHED));
    }
    if checks.uses_only_newest(store.sealer()) && format == format::NEWEST {
        return Ok(());
    }
    // A node without the new key cannot decrypt data sealed with it, and an earlier version cannot
    // read authenticated records.
    let nodes = store.engine().cluster().nodes().await.map_err(to_error)?;
    if nodes.len() > 1 {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        return Err(location.key_error(format!(
            "another key was added, or an earlier version wrote the store: only one node may \
             encrypt all data again; stop these: {}",
            names.join(", ")
        )));
    }
    key_check::check_keys(store, store.sealer(), location).await?;
    format::ensure_newest_version(store).await.map_err(to_error)
}

/// Opens the store for a command that makes few changes, without joining the nodes that use it.
pub(super) async fn open_without_joining(database: &DatabaseConfig) -> Result<Store, OpenError> {
    let location = DatabaseLocation::from_config(database)?;
    let missing = || location.key_error("it is missing; it is required to change the store".into());
    let sealer = location.read_key()?.ok_or_else(missing)?;
    let found = location.status().await?;
    found.check().map_err(|why| location.refusal_error(why))?;
    let engine = PostgresEngine::open(location.address.clone(), None).await;
    let engine = engine.map_err(|source| location.store_error(source))?;
    let store = Store::new(Arc::new(engine), Arc::new(sealer));
    draft::check_schema(&store, &location).await?;
    let format = format::stored_version(&store).await;
    let format = format.map_err(|source| location.store_error(source))?;
    let checks = key_check::verify_keys(&store, store.sealer(), &location).await?;
    if checks.is_empty() {
        return Err(location.refusal_error(UNFINISHED));
    }
    if format != Some(format::NEWEST) || !checks.uses_only_newest(store.sealer()) {
        return Err(location.refusal_error(
            "another version wrote to the store, or a key was added; start a node of this version first",
        ));
    }
    Ok(store)
}

/// Creates the tables and the key of a store. Completes an interrupted creation.
pub fn create_in_database(database: &DatabaseConfig) -> BoxFuture<'_, Result<Store, OpenError>> {
    Box::pin(async move {
        let location = DatabaseLocation::from_config(database)?;
        let server = location.status().await?;
        server
            .check_database()
            .map_err(|why| location.refusal_error(why))?;
        let (sealer, new_key) = if let Some(sealer) = location.read_key()? {
            (sealer, None)
        } else {
            let (sealer, content) = first_key();
            (sealer, Some(content))
        };
        if server.layout.is_some() {
            Layout::check(server.layout).map_err(|why| location.refusal_error(why))?;
        } else {
            let made = migrate(&location.address).await;
            made.map_err(|source| location.store_error(source))?;
        }
        let store = location.open(&database.node_name, sealer).await?;
        let made = async {
            let to_error = |source| location.store_error(source);
            draft::check_schema(&store, &location).await?;
            if let Some(content) = new_key {
                // With a new key file, the key would be mistaken for the one that sealed an
                // existing store.
                let checks = key_check::verify_keys(&store, store.sealer(), &location).await;
                if !checks.is_ok_and(|checks| checks.is_empty()) {
                    return Err(location.key_error(
                        "the store exists, but its key file is missing; copy it there".into(),
                    ));
                }
                write_new_file(&location.key_file, content.as_bytes())?;
            }
            // The version is written before the key checks: a store without key checks counts as
            // written by this version.
            if format::stored_version(&store)
                .await
                .map_err(to_error)?
                .is_none()
            {
                format::write_version(&store).await.map_err(to_error)?;
            }
            key_check::check_keys(&store, store.sealer(), &location).await?;
            format::ensure_newest_version(&store)
                .await
                .map_err(to_error)
        };
        if let Err(error) = made.await {
            drop(store.engine().close().await);
            return Err(error);
        }
        Ok(store)
    })
}

/// The nodes of other versions that may be running during a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToleratedNodes {
    None,
    /// Nodes that can continue after the migration.
    Continuing,
    /// All nodes. The migration removes those that cannot continue.
    All,
}

/// Upgrades the tables of a store to the newest layout, unless nodes are running that are not
/// tolerated. Returns the previous layout.
pub fn migrate_database(
    database: &DatabaseConfig,
    tolerated: ToleratedNodes,
) -> BoxFuture<'_, Result<Layout, OpenError>> {
    Box::pin(async move {
        let location = DatabaseLocation::from_config(database)?;
        let found = location.status().await?;
        found
            .check_server()
            .map_err(|why| location.refusal_error(why))?;
        let Some(layout) = found.layout else {
            let why = Layout::check(None).err().unwrap_or_default();
            return Err(location.refusal_error(why));
        };
        if layout.version < Layout::NEWEST {
            let running = running_nodes(&location.address).await;
            let running = running.map_err(|source| location.store_error(source))?;
            let names = running.join(", ");
            let refused = match tolerated {
                _ if running.is_empty() => None,
                ToleratedNodes::None => Some("stop them first"),
                ToleratedNodes::Continuing if layout.migration_removes_nodes() => {
                    Some("the migration would remove them; stop them first, or use --force")
                }
                ToleratedNodes::Continuing | ToleratedNodes::All => None,
            };
            if let Some(advice) = refused {
                let why = format!("nodes of another version are running: {names}; {advice}");
                return Err(location.refusal_error(why));
            }
            for name in running {
                tracing::info!(
                    node = name,
                    "a node is using the store during the migration"
                );
            }
            let raised = migrate(&location.address).await;
            raised.map_err(|source| location.store_error(source))?;
        } else {
            Layout::check(Some(layout)).map_err(|why| location.refusal_error(why))?;
        }
        Ok(layout)
    })
}

/// Returns the SQL statements that create the tables of a store or upgrade them to the newest
/// layout.
pub fn database_script(database: &DatabaseConfig) -> BoxFuture<'_, Result<String, OpenError>> {
    Box::pin(async move {
        let location = DatabaseLocation::from_config(database)?;
        let found = location.status().await?.layout;
        if found.is_some_and(|found| found.version >= Layout::NEWEST) {
            return Ok("-- The tables have the newest layout.\n".into());
        }
        let version = found.map_or(0, |found| found.version);
        Ok(location.address.script(version))
    })
}

/// Returns the status of a store without opening it.
pub fn database_status(database: &DatabaseConfig) -> BoxFuture<'_, Result<Status, OpenError>> {
    Box::pin(async move { DatabaseLocation::from_config(database)?.status().await })
}

/// Changes the key file of a store that no node uses. Returns the number of the newest key.
pub(super) async fn change_keys(
    database: &DatabaseConfig,
    change: Change,
) -> Result<u32, OpenError> {
    let location = DatabaseLocation::from_config(database)?;
    let found = location.status().await?;
    found.check().map_err(|why| location.refusal_error(why))?;
    let nodes = found.store.iter().flat_map(|store| &store.nodes);
    let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
    if !names.is_empty() {
        return Err(location.refusal_error(format!(
            "stop the nodes that use it before re-encrypting its secrets: {}",
            names.join(", ")
        )));
    }
    let (number, content) = change(&read_text(&location.key_file)?, &location.key_file)?;
    // Must be durable before the key seals anything; otherwise the sealed data would be lost.
    folder::replace_file(&location.key_file, content.as_bytes())?;
    Ok(number)
}

/// Creates a file that only its owner can read; fails if it exists.
fn write_new_file(path: &Path, content: &[u8]) -> Result<(), OpenError> {
    let written = || {
        let mut file = folder::private_file().create_new(true).open(path)?;
        file.write_all(content)?;
        file.sync_all()?;
        sync_parent_folder(path)
    };
    written().map_err(|error| OpenError::io("write", path, error))
}

/// Syncs the parent folder, so that the name of a new file is durable.
fn sync_parent_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
