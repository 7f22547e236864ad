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

/// The backup layout of this version, and the newest that it can read.
pub const NEWEST: u32 = 2;
/// The first layout in which steps carry a proof.
const PROVEN: u32 = 2;

/// The reason why a backup cannot be made or read, as a sentence for the caller.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The position belongs to another store.
    #[error(
        "the unfinished backup belongs to another store, or its keys have been rotated since; name another folder"
    )]
    Foreign,
    /// The change log no longer reaches back to the position of the backup.
    #[error("the store has changed too much since to continue the backup; start a new one")]
    Overtaken,
    /// The store failed.
    #[error("failed to read the store: {0}")]
    Store(#[from] EngineError),
    /// The folder already contains a finished backup.
    #[error("{} already contains a finished backup; name a new folder", .0.display())]
    Finished(PathBuf),
    /// The folder contains other files.
    #[error("{} contains {found:?}, which is not part of a backup; name an empty or new folder", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        found: String,
    },
    /// Another process is writing to the folder.
    #[error("another process is writing a backup to {}", .0.display())]
    InUse(PathBuf),
    /// There is no backup.
    #[error("there is no backup in {}", .0.display())]
    None(PathBuf),
    /// The backup is not finished.
    #[error("the backup in {} is incomplete; rerun it into the same folder to resume", .0.display())]
    Unfinished(PathBuf),
    /// A later version wrote the backup.
    #[error("the backup in {} was made by a newer version (layout {found}, this version reads up to {known}); restore it with that version", .folder.display())]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// Layout of the backup.
        found: u32,
        /// Newest layout that this version can read.
        known: u32,
    },
    /// An earlier version began the backup.
    #[error("the unfinished backup in {} was started by an earlier version; name another folder", .0.display())]
    Older(PathBuf),
    /// The backup was not written by a service with these keys.
    #[error("the backup in {} was modified: {why}", .folder.display())]
    Unproven {
        /// The folder.
        folder: PathBuf,
        /// Description of the mismatch.
        why: String,
    },
    /// The files were modified after they were written.
    #[error("the backup in {} is damaged: {why}", .folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// Description of the mismatch.
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
