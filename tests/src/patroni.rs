//! Three PostgreSQL servers managed by Patroni with etcd: one is the primary, each commit waits for
//! a second server, and another server takes over when the primary fails.

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

/// Time without a renewal of the primary's lease after which another server takes over.
pub const TTL: Duration = Duration::from_secs(20);
const READY_TIME_MAX: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(100);
const MEMBERS: usize = 3;

/// Runs a program with its children until it is stopped, or its parent exits.
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
    way: Proxy,
    running: Option<(Child, ChildStdin)>,
}

/// A cluster with etcd. All servers stop when it is dropped.
#[derive(Debug)]
pub struct Patroni {
    folder: PathBuf,
    program: PathBuf,
    members: Vec<Member>,
    _etcd: (Child, ChildStdin),
}

impl Patroni {
    /// Starts a cluster; `None` if one of the programs is not installed.
    ///
    /// # Panics
    /// Panics if the cluster does not become ready.
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
            // JSON is valid YAML.
            fs::write(path, config.to_string()).unwrap();
            all.members.push(member);
            all.revive(number);
        }
        all.wait_healthy();
        Some(all)
    }

    /// Returns the address of the database, with all servers.
    pub fn url(&self) -> String {
        let hosts = self
            .members
            .iter()
            .map(|it| format!("127.0.0.1:{}", it.port));
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{USER}@{}/postgres", hosts.join(","))
    }

    /// Returns the primary, if there is one.
    pub fn primary(&self) -> Option<usize> {
        let members = self.members.iter();
        let mut states = members.map(|it| it.state("/primary"));
        states.position(|state| state.is_some())
    }

    /// Kills a member with its server, as a failure of its machine would.
    ///
    /// # Panics
    /// Panics if the member is not running.
    pub fn kill(&mut self, number: usize) {
        let (mut child, stdin) = self.members[number].running.take().unwrap();
        drop(stdin);
        child.wait().unwrap();
    }

    /// Cuts a member off from etcd; its server keeps running.
    pub fn cut_off(&mut self, number: usize) {
        self.members[number].way.set(Weather::Stalls);
    }

    /// Restarts a killed member, or restores its connection.
    ///
    /// # Panics
    /// Panics if the member cannot be started.
    pub fn revive(&mut self, number: usize) {
        let member = &mut self.members[number];
        member.way.set(Weather::Fair);
        if member.running.is_none() {
            let config = member.folder.join("patroni.yml");
            let arguments = [self.program.to_str().unwrap(), config.to_str().unwrap()];
            member.running = Some(run(&member.folder, &arguments));
        }
    }

    /// Waits until there is a primary, each commit waits for a second server, and the third server
    /// follows the primary.
    ///
    /// # Panics
    /// Panics with the members' logs if the cluster does not reach that state.
    pub fn wait_healthy(&self) {
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
            // Use only the proxy, not the addresses announced by etcd.
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
                // The last setting limits the time until the third server follows the new primary,
                // which waits for a second server.
                "parameters": {"unix_socket_directories": "", "max_connections": 100,
                    "shared_buffers": "32MB", "wal_retrieve_retry_interval": "500ms"},
            },
        })
    }

    /// Returns the status of the member if it has the role in the path.
    fn state(&self, path: &str) -> Option<Value> {
        let output = Command::new("curl")
            .args(["--silent", "--fail", "--max-time", "2"])
            .arg(format!("http://127.0.0.1:{}{path}", self.api_port))
            .output()
            .unwrap();
        let said = output.status.success().then_some(output.stdout)?;
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
