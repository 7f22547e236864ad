//! The reasons why a store is not opened, as sentences for the operator.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::engine::EngineError;

/// The reason why a store is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the folder.
    #[error("the data folder {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// There is no store.
    #[error("there is no store in {}; name a data folder with --data-dir", .0.display())]
    NoStore(PathBuf),
    /// The folder contains other files.
    #[error("{} is not a data folder of Bellwether: {why}; name an empty or new folder", .folder.display())]
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// Description of the files.
        why: String,
    },
    /// A later version wrote the store.
    #[error("the data folder {} was written by a newer version (format {found}, this version reads up to {known}); start that version, or restore a backup made before it", .folder.display())]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// Format of the store.
        found: u32,
        /// Newest format that this version can read.
        known: u32,
    },
    /// Other users can change files that control access.
    #[error("{} cannot be trusted: {why}", .path.display())]
    Untrusted {
        /// The folder or the file.
        path: PathBuf,
        /// Description of the problem and the remedy.
        why: String,
    },
    /// New files would have a different owner than the existing ones.
    #[error("{} is owned by {user}, who could not read files created by the current user; run this as {user}: `sudo -u '{user}' bellwether ...`", .path.display())]
    Owner {
        /// The folder or the file.
        path: PathBuf,
        /// Owner of the existing files.
        user: String,
    },
    /// The keys do not match the store.
    #[error("the key file {} does not match the store: {why}", .file.display())]
    Key {
        /// The key file.
        file: PathBuf,
        /// Description of the problem.
        why: String,
    },
    /// The store is damaged.
    #[error("the store {} is damaged: {why}; restore a backup", .file.display())]
    Damaged {
        /// The store's file.
        file: PathBuf,
        /// Description of the damage.
        why: String,
    },
    /// A part of the store is missing.
    #[error("the store in {} is incomplete: {why}; put the missing files back or restore a backup, or continue without the lost data: `bellwether serve --accept-loss`", .folder.display())]
    Incomplete {
        /// The data folder.
        folder: PathBuf,
        /// The missing part.
        why: String,
    },
    /// The store was not written completely.
    #[error("failed to write the store {}: {why}", .file.display())]
    Unwritten {
        /// The store's file.
        file: PathBuf,
        /// Description of the problem, or the error of the system.
        why: String,
    },
    /// The database is unusable.
    #[error("cannot use the store in {address}: {why}")]
    Database {
        /// URL, without a password.
        address: String,
        /// Description of the problem and the remedy.
        why: String,
    },
    /// An I/O operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The engine failed.
    #[error("cannot open the store {}: {source}", .file.display())]
    Store {
        /// The store's file.
        file: PathBuf,
        /// The error of the engine.
        source: EngineError,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.as_ref().into(),
            source,
        }
    }
}
