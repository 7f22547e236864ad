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
use crate::store::engine::{DiskRoom, redb::Medium};

/// The checksums of the store's blocks.
pub(super) const CHECKSUMS: &str = "store.sums";

/// A store's file on a disk.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Arc<Folder>,
    /// None for a store that is being made.
    room: Option<Room>,
}

impl Disk {
    /// The store of a folder.
    pub(super) fn store(folder: Arc<Folder>, room: Room) -> Self {
        let room = Some(room);
        Self { folder, room }
    }

    /// A store that is being made, under another name. It is synced as a whole when it is finished,
    /// not with every commit.
    pub(super) fn draft(folder: Arc<Folder>) -> Self {
        let room = None;
        Self { folder, room }
    }

    fn checksums_path(&self) -> PathBuf {
        self.folder.path().join(CHECKSUMS)
    }
}

/// The file of a store that is being made.
#[derive(Debug)]
struct Draft(FileBackend);

impl StorageBackend for Draft {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

impl Medium for Disk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let backend = |file| FileBackend::new(file).map_err(io::Error::other);
        if self.room.is_some() {
            // Never made here: a store that vanished is not an empty one.
            let file = private_file().open(self.folder.store_path())?;
            return Ok(Box::new(backend(file)?));
        }
        let path = self.folder.unfinished_path();
        let file = private_file().create(true).truncate(false).open(path)?;
        Ok(Box::new(Draft(backend(file)?)))
    }

    fn is_short(&self) -> bool {
        self.room.as_ref().is_some_and(Room::is_short)
    }

    fn room(&self) -> Option<DiskRoom> {
        self.room.as_ref().and_then(Room::room)
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
