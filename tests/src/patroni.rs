//! Three PostgreSQL servers that Patroni keeps, with etcd as what they agree by: one takes writes, each
//! commit waits for a second one, and another takes over when the first is gone.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    postgres::{self, PASSWORD, USER, unprivileged},
    programs::programs,
    proxy::{Proxy, Weather},
};

/// After this long without a sign of the one that takes writes another one takes over.
pub const TTL: Duration = Duration::from_secs(20);
/// How long all of it may take to be ready, also on a busy machine.
const READY_TIME_MAX: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(100);
const MEMBERS: usize = 3;

/// Runs a program until it is stopped, or its parent is gone; with what it started.
const RUN: &str = r#"
folder=$1; shift
"$@" </dev/null >>"$folder/log" 2>&1 &
program=$!
read -r how
kill -9 "$program"
if [ -s "$folder/data/postmaster.pid" ]; then
    server=$(head -n 1 "$folder/data/postmaster.pid")
    kill -9 "$server" $(ps -o pid= --ppid "$server")
fi
wait "$program"
"#;

#[derive(Debug)]
struct Member {
    folder: PathBuf,
    port: u16,
    api_port: u16,
    /// What leads it to etcd.
    way: Proxy,
    running: Option<(Child, ChildStdin)>,
}

/// Servers and what they agree by; all of it ends when it is dropped.
#[derive(Debug)]
pub struct Patroni {
    folder: PathBuf,
    program: PathBuf,
    members: Vec<Member>,
    _etcd: (Child, ChildStdin),
}

impl Patroni {
    /// Starts them; none where one of the programs is not installed.
    ///
    /// # Panics
    /// When they do not get ready.
    pub fn start() -> Option<Self> {
        let server_programs = postgres::programs()?;
        let [etcd, program] = programs(["etcd", "patroni"])?;
        let made = unprivileged("mktemp")
            .args(["-d", "-t", "bellwether-patroni-XXXXXX"])
            .output()
            .unwrap();
        let folder = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let (clients, peers) = (free_port(), free_port());
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        let of_etcd = make_folder(&folder, "etcd");
        let running = run(
            &of_etcd,
            &[
                etcd.to_str().unwrap(),
                "--data-dir",
                of_etcd.join("etcd").to_str().unwrap(),
                "--listen-client-urls",
                &at(clients),
                "--advertise-client-urls",
                &at(clients),
                "--listen-peer-urls",
                &at(peers),
            ],
        );
        let mut all = Self {
            program,
            members: Vec::new(),
            _etcd: running,
            folder,
        };
        for number in 0..MEMBERS {
            let member = Member {
                folder: make_folder(&all.folder, &format!("member{number}")),
                port: free_port(),
                api_port: free_port(),
                way: Proxy::start(&format!("127.0.0.1:{clients}")),
                running: None,
            };
            let config = member.config(number, &server_programs);
            let path = member.folder.join("patroni.yml");
            // JSON is YAML.
            fs::write(path, config.to_string()).unwrap();
            all.members.push(member);
            all.revive(number);
        }
        all.until_whole();
        Some(all)
    }

    /// The address of the database, with all servers in it.
    pub fn url(&self) -> String {
        let hosts = self
            .members
            .iter()
            .map(|it| format!("127.0.0.1:{}", it.port));
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{USER}@{}/postgres", hosts.join(","))
    }

    /// The one that takes writes, if there is one that reports it.
    pub fn primary(&self) -> Option<usize> {
        let members = self.members.iter();
        let mut states = members.map(|it| it.state("/primary"));
        states.position(|state| state.is_some())
    }

    /// Ends one immediately, with its server, as a failure of its machine would.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self, number: usize) {
        let (mut child, stdin) = self.members[number].running.take().unwrap();
        drop(stdin);
        child.wait().unwrap();
    }

    /// Cuts one off from what they agree by; its server runs on.
    pub fn cut_off(&mut self, number: usize) {
        self.members[number].way.set(Weather::Stalls);
    }

    /// Starts one again that was killed, or puts the connection back.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn revive(&mut self, number: usize) {
        let member = &mut self.members[number];
        member.way.set(Weather::Fair);
        if member.running.is_none() {
            let config = member.folder.join("patroni.yml");
            let arguments = [self.program.to_str().unwrap(), config.to_str().unwrap()];
            member.running = Some(run(&member.folder, &arguments));
        }
    }

    /// Waits until one takes writes, each commit waits for a second, and the third follows.
    ///
    /// # Panics
    /// When that does not come about; with what they say.
    pub fn until_whole(&self) {
        let begin = Instant::now();
        loop {
            let is = |path: &str| {
                self.members
                    .iter()
                    .filter(|it| it.state(path).is_some())
                    .count()
            };
            let whole = (is("/primary"), is("/replica"), is("/synchronous"));
            if whole == (1, 2, 1) {
                return;
            }
            let logs = self.members.iter().map(|it| it.folder.join("log"));
            let logs = logs.map(|it| fs::read_to_string(it).unwrap_or_default());
            let last = logs.map(|it| it[it.len().saturating_sub(2_000)..].to_owned());
            assert!(
                begin.elapsed() < READY_TIME_MAX,
                "{whole:?}: {}",
                last.collect::<Vec<_>>().join("\n---\n")
            );
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some((mut child, stdin)) = member.running.take() {
                drop(stdin);
                drop(child.wait());
            }
        }
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Member {
    fn config(&self, number: usize, server_programs: &Path) -> Value {
        let own = |port: u16| format!("127.0.0.1:{port}");
        let login = |name: &str| json!({"username": name, "password": PASSWORD});
        let seconds = TTL.as_secs();
        let (api, port) = (own(self.api_port), own(self.port));
        let hba = [
            "host all all 127.0.0.1/32 scram-sha-256",
            "host replication all 127.0.0.1/32 scram-sha-256",
        ];
        json!({
            "scope": "bellwether", "name": format!("member{number}"),
            "restapi": {"listen": api, "connect_address": api},
            // It goes by no way that etcd reports on.
            "etcd3": {"hosts": self.way.address().to_string(), "use_proxies": true},
            "bootstrap": {
                "dcs": {"ttl": seconds, "loop_wait": 2, "retry_timeout": 5,
                    "maximum_lag_on_failover": 1 << 20,
                    "synchronous_mode": true, "synchronous_mode_strict": true,
                    "postgresql": {"use_pg_rewind": true, "parameters": {"wal_log_hints": "on"}}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
                "pg_hba": hba,
            },
            "postgresql": {
                "listen": port, "connect_address": port,
                "data_dir": self.folder.join("data"), "bin_dir": server_programs,
                "pgpass": self.folder.join("pgpass"), "pg_hba": hba,
                "authentication": {"superuser": login(USER), "replication": login("replicator"),
                    "rewind": login("rewinder")},
                // How soon the third server follows the new first one, which waits for it.
                "parameters": {"unix_socket_directories": "", "max_connections": 100,
                    "shared_buffers": "32MB", "wal_retrieve_retry_interval": "500ms"},
            },
        })
    }

    /// What it says of itself, where it is what that path asks for.
    fn state(&self, path: &str) -> Option<Value> {
        let asked = Command::new("curl")
            .args(["--silent", "--fail", "--max-time", "2"])
            .arg(format!("http://127.0.0.1:{}{path}", self.api_port))
            .output()
            .unwrap();
        let said = asked.status.success().then_some(asked.stdout)?;
        serde_json::from_slice(&said).ok()
    }
}

fn make_folder(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.join(name);
    let made = unprivileged("mkdir").arg(&folder).status();
    assert!(made.unwrap().success());
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (Child, ChildStdin) {
    let mut child = unprivileged("sh")
        .args(["-c", RUN, "sh"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
