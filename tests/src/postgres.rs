//! A PostgreSQL server from the system's package, run by an unprivileged user in a temporary folder
//! and on loopback. If it is not installed, tests that require it are skipped with a message.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// The superuser.
pub const USER: &str = "bellwether";
/// The password of the superuser.
pub const PASSWORD: &str = "correct horse battery";
const READY_TIME_MAX: Duration = Duration::from_secs(120);

/// Folder of the distribution's servers, one subfolder per version.
const FOLDERS: &str = "/usr/lib/postgresql";

const POOLER: &str = "/usr/sbin/pgbouncer";

/// Runs the server until a line with the shutdown signal arrives or the parent is killed.
const RUN: &str = r#"
"$1/postgres" -D "$2/data" -p "$3" </dev/null >>"$2/log" 2>&1 &
server=$!
echo "$server"
if ! read -r how; then how=QUIT; is_last=yes; fi
kill -"$how" "$server"
wait "$server"
if [ -n "$is_last" ]; then rm -rf "$2"; fi
"#;

#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    running: Option<(Child, ChildStdin)>,
    process: String,
}

impl Postgres {
    /// Starts a server; `None` if none is installed.
    ///
    /// # Panics
    /// Panics if a server is installed but does not start.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            // Write to standard error directly, so that a skipped test is visible.
            let notice = format!("skipped: no PostgreSQL in {FOLDERS}; `.ci/run` installs it\n");
            drop(io::stderr().write_all(notice.as_bytes()));
            return None;
        };
        let output = unprivileged("mktemp")
            .args(["-d", "-t", "bellwether-postgres-XXXXXX"])
            .output()
            .unwrap();
        let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let made = unprivileged("sh")
            .args(["-c", MAKE, "sh"])
            .args([&programs, &folder])
            .args([USER, PASSWORD])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {said}");
        let mut server = Self {
            programs,
            folder,
            port: free_port(),
            running: None,
            process: String::new(),
        };
        server.run();
        Some(server)
    }

    /// Starts a standby with this name for this server.
    ///
    /// # Panics
    /// Panics if the standby cannot be created.
    #[must_use]
    pub fn standby(&self, name: &str) -> Self {
        let output = unprivileged("mktemp")
            .args(["-d", "-t", "bellwether-standby-XXXXXX"])
            .output();
        let folder = PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap().trim());
        let primary = format!(
            "host=127.0.0.1 port={} user={USER} password='{PASSWORD}' application_name={name}",
            self.port
        );
        let copied = unprivileged("sh")
            .args(["-c", r#""$1" -D "$2/data" -d "$3" -R -X stream -c fast --no-sync && chmod 700 "$2/data""#, "sh"])
            .args([&self.programs.join("pg_basebackup"), &folder])
            .arg(&primary)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&copied.stderr);
        assert!(copied.status.success(), "pg_basebackup: {said}");
        let mut standby = Self {
            programs: self.programs.clone(),
            folder,
            port: free_port(),
            running: None,
            process: String::new(),
        };
        standby.run();
        standby
    }

    /// Returns the address of an existing database.
    pub fn url(&self) -> String {
        Self::url_of(self.port)
    }

    /// Returns the address of the server through another port, from which connections are
    /// forwarded.
    pub fn url_of(port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres")
    }

    /// Returns a command that runs a client program as the superuser.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", USER, "-d", "postgres"])
            .env("PGPASSWORD", PASSWORD);
        command
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a stopped server again, and waits until it accepts connections.
    ///
    /// # Panics
    /// Panics if the server does not accept connections before the timeout.
    pub fn run(&mut self) {
        let mut child = unprivileged("sh")
            .args(["-c", RUN, "sh"])
            .args([&self.programs, &self.folder])
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        self.running = Some((child, stdin));
        line.trim().clone_into(&mut self.process);
        let begin = Instant::now();
        while !self.is_ready() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begin.elapsed() < READY_TIME_MAX, "not ready: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_ready(&self) -> bool {
        let ready = Command::new(self.programs.join("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .status();
        ready.is_ok_and(|status| status.success())
    }

    /// Kills the server, as a failure of its machine would: data that is not on disk is lost.
    pub fn kill(&mut self) {
        self.end("QUIT");
    }

    /// Suspends all processes of the server, as hanging storage would, or resumes them.
    ///
    /// # Panics
    /// Panics if the processes cannot be signalled.
    pub fn suspend(&self, is_still: bool) {
        let signal = if is_still { "STOP" } else { "CONT" };
        let all = r#"kill -"$1" "$2" && pkill -"$1" -P "$2""#;
        let signalled = Command::new("sh")
            .args(["-c", all, "sh", signal, &self.process])
            .status();
        assert!(signalled.unwrap().success());
    }

    /// Executes statements and returns their output.
    ///
    /// # Panics
    /// Panics if a statement fails.
    pub fn execute(&self, statements: &str) -> String {
        let output = self
            .client("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-c", statements])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().into()
    }

    fn end(&mut self, how: &str) {
        if let Some((mut child, mut stdin)) = self.running.take() {
            writeln!(stdin, "{how}").unwrap();
            child.wait().unwrap();
        }
    }
}

/// A connection pooler in front of a server.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    folder: PathBuf,
    pub port: u16,
}

impl Pooler {
    /// Starts `PgBouncer` with that `pool_mode`; `None` if it is not installed.
    ///
    /// # Panics
    /// Panics if `PgBouncer` is installed but does not start.
    pub fn start(server: &Postgres, pool_mode: &str) -> Option<Self> {
        if !Path::new(POOLER).exists() {
            drop(io::stderr().write_all(b"skipped: no PgBouncer; `.ci/run` installs it\n"));
            return None;
        }
        let output = unprivileged("mktemp")
            .args(["-d", "-t", "bellwether-pooler-XXXXXX"])
            .output();
        let folder = PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap().trim());
        let port = free_port();
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = {pool_mode}\n",
            server.port,
            folder.join("users").display()
        );
        let users = format!("\"{USER}\" \"{PASSWORD}\"\n");
        for (name, text) in [("settings", settings), ("users", users)] {
            fs::write(folder.join(name), text).unwrap();
        }
        let process = unprivileged(POOLER)
            .arg("-q")
            .arg(folder.join("settings"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let pooler = Self {
            process: process.unwrap(),
            folder,
            port,
        };
        let begin = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begin.elapsed() < READY_TIME_MAX,
                "the pooler does not respond"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end("QUIT");
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Creates a cluster that requires passwords.
const MAKE: &str = r#"
printf '%s\n' "$4" >"$2/password"
"$1/initdb" -D "$2/data" -U "$3" -A scram-sha-256 --pwfile="$2/password" --no-sync \
    -E UTF8 --locale=C >/dev/null
cat >>"$2/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 64MB
END
"#;

/// Returns the program folder of the newest installed server.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(FOLDERS).ok()?.filter_map(Result::ok);
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            let programs = version.path().join("bin");
            programs
                .join("initdb")
                .exists()
                .then_some((number, programs))
        })
        .collect();
    versions.sort();
    versions.pop().map(|(_, programs)| programs)
}

/// Returns a command that runs as an unprivileged user: the server refuses to run as root.
pub(crate) fn unprivileged(program: &str) -> Command {
    let is_root = Path::new("/proc/self").metadata().is_ok_and(|it| {
        use std::os::unix::fs::MetadataExt;
        it.uid() == 0
    });
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "--",
        ])
        .arg(program)
        .current_dir("/");
    command
}

/// Returns an address, its password and the name of an unused schema. All tests of this process use
/// the same server. Returns `None` if PostgreSQL is not installed.
pub fn free_schema() -> Option<(String, &'static str, String)> {
    static SERVER: OnceLock<Option<Mutex<Postgres>>> = OnceLock::new();
    static SCHEMAS: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(|| Postgres::start().map(Mutex::new));
    let server = server.as_ref()?.lock();
    let url = server.unwrap_or_else(PoisonError::into_inner).url();
    let schema = format!("t{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Some((url, PASSWORD, schema))
}
