//! Why a store is not opened, in sentences for the operator.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::engine::EngineError;

/// Why a store is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data folder {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// There is nothing to read.
    #[error("there is no store in {}; name a data folder with --data-dir", .0.display())]
    NoStore(PathBuf),
    /// The folder holds something else.
    #[error("the data folder {} is not one of Bellwether: {why}; name an empty or new folder", .folder.display())]
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// What is found instead.
        why: String,
    },
    /// A later version wrote it.
    #[error("the data folder {} was written by a newer version (format {found}, this version reads up to {known}); start that version, or restore a backup made before it", .folder.display())]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// Another client may change what decides who gets in.
    #[error("{} cannot be trusted: {why}", .path.display())]
    Untrusted {
        /// The folder or the file.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// What would be written belongs to another user than what is there.
    #[error("{} belongs to the user {user}, whose service could not open what this user writes; run this as {user}: `sudo -u '{user}' bellwether ...`", .path.display())]
    Owner {
        /// The folder or the file.
        path: PathBuf,
        /// Its owner.
        user: String,
    },
    /// The keys do not fit.
    #[error("the key file {} does not fit the store: {why}", .file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What is stored is damaged.
    #[error("the store {} is damaged: {why}; restore a backup", .file.display())]
    Damaged {
        /// The store's file.
        file: PathBuf,
        /// What was found.
        why: String,
    },
    /// A part of it is missing.
    #[error("the store in {} is incomplete: {why}; put back what is missing or restore a backup, or continue without what was in it: `bellwether serve --accept-loss`", .folder.display())]
    Incomplete {
        /// The data folder.
        folder: PathBuf,
        /// What is missing.
        why: String,
    },
    /// It was not written whole.
    #[error("cannot write the store {}: {why}", .file.display())]
    Unwritten {
        /// The store's file.
        file: PathBuf,
        /// What was found, or what the system said.
        why: String,
    },
    /// The database does not let us.
    #[error("cannot use the store in {address}: {why}")]
    Database {
        /// Its address, without a password.
        address: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The system does not let us.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store does not answer.
    #[error("cannot open the store {}: {source}", .file.display())]
    Store {
        /// The store's file.
        file: PathBuf,
        /// What it said.
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
