//! A service with its store in PostgreSQL: creating, serving, and kills.

mod broken;
mod failover;
mod forged;
mod full;
mod requirements;
mod secret;
mod still;
mod upgrade;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use bellwether_tests::{
    engine::Variables,
    eventually::eventually,
    postgres::{PASSWORD, Postgres},
    process,
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::{
    crash::{notified_hosts, stored_hosts},
    journey, samples,
};

/// Concurrent senders, with one event in flight each.
const SENDERS: usize = 8;
pub(crate) const ANSWERED: usize = 150;

pub(crate) struct Database {
    pub(crate) server: Postgres,
    keys: TempDir,
}

impl Database {
    pub(crate) fn start() -> Option<Self> {
        let server = Postgres::start()?;
        let keys = tempfile::tempdir().unwrap();
        Some(Self { server, keys })
    }

    fn settings(&self) -> String {
        self.settings_of("one")
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.keys.path().join("secret.key")
    }

    pub(crate) fn settings_of(&self, node: &str) -> String {
        self.settings_over(self.server.port(), node)
    }

    /// Returns the settings of a node that connects through another port, forwarded to the server.
    pub(crate) fn settings_over(&self, port: u16, node: &str) -> String {
        settings(&Postgres::url_of(port), &self.key_file(), node)
    }

    pub(crate) fn world(&self) -> World {
        World::on(init, &self.settings())
    }

    /// Starts a service with these settings and variables: as another node with the admin key of
    /// `first`, or as the first node on a new store.
    pub(crate) fn node(first: Option<&World>, lines: &str, variables: Variables) -> World {
        let key = first.map(|first| first.data_dir().join("admin.key"));
        let prepare = |data_dir: &Path| match key {
            None => init(data_dir),
            Some(key) => {
                fs::create_dir_all(data_dir).unwrap();
                fs::copy(key, data_dir.join("admin.key")).unwrap();
            }
        };
        World::with_variables(prepare, lines, variables)
    }

    pub(crate) fn world_over(&self, port: u16) -> World {
        World::on(init, &self.settings_over(port, "one"))
    }
}

pub(crate) fn settings(url: &str, key_file: &Path, node: &str) -> String {
    format!(
        "[delivery]\nschedule = [\"0s\"]\nmax_in_flight_per_destination = 64\n[store]\n\
         url = {url:?}\npassword = {PASSWORD:?}\nnode_name = {node:?}\nsecret_key_file = {:?}\n",
        key_file.to_str().unwrap(),
    )
}

/// Returns a `store` command that uses the settings file next to a data folder.
pub(crate) fn store(data_dir: &Path, arguments: &[&str]) -> Command {
    store_of(process::binary(), data_dir, arguments)
}

fn store_of(binary: &Path, data_dir: &Path, arguments: &[&str]) -> Command {
    let home = data_dir.parent().unwrap();
    let mut command = process::command_of(binary, home, ["store", "--config"]);
    command.arg(home.join("bellwether.toml")).args(arguments);
    command
}

pub(crate) fn init(data_dir: &Path) {
    init_with(process::binary(), data_dir);
}

fn init_with(binary: &Path, data_dir: &Path) {
    fs::create_dir_all(data_dir).unwrap();
    let admin_key = data_dir.join("admin.key");
    let mut command = store_of(binary, data_dir, &["init", "--admin-key-file"]);
    command.arg(admin_key);
    let made = process::run(command);
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}

#[derive(Debug, Default)]
pub(crate) struct SendOutcomes {
    pub(crate) answered: BTreeSet<String>,
    /// Events without a response, or with an unknown outcome.
    pub(crate) unknown: BTreeSet<String>,
    pub(crate) refused: BTreeSet<String>,
    why: String,
}

pub(crate) fn send(
    rest: &Rest,
    round: &str,
    reported: &Arc<Mutex<SendOutcomes>>,
    stop: &tokio::sync::watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (rest, reported, stop) = (rest.clone(), Arc::clone(reported), stop.clone());
        let round = round.to_owned();
        senders.spawn(async move {
            for number in 0.. {
                if *stop.borrow() {
                    return;
                }
                // Without a pause, senders would keep all processors busy, especially while a node is
                // down.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                let host = format!("{round}-{sender}-{number}");
                let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
                let body = samples::events(&[event]).to_string();
                let path = "/v1/data-receiver/events";
                let answer = rest.try_send(Method::POST, path, &[], body).await;
                let mut reported = reported.lock().unwrap();
                let Ok(answer) = answer else {
                    reported.unknown.insert(host);
                    continue;
                };
                let text = answer.text();
                if answer.status == 200 && answer.json()["succeeded"] == 1 {
                    reported.answered.insert(host);
                } else if text.contains("OUTCOME_UNKNOWN") || answer.status == 504 {
                    reported.unknown.insert(host);
                } else {
                    reported.refused.insert(host);
                    reported.why = format!("{} {text}", answer.status);
                }
            }
        });
    }
    senders
}

/// Asserts that each stored event was sent by exactly one delivery, whatever the number of
/// attempts.
#[expect(
    clippy::print_stderr,
    reason = "the test prints the results of its rounds"
)]
pub(crate) fn each_has_one_delivery(
    receiver: &Receiver,
    stored: &BTreeSet<String>,
    unknown: usize,
) {
    let received = receiver.received();
    let ids: BTreeSet<_> = received.iter().map(Received::delivery_id).collect();
    assert_eq!(ids.len(), stored.len(), "one delivery per event");
    eprintln!(
        "{} events stored, of {unknown} nothing was known",
        stored.len()
    );
}

/// Asserts that accepted events are stored and rejected ones are not. Returns the hosts of the
/// stored events.
pub(crate) async fn none_is_lost(rest: &Rest, reported: &Mutex<SendOutcomes>) -> BTreeSet<String> {
    let stored = stored_hosts(rest).await;
    let reported = std::mem::take(&mut *reported.lock().unwrap());
    let lost: Vec<_> = reported.answered.difference(&stored).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let contradictory: Vec<_> = reported.refused.intersection(&stored).collect();
    assert!(
        contradictory.is_empty(),
        "rejected and stored: {contradictory:?}, {}",
        reported.why
    );
    stored
}

pub(crate) async fn wait_answered(reported: &Arc<Mutex<SendOutcomes>>, more: usize) {
    let before = reported.lock().unwrap().answered.len();
    eventually("responses to events", async || {
        let now = reported.lock().unwrap().answered.len();
        (now >= before + more).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_survive_service_and_database_kills() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let mut world = database.world();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    let (stop, stopped) = tokio::sync::watch::channel(false);

    let senders = send(&world.rest(), "service", &reported, &stopped);
    wait_answered(&reported, ANSWERED).await;
    world.kill();
    stop.send_replace(true);
    senders.join_all().await;
    world.start_again();

    stop.send_replace(false);
    let senders = send(&world.rest(), "database", &reported, &stopped);
    wait_answered(&reported, ANSWERED).await;
    tokio::task::block_in_place(|| {
        database.server.kill();
        database.server.run();
    });
    wait_answered(&reported, ANSWERED).await;
    stop.send_replace(true);
    senders.join_all().await;

    let stored = none_is_lost(&world.rest(), &reported).await;
    let hosts = eventually("notifications of every stored event", async || {
        let hosts = notified_hosts(&receiver);
        stored.is_subset(&hosts).then_some(hosts)
    })
    .await;
    let notified: Vec<_> = hosts.difference(&stored).collect();
    assert!(notified.is_empty(), "notified and not stored: {notified:?}");
    assert!(world.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_sent_and_notified_over_rest_and_grpc() {
    let Some(database) = Database::start() else {
        return;
    };
    let world = database.world();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    for (number, wire) in world.wires().iter().enumerate() {
        let before = receiver.count();
        let host = format!("host-{number}");
        let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
        let event = samples::events(&[event]);
        let sent = wire.ok("DataReceiverService/PutEvents", &event).await;
        assert_eq!(sent["succeeded"], 1, "{sent}");
        eventually("its message", async || {
            (receiver.count() > before).then_some(())
        })
        .await;
    }
    let answer = world.rest().get("/v1/overview").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    // A repeated event has a higher count than those that were only opened concurrently.
    let event = samples::event("full", "host-0", "SEVERITY_ERROR", "disk is full");
    let again = samples::events(&[event]);
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &again).await.ok();
    let query = json!({"query": {"pageInput": {"limit": 10}}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let counts = found["results"].as_array().unwrap().iter();
    let counts: BTreeSet<_> = counts.map(|it| it["count"].to_string()).collect();
    assert_eq!(counts.len(), 2, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_service_can_be_checked_and_backed_up() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut world = database.world();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    let rest = world.rest();
    let path = "/v1/data-receiver/events";
    rest.post(path, &samples::events(&[event])).await.ok();
    eventually("its message", async || (receiver.count() > 0).then_some(())).await;

    let address = format!("http://{}", world.service().address("grpc"));
    let key_file = world.data_dir().join("admin.key");
    let run = |arguments: &[&str]| {
        let mut command = process::command(world.folder(), arguments);
        command
            .args(["--connect", &address, "--key-file"])
            .arg(&key_file);
        let ended = process::run(command);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{arguments:?}: {said}");
    };
    run(&["check"]);
    let backup = world.folder().join("backup");
    run(&["backup", backup.to_str().unwrap(), "--without-keys"]);

    assert!(world.terminate().success());
    let folder = world.folder().join("moved");
    let secret_key = database.keys.path().join("secret.key");
    let mut restore = process::command(world.folder(), ["restore", "--secret-key"]);
    restore
        .arg(secret_key)
        .arg(&backup)
        .arg("--data-dir")
        .arg(&folder);
    let restored = process::run(restore);
    let said = String::from_utf8_lossy(&restored.stderr);
    assert!(restored.status.success(), "{said}");
    let mut check = process::command(world.folder(), ["check", "--data-dir"]);
    check.arg(&folder);
    let checked = process::run(check);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("1 delivery"), "{said}");
}

pub(crate) fn assert_refused(command: Command, why: &str) {
    let shown = format!("{command:?}");
    let ended = process::run(command);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let said = said + &String::from_utf8_lossy(&ended.stdout);
    assert!(!ended.status.success(), "{shown}");
    assert!(said.contains(why), "{shown}: {said}");
    assert!(!said.contains(PASSWORD), "{said}");
}

pub(crate) fn serve(data_dir: &Path) -> Command {
    serve_of(process::binary(), data_dir)
}

fn serve_of(binary: &Path, data_dir: &Path) -> Command {
    let home = data_dir.parent().unwrap();
    let mut command = process::command_of(binary, home, ["serve", "--config"]);
    command.arg(home.join("bellwether.toml"));
    for listen in ["--grpc-listen", "--rest-listen"] {
        command.args([listen, "127.0.0.1:0"]);
    }
    command
}

fn init_again(data_dir: &Path) -> Command {
    let mut command = store(data_dir, &["init", "--admin-key-file"]);
    command.arg(data_dir.with_file_name("other.key"));
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn store_is_initialized_only_once() {
    let Some(database) = Database::start() else {
        return;
    };
    let make = |data_dir: &Path| {
        assert_refused(store(data_dir, &["status"]), "bellwether store init");
        assert_refused(store(data_dir, &["migrate"]), "bellwether store init");
        assert_refused(serve(data_dir), "it is missing");
        let script = process::run(store(data_dir, &["migrate", "--print-sql"]));
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("CREATE TABLE occurrence"), "{script}");
        init(data_dir);
        assert_refused(init_again(data_dir), "already");
    };
    let mut world = World::on(make, &database.settings());
    let data_dir = world.data_dir();
    let keyless = tempfile::tempdir().unwrap();
    let settings = database.settings();
    let lines = settings.lines();
    let lines = lines.filter(|line| !line.starts_with("secret_key_file"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    assert_ne!(lines, settings.trim_end(), "{settings}");
    fs::write(keyless.path().join("bellwether.toml"), lines).unwrap();
    let migrated = process::run(store(&keyless.path().join("data"), &["migrate"]));
    let said = String::from_utf8_lossy(&migrated.stderr);
    assert!(migrated.status.success(), "{said}");
    let shown = process::run(store(&data_dir, &["status"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("node: one, since "), "{shown}");
    assert_refused(init_again(&data_dir), "already");
    assert!(
        !data_dir.join("store.redb").exists(),
        "a node holds no data"
    );
    assert!(world.terminate().success());
    let shown = process::run(store(&data_dir, &["status"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("node: none"), "{shown}");
}

fn set_layout(database: &Database, version: u8) {
    let text =
        format!("UPDATE bellwether.layout SET version = {version}, oldest_reader = {version}");
    database.server.execute(&text);
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_removes_a_running_node_requires_force() {
    let Some(database) = Database::start() else {
        return;
    };
    let world = database.world();
    let migrate = |flags: &[&str]| store(&world.data_dir(), &[&["migrate"], flags].concat());
    set_layout(&database, 11);
    let refused = "nodes of another version are running: one;";
    assert_refused(migrate(&["--if-stopped"]), refused);
    assert_refused(migrate(&[]), refused);
    assert_refused(migrate(&[]), "or use --force");
    let found = "SELECT version FROM bellwether.layout";
    assert_eq!(database.server.execute(found), "11", "it was migrated");
    let added = "DROP TABLE bellwether.enrichment_table, bellwether.drill";
    database.server.execute(added);
    let migrated = process::run(migrate(&["--force"]));
    assert!(migrated.status.success(), "{migrated:?}");
    assert_eq!(database.server.execute(found), "12");
    // If no migration is required, running nodes do not matter.
    let migrated = process::run(migrate(&["--if-stopped"]));
    assert!(migrated.status.success(), "{migrated:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_key_layout_or_connection_prevents_start() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut world = database.world();
    let data_dir = world.data_dir();
    assert!(world.terminate().success());
    let key_file = database.key_file();
    let key = fs::read(&key_file).unwrap();
    fs::remove_file(&key_file).unwrap();
    assert_refused(serve(&data_dir), "it is missing");
    assert!(!key_file.exists(), "no key is generated");
    let other = "1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    fs::write(&key_file, other).unwrap();
    assert_refused(serve(&data_dir), "cannot use the key file");
    fs::write(&key_file, key).unwrap();
    set_layout(&database, 99);
    assert_refused(serve(&data_dir), "of a later version");
    set_layout(&database, 0);
    assert_refused(serve(&data_dir), "bellwether store migrate");
    set_layout(&database, 12);
    let mut other = serve(&data_dir);
    other.env("BELLWETHER_STORE_PASSWORD", "wrong");
    assert_refused(other, "password authentication failed");
    let mut beyond = serve(&data_dir);
    beyond.args(["--store", "postgres://u@db.example.net/b?sslmode=disable"]);
    assert_refused(beyond, "verify-full");
    world.start_again();
    let overview = world.rest().get("/v1/overview").await;
    assert_eq!(overview.status, 200, "{}", overview.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn node_requiring_a_standby_is_not_ready_without_one() {
    let Some(database) = Database::start() else {
        return;
    };
    let server = &database.server;
    let lines = database.settings() + "require_standby = true\nconnections = 7\n";
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    fs::write(folder.path().join("bellwether.toml"), &lines).unwrap();
    init(&data_dir);
    let refused = process::run(serve(&data_dir));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("no synchronous standby is configured"),
        "{said}"
    );

    let mut standby = server.standby("second");
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'second'");
    server.execute("SELECT pg_reload_conf()");
    let key = data_dir.join("admin.key");
    let prepare = |data_dir: &Path| {
        fs::create_dir_all(data_dir).unwrap();
        fs::copy(key, data_dir.join("admin.key")).unwrap();
    };
    let world = World::on(prepare, &lines);
    let rest = world.rest();
    let send = async |host: &str| {
        let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
        let body = samples::events(&[event]);
        rest.post("/v1/data-receiver/events", &body).await
    };
    assert_eq!(send("a").await.ok()["succeeded"], 1);
    let count = "SELECT count(*) FROM bellwether.occurrence";
    // The standby applies a write shortly after storing it.
    eventually("the standby to show the write", async || {
        (standby.execute(count) == "1").then_some(())
    })
    .await;
    assert_eq!(server.execute(count), "1");
    let connections = rest.get("/metrics").await.text();
    assert!(
        connections.contains("_store_connections{role=\"reader\"} 3"),
        "{connections}"
    );

    // A write is not acknowledged before the standby has it.
    standby.kill();
    let mut waiting = std::pin::pin!(send("b"));
    let two_seconds = std::time::Duration::from_secs(2);
    let early = tokio::time::timeout(two_seconds, waiting.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    standby.run();
    let answer = waiting.await;
    if answer.status != 200 {
        // On a busy machine, the standby may start after the write has timed out.
        assert_eq!(answer.json()["details"][0]["reason"], "OUTCOME_UNKNOWN");
        eventually("a write with the standby", async || {
            (send("b").await.status == 200).then_some(())
        })
        .await;
    }
    eventually("the standby to show both writes", async || {
        (standby.execute(count) == "2").then_some(())
    })
    .await;

    server.execute("ALTER SYSTEM RESET synchronous_standby_names");
    server.execute("SELECT pg_reload_conf()");
    eventually("the node not to be ready", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(rest.get("/healthz").await.status, 200);
}
