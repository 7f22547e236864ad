//! Backups: read from a store in use, kept as checksummed pieces in a folder, restored from there.

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

/// The layout of backups that this version writes, and the newest that it reads.
pub const NEWEST: u32 = 2;
/// The first layout whose steps are proven by the service.
const PROVEN: u32 = 2;

/// Why a backup is not made or not read, in a sentence for the caller.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A place was reported by another store.
    #[error(
        "the unfinished backup is of another store, or its keys were rotated since; name another folder"
    )]
    Foreign,
    /// The change log no longer reaches back to where the backup was.
    #[error("the store has changed too much since to continue the backup; start a new one")]
    Overtaken,
    /// The store does not answer.
    #[error("the store cannot be read: {0}")]
    Store(#[from] EngineError),
    /// The folder holds a backup already.
    #[error("{} holds a finished backup already; name a new folder", .0.display())]
    Finished(PathBuf),
    /// The folder holds something else.
    #[error("{} holds {found:?}, which is not part of a backup; name an empty or new folder", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// What was found in it.
        found: String,
    },
    /// Another process writes to it.
    #[error("another process makes a backup in {}", .0.display())]
    InUse(PathBuf),
    /// There is no backup.
    #[error("there is no backup in {}", .0.display())]
    None(PathBuf),
    /// The backup was not finished.
    #[error("the backup in {} is incomplete; rerun it into the same folder to resume", .0.display())]
    Unfinished(PathBuf),
    /// A later version wrote it.
    #[error("the backup in {} was made by a newer version (layout {found}, this version reads up to {known}); restore it with that version", .folder.display())]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// The layout found.
        found: u32,
        /// The newest that this version reads.
        known: u32,
    },
    /// An earlier version began it.
    #[error("the unfinished backup in {} was begun by an earlier version; name another folder", .0.display())]
    Older(PathBuf),
    /// It is not what a service of the given keys wrote.
    #[error("the backup in {} was modified: {why}", .folder.display())]
    Unproven {
        /// The folder.
        folder: PathBuf,
        /// What was found.
        why: String,
    },
    /// What was written was changed since.
    #[error("the backup in {} is damaged: {why}", .folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What was found.
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
