//! A store's file on a disk, as the engine sees it.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use redb::{StorageBackend, backends::FileBackend};

use super::{
    folder::{Folder, private_file},
    room::Room,
};
use crate::store::engine::redb::Medium;

/// The checksums of the store's blocks.
pub(super) const CHECKSUMS: &str = "store.sums";

/// A store's file on a disk.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Arc<Folder>,
    path: PathBuf,
    room: Option<Room>,
}

impl Disk {
    /// The file at that path; without a room, there is room for everything.
    pub(super) fn new(folder: Arc<Folder>, path: PathBuf, room: Option<Room>) -> Self {
        Self { folder, path, room }
    }

    fn checksums_path(&self) -> PathBuf {
        self.folder.path().join(CHECKSUMS)
    }
}

impl Medium for Disk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let file = private_file()
            .create(true)
            .truncate(false)
            .open(&self.path)?;
        let backend = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Box::new(backend))
    }

    fn is_short(&self) -> bool {
        self.room.as_ref().is_some_and(Room::is_short)
    }

    fn release_reserve(&self) -> bool {
        self.room.as_ref().is_some_and(Room::release_reserve)
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        fs::read(self.checksums_path()).ok()
    }

    fn keep_checksums(&self, checksums: &[u8]) -> io::Result<()> {
        // They carry a checksum of their own and name the state they belong to, so a crash here
        // does no harm.
        let file = private_file()
            .create(true)
            .truncate(true)
            .open(self.checksums_path());
        file?.write_all(checksums)
    }
}
