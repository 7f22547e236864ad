//! The folder that a backup is read from: only what is finished and whole is taken for one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    BackupError, Manifest, manifest,
    piece::Content,
    step::Step,
    target::{KEY_FILES, UNFINISHED, names},
};

/// A finished backup.
#[derive(Debug)]
pub struct Source {
    folder: PathBuf,
    manifest: Manifest,
}

impl Source {
    /// Opens a backup by its manifest.
    ///
    /// # Errors
    /// [`BackupError::None`], [`BackupError::Unfinished`], [`BackupError::Newer`] or
    /// [`BackupError::Damaged`]; those of the system.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(manifest::NAME);
        let text = match fs::read_to_string(&path) {
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

    /// Reads every piece and compares it with the manifest. `progress` is told the bytes read.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] with the first piece that is not as it was written; those of the
    /// system.
    pub fn verify(&self, progress: &dyn Fn(u64)) -> Result<(), BackupError> {
        let mut read = 0;
        let mut ends = 0;
        for number in 0..self.manifest.pieces.len() {
            let content = self.piece(number)?;
            for step in content.newest_first() {
                let step = step.ok_or_else(|| self.damaged(number, "holds what cannot be read"))?;
                ends += u32::from(step.end.as_ref() == Some(&self.manifest.end));
            }
            read += self.manifest.pieces[number].bytes;
            progress(read);
        }
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
    /// [`BackupError::Damaged`] when the piece is not as it was written; those of the system.
    pub fn steps(&self, number: usize) -> Result<Vec<Step>, BackupError> {
        let content = self.piece(number)?;
        let steps: Option<_> = content.newest_first().collect();
        steps.ok_or_else(|| self.damaged(number, "holds what cannot be read"))
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
            return Err(self.damaged(number, "is not as it was written"));
        }
        Ok(content)
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
