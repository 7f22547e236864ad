//! The interface to the storage of an engine.

use std::{
    fmt::Debug,
    io::{self, Write},
};

use redb::StorageBackend;

use crate::{change::DiskShare, condition::FreeSpace};

/// The storage of an engine's files.
///
/// Each implementation states what it guarantees for the file and the log: whether synced data
/// survives a power failure, and whether written data survives the process. A commit is as durable
/// as the log, and a closed store is as durable as the file.
///
/// The engine relies on exactly two properties of every disk:
/// - Overwriting a sector of 512 bytes leaves it old or new, and its neighbours unchanged, even on
///   a power failure. Only the header of the tree and the marks of the log are overwritten in
///   place.
/// - A successful sync has written all changes since the last sync of the file. After a failed
///   sync, the content of the pages is unknown: they are written again, elsewhere or after
///   reopening the file, before the next sync is trusted.
pub trait Medium: Debug + Send + Sync + 'static {
    /// Opens the file. It may be reopened once the previous handle is closed.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Opens one of the two log files, which may be empty at first.
    fn open_log(&self, number: usize) -> io::Result<Box<dyn StorageBackend>>;

    fn log_name(&self, number: usize) -> String {
        format!("log {number}")
    }

    /// Returns the share of the free space that sets may use, given the bytes that are still to be
    /// moved from the log into the file.
    fn available_share(&self, _bytes_on_way: u64) -> DiskShare {
        DiskShare::AboveFloor
    }

    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns the free space as used by [`Medium::available_share`], or `None` if it is unknown.
    fn free_space(&self, _bytes_on_way: u64) -> Option<FreeSpace> {
        None
    }

    /// Releases space reserved for a full medium. Returns whether there was any.
    fn release_reserve(&self) -> bool {
        false
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        None
    }

    /// Stores checksums until the file is opened again.
    ///
    /// # Errors
    ///
    /// Returns an error if the medium fails; the file is then scanned when it is next opened.
    fn store_checksums(&self, _checksums: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Returns the most recent checksum journal, or `None` if the machine was restarted since, so
    /// that it may be incomplete.
    fn journal(&self) -> Option<Vec<u8>> {
        None
    }

    /// Starts a checksum journal with these bytes, and returns a writer to extend it, or `None` if
    /// this medium does not support journals.
    ///
    /// # Errors
    ///
    /// Returns an error if the medium fails; the file is then scanned after a crash.
    fn begin_journal(&self, _start: &[u8]) -> io::Result<Option<Box<dyn Write + Send + Sync>>> {
        Ok(None)
    }

    fn end_journal(&self) {}
}
