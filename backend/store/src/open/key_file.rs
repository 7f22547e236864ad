//! The key file: one key per line, preceded by its number.

use std::{
    io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_process::plain_file;

use super::{
    error::OpenError,
    folder::Folder,
    trust::{KEY_FILE_BYTES_MAX, check_key_file},
};
use crate::seal::{KEY_BYTES, Sealer, random_key};

pub(super) const NAME: &str = "secret.key";
const PREFACE: &str = "\
# Keys that encrypt the secrets in the store. Keep a copy elsewhere: without it, they are lost.
# `bellwether secrets rotate` adds a key and encrypts all secrets again; older keys open older backups.
";

#[derive(Debug)]
pub(super) struct KeyFile<'a> {
    folder: &'a Folder,
}

impl<'a> KeyFile<'a> {
    pub(super) fn in_folder(folder: &'a Folder) -> Self {
        Self { folder }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    pub(super) fn read(&self) -> Result<Sealer, OpenError> {
        match self.try_read()? {
            Some(sealer) => Ok(sealer),
            None => {
                Err(self.key_error("it is missing; restore the file that belongs to the store"))
            }
        }
    }

    pub(super) fn read_or_create(&self) -> Result<Sealer, OpenError> {
        if let Some(sealer) = self.try_read()? {
            return Ok(sealer);
        }
        let (sealer, content) = first_key();
        self.folder.write_private(NAME, content.as_bytes())?;
        Ok(sealer)
    }

    pub(super) fn try_read(&self) -> Result<Option<Sealer>, OpenError> {
        let path = self.path();
        let text = read_file(&path)?;
        text.map(|text| parse_ring(&text, &path)).transpose()
    }

    pub(super) fn text(&self) -> Result<String, OpenError> {
        read_text(&self.path())
    }

    pub(super) fn key_error(&self, why: impl Into<String>) -> OpenError {
        key_error(&self.path(), why)
    }
}

/// Changes the content of a key file. Returns the number of the newest key and the new content.
pub(super) type Change = fn(&str, &Path) -> Result<(u32, String), OpenError>;

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, OpenError> {
    check_key_file(path)?;
    match plain_file::read_file(path, KEY_FILE_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::io("read", path, error)),
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, OpenError> {
    let content = read_file(path)?.ok_or_else(|| key_error(path, "it is missing"))?;
    String::from_utf8(content).map_err(|_other| key_error(path, "not valid UTF-8"))
}

/// Appends a new key. Returns its number and the new content.
pub(super) fn append_key(text: &str, file: &Path) -> Result<(u32, String), OpenError> {
    let newest = parse_ring(text.as_bytes(), file)?.newest_number();
    let number = newest.checked_add(1);
    let number = number.ok_or_else(|| key_error(file, "all key numbers are in use"))?;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let key = STANDARD.encode(random_key());
    let content = format!("{text}{end}{number} {key}\n");
    if content.len() as u64 > KEY_FILE_BYTES_MAX {
        return Err(key_error(file, "it is full; drop older keys with --forget"));
    }
    Ok((number, content))
}

pub(super) fn retain_newest(text: &str, file: &Path) -> Result<(u32, String), OpenError> {
    let newest = parse_ring(text.as_bytes(), file)?.newest_number();
    let stays = |line: &&str| match line.trim().split_once(' ') {
        Some((number, _)) if !line.trim_start().starts_with('#') => number == newest.to_string(),
        _ => true,
    };
    let lines: Vec<_> = text.lines().filter(stays).collect();
    Ok((newest, lines.join("\n") + "\n"))
}

pub(super) fn first_key() -> (Sealer, String) {
    let key = random_key();
    let content = format!("{PREFACE}1 {}\n", STANDARD.encode(key));
    (Sealer::new(&[(1, key)]), content)
}

pub(crate) fn parse_ring(content: &[u8], file: &Path) -> Result<Sealer, OpenError> {
    let text = str::from_utf8(content).map_err(|_other| key_error(file, "not valid UTF-8"))?;
    let mut keys: Vec<(u32, [u8; KEY_BYTES])> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = parse_key_line(line);
        let is_new = |number| keys.iter().all(|(other, _)| *other != number);
        match key {
            Some((number, key)) if is_new(number) => keys.push((number, key)),
            // The line may contain a key, so it is not shown.
            _ => {
                let line = index + 1;
                let why = format!(
                    "line {line} is invalid: expected a unique number and {KEY_BYTES} bytes in base64"
                );
                return Err(key_error(file, why));
            }
        }
    }
    if keys.is_empty() {
        return Err(key_error(file, "contains no key"));
    }
    Ok(Sealer::new(&keys))
}

fn key_error(file: &Path, why: impl Into<String>) -> OpenError {
    OpenError::Key {
        file: file.into(),
        why: why.into(),
    }
}

fn parse_key_line(line: &str) -> Option<(u32, [u8; KEY_BYTES])> {
    let (number, key) = line.split_once(' ')?;
    let key = STANDARD.decode(key.trim()).ok()?;
    Some((number.parse().ok()?, key.try_into().ok()?))
}
