//! Who may read a file and write to it.

use std::{fmt, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

/// Others than the owner may read it or write to it.
const OTHERS: u32 = 0o077;
/// Everybody may write to it.
const ALL_WRITE: u32 = 0o002;

/// The mode of a file; shown as `chmod` takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode(u32);

impl Mode {
    /// That of an open file.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(file.metadata()?.mode() & 0o777))
    }

    /// That of the file there, if there is one.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self(found.mode() & 0o777))
    }

    /// Whether everybody may write to it, and so decides what is in it.
    pub(crate) fn lets_all_write(self) -> bool {
        self.0 & ALL_WRITE != 0
    }

    /// Whether others than its owner may read it or write to it.
    pub(crate) fn lets_others_in(self) -> bool {
        self.0 & OTHERS != 0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:o}", self.0)
    }
}
