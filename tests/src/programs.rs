//! Third-party programs that tests run together with the service, if installed.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    ops::Range,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

/// Returns the programs with these names in Debian; `None`, with a message, if one is missing.
///
/// # Panics
/// Panics if standard error cannot be written.
pub fn programs<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = names.map(|name| {
        let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
        paths.find(|path| path.is_file())
    });
    if let Some(at) = found.iter().position(Option::is_none) {
        let notice = format!("skipped: no `{}` here; `.ci/run` installs it\n", names[at]);
        // Write to standard error directly, so that a skipped test is visible.
        std::io::stderr().write_all(notice.as_bytes()).unwrap();
        return None;
    }
    Some(found.map(Option::unwrap))
}

/// Returns the folder of npm packages: a configured one, or `made`, where `.ci/run` installs them;
/// `None`, with a message, if neither exists.
///
/// # Panics
/// Panics if standard error cannot be written.
pub fn packages(made: &Path) -> Option<PathBuf> {
    let named = std::env::var_os("BELLWETHER_TEST_NODE").map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| made.to_owned())
        .join("node_modules");
    if folder.is_dir() {
        return Some(folder);
    }
    let notice = "skipped: no packages of npm here; `.ci/run` installs them\n";
    // Write to standard error directly, so that a skipped test is visible.
    std::io::stderr().write_all(notice.as_bytes()).unwrap();
    None
}

/// A program that is stopped at the end of the test.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a program in a folder, to which its output is written.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
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

/// Returns a free port for the next program to start. It is below the ports that the system assigns
/// to sockets without one, so that no other socket takes it before the program starts.
///
/// # Panics
/// Panics if no port is free.
pub fn port() -> u16 {
    const PORTS: Range<u16> = 20_000..30_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let next = || PORTS.start + TAKEN.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
    let mut candidates = std::iter::repeat_with(next).take(PORTS.len());
    let free = candidates.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("no port is free")
}
