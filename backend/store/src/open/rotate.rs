//! Gives a store another key: a new one seals and proves everything again, and the older ones
//! continue to open what was sealed with them, such as backups.

use super::{
    OpenError, database,
    folder::Folder,
    key_file::{Change, KeyFile, NAME, append, newest_alone},
    open,
};
use crate::location::Location;
use futures_util::future::BoxFuture;

/// Which key a store is sealed with now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotated {
    /// The number of the new key.
    pub number: u32,
}

/// Adds a key to those of the store, seals and proves everything with it, and with `forget` removes
/// the older ones from the file. No service may have the store meanwhile. When it ends early the
/// store opens with the file as it is, and the next opening finishes.
///
/// # Errors
/// See [`OpenError`].
pub fn rotate_key(config: &Location, forget: bool) -> BoxFuture<'_, Result<Rotated, OpenError>> {
    Box::pin(async move {
        let number = change(config, append).await?;
        let store = open(config).await?;
        let closed = store.engine().close().await;
        // It holds the folder.
        drop(store);
        closed.map_err(|source| {
            let source = std::io::Error::other(source.to_string());
            OpenError::io("close the store in", &config.data_dir, source)
        })?;
        if forget {
            change(config, newest_alone).await?;
        }
        Ok(Rotated { number })
    })
}

/// Changes the content of the key file; answers the number of the newest key in it.
async fn change(config: &Location, change: Change) -> Result<u32, OpenError> {
    if let Some(database) = &config.database {
        return database::change_keys(database, change).await;
    }
    // Taking a folder would make it.
    if !Folder::holds_store(&config.data_dir) {
        return Err(OpenError::Key {
            file: config.data_dir.join(NAME),
            why: "there is no store beside it".into(),
        });
    }
    let folder = Folder::claim(&config.data_dir)?;
    let file = KeyFile::of(&folder);
    let (number, content) = change(&file.text()?, &file.path())?;
    folder.write_private(NAME, content.as_bytes())?;
    folder.sync()?;
    Ok(number)
}
