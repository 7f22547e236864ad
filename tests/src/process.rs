//! The real `bellwether` binary as a process: built once, started, observed, stopped.

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{OnceLock, mpsc},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::eventually::eventually_blocking;

const START_MAX: Duration = Duration::from_secs(30);

/// Returns the binary: that of `BELLWETHER_TEST_BINARY`, else built on first use with the profile
/// of the tests.
///
/// # Panics
/// Panics if the binary cannot be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(named) = std::env::var_os("BELLWETHER_TEST_BINARY") {
            return named.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        // Cargo's variables for tests would cause build scripts to run again, and most of the tree
        // to be compiled twice.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"]
                .iter()
                .any(|it| text.starts_with(it))
            {
                build.env_remove(&name);
            }
        }
        build.args(["build", "--bin", "bellwether"]);
        if cfg!(debug_assertions) {
            // Build as `cargo run` does, so that no crate is compiled twice.
            build.arg("--workspace");
        } else {
            build.args(["--package", "bellwether", "--release"]);
        }
        build.args(["--message-format", "json-render-diagnostics"]);
        let output = build.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "the binary does not build");
        let executable = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["target"]["name"] == "bellwether")
            .filter_map(|message| Some(message.get("executable")?.as_str()?.to_owned()))
            .next_back();
        PathBuf::from(executable.expect("cargo names what it has built"))
    })
}

/// Returns a command with arguments, isolated from this machine's settings.
pub fn command<S: AsRef<OsStr>>(home: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
    command_of(binary(), home, arguments)
}

/// Like [`command`], for another binary.
pub fn command_of<S: AsRef<OsStr>>(
    binary: &Path,
    home: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(binary);
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("BELLWETHER_")) {
        command.env_remove(name);
    }
    for folder in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
    ] {
        command.env_remove(folder);
    }
    command.env("HOME", home).args(arguments);
    command
}

/// Runs a command to completion and returns its output.
///
/// # Panics
/// Panics if the command cannot be started.
pub fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

#[derive(Debug)]
pub struct Service {
    child: Child,
    log: PathBuf,
    /// The line in which the service reports that it is ready.
    pub ready: Value,
    /// Time from the start of the process to its ready line.
    pub start_time: Duration,
}

impl Service {
    /// Starts a service and waits for its ready line. Its log lines are appended to `log`.
    ///
    /// # Panics
    /// Panics with the log if the service exits or prints no ready line.
    pub fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file);
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let line = lines.recv_timeout(START_MAX);
        let start_time = start.elapsed();
        let Ok(line) = line else {
            drop(child.kill());
            let log = std::fs::read_to_string(log).unwrap();
            panic!("the service does not start:\n{log}");
        };
        let ready = serde_json::from_str(&line).unwrap();
        Self {
            child,
            log: log.to_owned(),
            ready,
            start_time,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address of a part such as `rest`, without a scheme.
    ///
    /// # Panics
    /// Panics if the service does not run this part.
    pub fn address(&self, part: &str) -> &str {
        let url = self.ready[part].as_str();
        url.unwrap_or_else(|| panic!("{part} does not run: {}", self.ready))
            .trim_start_matches("http://")
    }

    /// Returns the log so far.
    ///
    /// # Panics
    /// Panics if the log cannot be read.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Returns whether it has exited.
    ///
    /// # Panics
    /// Panics if its status is unavailable.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills the service (`kill -9`), as a power failure would.
    ///
    /// # Panics
    /// Panics if the service cannot be killed.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the service (SIGTERM) and waits until it has exited.
    ///
    /// # Panics
    /// Panics if the service does not exit.
    pub fn terminate(mut self) -> ExitStatus {
        if !self.has_ended() {
            signal("-TERM", self.child.id());
        }
        eventually_blocking("the service to end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process.
///
/// # Panics
/// Panics if the process does not exist.
pub fn signal(signal: &str, process: u32) {
    let status = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(status.unwrap().success(), "kill {signal} {process}");
}
