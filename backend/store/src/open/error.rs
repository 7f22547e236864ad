//! The reasons why a store is not opened, as sentences for the operator.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::engine::EngineError;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by another process", .0.display())]
    InUse(PathBuf),
    #[error("no store in {}; set the data folder with --data-dir", .0.display())]
    NoStore(PathBuf),
    #[error("{} is not a Bellwether data folder: {why}; use an empty or new folder", .folder.display())]
    NotOurs { folder: PathBuf, why: String },
    #[error("the data folder {} was written by a newer version (format {found}, this version reads up to {known}); start that version, or restore an older backup", .folder.display())]
    Newer {
        folder: PathBuf,
        found: u32,
        known: u32,
    },
    /// Other users can change files that control access.
    #[error("{} cannot be trusted: {why}", .path.display())]
    Untrusted { path: PathBuf, why: String },
    /// New files would have a different owner than the existing ones.
    #[error("{} is owned by {user}, who could not read files created by the current user; run as {user}: `sudo -u '{user}' bellwether ...`", .path.display())]
    Owner { path: PathBuf, user: String },
    #[error("cannot use the key file {}: {why}", .file.display())]
    Key { file: PathBuf, why: String },
    #[error("the store {} is damaged: {why}; restore a backup", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the store in {} is incomplete: {why}; restore the missing files or a backup, or continue without the lost data: `bellwether serve --accept-loss`", .folder.display())]
    Incomplete { folder: PathBuf, why: String },
    #[error("failed to write the store {}: {why}", .file.display())]
    Unwritten { file: PathBuf, why: String },
    #[error("cannot use the store in {address}: {why}")]
    Database {
        /// URL, without a password.
        address: String,
        why: String,
    },
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot open the store {}: {source}", .file.display())]
    Store { file: PathBuf, source: EngineError },
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
