//! The code blocks of a document, and a shell that runs them against a service.

use std::{
    fs, iter,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
};

use crate::process;

/// A code block of a document.
#[derive(Debug)]
pub struct CodeBlock {
    /// The text after the opening fence, such as `sh run`.
    pub info: String,
    /// The lines between the fences.
    pub code: String,
}

/// Returns the code blocks of a document, in order.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let block = |text: &str| {
        let (info, code) = text.split_once('\n').unwrap_or((text, ""));
        CodeBlock {
            info: info.trim().to_owned(),
            code: format!("{code}\n"),
        }
    };
    blocks.map(block).collect()
}

/// Runs a bash script in a folder and stops at the first failed command. `bellwether` is the
/// program under test, with this data folder.
///
/// # Panics
/// Panics if bash cannot be started.
pub fn run_script(folder: &Path, data_dir: &Path, script: &str) -> Output {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("bellwether");
    if !program.exists() {
        symlink(process::binary(), program).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = iter::once(bin).chain(std::env::split_paths(&path));
    // Isolate the script from this machine's settings, like all commands of the program.
    let clean = process::command(folder, [""; 0]);
    let mut bash = Command::new("bash");
    for (name, value) in clean.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.args(["-euc", script])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("BELLWETHER_DATA_DIR", data_dir)
        .output()
        .unwrap()
}
