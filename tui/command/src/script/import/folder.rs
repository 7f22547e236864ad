//! JSON files in a folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bellwether_import::File;

use super::read_text;
use crate::failure::Failure;

const FILES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 4;

/// Reads the files with the extension `json`, sorted by path. It is an error if there are none.
pub(super) fn read_folder(folder: &Path) -> Result<Vec<File>, Failure> {
    let mut paths = Vec::new();
    collect_files(folder, 0, &mut paths)?;
    paths.sort();
    if paths.is_empty() {
        let shown = folder.display();
        return Err(Failure::usage_error(format!("{shown} has no .json files")));
    }
    paths.iter().map(|path| read_file(folder, path)).collect()
}

fn read_file(folder: &Path, path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    let content = serde_json::from_str(&read_text(path)?)
        .map_err(|error| Failure::usage_error(format!("{shown} is not JSON: {error}")))?;
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let parent = relative.parent().and_then(Path::file_name);
    let word = parent.or(relative.file_stem());
    Ok(File {
        path: relative.display().to_string(),
        word: word.unwrap_or_default().to_string_lossy().to_lowercase(),
        content,
    })
}

fn collect_files(folder: &Path, depth: usize, into: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let shown = folder.display();
    let unread = |error: io::Error| Failure::usage_error(format!("cannot read {shown}: {error}"));
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden {
            continue;
        }
        if fs::metadata(&path).map_err(unread)?.is_dir() {
            if depth < DEPTH_MAX {
                collect_files(&path, depth + 1, into)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "json") {
            into.push(path);
        }
        if into.len() > FILES_MAX {
            let why = format!("{shown} has more than {FILES_MAX} files");
            return Err(Failure::usage_error(why));
        }
    }
    Ok(())
}
