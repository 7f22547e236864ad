//! Whether a data folder and its files can be relied on: other users with write access decide who
//! is authenticated.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{fs::OFlags, process::geteuid};

use super::OpenError;

/// Bytes of a file that holds keys.
pub(crate) const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

const ROOT: u32 = 0;
/// Others than the owner may read, write or look into it.
const OTHERS: u32 = 0o077;
/// Everybody may write to it.
const ALL_WRITE: u32 = 0o002;
/// The group may: platforms make volumes so, and what is in it is then as safe as the group.
const GROUP_WRITES: u32 = 0o020;

/// The flag by which a name that is a link to elsewhere is not opened.
pub(super) fn no_link() -> i32 {
    i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Looks whether not everybody may change a data folder, and its owner is who runs this, or root.
///
/// # Errors
/// [`OpenError::Untrusted`]; those of the system.
pub(super) fn check_folder(path: &Path) -> Result<(), OpenError> {
    let folder = File::open(path).and_then(|folder| folder.metadata());
    let found = folder.map_err(|error| OpenError::io("read the data folder", path, error))?;
    check(path, &found, "chmod 700")
}

/// Looks at a file with keys in the same way; the log says when others may read it. One that is not there is not looked at.
///
/// # Errors
/// As [`check_folder`].
pub(super) fn check_key_file(path: &Path) -> Result<(), OpenError> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OpenError::io("read", path, error)),
    };
    check(path, &found, "chmod 600")?;
    if found.mode() & OTHERS != 0 {
        let (file, mode) = (path.display(), found.mode() & 0o777);
        tracing::warn!("others than its owner may read {file} (mode {mode:o}): `chmod 600` it");
    }
    Ok(())
}

fn check(path: &Path, found: &Metadata, remedy: &'static str) -> Result<(), OpenError> {
    let (us, owner) = (geteuid().as_raw(), found.uid());
    let mode = found.mode() & 0o777;
    if mode & GROUP_WRITES != 0 {
        let path = path.display();
        tracing::warn!("the group of {path} may write to it (mode {mode:o}); `{remedy}` it");
    }
    let why = if mode & ALL_WRITE != 0 {
        format!("everybody may write to it (mode {mode:o}); `{remedy}` it")
    } else if owner != us && owner != ROOT && us != ROOT {
        format!("it belongs to user {owner}, and this runs as user {us}; `chown` it")
    } else {
        return Ok(());
    };
    Err(OpenError::Untrusted {
        path: path.into(),
        why,
    })
}
