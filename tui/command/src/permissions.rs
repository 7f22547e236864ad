//! File permissions.

use std::{fmt, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

const OTHERS: u32 = 0o077;
const ALL_WRITE: u32 = 0o002;

/// The permission bits of a file; displayed as `chmod` accepts them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permissions(u32);

impl Permissions {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(file.metadata()?.mode() & 0o777))
    }

    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self(found.mode() & 0o777))
    }

    pub(crate) fn is_world_writable(self) -> bool {
        self.0 & ALL_WRITE != 0
    }

    pub(crate) fn is_accessible_to_others(self) -> bool {
        self.0 & OTHERS != 0
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:o}", self.0)
    }
}
