//! The real console in a pseudo-terminal, with its screen and keyboard input.

use std::{
    io::{Read, Write},
    num::NonZero,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::{eventually::eventually_blocking, process};

type Pty = Box<dyn MasterPty + Send>;

/// A pseudo-terminal that runs the console.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Arc<Mutex<Output>>,
    // Dropping this closes the terminal.
    master: Pty,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Terminal")
    }
}

struct Output {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
    /// The first screen that contained a secret.
    leak: Option<String>,
}

/// The text in every secret that tests use; no frame may contain it.
pub const SECRET: &str = "qzxv";

/// Default columns and rows of the screen.
const SIZE: (u16, u16) = (120, 36);
/// Timeout for the expected text; shorter than that of `eventually`, so that a failure shows the
/// screen.
const SHOWN_WITHIN: Duration = Duration::from_secs(100);
/// Number of identical screens in a row after which drawing counts as finished.
const QUIET_LOOKS: u32 = 10;

fn pty_size((cols, rows): (u16, u16)) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn screen_of((columns, rows): (u16, u16)) -> vt100::Parser {
    let [rows, columns] = [rows, columns].map(|cells| NonZero::new(cells).unwrap());
    vt100::Parser::new(rows, columns, 0)
}

fn spawn(
    size: (u16, u16),
    home: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Box<dyn Child + Send + Sync>, Pty) {
    let pty = native_pty_system().openpty(pty_size(size)).unwrap();
    let mut command = CommandBuilder::new(process::binary());
    command.args(arguments);
    command.env("HOME", home);
    command.env("TERM", "xterm-256color");
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "NO_COLOR",
        "COLORTERM",
        "COLORFGBG",
        "LC_ALL",
        "LC_CTYPE",
        "LANG",
        "KITTY_WINDOW_ID",
        "SSH_CONNECTION",
        "SSH_TTY",
        "STY",
        "TMUX",
    ] {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    for (name, value) in environment {
        command.env(name, value);
    }
    let child = pty.slave.spawn_command(command).unwrap();
    (child, pty.master)
}

/// Starts the binary in a terminal that is closed once the screen shows this text, and returns the
/// exit code.
///
/// # Panics
/// Panics if the binary does not start, show the text and exit.
pub fn run_until_closed(text: &str, home: &Path, arguments: &[&str]) -> u32 {
    let (mut child, pty) = spawn(SIZE, home, arguments, &[]);
    let mut reader = pty.try_clone_reader().unwrap();
    let mut screen = screen_of(SIZE);
    let mut chunk = [0; 4096];
    while !screen.screen().contents().contains(text) {
        let length = reader.read(&mut chunk).unwrap();
        screen.process(&chunk[..length]);
    }
    drop(reader);
    drop(pty);
    let status = eventually_blocking("the console to end", || child.try_wait().unwrap());
    status.exit_code()
}

/// Returns the texts that no frame may contain: the mark of all secrets, and the API key.
fn secrets(arguments: &[&str]) -> Vec<String> {
    let mut pairs = arguments.windows(2);
    let file = pairs.find(|pair| pair[0] == "--key-file");
    let key = file.and_then(|pair| std::fs::read_to_string(pair[1]).ok());
    let key = key.map(|key| key.trim().to_owned());
    let all = key.into_iter().chain([SECRET.to_owned()]);
    all.filter(|it| !it.is_empty()).collect()
}

impl Terminal {
    /// Asserts that no frame so far contained a secret.
    ///
    /// # Panics
    /// Panics with the first frame that contained a secret.
    pub fn assert_no_secrets(&self) {
        let leak = self.output.lock().unwrap().leak.take();
        assert!(
            leak.is_none(),
            "a secret is drawn:\n{}",
            leak.unwrap_or_default()
        );
    }

    /// Starts the binary with these arguments in a terminal of 120 by 36.
    ///
    /// # Panics
    /// Panics if the terminal cannot be opened or the binary does not start.
    pub fn start(home: &Path, arguments: &[&str]) -> Self {
        Self::with_environment(home, arguments, &[])
    }

    /// Like [`Terminal::start`], with additional environment variables.
    ///
    /// # Panics
    /// Panics like [`Terminal::start`].
    pub fn with_environment(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::of_size(SIZE, home, arguments, environment)
    }

    /// Like [`Terminal::with_environment`], with this many columns and rows.
    ///
    /// # Panics
    /// Panics like [`Terminal::start`].
    pub fn of_size(
        size: (u16, u16),
        home: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let (child, pty) = spawn(size, home, arguments, environment);
        let keys = pty.take_writer().unwrap();
        let mut reader = pty.try_clone_reader().unwrap();
        let screen = screen_of(size);
        let output = Arc::new(Mutex::new(Output {
            screen,
            bytes: Vec::new(),
            ended: false,
            leak: None,
        }));
        let shared = Arc::clone(&output);
        let secrets = secrets(arguments);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                let mut output = shared.lock().unwrap();
                output.screen.process(&chunk[..length]);
                output.bytes.extend_from_slice(&chunk[..length]);
                let shown = output.screen.screen().contents();
                let joined: String = shown.split_whitespace().collect();
                if secrets.iter().any(|secret| joined.contains(secret)) {
                    output.leak.get_or_insert(shown);
                }
            }
            shared.lock().unwrap().ended = true;
        });
        Self {
            child,
            keys,
            output,
            master: pty,
        }
    }

    /// Returns the contents of the screen.
    ///
    /// # Panics
    /// Panics if the reader thread panicked.
    pub fn screen(&self) -> String {
        self.output.lock().unwrap().screen.screen().contents()
    }

    /// Returns the row and the column of the cursor; `None` if it is hidden.
    ///
    /// # Panics
    /// Panics if the reader thread panicked.
    pub fn cursor(&self) -> Option<(u16, u16)> {
        let output = self.output.lock().unwrap();
        let screen = output.screen.screen();
        (!screen.hide_cursor()).then(|| screen.cursor_position())
    }

    /// Returns all output so far, including control sequences.
    ///
    /// # Panics
    /// Panics if the reader thread panicked.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap().bytes).into_owned()
    }

    /// Sends keyboard input: text, or control characters such as `\r` and `\x1b`.
    ///
    /// # Panics
    /// Panics if the terminal is closed.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen shows all of these strings, and returns its contents.
    ///
    /// # Panics
    /// Panics with the contents of the screen on a timeout.
    pub fn shows(&self, texts: &[&str]) -> String {
        let mut last = String::new();
        let deadline = std::time::Instant::now() + SHOWN_WITHIN;
        eventually_blocking("the screen", || {
            last = self.screen();
            let shown = texts.iter().all(|text| last.contains(text));
            assert!(
                shown || std::time::Instant::now() < deadline,
                "the screen does not show {texts:?}:\n{last}"
            );
            shown.then(|| last.clone())
        })
    }

    /// Waits until the screen no longer changes, and returns its contents.
    ///
    /// # Panics
    /// Panics if the screen keeps changing.
    pub fn settled(&self) -> String {
        let (mut last, mut quiet) = (self.screen(), 0);
        eventually_blocking("the screen to stop changing", || {
            let now = self.screen();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            (quiet >= QUIET_LOOKS).then(|| last.clone())
        })
    }

    /// Resizes the screen to this many columns and rows.
    ///
    /// # Panics
    /// Panics if the terminal is closed.
    pub fn resize(&self, size: (u16, u16)) {
        let [columns, rows] = [size.0, size.1].map(|cells| NonZero::new(cells).unwrap());
        let mut output = self.output.lock().unwrap();
        output.screen.screen_mut().set_size(rows, columns);
        self.master.resize(pty_size(size)).unwrap();
    }

    /// Waits until the program has exited and all its output is read.
    ///
    /// # Panics
    /// Panics if the program does not exit.
    pub fn ended(&mut self) -> ExitStatus {
        let status = eventually_blocking("the console to end", || self.child.try_wait().unwrap());
        eventually_blocking("the last output", || {
            self.output.lock().unwrap().ended.then_some(())
        });
        status
    }

    /// Returns the process id.
    ///
    /// # Panics
    /// Panics if the process has exited.
    pub fn process(&self) -> u32 {
        self.child.process_id().expect("the console runs")
    }

    /// Waits until the process is stopped, as it is after Ctrl-Z.
    ///
    /// # Panics
    /// Panics if the process is not stopped.
    pub fn stopped(&self) {
        let stat = format!("/proc/{}/stat", self.process());
        eventually_blocking("the console to stop", || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            let state = stat.rsplit(") ").next().unwrap();
            state.starts_with('T').then_some(())
        });
    }

    /// Returns the control sequences of the terminal modes that were set and not reset.
    pub fn remaining_modes(&self) -> Vec<String> {
        let written = self.output();
        let mut set = std::collections::BTreeSet::new();
        for sequence in written.split("\x1b[?").skip(1) {
            let Some(end) =
                sequence.find(|character: char| !character.is_ascii_digit() && character != ';')
            else {
                continue;
            };
            for mode in sequence[..end].split(';') {
                match sequence.as_bytes()[end] {
                    b'h' => set.insert(mode.to_owned()),
                    b'l' => set.remove(mode),
                    _ => false,
                };
            }
        }
        // Mode 25 is inverted: the visible cursor is the default, so a set mode counts as restored.
        set.remove("25");
        let hidden = written.rfind("\x1b[?25l") > written.rfind("\x1b[?25h");
        set.into_iter()
            .chain(hidden.then(|| "25".to_owned()))
            .collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        if !std::thread::panicking() {
            self.assert_no_secrets();
        }
    }
}
