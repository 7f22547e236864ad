//! The source of a restore: only a finished and intact backup is accepted.

use std::{
    io,
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;

use super::{
    BackupError, Manifest, manifest,
    piece::PieceContent,
    step::Step,
    target::{KEY_FILES, UNFINISHED, piece_names},
};
use crate::{
    open::{KEY_FILE_BYTES_MAX, OpenError, parse_ring},
    seal::Sealer,
};

/// Maximum bytes of a manifest; enough for more pieces than a disk can hold.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Source {
    folder: PathBuf,
    manifest: Manifest,
    verified: Vec<[u8; 32]>,
}

#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// The keys of the service, which authenticate every step.
    Keys(&'a Sealer),
    /// Only the checksums, which can be forged with write access.
    Checksums,
}

impl Source {
    /// Opens a backup by its manifest.
    ///
    /// # Errors
    /// Returns [`BackupError::None`], [`BackupError::Unfinished`], [`BackupError::Newer`] or
    /// [`BackupError::Damaged`], or any I/O error.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(manifest::NAME);
        let read = plain_file::read_no_link(&path, MANIFEST_BYTES_MAX);
        let text = match read.and_then(plain_file::into_text) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_begun = folder.join(UNFINISHED).exists();
                return Err(if is_begun {
                    BackupError::Unfinished(folder.into())
                } else {
                    BackupError::None(folder.into())
                });
            }
            Err(error) => return Err(BackupError::io("read", &path)(error)),
        };
        Ok(Self {
            manifest: Manifest::read(&text, folder)?,
            folder: folder.into(),
            verified: Vec::new(),
        })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the path of a key file in the backup; `None` if it was omitted.
    pub fn key_file(&self, name: &str) -> Option<PathBuf> {
        debug_assert!(KEY_FILES.contains(&name), "no other file is requested");
        Some(self.folder.join(name)).filter(|path| path.exists())
    }

    /// Reads the keys of the backup's service from the named file, or from the one in the backup.
    /// Returns the content and the key ring; `None` if there is neither file.
    ///
    /// # Errors
    /// Returns an error if the file is unreadable or not a key file.
    pub fn read_keys(&self, named: Option<&Path>) -> Result<Option<(Vec<u8>, Sealer)>, OpenError> {
        // A named file may be a symbolic link, as orchestrators create them; a file in the backup
        // may not.
        let (path, content) = match (named, self.key_file(KEY_FILES[0])) {
            (Some(path), _) => (
                path.to_owned(),
                plain_file::read_file(path, KEY_FILE_BYTES_MAX),
            ),
            (None, Some(path)) => {
                let content = plain_file::read_no_link(&path, KEY_FILE_BYTES_MAX);
                (path, content)
            }
            (None, None) => return Ok(None),
        };
        let content = content.map_err(|error| OpenError::io("read", &path, error))?;
        let sealer = parse_ring(&content, &path)?;
        Ok(Some((content, sealer)))
    }

    /// Reads every piece, compares it with the manifest, and verifies the proof of every step.
    /// `progress` is called with the bytes read.
    ///
    /// # Errors
    /// Returns [`BackupError::Damaged`] for the first modified piece, [`BackupError::Unproven`] for
    /// the first one that was not written by the service, or any I/O error.
    pub fn verify(&mut self, trust: Trust<'_>, progress: &dyn Fn(u64)) -> Result<(), BackupError> {
        let mut read = 0;
        let mut ends = 0;
        let mut before = Vec::new();
        let mut verified = Vec::new();
        for number in 0..self.manifest.pieces.len() {
            let content = self.read_piece(number)?;
            verified.push(content.digest());
            for step in content.steps_in_order() {
                let step =
                    step.ok_or_else(|| self.damaged_error(number, "has unreadable content"))?;
                if let Trust::Keys(sealer) = trust
                    && !step.is_proven(&before, sealer)
                {
                    let name = &self.manifest.pieces[number].name;
                    return Err(self.unverified_error(format!(
                        "`{name}` was modified after the backup, or the keys are from another service"
                    )));
                }
                ends += u32::from(step.end.as_ref() == Some(&self.manifest.end));
                before = step.proof;
            }
            read += self.manifest.pieces[number].bytes;
            progress(read);
        }
        self.verified = verified;
        let expected: Vec<_> = self.manifest.pieces.iter().map(|it| &it.name).collect();
        let found = piece_names(&self.folder)?;
        let mut found = found
            .iter()
            .filter(|name| super::piece::is_piece_name(name));
        if let Some(other) = found.find(|name| !expected.contains(name)) {
            let why = format!("`{other}` is not part of it");
            return Err(self.source_error(why));
        }
        if ends == 0 {
            return Err(self.source_error("its last step is missing".into()));
        }
        Ok(())
    }

    pub fn piece_count(&self) -> usize {
        self.manifest.pieces.len()
    }

    /// Returns the steps of a piece in reverse order; pieces are numbered from 0.
    ///
    /// # Errors
    /// Returns [`BackupError::Damaged`] if the piece was modified, or any I/O error.
    pub fn read_steps(&self, number: usize) -> Result<Vec<Step>, BackupError> {
        let content = self.read_piece(number)?;
        let steps: Option<_> = content.steps_newest_first().collect();
        steps.ok_or_else(|| self.damaged_error(number, "has unreadable content"))
    }

    fn read_piece(&self, number: usize) -> Result<PieceContent, BackupError> {
        let expected = &self.manifest.pieces[number];
        let path = self.folder.join(&expected.name);
        let content = match PieceContent::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.damaged_error(number, "is missing"));
            }
            Err(error) => return Err(BackupError::io("read", &path)(error)),
        };
        if !content.is_complete()
            || content.size_and_checksum() != (expected.bytes, expected.checksum)
        {
            return Err(self.damaged_error(number, "was modified"));
        }
        let verified = self.verified.get(number);
        if verified.is_some_and(|verified| content.digest() != *verified) {
            return Err(self.damaged_error(number, "changed while it was read"));
        }
        Ok(content)
    }

    fn unverified_error(&self, why: String) -> BackupError {
        BackupError::Unproven {
            folder: self.folder.clone(),
            why,
        }
    }

    fn damaged_error(&self, number: usize, what: &str) -> BackupError {
        self.source_error(format!("`{}` {what}", self.manifest.pieces[number].name))
    }

    fn source_error(&self, why: String) -> BackupError {
        BackupError::Damaged {
            folder: self.folder.clone(),
            why,
        }
    }
}
