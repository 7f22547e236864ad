//! A data folder that is being restored. It cannot be opened before the restore is finished.

use std::{fs, io, path::Path, sync::Arc};

use super::{
    Checks, OpenError, close_and_reopen, disk::Disk, folder::Folder, format, key_check,
    key_file::KeyFile, open_engine,
};
use crate::{
    engine::{LogPosition, redb::Settings},
    record::Store,
    seal::Sealer,
};

/// Name of the file that marks a folder being restored. A service does not know this file, and
/// therefore rejects the folder.
const MARKER: &str = "restore.unfinished";
const KEY: &str = "secret.key";
const ADMIN_KEY: &str = "admin.key";
/// Files allowed in a folder to be restored: the lock, the operator's settings, and `lost+found` of
/// a separate disk.
const EMPTY: [&str; 3] = ["lock", "bellwether.toml", "lost+found"];
const LEFT: [&str; 8] = [
    MARKER,
    "store.redb.new",
    "store.sums",
    "format",
    "format.new",
    KEY,
    "secret.key.new",
    ADMIN_KEY,
];

#[derive(Debug)]
pub(crate) struct Draft {
    folder: Arc<Folder>,
    sealer: Arc<Sealer>,
    cache_bytes: usize,
    store: Store,
}

fn draft_settings(cache_bytes: usize) -> Settings {
    Settings {
        quick_repair_from: u64::MAX,
        ..Settings::with_cache(cache_bytes)
    }
}

impl Draft {
    /// Returns a file that prevents restoring into a folder, if any.
    pub(crate) fn find_obstacle(data_dir: &Path) -> Result<Option<String>, OpenError> {
        let entries = match fs::read_dir(data_dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::io("read", data_dir, error)),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names: Vec<_> = names
            .collect::<io::Result<_>>()
            .map_err(|error| OpenError::io("read", data_dir, error))?;
        let is_begun = names.iter().any(|name| name == MARKER);
        let is_fine = |name: &&str| EMPTY.contains(name) || (is_begun && LEFT.contains(name));
        let mut names = names.iter().map(String::as_str);
        Ok(names.find(|name| !is_fine(name)).map(str::to_owned))
    }

    /// Begins a restore in a folder for which [`Draft::find_obstacle`] found no obstacle, with the
    /// content of the key file and the first position of the change log.
    pub(crate) async fn start(
        data_dir: &Path,
        key: &[u8],
        cache_bytes: usize,
        first_position: LogPosition,
    ) -> Result<Self, OpenError> {
        let folder = Arc::new(Folder::lock_unchecked(data_dir)?);
        folder.write_private(
            MARKER,
            b"A backup is being restored here, or the restore was interrupted.\n",
        )?;
        folder.discard_unfinished()?;
        folder.write_private(KEY, key)?;
        match Self::create(&folder, cache_bytes, first_position).await {
            Ok((sealer, store)) => Ok(Self {
                folder,
                sealer,
                cache_bytes,
                store,
            }),
            Err(error) => {
                remove_files(&folder);
                Err(error)
            }
        }
    }

    async fn create(
        folder: &Arc<Folder>,
        cache_bytes: usize,
        first_position: LogPosition,
    ) -> Result<(Arc<Sealer>, Store), OpenError> {
        let sealer = Arc::new(KeyFile::in_folder(folder).read()?);
        let settings = Settings {
            first_position,
            ..draft_settings(cache_bytes)
        };
        let medium = Disk::for_draft(Arc::clone(folder));
        let store = open_engine(medium, settings, &sealer, folder).await?;
        let written = format::write_version(&store).await;
        written.map_err(|source| folder.write_error(&source))?;
        Ok((sealer, store))
    }

    pub(crate) async fn reopen(&mut self) -> Result<(), OpenError> {
        let store = self.store.empty_copy();
        let store = std::mem::replace(&mut self.store, store);
        self.store =
            close_and_reopen(store, draft_settings(self.cache_bytes), &self.folder).await?;
        format::check_layout_written(&self.store, &self.folder).await
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) async fn check_keys(&self) -> Result<Checks, OpenError> {
        key_check::verify_keys(&self.store, &self.sealer, self.folder.as_ref()).await
    }

    /// Renames the reopened store to its final name. There must be no other references to it.
    pub(crate) fn finish(self, admin_key: Option<&[u8]>) -> Result<(), OpenError> {
        let Self { folder, store, .. } = self;
        drop(store);
        let finish = || {
            if let Some(admin_key) = admin_key {
                folder.write_private(ADMIN_KEY, admin_key)?;
            }
            format::write_file(&folder)?;
            folder.finish()
        };
        if let Err(error) = finish() {
            remove_files(&folder);
            return Err(error);
        }
        // The marker has no meaning next to a store.
        drop(folder.remove(MARKER));
        Ok(())
    }

    pub(crate) fn discard(self) {
        let Self { folder, store, .. } = self;
        drop(store);
        remove_files(&folder);
    }
}

fn remove_files(folder: &Folder) {
    // The marker is removed last, so that an interrupted removal is noticed.
    for name in LEFT.iter().rev() {
        drop(folder.remove(name));
    }
}
