//! What an engine's file lies on, as the engine sees it.

use std::{
    fmt::Debug,
    io::{self, Write},
};

use redb::StorageBackend;

use crate::{change::DiskShare, condition::FreeSpace};

/// What an engine's file lies on.
///
/// Each states what it guarantees of the file and of the log: whether what was synced outlives a loss
/// of power, and whether what was written outlives the process. The engine promises of a commit what
/// the log guarantees, and of a store that was closed what the file does.
///
/// The engine relies on two properties of every disk and on no others:
/// - Overwriting a sector of 512 bytes leaves it old or new, and its neighbours unchanged, also when the
///   power fails. Only the header of the tree and the marks of the log are overwritten in place.
/// - A sync that succeeds has written everything since the last sync of the file. After one that fails,
///   nothing is assumed of the pages: they are written again, elsewhere or after the file was opened again,
///   before the next sync is trusted.
pub trait Medium: Debug + Send + Sync + 'static {
    /// Opens the file. It may be opened again once the last one opened was closed.
    ///
    /// # Errors
    /// Those of the medium.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Opens one of the two files of the log in front of the file. They may be empty at first.
    ///
    /// # Errors
    /// Those of the medium.
    fn open_log(&self, number: usize) -> io::Result<Box<dyn StorageBackend>>;

    /// What a file of the log is called, for people.
    fn log_name(&self, number: usize) -> String {
        format!("log {number}")
    }

    /// Returns which sets that add to the store there is space for, when so many bytes are still on their
    /// way from the log into the file.
    fn left_for(&self, _bytes_on_way: u64) -> DiskShare {
        DiskShare::AboveFloor
    }

    /// Whether the system refuses every write.
    fn is_read_only(&self) -> bool {
        false
    }

    /// How much space there is, as [`Medium::left_for`] sees it; none when it is unknown.
    fn free_space(&self, _bytes_on_way: u64) -> Option<FreeSpace> {
        None
    }

    /// Gives up room that was held back for a full medium; whether there was any.
    fn release_reserve(&self) -> bool {
        false
    }

    /// The checksums that were kept when the file was last closed.
    fn checksums(&self) -> Option<Vec<u8>> {
        None
    }

    /// Keeps checksums until the file is opened again.
    ///
    /// # Errors
    /// Those of the medium; without checksums the file is scanned when it is next opened.
    fn keep_checksums(&self, _checksums: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// The journal of checksums that was begun last, as far as it is sure to be as it was written:
    /// none when the machine was off meanwhile.
    fn journal(&self) -> Option<Vec<u8>> {
        None
    }

    /// Begins a journal of checksums with these bytes; answers what to add further ones to. None
    /// when this medium keeps no journal.
    ///
    /// # Errors
    /// Those of the medium; without a journal the file is scanned after a kill.
    fn begin_journal(&self, _start: &[u8]) -> io::Result<Option<Box<dyn Write + Send + Sync>>> {
        Ok(None)
    }

    /// Removes the journal.
    fn end_journal(&self) {}
}
