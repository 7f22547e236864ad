//! Whether a data folder and its files can be relied on: other users with write access decide who
//! is authenticated.

use std::{
    fs::{File, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use bellwether_process::plain_file;
use rustix::{fs::OFlags, process::geteuid};

use super::OpenError;

/// Bytes of a file that holds keys.
pub(crate) const KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Where the names of users are.
const USERS: &str = "/etc/passwd";
const USERS_BYTES_MAX: u64 = 1024 * 1024;

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

/// Checks that what is written beside a file has its owner. The superuser may write anywhere, and what
/// it leaves the service of another user cannot open.
///
/// # Errors
/// [`OpenError::Owner`].
pub(super) fn check_owner(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if geteuid().is_root() && found.uid() != ROOT => {
            Err(owned_by_another(path, found.uid()))
        }
        _ => Ok(()),
    }
}

/// Gives a file that replaces another one the owner and the mode of that one, before it does.
///
/// # Errors
/// [`OpenError::Owner`]; those of the system.
pub(super) fn keep_owner(file: &File, replaced: &Path) -> Result<(), OpenError> {
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
                return Err(owned_by_another(replaced, user));
            }
            changed => changed.map_err(failed)?,
        }
    }
    let mode = Permissions::from_mode(there.mode() & 0o7777);
    file.set_permissions(mode).map_err(failed)
}

fn owned_by_another(path: &Path, user: u32) -> OpenError {
    OpenError::Owner {
        path: path.into(),
        user: user_name(user),
    }
}

/// The name of a user, or its number where there is none.
fn user_name(user: u32) -> String {
    let users = plain_file::read_text(Path::new(USERS), USERS_BYTES_MAX).unwrap_or_default();
    let mut fields = users.lines().map(|line| line.split(':'));
    let name = fields.find_map(|mut line| {
        let name = line.next()?;
        (line.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("#{user}"))
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
