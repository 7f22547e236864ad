//! The folder that a backup is read from: only what is finished and whole is taken for one.

use std::{
    io,
    path::{Path, PathBuf},
};

use bellwether_process::plain_file;

use super::{
    BackupError, Manifest, manifest,
    piece::Content,
    step::Step,
    target::{KEY_FILES, UNFINISHED, names},
};
use crate::{
    open::{KEY_FILE_BYTES_MAX, OpenError, ring},
    seal::Sealer,
};

/// Bytes of a manifest: more pieces than a disk holds.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A finished backup.
#[derive(Debug)]
pub struct Source {
    folder: PathBuf,
    manifest: Manifest,
    /// What the pieces were when they were verified.
    verified: Vec<[u8; 32]>,
}

/// What is held against a backup.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// The keys of its service, which prove every step.
    Keys(&'a Sealer),
    /// Its checksums alone, which can be forged with write access.
    Checksums,
}

impl Source {
    /// Opens a backup by its manifest.
    ///
    /// # Errors
    /// [`BackupError::None`], [`BackupError::Unfinished`], [`BackupError::Newer`] or
    /// [`BackupError::Damaged`]; those of the system.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(manifest::NAME);
        let read = plain_file::read_no_link(&path, MANIFEST_BYTES_MAX);
        let text = match read.and_then(plain_file::text) {
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

    /// What the backup says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// A key file of the backup; none when it was left out.
    pub fn key_file(&self, name: &str) -> Option<PathBuf> {
        debug_assert!(KEY_FILES.contains(&name), "no other file is asked for");
        Some(self.folder.join(name)).filter(|path| path.exists())
    }

    /// The content of the file with the keys of the backup's service, and its ring: of the named
    /// file, or of the one beside the pieces. None where there is neither.
    ///
    /// # Errors
    /// [`OpenError`] when the file cannot be read or holds something else.
    pub fn keys(&self, named: Option<&Path>) -> Result<Option<(Vec<u8>, Sealer)>, OpenError> {
        // A named file may be a link, as platforms make them; one beside the pieces may not.
        let (path, content) = match (named, self.key_file(KEY_FILES[0])) {
            (Some(path), _) => (path.to_owned(), plain_file::read(path, KEY_FILE_BYTES_MAX)),
            (None, Some(path)) => {
                let content = plain_file::read_no_link(&path, KEY_FILE_BYTES_MAX);
                (path, content)
            }
            (None, None) => return Ok(None),
        };
        let content = content.map_err(|error| OpenError::io("read", &path, error))?;
        let sealer = ring(&content, &path)?;
        Ok(Some((content, sealer)))
    }

    /// Reads every piece, compares it with the manifest, and has every step proven. `progress` is
    /// called with the bytes read.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] with the first piece that was modified,
    /// [`BackupError::Unproven`] with the first that the service did not write so; those of the
    /// system.
    pub fn verify(&mut self, trust: Trust<'_>, progress: &dyn Fn(u64)) -> Result<(), BackupError> {
        let mut read = 0;
        let mut ends = 0;
        let mut before = Vec::new();
        let mut verified = Vec::new();
        for number in 0..self.manifest.pieces.len() {
            let content = self.piece(number)?;
            verified.push(content.digest());
            for step in content.in_order() {
                let step = step.ok_or_else(|| self.damaged(number, "has unreadable content"))?;
                if let Trust::Keys(sealer) = trust
                    && !step.is_proven(&before, sealer)
                {
                    let name = &self.manifest.pieces[number].name;
                    return Err(self.unproven(format!(
                        "`{name}` was changed since, or the keys are not those of the service"
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
        let found = names(&self.folder)?;
        let mut found = found.iter().filter(|name| super::piece::is_name(name));
        if let Some(other) = found.find(|name| !expected.contains(name)) {
            let why = format!("`{other}` is not one of its pieces");
            return Err(self.fault(why));
        }
        if ends == 0 {
            return Err(self.fault("its last step is missing".into()));
        }
        Ok(())
    }

    /// How many pieces there are.
    pub fn piece_count(&self) -> usize {
        self.manifest.pieces.len()
    }

    /// The steps of a piece by its number from 0, the last first.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] when the piece was modified; those of the system.
    pub fn steps(&self, number: usize) -> Result<Vec<Step>, BackupError> {
        let content = self.piece(number)?;
        let steps: Option<_> = content.newest_first().collect();
        steps.ok_or_else(|| self.damaged(number, "has unreadable content"))
    }

    fn piece(&self, number: usize) -> Result<Content, BackupError> {
        let expected = &self.manifest.pieces[number];
        let path = self.folder.join(&expected.name);
        let content = match Content::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.damaged(number, "is missing"));
            }
            Err(error) => return Err(BackupError::io("read", &path)(error)),
        };
        if !content.is_whole() || content.sum() != (expected.bytes, expected.checksum) {
            return Err(self.damaged(number, "was modified"));
        }
        let verified = self.verified.get(number);
        if verified.is_some_and(|verified| content.digest() != *verified) {
            return Err(self.damaged(number, "has changed while it was read"));
        }
        Ok(content)
    }

    fn unproven(&self, why: String) -> BackupError {
        BackupError::Unproven {
            folder: self.folder.clone(),
            why,
        }
    }

    fn damaged(&self, number: usize, what: &str) -> BackupError {
        self.fault(format!("`{}` {what}", self.manifest.pieces[number].name))
    }

    fn fault(&self, why: String) -> BackupError {
        BackupError::Damaged {
            folder: self.folder.clone(),
            why,
        }
    }
}
