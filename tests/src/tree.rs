//! The source tree, for tests of the project's own rules.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the root of the workspace.
///
/// # Panics
/// Panics if this package has no parent folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace is around this package")
}

/// Returns the project's files with this extension, as pairs of relative path and text, sorted by
/// path.
///
/// # Panics
/// Panics if a file cannot be read.
pub fn files(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let at_the_top = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    found.extend(at_the_top.filter(|path| has_ending(path, ending)));
    for folder in ["proto", "backend", "gateway", "tui", "tests", "docs"] {
        walk(&root().join(folder), ending, &mut found);
    }
    found.sort();
    let text = |path: PathBuf| {
        let name = path.strip_prefix(root()).expect("it was found there");
        (
            name.to_string_lossy().into_owned(),
            fs::read_to_string(&path).unwrap(),
        )
    };
    found.into_iter().map(text).collect()
}

fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, ending, found);
        } else if has_ending(&path, ending) {
            found.push(path);
        }
    }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}
