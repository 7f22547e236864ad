//! Programs of others that a test runs beside the service, where they are installed.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// The programs, by the names that Debian gives them; none when one is missing, which is reported.
///
/// # Panics
/// When it cannot be said.
pub fn programs<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = names.map(|name| {
        let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
        paths.find(|path| path.is_file())
    });
    if let Some(at) = found.iter().position(Option::is_none) {
        let notice = format!("skipped: no `{}` here; `.ci/run` installs it\n", names[at]);
        // Written past the capture of the test's output: a skipped test is seen.
        std::io::stderr().write_all(notice.as_bytes()).unwrap();
        return None;
    }
    Some(found.map(Option::unwrap))
}

/// Where packages of npm are installed: where it is named, or in `made`, where `.ci/run` does it;
/// none where there are none, which is reported.
///
/// # Panics
/// When it cannot be said.
pub fn packages(made: &Path) -> Option<PathBuf> {
    let named = std::env::var_os("BELLWETHER_TEST_NODE").map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| made.to_owned())
        .join("node_modules");
    if folder.is_dir() {
        return Some(folder);
    }
    let notice = "skipped: no packages of npm here; `.ci/run` installs them\n";
    // Written past the capture of the test's output: a skipped test is seen.
    std::io::stderr().write_all(notice.as_bytes()).unwrap();
    None
}

/// A program that ends with the test.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a program in a folder, which gets its output.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(folder: &Path, program: &Path, arguments: &[String]) -> Self {
        let log = |end: &str| {
            let name = program.file_name().unwrap().to_string_lossy();
            Stdio::from(fs::File::create(folder.join(format!("{name}.{end}"))).unwrap())
        };
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log("out"))
            .stderr(log("err"))
            .spawn();
        Self(child.unwrap())
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A free port; the next user is expected to be the program that it is meant for.
///
/// # Panics
/// When there is none.
pub fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
