//! A store's file on a disk, as the engine's medium.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bellwether_process::plain_file;
use redb::{StorageBackend, backends::FileBackend};

use super::{
    disk_space::DiskSpace,
    folder::{Folder, LOGS, new_file, private_file},
};
use crate::{
    engine::{DiskShare, FreeSpace, redb::Medium},
    limits::STORE_CHECKSUM_BYTES_MAX,
};

pub(super) const CHECKSUMS: &str = "store.sums";

/// File with the checksums of changed blocks.
const JOURNAL: &str = "store.journal";
/// File that identifies the current boot of the system; Linux only.
const RUN: &str = "/proc/sys/kernel/random/boot_id";

/// A store's file on a disk. For the store of a folder, synced data survives a power failure, and
/// written data survives a crash of the process. A new store has no log, so no guarantee applies
/// until it is closed, synced as a whole and read again.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Arc<Folder>,
    space: Option<DiskSpace>,
}

impl Disk {
    pub(super) fn for_store(folder: Arc<Folder>, space: DiskSpace) -> Self {
        let space = Some(space);
        Self { folder, space }
    }

    /// Creates the medium of a new store under a temporary name. The store is synced as a whole
    /// when it is finished, not on every commit.
    pub(super) fn for_draft(folder: Arc<Folder>) -> Self {
        let space = None;
        Self { folder, space }
    }

    fn checksums_path(&self) -> PathBuf {
        self.folder.path().join(CHECKSUMS)
    }

    fn journal_path(&self) -> PathBuf {
        self.folder.path().join(JOURNAL)
    }
}

#[derive(Debug)]
struct DraftFile(Box<dyn StorageBackend>);

impl StorageBackend for DraftFile {
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

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}

/// The log of a new store, which is not durable.
#[derive(Debug, Default)]
struct VolatileLog(AtomicU64);

impl StorageBackend for VolatileLog {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }

    fn read(&self, _offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.fill(0);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.store(length, Ordering::Relaxed);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

fn open_backend(file: fs::File, path: &Path) -> io::Result<Box<dyn StorageBackend>> {
    let file: Box<dyn StorageBackend> = Box::new(FileBackend::new(file).map_err(io::Error::other)?);
    #[cfg(test)]
    let file = Box::new(super::faults::FaultyFile {
        file,
        path: path.into(),
    });
    #[cfg(not(test))]
    let _ = path;
    Ok(file)
}

impl Medium for Disk {
    fn open_log(&self, number: usize) -> io::Result<Box<dyn StorageBackend>> {
        if self.space.is_none() {
            return Ok(Box::new(VolatileLog::default()));
        }
        let path = self.folder.path().join(LOGS[number]);
        let file = private_file().create(true).truncate(false).open(&path)?;
        // Needed for an existing file too: an earlier start may have failed before this sync.
        fs::File::open(self.folder.path())?.sync_all()?;
        open_backend(file, &path)
    }

    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        if self.space.is_some() {
            // The file is never created here: a lost store must not be replaced by an empty one.
            let path = self.folder.store_path();
            return open_backend(private_file().open(&path)?, &path);
        }
        let path = self.folder.unfinished_path();
        let file = private_file().create(true).truncate(false).open(&path)?;
        Ok(Box::new(DraftFile(open_backend(file, &path)?)))
    }

    fn log_name(&self, number: usize) -> String {
        LOGS[number].into()
    }

    fn available_share(&self, bytes_on_way: u64) -> DiskShare {
        let space = self.space.as_ref();
        space.map_or(DiskShare::AboveFloor, |space| {
            space.available_share(bytes_on_way)
        })
    }

    fn is_read_only(&self) -> bool {
        self.space.as_ref().is_some_and(DiskSpace::is_read_only)
    }

    fn free_space(&self, bytes_on_way: u64) -> Option<FreeSpace> {
        self.space.as_ref()?.free_space(bytes_on_way)
    }

    fn release_reserve(&self) -> bool {
        self.space.as_ref().is_some_and(DiskSpace::release_reserve)
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        plain_file::read_file(&self.checksums_path(), STORE_CHECKSUM_BYTES_MAX).ok()
    }

    fn store_checksums(&self, checksums: &[u8]) -> io::Result<()> {
        // The checksums have their own checksum and identify the state they belong to, so a crash
        // here is harmless.
        let file = private_file()
            .create(true)
            .truncate(true)
            .open(self.checksums_path());
        file?.write_all(checksums)
    }

    fn journal(&self) -> Option<Vec<u8>> {
        let journal = plain_file::read_file(&self.journal_path(), STORE_CHECKSUM_BYTES_MAX);
        let mut journal = journal.ok()?;
        let run = fs::read(RUN).ok()?;
        journal
            .starts_with(&run)
            .then(|| journal.split_off(run.len()))
    }

    fn begin_journal(&self, start: &[u8]) -> io::Result<Option<Box<dyn Write + Send + Sync>>> {
        // Data written by a killed process persists until the machine restarts.
        let Some(run) = self.space.as_ref().and_then(|_| fs::read(RUN).ok()) else {
            return Ok(None);
        };
        let unfinished = self.folder.path().join(format!("{JOURNAL}.new"));
        let mut file = new_file(&unfinished)?;
        file.write_all(&run)?;
        file.write_all(start)?;
        fs::rename(unfinished, self.journal_path())?;
        Ok(Some(Box::new(file)))
    }

    fn end_journal(&self) {
        drop(fs::remove_file(self.journal_path()));
    }
}
