//! A copy of the store as an older version left it, made before anything in it is changed.
//!
//! It is a separate data folder inside the data folder, which that version opens; remove it if no
//! rollback is needed.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use bellwether_process::plain_file;

use super::{
    disk::CHECKSUMS,
    error::OpenError,
    folder::{Folder, LOGS, new_file},
};

/// What a store is built from.
const FILES: [&str; 6] = [
    "store.redb",
    LOGS[0],
    LOGS[1],
    CHECKSUMS,
    "format",
    "secret.key",
];

/// Keeps a copy of the folder's store, which has this layout, unless there is one. One that was cut
/// off is made again.
pub(super) fn keep(folder: &Folder, layout: u32) -> Result<(), OpenError> {
    let name = format!("layout-{layout}");
    let kept = folder.path().join(&name);
    if kept.exists() {
        return Ok(());
    }
    let unfinished = folder.path().join(format!("{name}.new"));
    let made = discard(&unfinished)
        .and_then(|()| copy(folder.path(), &unfinished))
        .and_then(|()| fs::rename(&unfinished, &kept));
    if let Err(error) = made {
        // What is half a copy takes room that may be what was missing.
        drop(discard(&unfinished));
        let action = "keep a copy of the store of an older version in";
        return Err(OpenError::io(action, kept, error));
    }
    folder.sync()?;
    tracing::info!(
        kept = name,
        "the store is kept as it was; remove this folder when you will not go back"
    );
    Ok(())
}

fn discard(unfinished: &Path) -> io::Result<()> {
    match fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for name in FILES {
        let mut file = match plain_file::open(&from.join(name)) {
            // A store that was closed has no log, and one that was killed no checksums.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut copy = new_file(&to.join(name))?;
        // The system's own copying does not retry, and continues where it was interrupted.
        while let Err(error) = io::copy(&mut file, &mut copy) {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        copy.sync_all()?;
    }
    File::open(to)?.sync_all()
}
