//! A copy of the store, made before an upgrade of its layout.
//!
//! The copy is itself a data folder, inside the data folder, and the older version can open it. It
//! can be removed if no rollback is needed.

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

const FILES: [&str; 6] = [
    "store.redb",
    LOGS[0],
    LOGS[1],
    CHECKSUMS,
    "format",
    "secret.key",
];

/// Copies the folder's store of this layout, unless there is a copy. An interrupted copy is made
/// again.
pub(super) fn copy_before_upgrade(folder: &Folder, layout: u32) -> Result<(), OpenError> {
    let name = format!("layout-{layout}");
    let copied = folder.path().join(&name);
    if copied.exists() {
        return Ok(());
    }
    let unfinished = folder.path().join(format!("{name}.new"));
    let made = discard_copy(&unfinished)
        .and_then(|()| copy_folder(folder.path(), &unfinished))
        .and_then(|()| fs::rename(&unfinished, &copied));
    if let Err(error) = made {
        // An incomplete copy may occupy the space that was missing.
        drop(discard_copy(&unfinished));
        let action = "copy the older version's store to";
        return Err(OpenError::io(action, copied, error));
    }
    folder.sync()?;
    tracing::info!(
        copied = name,
        "copied unchanged; delete this folder when you no longer need to roll back"
    );
    Ok(())
}

fn discard_copy(unfinished: &Path) -> io::Result<()> {
    match fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for name in FILES {
        let mut file = match plain_file::open_file(&from.join(name)) {
            // A closed store has no log, and a killed one no checksums.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut copy = new_file(&to.join(name))?;
        // `io::copy` does not retry after an interruption; called again, it continues where it
        // stopped.
        while let Err(error) = io::copy(&mut file, &mut copy) {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        copy.sync_all()?;
    }
    File::open(to)?.sync_all()
}
