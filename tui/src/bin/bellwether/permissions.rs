//! File permissions.

use std::{fmt, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

/// Any access of users other than the owner.
const OTHERS: u32 = 0o077;
/// Write access of everybody.
const ALL_WRITE: u32 = 0o002;

/// The permissions of a file; displayed as `chmod` accepts them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permissions(u32);

impl Permissions {
    /// Returns those of an open file.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(file.metadata()?.mode() & 0o777))
    }

    /// Returns those of the file at a path; `None` if there is none.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self(found.mode() & 0o777))
    }

    /// Whether everybody can write to the file.
    pub(crate) fn lets_all_write(self) -> bool {
        self.0 & ALL_WRITE != 0
    }

    /// Whether users other than the owner may read or write the file.
    pub(crate) fn lets_others_in(self) -> bool {
        self.0 & OTHERS != 0
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:o}", self.0)
    }
}
