//! Reads files that other users could have replaced: only regular files, up to a size, and without
//! blocking.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a file for reading.
///
/// # Errors
///
/// Returns any I/O error, or an error if the path is not a regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_checked(OpenOptions::new().read(true), path, OFlags::empty())
}

/// Opens a file for appending, readable only by its owner; creates it if missing.
pub fn open_for_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    open_checked(&mut options, path, OFlags::empty())
}

/// Reads a file.
///
/// # Errors
///
/// Same as [`open_file`], or if the file is larger than `bytes_max`.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_rest(&open_file(path)?, bytes_max)
}

/// Reads a file like [`read_file`] but does not follow a symbolic link.
///
/// # Errors
///
/// Same as [`read_file`], or if the path is a symbolic link.
pub fn read_no_link(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let opened = open_checked(OpenOptions::new().read(true), path, OFlags::NOFOLLOW);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::LOOP.raw_os_error() => {
            io::Error::other("symbolic link not allowed")
        }
        _ => error,
    })?;
    read_rest(&file, bytes_max)
}

/// Reads a file like [`read_file`] as UTF-8.
///
/// # Errors
///
/// Same as [`read_file`], or if the content is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    into_text(read_file(path, bytes_max)?)
}

/// Reads the rest of an open file.
///
/// # Errors
/// Returns any I/O error, or an error if there are more than `bytes_max` bytes.
pub fn read_rest(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut content)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > bytes_max {
        let message = format!("larger than {bytes_max} bytes");
        return Err(io::Error::other(message));
    }
    Ok(content)
}

pub fn into_text(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|_other| io::Error::other("not valid UTF-8"))
}

fn open_checked(options: &mut OpenOptions, path: &Path, flags: OFlags) -> io::Result<File> {
    // Opening a pipe would block until its other end is opened.
    let flags = flags | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = options.custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;

    fn create_pipe(folder: &Path) -> PathBuf {
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        pipe
    }

    #[test]
    fn special_or_oversized_files_are_rejected_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let other: [PathBuf; 3] = [
            create_pipe(folder.path()),
            folder.path().to_owned(),
            "/dev/zero".into(),
        ];
        for path in other {
            let refused = read_file(&path, 10).unwrap_err();
            assert_eq!(refused.to_string(), "not a regular file", "{path:?}");
            assert!(open_for_append(&path).is_err(), "{path:?}");
        }
        let long = folder.path().join("long");
        fs::write(&long, "12345678901").unwrap();
        let refused = read_file(&long, 10).unwrap_err();
        assert_eq!(refused.to_string(), "larger than 10 bytes");
        assert_eq!(read_text(&long, 11).unwrap().len(), 11);
        fs::write(&long, b"\xff").unwrap();
        assert!(read_text(&long, 11).is_err());
    }

    #[test]
    fn symlinks_are_followed_only_where_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_file(&link, 10).unwrap(), b"text");
        let refused = read_no_link(&link, 10).unwrap_err();
        assert_eq!(refused.to_string(), "symbolic link not allowed");
        assert_eq!(read_no_link(&file, 10).unwrap(), b"text");
    }

    #[test]
    fn created_file_is_accessible_only_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        open_for_append(&log).unwrap();
        assert_eq!(log.metadata().unwrap().permissions().mode() & 0o077, 0);
    }
}
