//! The data folder: whether it is ours, that no one else has it, and where things lie in it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use bellwether_process::plain_file;
use rustix::fs::{Advice, fadvise};

use super::{error::OpenError, trust};
use crate::engine::EngineError;

const STORE: &str = "store.redb";
const UNFINISHED: &str = "store.redb.new";
const LOCK: &str = "lock";
/// A process that was killed, or a child that has not run its program yet, gives up a lock a moment later.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);
/// The folder that a separate disk comes with.
const FOUND: &str = "lost+found";
/// The two files of the log.
pub(super) const LOGS: [&str; 2] = ["store.log.0", "store.log.1"];
/// What every file of redb begins with.
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];
/// Files that may lie in a folder whose store was not made yet: ours, an operator's settings, and
/// what a separate disk comes with.
const OWN: [&str; 12] = [
    LOCK,
    UNFINISHED,
    LOGS[0],
    LOGS[1],
    "store.sums",
    "store.journal",
    "format",
    "secret.key",
    "admin.key",
    "ballast",
    "bellwether.toml",
    FOUND,
];

/// A data folder that is ours as long as this lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked; the system lets go of it when the process ends, however it ends. None for a folder
    /// that is only read and that no service ever had.
    _lock: Option<File>,
}

impl Folder {
    /// Takes a folder, or makes it.
    pub(super) fn claim(path: &Path) -> Result<Self, OpenError> {
        inspect(path)?;
        Self::take(path)
    }

    /// As [`Folder::claim`], whatever is in it: for who has looked.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| OpenError::io("make the data folder", path, error))?;
        trust::check_folder(path)?;
        let store = path.join(STORE);
        trust::check_owner(if store.exists() { &store } else { path })?;
        let lock_path = path.join(LOCK);
        let lock = private_file().create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(|error| OpenError::io("open", &lock_path, error))?;
        obtain(path, || lock.try_lock())?;
        Ok(Self {
            path: path.into(),
            _lock: Some(lock),
        })
    }

    /// Takes a folder that holds a store, to read it and to leave it exactly as it is. Others may
    /// read it too, and no one may write to it.
    pub(super) fn borrow(path: &Path) -> Result<Self, OpenError> {
        inspect(path)?;
        if !path.join(STORE).exists() {
            return Err(OpenError::NoStore(path.into()));
        }
        let lock_path = path.join(LOCK);
        let lock = match plain_file::open(&lock_path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path: path.into(),
                    _lock: None,
                });
            }
            Err(error) => return Err(OpenError::io("open", lock_path, error)),
        };
        obtain(path, || lock.try_lock_shared())?;
        Ok(Self {
            path: path.into(),
            _lock: Some(lock),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn store_path(&self) -> PathBuf {
        self.path.join(STORE)
    }

    pub(super) fn unfinished_path(&self) -> PathBuf {
        self.path.join(UNFINISHED)
    }

    /// Whether there is a store in a folder that no one took yet.
    pub(super) fn holds_store(path: &Path) -> bool {
        path.join(STORE).exists()
    }

    pub(super) fn has_store(&self) -> bool {
        self.store_path().exists()
    }

    /// Checks that a folder without a store never had one: a log is made for one that is whole.
    pub(super) fn check_store_is_not_lost(&self) -> Result<(), OpenError> {
        let mut logs = LOGS.iter().filter(|name| self.path.join(name).exists());
        match logs.next() {
            None => Ok(()),
            Some(log) => Err(OpenError::Incomplete {
                folder: self.path.clone(),
                why: format!("{STORE} is missing beside its log file {log}"),
            }),
        }
    }

    /// Removes what a crash left of making a store, and the log of one that is gone.
    pub(super) fn discard_unfinished(&self) -> Result<(), OpenError> {
        LOGS.iter().try_for_each(|name| self.remove(name))?;
        self.remove(UNFINISHED)
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) -> Result<(), OpenError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OpenError::io("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    /// Has the file of a store that is being made be on disk, so that what is read of it from now on
    /// was read from there.
    pub(super) fn sync_unfinished(&self) -> Result<(), OpenError> {
        let path = self.unfinished_path();
        let synced = File::open(&path).and_then(|file| {
            #[cfg(test)]
            super::faults::call(&path)?;
            file.sync_all()?;
            // A system that keeps it in memory all the same is no reason to stop.
            let _advised = fadvise(&file, 0, None, Advice::DontNeed);
            Ok(())
        });
        synced.map_err(|error| OpenError::io("sync", path, error))
    }

    /// Gives a store that was made whole its name.
    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let (unfinished, path) = (self.unfinished_path(), self.store_path());
        let finish = || {
            #[cfg(test)]
            super::faults::call(&unfinished)?;
            File::open(&unfinished)?.sync_all()?;
            let folder = File::open(&self.path)?;
            // What the store needs beside it is there before the store is.
            folder.sync_all()?;
            fs::rename(&unfinished, &path)?;
            let synced = folder.sync_all();
            if synced.is_err() {
                // What is reported as not made is not there.
                fs::rename(&path, &unfinished)?;
            }
            synced
        };
        finish().map_err(|error| OpenError::io("make", path, error))
    }

    /// Has all names of files be there for good.
    pub(super) fn sync(&self) -> Result<(), OpenError> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| OpenError::io("sync", &self.path, error))
    }

    /// Writes a file that only its owner may read: whole, or not at all. It has its name for good
    /// once the folder is synced.
    pub(super) fn write_private(&self, name: &str, content: &[u8]) -> Result<(), OpenError> {
        write_private(&self.path.join(name), content)
    }

    /// What an error of the engine means for the store's file.
    pub(super) fn fault(&self, source: EngineError) -> OpenError {
        let file = self.store_path();
        match source {
            EngineError::Corrupt(why) => OpenError::Damaged { file, why },
            EngineError::Incomplete(why) => OpenError::Incomplete {
                folder: self.path.clone(),
                why,
            },
            source => OpenError::Store { file, source },
        }
    }

    /// What an error of the engine means for a store that is being made.
    pub(super) fn unwritten(&self, why: &impl ToString) -> OpenError {
        OpenError::Unwritten {
            file: self.store_path(),
            why: why.to_string(),
        }
    }
}

/// Obtains the lock of a folder, or reports that another process has it.
fn obtain(path: &Path, lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), OpenError> {
    let begin = Instant::now();
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_WAIT_MAX => {
                thread::sleep(LOCK_WAIT_MAX / 50);
            }
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.into())),
            Err(TryLockError::Error(error)) => {
                return Err(OpenError::io("lock", path.join(LOCK), error));
            }
        }
    }
}

/// Writes a file, whole or not at all. Only its owner may read it; it keeps the owner and the mode of a file that it
/// replaces. It has its name for good once its folder is synced.
pub(super) fn write_private(path: &Path, content: &[u8]) -> Result<(), OpenError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let failed = |error| OpenError::io("write", path, error);
    let written = new_file(&unfinished).map_err(failed).and_then(|mut file| {
        #[cfg(test)]
        super::faults::call(path).map_err(failed)?;
        trust::keep_owner(&file, path)?;
        file.write_all(content).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&unfinished, path).map_err(failed)
    });
    if written.is_err() {
        // It may hold keys.
        drop(fs::remove_file(&unfinished));
    }
    written
}

/// Writes a file as `write_private` does, and has it have its name for good.
///
/// # Errors
/// [`OpenError::Owner`] where it would have another owner than the one it replaces; those of the system.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), OpenError> {
    write_private(path, content)?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| OpenError::io("write", path, error))
}

/// How to open a file that only its owner may read; a link to elsewhere is not followed.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(trust::no_link());
    options
}

/// Makes such a file; what bears its name, because a crash or another client left it, goes.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => private_file().create_new(true).open(path),
    }
}

/// Looks, without touching anything, whether the folder is ours, empty or not there.
fn inspect(path: &Path) -> Result<(), OpenError> {
    let not_ours = |why: String| OpenError::NotOurs {
        folder: path.into(),
        why,
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(not_ours("it is a file".into()));
        }
        Err(error) => return Err(OpenError::io("read the data folder", path, error)),
    };
    let plain = OWN.iter().filter(|name| **name != FOUND);
    for name in plain.chain(&[STORE, "addresses.json"]) {
        if fs::metadata(path.join(name)).is_ok_and(|found| !found.is_file()) {
            return Err(not_ours(format!("`{name}` in it is not a plain file")));
        }
    }
    let store = path.join(STORE);
    if store.exists() {
        let mut start = [0; MAGIC.len()];
        let read = plain_file::open(&store).and_then(|mut file| file.read_exact(&mut start));
        return match read {
            Ok(()) if start == MAGIC => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(OpenError::io("read", store, error))
            }
            _ => Err(not_ours(format!(
                "`{STORE}` in it is not a store, or is damaged"
            ))),
        };
    }
    for entry in entries {
        let entry = entry.map_err(|error| OpenError::io("read the data folder", path, error))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_expected = OWN.contains(&name.trim_end_matches(".new")) || OWN.contains(&&*name);
        if !is_expected {
            return Err(not_ours(format!("it holds {name:?} and no store")));
        }
    }
    Ok(())
}
