//! Key rotation: all data is sealed and authenticated again with a new key. The older keys can
//! still decrypt data that they sealed, such as backups.

use super::{
    OpenError, database,
    folder::Folder,
    key_file::{Change, KeyFile, NAME, append_key, retain_newest},
    open,
};
use crate::location::Location;
use futures_util::future::BoxFuture;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotatedKey {
    pub number: u32,
}

/// Adds a key to the store, and seals and authenticates all data with it. With `forget`, removes
/// the older keys from the file. The store must not be in use by a service. If the rotation is
/// interrupted, opening the store with the unchanged key file completes it.
pub fn rotate_key(config: &Location, forget: bool) -> BoxFuture<'_, Result<RotatedKey, OpenError>> {
    Box::pin(async move {
        let number = change_key_file(config, append_key).await?;
        let store = open(config).await?;
        let closed = store.engine().close().await;
        // The store holds the lock of the folder.
        drop(store);
        closed.map_err(|source| {
            let source = std::io::Error::other(source.to_string());
            OpenError::io("close the store in", &config.data_dir, source)
        })?;
        if forget {
            change_key_file(config, retain_newest).await?;
        }
        Ok(RotatedKey { number })
    })
}

async fn change_key_file(config: &Location, change: Change) -> Result<u32, OpenError> {
    if let Some(database) = &config.database {
        return database::change_keys(database, change).await;
    }
    // Claiming a folder would create it.
    if !Folder::contains_store(&config.data_dir) {
        return Err(OpenError::Key {
            file: config.data_dir.join(NAME),
            why: "no store next to it".into(),
        });
    }
    let folder = Folder::claim(&config.data_dir)?;
    let file = KeyFile::in_folder(&folder);
    let (number, content) = change(&file.text()?, &file.path())?;
    folder.write_private(NAME, content.as_bytes())?;
    folder.sync()?;
    Ok(number)
}
