//! The target folder of a backup: opened or resumed, appended to, and finished.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;

use super::{
    BackupError, Manifest, NEWEST,
    manifest::{self, Piece},
    piece::{self, PieceContent},
    step::{BackupEnd, Step},
};
use crate::{
    limits::BACKUP_PIECE_BYTES,
    open::{KEY_FILE_BYTES_MAX, private_file},
};

/// File that is locked while a backup is made, and removed when the backup is finished.
pub(super) const UNFINISHED: &str = "unfinished";
/// Files with the keys for sealed data and for the first client.
pub(super) const KEY_FILES: [&str; 2] = ["secret.key", "admin.key"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys<'a> {
    /// Includes the keys of this data folder: anyone with the backup can read every secret in it.
    Of(&'a Path),
    /// No keys. The backup is useless without a separate copy of the key.
    LeftOut,
}

#[derive(Debug)]
pub struct BackupFolder {
    folder: PathBuf,
    unfinished: File,
    done: Vec<Piece>,
    open: Option<OpenPiece>,
    place: Option<Vec<u8>>,
}

#[derive(Debug)]
struct OpenPiece {
    file: File,
    name: String,
    bytes: u64,
    checksum: u32,
}

impl BackupFolder {
    /// Opens a new or empty folder, or a folder with an interrupted backup, which is truncated
    /// after the last intact step.
    ///
    /// # Errors
    ///
    /// Returns [`BackupError::Finished`], [`BackupError::NotEmpty`] or [`BackupError::InUse`], or
    /// any I/O error.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(BackupError::io("make", folder))?;
        inspect(folder)?;
        let path = folder.join(UNFINISHED);
        let unfinished = private_file().create(true).truncate(false).open(&path);
        let unfinished = unfinished.map_err(BackupError::io("open", &path))?;
        match unfinished.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::InUse(folder.into())),
            Err(TryLockError::Error(error)) => return Err(BackupError::io("lock", &path)(error)),
        }
        let mut target = Self {
            folder: folder.into(),
            unfinished,
            done: Vec::new(),
            open: None,
            place: None,
        };
        target.resume()?;
        Ok(target)
    }

    /// Returns the position at which the backup continues; `None` at the beginning.
    pub fn resume_position(&self) -> Option<&[u8]> {
        self.place.as_deref()
    }

    pub fn bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |open| open.bytes);
        self.done.iter().map(|piece| piece.bytes).sum::<u64>() + open
    }

    /// Adds a step. It is durable once its piece is full or the backup is finished.
    pub fn add(&mut self, step: Step) -> Result<(), BackupError> {
        self.place = Some(step.place.clone());
        let number = self.done.len() + 1;
        let path = self.folder.join(piece::piece_name(number));
        let add = || {
            let frame = piece::encode_frame(step)?;
            let mut open = match self.open.take() {
                Some(open) => open,
                None => OpenPiece::create(&path, piece::piece_name(number))?,
            };
            open.write(&frame)?;
            if open.bytes >= BACKUP_PIECE_BYTES {
                self.done.push(open.close()?);
            } else {
                self.open = Some(open);
            }
            Ok(())
        };
        add().map_err(BackupError::io("write", &path))
    }

    pub fn restart_backup(&mut self) -> Result<(), BackupError> {
        self.open = None;
        self.place = None;
        self.done.clear();
        self.remove_pieces_from(1)
    }

    /// Finishes the backup: syncs all files to disk, then writes the manifest.
    ///
    /// # Errors
    /// Returns any I/O error; the backup is then unfinished.
    pub fn finish(mut self, end: BackupEnd, keys: Keys<'_>) -> Result<Manifest, BackupError> {
        if let Some(open) = self.open.take() {
            let path = self.folder.join(&open.name);
            self.done
                .push(open.close().map_err(BackupError::io("write", &path))?);
        }
        for name in KEY_FILES {
            let path = self.folder.join(name);
            match keys {
                Keys::Of(data_dir) => copy_key_file(&data_dir.join(name), &path)?,
                Keys::LeftOut => remove_file(&path)?,
            }
        }
        let manifest = Manifest {
            layout: NEWEST,
            end_time: end.time.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            end,
            has_keys: matches!(keys, Keys::Of(_)),
            pieces: std::mem::take(&mut self.done),
        };
        let path = self.folder.join(manifest::NAME);
        let draft = self.folder.join(format!("{}.new", manifest::NAME));
        let write = || {
            let mut file = private_file().create(true).truncate(true).open(&draft)?;
            file.write_all(manifest.write().as_bytes())?;
            file.sync_all()?;
            let folder = File::open(&self.folder)?;
            // The names of the pieces are durable before the manifest lists them.
            folder.sync_all()?;
            fs::rename(&draft, &path)?;
            folder.sync_all()
        };
        if let Err(error) = write() {
            // With a manifest, the backup would count as finished and could not be resumed.
            drop(fs::remove_file(&path));
            return Err(BackupError::io("write", &path)(error));
        }
        // The manifest alone decides whether a backup is finished.
        drop(fs::remove_file(self.folder.join(UNFINISHED)));
        drop(self.unfinished);
        Ok(manifest)
    }

    fn resume(&mut self) -> Result<(), BackupError> {
        loop {
            let number = self.done.len() + 1;
            let path = self.folder.join(piece::piece_name(number));
            let content = match PieceContent::read(&path) {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(BackupError::io("read", &path)(error)),
            };
            let newest = content.steps_newest_first().next().flatten();
            if newest.as_ref().is_some_and(|step| step.proof.is_empty()) {
                return Err(BackupError::Older(self.folder.clone()));
            }
            let place = newest.map(|step| step.place);
            if place.is_some() {
                self.place = place;
            }
            let is_full = content.is_complete() && content.whole_bytes as u64 >= BACKUP_PIECE_BYTES;
            let is_last = !self.folder.join(piece::piece_name(number + 1)).exists();
            if is_full && !is_last {
                // The piece was synced before the next one was begun.
                let (bytes, checksum) = content.size_and_checksum();
                let name = piece::piece_name(number);
                self.done.push(Piece {
                    name,
                    bytes,
                    checksum,
                });
                continue;
            }
            // In the last valid piece, the incomplete part and all data after it are deleted.
            if content.steps_newest_first().next().is_none() {
                return self.remove_pieces_from(number);
            }
            let resumed =
                OpenPiece::resume(&path, piece::piece_name(number), content.complete_steps());
            let resumed = resumed.map_err(BackupError::io("write", &path))?;
            if !is_full {
                self.open = Some(resumed);
                return self.remove_pieces_from(number + 1);
            }
            let closed = resumed.close();
            self.done
                .push(closed.map_err(BackupError::io("write", &path))?);
        }
        self.remove_pieces_from(self.done.len() + 1)
    }

    fn remove_pieces_from(&self, first: usize) -> Result<(), BackupError> {
        for found in piece_names(&self.folder)? {
            if piece::is_piece_name(&found) && found >= piece::piece_name(first) {
                remove_file(&self.folder.join(found))?;
            }
        }
        Ok(())
    }
}

impl OpenPiece {
    fn create(path: &Path, name: String) -> io::Result<Self> {
        let file = private_file().create(true).truncate(true).open(path)?;
        let mut open = Self {
            file,
            name,
            bytes: 0,
            checksum: 0,
        };
        open.write(&piece::HEAD)?;
        Ok(open)
    }

    /// Writes the content of an interrupted piece again: after a failed sync, the next sync does
    /// not write data that was written before the failure.
    fn resume(path: &Path, name: String, content: &[u8]) -> io::Result<Self> {
        let mut open = Self {
            file: private_file().open(path)?,
            name,
            bytes: 0,
            checksum: 0,
        };
        open.write(content)?;
        open.file.set_len(open.bytes)?;
        Ok(open)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        Ok(())
    }

    fn close(self) -> io::Result<Piece> {
        self.file.sync_all()?;
        Ok(Piece {
            name: self.name,
            bytes: self.bytes,
            checksum: self.checksum,
        })
    }
}

fn inspect(folder: &Path) -> Result<(), BackupError> {
    let found = piece_names(folder)?;
    if found.iter().any(|name| name == manifest::NAME) {
        return Err(BackupError::Finished(folder.into()));
    }
    let is_ours = |name: &str| {
        let draft = name.strip_suffix(".new").unwrap_or(name);
        piece::is_piece_name(name)
            || name == UNFINISHED
            || draft == manifest::NAME
            || KEY_FILES.contains(&draft)
    };
    let is_begun = found.iter().any(|name| name == UNFINISHED);
    match found.into_iter().find(|name| !is_begun || !is_ours(name)) {
        None => Ok(()),
        Some(found) => Err(BackupError::NotEmpty {
            folder: folder.into(),
            found,
        }),
    }
}

pub(super) fn piece_names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let read = || {
        let entries = fs::read_dir(folder)?;
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        entries.map(name).collect::<io::Result<Vec<_>>>()
    };
    read().map_err(BackupError::io("read", folder))
}

fn copy_key_file(from: &Path, to: &Path) -> Result<(), BackupError> {
    let key = match plain_file::read_file(from, KEY_FILE_BYTES_MAX) {
        Ok(key) => key,
        // The operator may have removed the first client's key; the store's key is required.
        Err(error) if error.kind() == io::ErrorKind::NotFound && from.ends_with(KEY_FILES[1]) => {
            return Ok(());
        }
        Err(error) => return Err(BackupError::io("read", from)(error)),
    };
    let write = || {
        let mut file = private_file().create(true).truncate(true).open(to)?;
        file.write_all(&key)?;
        file.sync_all()
    };
    write().map_err(BackupError::io("write", to))
}

fn remove_file(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
