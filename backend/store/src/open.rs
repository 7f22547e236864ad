//! Opens the store of a data folder. A folder that is foreign, incomplete or too new is not
//! changed.

mod database;
mod disk;
mod disk_space;
mod draft;
mod error;
#[cfg(test)]
pub(crate) mod faults;
mod folder;
mod format;
mod key_check;
mod key_file;
mod overlay;
mod pre_upgrade_copy;
mod reorder;
mod rotate;
mod trust;

use futures_util::future::BoxFuture;
use std::{path::Path, sync::Arc};

pub(super) use self::{
    database::DatabaseDraft,
    draft::Draft,
    folder::private_file,
    key_check::{Checks, is_key_check, verify_keys},
    key_file::parse_ring,
    trust::KEY_FILE_BYTES_MAX,
};
pub use self::{
    database::{
        ToleratedNodes, create_in_database, database_script, database_status, migrate_database,
    },
    error::OpenError,
    folder::{is_in_use, replace_file},
    rotate::{RotatedKey, rotate_key},
};
use self::{
    disk::Disk, disk_space::DiskSpace, folder::Folder, key_file::KeyFile, overlay::Overlay,
};
use crate::{
    engine::{
        EngineError,
        redb::{Medium, RedbEngine, Settings},
    },
    location::Location,
    record::Store,
    seal::Sealer,
};

pub(super) trait LocationErrors: Sync {
    fn store_error(&self, source: EngineError) -> OpenError;
    fn key_error(&self, why: String) -> OpenError;
}

impl LocationErrors for Folder {
    fn store_error(&self, source: EngineError) -> OpenError {
        Folder::store_error(self, source)
    }

    fn key_error(&self, why: String) -> OpenError {
        KeyFile::in_folder(self).key_error(why)
    }
}

/// Opens the store: in the database if one is configured, otherwise in the data folder. Creates it
/// if missing.
///
/// # Errors
/// Returns an [`OpenError`]. Only after [`OpenError::Io`] can there be an incomplete store, which
/// the next start completes or replaces.
pub fn open(config: &Location) -> BoxFuture<'_, Result<Store, OpenError>> {
    Box::pin(async move {
        if let Some(database) = &config.database {
            return database::open(database).await;
        }
        format::check_file(&config.data_dir)?;
        let folder = Folder::claim(&config.data_dir)?;
        let sealer = Arc::new(if folder.has_store() {
            KeyFile::in_folder(&folder).read()?
        } else {
            KeyFile::in_folder(&folder).read_or_create()?
        });
        let settings = Settings {
            accept_loss: config.options.accept_loss,
            ..Settings::with_cache(config.options.cache_bytes)
        };
        let space = DiskSpace::new(&folder, config.options.free_space_floor_bytes);
        let folder = Arc::new(folder);
        if !folder.has_store() {
            match folder.check_store_is_not_lost() {
                Err(lost) if config.options.accept_loss => {
                    tracing::warn!("{lost}; creating a new store");
                }
                checked => checked?,
            }
            create_file(&folder, settings, &sealer).await?;
        }
        if let Some(older) = format::older_version(&config.data_dir) {
            pre_upgrade_copy::copy_before_upgrade(&folder, older)?;
        }
        // The file is upgraded before there is a log, because an older version would ignore the
        // log.
        format::upgrade_file(&folder)?;
        let medium = Disk::for_store(Arc::clone(&folder), space);
        let store = open_engine(medium, settings, &sealer, &folder).await?;
        format::upgrade_store(&store, &folder).await?;
        key_check::check_keys(&store, &sealer, folder.as_ref()).await?;
        Ok(store)
    })
}

/// Opens a store for a command that makes few changes: a store in a database alongside the nodes
/// that use it, a store in a folder only if no service uses it. Does not create a store.
pub fn open_for_command(config: &Location) -> BoxFuture<'_, Result<Store, OpenError>> {
    Box::pin(async move {
        if let Some(database) = &config.database {
            return database::open_without_joining(database).await;
        }
        // Claiming a folder would create it.
        if !Folder::contains_store(&config.data_dir) {
            return Err(OpenError::NoStore(config.data_dir.clone()));
        }
        open(config).await
    })
}

/// Creates the store's file under a temporary name, so that a crash leaves no incomplete store.
async fn create_file(
    folder: &Arc<Folder>,
    settings: Settings,
    sealer: &Arc<Sealer>,
) -> Result<(), OpenError> {
    folder.discard_unfinished()?;
    let medium = Disk::for_draft(Arc::clone(folder));
    let store = open_engine(medium, settings, sealer, folder).await?;
    let written = format::write_version(&store).await;
    written.map_err(|source| folder.write_error(&source))?;
    key_check::check_keys(&store, sealer, folder.as_ref()).await?;
    let store = close_and_reopen(store, settings, folder).await?;
    format::check_layout_written(&store, folder).await?;
    if verify_keys(&store, sealer, folder.as_ref())
        .await?
        .is_empty()
    {
        return Err(folder.write_error(&"the key check is missing from the file"));
    }
    drop(store);
    format::write_file(folder)?;
    folder.finish()
}

async fn close_and_reopen(
    store: Store,
    settings: Settings,
    folder: &Arc<Folder>,
) -> Result<Store, OpenError> {
    let ended = store.engine().close().await;
    ended.map_err(|source| folder.write_error(&source))?;
    let sealer = store.shared_sealer();
    // The store holds the file open.
    drop(store);
    folder.sync_unfinished()?;
    let medium = Overlay::for_draft(Arc::clone(folder));
    let opened = open_engine(medium, settings, &sealer, folder).await;
    opened.map_err(|error| folder.write_error(&error))
}

/// Opens the store in a data folder without changing any byte of the folder, even if the store was
/// not closed properly. Writes stay in memory.
///
/// # Errors
/// Returns an [`OpenError`]. A missing key is not an error, because most of a store can be
/// read without it.
pub fn open_read_only(
    data_dir: &Path,
    cache_bytes: usize,
) -> BoxFuture<'_, Result<ReadOnlyStore, OpenError>> {
    Box::pin(async move {
        format::check_file(data_dir)?;
        let folder = Arc::new(Folder::lock_shared(data_dir)?);
        let (sealer, mut key_error) = match KeyFile::in_folder(&folder).read() {
            Ok(sealer) => (sealer, None),
            Err(error) => (Sealer::with_random_key(), Some(error)),
        };
        let sealer = Arc::new(sealer);
        let settings = Settings::with_cache(cache_bytes);
        let medium = Overlay::new(Arc::clone(&folder));
        let store = open_engine(medium, settings, &sealer, &folder).await?;
        // An older layout is upgraded in memory.
        format::upgrade_store(&store, &folder).await?;
        if key_error.is_none() {
            key_error = key_check::check_keys(&store, &sealer, folder.as_ref())
                .await
                .err();
        }
        Ok(ReadOnlyStore { store, key_error })
    })
}

#[derive(Debug)]
pub struct ReadOnlyStore {
    pub store: Store,
    /// The reason why secrets cannot be decrypted; `None` if they can.
    pub key_error: Option<OpenError>,
}

async fn open_engine(
    medium: impl Medium,
    settings: Settings,
    sealer: &Arc<Sealer>,
    folder: &Folder,
) -> Result<Store, OpenError> {
    let medium: Arc<dyn Medium> = Arc::new(medium);
    let opening = tokio::task::spawn_blocking(move || RedbEngine::open(medium, settings));
    let engine = opening.await.map_err(|error| {
        let error = std::io::Error::other(error);
        OpenError::io("open", folder.store_path(), error)
    })?;
    let engine = engine.map_err(|source| folder.store_error(source))?;
    Ok(Store::new(Arc::new(engine), Arc::clone(sealer)))
}

#[cfg(test)]
mod layouts;
#[cfg(test)]
mod tests;
