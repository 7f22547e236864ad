//! Permissions of files.

use std::{fmt, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

/// Read, write and execute bits of group and others.
const OTHERS: u32 = 0o077;
/// The write bit of others.
const ALL_WRITE: u32 = 0o002;

/// The mode of a file; shown in octal as for `chmod`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode(u32);

impl Mode {
    /// Returns the mode of an open file.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(file.metadata()?.mode() & 0o777))
    }

    /// Returns the mode of the file at a path; `None` if there is none.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self(found.mode() & 0o777))
    }

    pub(crate) fn lets_all_write(self) -> bool {
        self.0 & ALL_WRITE != 0
    }

    /// Whether users other than the owner have any access.
    pub(crate) fn lets_others_in(self) -> bool {
        self.0 & OTHERS != 0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:o}", self.0)
    }
}
