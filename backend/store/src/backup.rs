//! Backups: read from a store in use, written as checksummed pieces to a folder, and restored from
//! there.

mod manifest;
mod piece;
mod reader;
mod source;
mod step;
mod target;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use self::{
    manifest::Manifest,
    reader::Reader,
    source::{Source, Trust},
    step::{BackupEnd, BackupRecord, Step},
    target::{BackupFolder, Keys},
};
use crate::engine::EngineError;

/// The layout of the backups that this version writes, and the newest layout that it can read.
pub const NEWEST: u32 = 2;
const PROVEN: u32 = 2;

/// The reason why a backup cannot be made or read, as a sentence for the caller.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "the unfinished backup is of another store, or its keys were rotated since; use another folder"
    )]
    Foreign,
    /// The change log was trimmed past the position of the backup.
    #[error("the store has changed too much to resume the backup; start a new one")]
    Overtaken,
    #[error("failed to read the store: {0}")]
    Store(#[from] EngineError),
    #[error("{} already contains a finished backup; use a new folder", .0.display())]
    Finished(PathBuf),
    #[error("{} contains {found:?}, which is not part of a backup; use an empty or new folder", .folder.display())]
    NotEmpty { folder: PathBuf, found: String },
    #[error("another process is writing a backup to {}", .0.display())]
    InUse(PathBuf),
    #[error("no backup in {}", .0.display())]
    None(PathBuf),
    #[error("the backup in {} is incomplete; rerun it with the same folder to resume", .0.display())]
    Unfinished(PathBuf),
    #[error("the backup in {} was made by a newer version (layout {found}, this version reads up to {known}); restore it with that version", .folder.display())]
    Newer {
        folder: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("the unfinished backup in {} was started by an earlier version; use another folder", .0.display())]
    Older(PathBuf),
    /// The backup was not written by a service with these keys.
    #[error("the backup in {} was modified: {why}", .folder.display())]
    Unproven { folder: PathBuf, why: String },
    #[error("the backup in {} is damaged: {why}", .folder.display())]
    Damaged { folder: PathBuf, why: String },
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl BackupError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
