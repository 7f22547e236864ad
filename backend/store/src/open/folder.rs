//! The data folder: checks that it is usable, locks it, and names its files.

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
/// Timeout for the lock: a killed process, or a child before `exec`, releases it with a delay.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);
const FOUND: &str = "lost+found";
pub(super) const LOGS: [&str; 2] = ["store.log.0", "store.log.1"];
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];
/// Files allowed in a folder without a store: those of the service, the operator's settings, and
/// those of a separate disk.
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

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The lock, which the system releases when the process ends. `None` for a folder that is only
    /// read and was never used by a service.
    _lock: Option<File>,
}

impl Folder {
    /// Locks a folder, creating it if missing.
    pub(super) fn claim(path: &Path) -> Result<Self, OpenError> {
        inspect(path)?;
        Self::lock_unchecked(path)
    }

    /// Locks a folder like [`Folder::claim`] but without checking its files.
    pub(super) fn lock_unchecked(path: &Path) -> Result<Self, OpenError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| OpenError::io("create the data folder", path, error))?;
        trust::check_folder(path)?;
        let store = path.join(STORE);
        trust::check_owner(if store.exists() { &store } else { path })?;
        let lock_path = path.join(LOCK);
        let lock = private_file().create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(|error| OpenError::io("open", &lock_path, error))?;
        acquire_lock(path, || lock.try_lock())?;
        Ok(Self {
            path: path.into(),
            _lock: Some(lock),
        })
    }

    /// Locks a folder with a store for reading, without changing it. Other readers are allowed,
    /// writers are not.
    pub(super) fn lock_shared(path: &Path) -> Result<Self, OpenError> {
        inspect(path)?;
        if !path.join(STORE).exists() {
            return Err(OpenError::NoStore(path.into()));
        }
        let lock_path = path.join(LOCK);
        let lock = match plain_file::open_file(&lock_path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path: path.into(),
                    _lock: None,
                });
            }
            Err(error) => return Err(OpenError::io("open", lock_path, error)),
        };
        acquire_lock(path, || lock.try_lock_shared())?;
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

    pub(super) fn contains_store(path: &Path) -> bool {
        path.join(STORE).exists()
    }

    pub(super) fn has_store(&self) -> bool {
        self.store_path().exists()
    }

    /// Checks that a folder without a store never had one. Logs exist only after a store was
    /// created.
    pub(super) fn check_store_is_not_lost(&self) -> Result<(), OpenError> {
        let mut logs = LOGS.iter().filter(|name| self.path.join(name).exists());
        match logs.next() {
            None => Ok(()),
            Some(log) => Err(OpenError::Incomplete {
                folder: self.path.clone(),
                why: format!("{STORE} is missing, but its log file {log} exists"),
            }),
        }
    }

    /// Removes the files of an interrupted creation, and the log of a deleted store.
    pub(super) fn discard_unfinished(&self) -> Result<(), OpenError> {
        LOGS.iter().try_for_each(|name| self.remove(name))?;
        self.remove(UNFINISHED)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), OpenError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OpenError::io("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    /// Syncs the file of a new store and drops it from the page cache, so that later reads are from
    /// disk.
    pub(super) fn sync_unfinished(&self) -> Result<(), OpenError> {
        let path = self.unfinished_path();
        let synced = File::open(&path).and_then(|file| {
            #[cfg(test)]
            super::faults::call(&path)?;
            file.sync_all()?;
            // This is only advice: a system may ignore it.
            let _advised = fadvise(&file, 0, None, Advice::DontNeed);
            Ok(())
        });
        synced.map_err(|error| OpenError::io("sync", path, error))
    }

    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let (unfinished, path) = (self.unfinished_path(), self.store_path());
        let finish = || {
            #[cfg(test)]
            super::faults::call(&unfinished)?;
            File::open(&unfinished)?.sync_all()?;
            let folder = File::open(&self.path)?;
            // Syncs the names of the other files before the store gets its final name.
            folder.sync_all()?;
            fs::rename(&unfinished, &path)?;
            let synced = folder.sync_all();
            if synced.is_err() {
                // A store whose creation is reported as failed must not remain.
                fs::rename(&path, &unfinished)?;
            }
            synced
        };
        finish().map_err(|error| OpenError::io("make", path, error))
    }

    pub(super) fn sync(&self) -> Result<(), OpenError> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| OpenError::io("sync", &self.path, error))
    }

    /// Atomically writes a file that only its owner can read. Its name is durable only once the
    /// folder has been synced.
    pub(super) fn write_private(&self, name: &str, content: &[u8]) -> Result<(), OpenError> {
        write_private(&self.path.join(name), content)
    }

    pub(super) fn store_error(&self, source: EngineError) -> OpenError {
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

    pub(super) fn write_error(&self, why: &impl ToString) -> OpenError {
        OpenError::Unwritten {
            file: self.store_path(),
            why: why.to_string(),
        }
    }
}

/// Whether a process, such as a service, has locked the folder for writing. False if this user is
/// not allowed to read the lock.
pub fn is_in_use(folder: &Path) -> bool {
    let lock = plain_file::open_file(&folder.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn acquire_lock(path: &Path, lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), OpenError> {
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

/// Atomically writes a file that only its owner can read, retaining owner and mode of an existing
/// file. The name of the file is durable once its folder was synced.
pub(super) fn write_private(path: &Path, content: &[u8]) -> Result<(), OpenError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let failed = |error| OpenError::io("write", path, error);
    let written = new_file(&unfinished).map_err(failed).and_then(|mut file| {
        #[cfg(test)]
        super::faults::call(path).map_err(failed)?;
        trust::copy_owner(&file, path)?;
        file.write_all(content).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&unfinished, path).map_err(failed)
    });
    if written.is_err() {
        // The unfinished file may contain keys.
        drop(fs::remove_file(&unfinished));
    }
    written
}

/// Writes a file like `write_private`, and makes its name durable.
///
/// # Errors
/// Returns [`OpenError::Owner`] if the owner would change, or any I/O error.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), OpenError> {
    write_private(path, content)?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| OpenError::io("write", path, error))
}

/// Returns the options for a file that only its owner can read; symbolic links are not followed.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(trust::no_follow_flag());
    options
}

/// Creates a file that only its owner can read, replacing an existing file.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => private_file().create_new(true).open(path),
    }
}

/// Checks, without changing anything, that a folder is a data folder, empty or missing.
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
            return Err(not_ours(format!("`{name}` in it is not a regular file")));
        }
    }
    let store = path.join(STORE);
    if store.exists() {
        let mut start = [0; MAGIC.len()];
        let read = plain_file::open_file(&store).and_then(|mut file| file.read_exact(&mut start));
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
            return Err(not_ours(format!("contains {name:?} but no store")));
        }
    }
    Ok(())
}
