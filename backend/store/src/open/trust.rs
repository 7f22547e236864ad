//! Checks that other users cannot change a data folder and its files, which control access.

use std::{
    fs::{File, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use bellwether_process::plain_file;
use rustix::{fs::OFlags, process::geteuid};

use super::OpenError;

pub(crate) const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

const USERS: &str = "/etc/passwd";
const USERS_BYTES_MAX: u64 = 1024 * 1024;

const ROOT: u32 = 0;
const OTHERS: u32 = 0o077;
const ALL_WRITE: u32 = 0o002;
/// Write permission of the group. Orchestrators create volumes with this permission, and then the
/// group has to be trusted.
const GROUP_WRITES: u32 = 0o020;

pub(super) fn no_follow_flag() -> i32 {
    i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Checks that a data folder is not world-writable, and that its owner is the current user or root.
pub(super) fn check_folder(path: &Path) -> Result<(), OpenError> {
    let folder = File::open(path).and_then(|folder| folder.metadata());
    let found = folder.map_err(|error| OpenError::io("read the data folder", path, error))?;
    check_metadata(path, &found, "chmod 700")
}

/// Checks a key file in the same way, and logs a warning if other users can read it. A missing file
/// is accepted.
pub(super) fn check_key_file(path: &Path) -> Result<(), OpenError> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OpenError::io("read", path, error)),
    };
    check_metadata(path, &found, "chmod 600")?;
    if found.mode() & OTHERS != 0 {
        let (file, mode) = (path.display(), found.mode() & 0o777);
        tracing::warn!("other users can read {file} (mode {mode:o}); run `chmod 600` on it");
    }
    Ok(())
}

/// Checks that new files get the owner of an existing file. Root can write anywhere, but the
/// service of another user cannot open the files that root creates.
pub(super) fn check_owner(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if geteuid().is_root() && found.uid() != ROOT => {
            Err(wrong_owner_error(path, found.uid()))
        }
        _ => Ok(()),
    }
}

/// Gives a new file the owner and the mode of the file that it replaces.
pub(super) fn copy_owner(file: &File, replaced: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::io("write", replaced, error);
    let there = match std::fs::metadata(replaced) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let new = file.metadata().map_err(failed)?;
    let (user, group) = (there.uid(), there.gid());
    if (new.uid(), new.gid()) != (user, group) {
        match std::os::unix::fs::fchown(file, Some(user), Some(group)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(wrong_owner_error(replaced, user));
            }
            changed => changed.map_err(failed)?,
        }
    }
    let mode = Permissions::from_mode(there.mode() & 0o7777);
    file.set_permissions(mode).map_err(failed)
}

fn wrong_owner_error(path: &Path, user: u32) -> OpenError {
    OpenError::Owner {
        path: path.into(),
        user: user_name(user),
    }
}

fn user_name(user: u32) -> String {
    let users = plain_file::read_text(Path::new(USERS), USERS_BYTES_MAX).unwrap_or_default();
    let mut fields = users.lines().map(|line| line.split(':'));
    let name = fields.find_map(|mut line| {
        let name = line.next()?;
        (line.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("#{user}"))
}

fn check_metadata(path: &Path, found: &Metadata, remedy: &'static str) -> Result<(), OpenError> {
    let (us, owner) = (geteuid().as_raw(), found.uid());
    let mode = found.mode() & 0o777;
    if mode & GROUP_WRITES != 0 {
        let path = path.display();
        tracing::warn!("{path} is group-writable (mode {mode:o}); run `{remedy}` on it");
    }
    let why = if mode & ALL_WRITE != 0 {
        format!("it is world-writable (mode {mode:o}); run `{remedy}` on it")
    } else if owner != us && owner != ROOT && us != ROOT {
        format!("owned by user {owner}, but this process runs as user {us}; run `chown` on it")
    } else {
        return Ok(());
    };
    Err(OpenError::Untrusted {
        path: path.into(),
        why,
    })
}
