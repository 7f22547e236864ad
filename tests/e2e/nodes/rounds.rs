//! Every kind of fault while pages, methods with `after`, links, heartbeats, groups, budgets and an
//! ending silence are in use. No message is lost, duplicated or early, and no heartbeat raises an
//! alarm.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    cutter::{Cutter, Treatment},
    eventually::eventually_within,
    process,
    receiver::Receiver,
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{EVENTS, leader};
use crate::{
    crash::{is_measured, rounds},
    postgres::Database,
    samples,
};

const NOTIFICATION: &str = "/v1/notification";
const NAMES: [&str; 3] = ["one", "two", "three"];
const FAULT_TIME: Duration = Duration::from_secs(5);
const SILENCE_SECONDS: i64 = 4;
const AFTER: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_secs(3);
const BUDGET: usize = 2;
/// Time limit for recovering from a fault, including a takeover and the end of a budget's window.
const RECOVERY_MAX: Duration = Duration::from_secs(120);
/// Time without a message after which no more messages are expected.
const QUIET: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy)]
enum Fault {
    LeaderIsKilled,
    OtherIsKilled,
    AllAreKilled,
    LeaderRestarts,
    OtherRestarts,
    EachRestarts,
    LeaderIsSuspended,
    OtherIsSuspended,
    DatabaseIsKilled,
    DatabaseIsAway,
    SessionsAreTerminated,
    LeaderIsCut,
    AllAreCut,
    LeaderIsBlocked,
    CommitsAreBlocked,
}

const FAULTS: [Fault; 15] = [
    Fault::LeaderIsKilled,
    Fault::OtherIsKilled,
    Fault::AllAreKilled,
    Fault::LeaderRestarts,
    Fault::OtherRestarts,
    Fault::EachRestarts,
    Fault::LeaderIsSuspended,
    Fault::OtherIsSuspended,
    Fault::DatabaseIsKilled,
    Fault::DatabaseIsAway,
    Fault::SessionsAreTerminated,
    Fault::LeaderIsCut,
    Fault::AllAreCut,
    Fault::LeaderIsBlocked,
    Fault::CommitsAreBlocked,
];

/// Three nodes, each with a separate connection to the database.
struct Cluster {
    database: Database,
    cutters: Vec<Cutter>,
    worlds: Vec<World>,
    rests: Rests,
}

/// The current addresses of the nodes, which change when they restart.
type Rests = Arc<Mutex<Vec<Rest>>>;

impl Cluster {
    fn start(database: Database) -> Self {
        let port = database.server.port();
        let cutters: Vec<_> = NAMES.iter().map(|_| Cutter::start(port)).collect();
        let mut worlds: Vec<World> = Vec::new();
        for (name, cutter) in NAMES.into_iter().zip(&cutters) {
            let settings = database.settings_over(cutter.port(), name);
            let lines = format!("link_base = \"https://events.example\"\n{settings}");
            worlds.push(Database::node(worlds.first(), &lines, Vec::new()));
        }
        let rests = worlds.iter().map(World::rest).collect();
        Self {
            database,
            cutters,
            worlds,
            rests: Arc::new(Mutex::new(rests)),
        }
    }

    fn start_again(&mut self, node: usize) {
        self.worlds[node].start_again();
        self.rests.lock().unwrap()[node] = self.worlds[node].rest();
    }

    async fn cause(&mut self, fault: Fault) {
        let leads = leader(&self.worlds[0]).await;
        let leads = NAMES.iter().position(|it| *it == leads).unwrap();
        let other = (leads + 1) % 3;
        match fault {
            Fault::LeaderIsKilled => self.kill(&[leads]),
            Fault::OtherIsKilled => self.kill(&[other]),
            Fault::AllAreKilled => self.kill(&[0, 1, 2]),
            Fault::LeaderRestarts => self.restart(&[leads]),
            Fault::OtherRestarts => self.restart(&[other]),
            Fault::EachRestarts => self.restart(&[0, 1, 2]),
            Fault::LeaderIsSuspended => self.suspend(leads).await,
            Fault::OtherIsSuspended => self.suspend(other).await,
            Fault::DatabaseIsKilled => self.stop_database(Duration::ZERO),
            Fault::DatabaseIsAway => self.stop_database(FAULT_TIME),
            Fault::SessionsAreTerminated => {
                let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
                tokio::task::block_in_place(|| self.database.server.execute(text));
            }
            Fault::LeaderIsCut => {
                let cut = Treatment::IsCut {
                    within_bytes: 20_000,
                };
                self.treat(&[leads], cut).await;
            }
            Fault::AllAreCut => {
                let cut = Treatment::IsCut {
                    within_bytes: 20_000,
                };
                self.treat(&[0, 1, 2], cut).await;
            }
            Fault::LeaderIsBlocked => self.treat(&[leads], Treatment::Stands).await,
            Fault::CommitsAreBlocked => {
                self.treat(&[leads], Treatment::StandsBefore("COMMIT"))
                    .await;
            }
        }
    }

    fn kill(&mut self, nodes: &[usize]) {
        for at in nodes {
            self.worlds[*at].kill();
        }
        for at in nodes {
            self.start_again(*at);
        }
    }

    fn restart(&mut self, nodes: &[usize]) {
        for at in nodes {
            assert!(self.worlds[*at].terminate().success());
            self.start_again(*at);
        }
    }

    async fn suspend(&self, node: usize) {
        let process = self.worlds[node].service().id();
        process::signal("-STOP", process);
        sleep(2 * FAULT_TIME).await;
        process::signal("-CONT", process);
    }

    fn stop_database(&mut self, time: Duration) {
        tokio::task::block_in_place(|| {
            self.database.server.kill();
            std::thread::sleep(time);
            self.database.server.run();
        });
    }

    async fn treat(&self, nodes: &[usize], treatment: Treatment) {
        for at in nodes {
            self.cutters[*at].set(treatment);
        }
        sleep(2 * FAULT_TIME).await;
        for at in nodes {
            self.cutters[*at].set(Treatment::Arrives);
        }
    }
}

async fn set_up(rest: &Rest, receiver: &Receiver) {
    let create = async |path: &str, body: Value| {
        let path = format!("{NOTIFICATION}/{path}");
        rest.post(&path, &body).await.ok();
    };
    let payload = "{\"to\": \"{{contact.name}}\", \"host\": \"{{event.dimensions.host}}\", \
                   \"ack\": \"{{ack.url}}\", \"clear\": {{clear}}}";
    for name in ["push", "text"] {
        let webhook = json!({"url": receiver.url(&format!("/{name}")), "payload": payload});
        create(
            "destinations",
            json!({"name": name, "type": {"webhook": webhook}}),
        )
        .await;
    }
    for name in ["ana", "ben"] {
        let after = format!("{}s", AFTER.as_secs());
        let methods =
            json!([{"destinationName": "push"}, {"destinationName": "text", "after": after}]);
        create("contacts", json!({"name": name, "methods": methods})).await;
    }
    let wait = format!("{}s", STEP.as_secs());
    let steps = json!([{"targets": [{"contactName": "ana"}], "wait": wait},
        {"targets": [{"contactName": "ben"}]}]);
    create(
        "escalation-policies",
        json!({"name": "all", "steps": steps}),
    )
    .await;
    for name in ["page", "plain", "group", "budget", "held"] {
        let filter = format!("name={name}");
        create(
            "triggers",
            json!({"name": name, "type": {"event": {"filter": filter}}}),
        )
        .await;
        let mut destination = samples::webhook(name, &receiver.url(&format!("/{name}")));
        let mut rule = samples::rule(name, name, name, "{{event.summary}}");
        match name {
            "page" => {
                rule = json!({"name": name, "enabled": true, "triggerNames": [name],
                    "escalationPolicyName": "all"});
            }
            "group" => rule["group"] = json!({"by": ["round"], "wait": "1s", "interval": "10s"}),
            "budget" => {
                destination["delivery"] = json!({"budget": {"messages": BUDGET, "per": "10s",
                    "criticalShare": 0}});
            }
            _ => {}
        }
        create("destinations", destination).await;
        create("rules", rule).await;
    }
    let heartbeat = json!({
        "name": "beats", "enabled": true, "filter": "name=beat", "by": ["host"],
        "every": "30s", "grace": "10s",
        "event": {"name": "beat missing", "severity": "SEVERITY_CRITICAL"},
    });
    create("heartbeats", heartbeat).await;
}

/// Sends a request to one node after the other until one accepts it.
async fn until_accepted(rests: &Rests, path: &str, body: &Value) {
    eventually_within(RECOVERY_MAX, "a node to accept it", async || {
        let rests = rests.lock().unwrap().clone();
        for rest in rests {
            let body = body.to_string();
            let json = [("content-type", "application/json")];
            let answer = rest.try_send(Method::POST, path, &json, body).await;
            // If a silence is sent again, it may already exist.
            if answer.is_ok_and(|it| [200, 409].contains(&it.status.as_u16())) {
                return Some(());
            }
        }
        None
    })
    .await;
}

async fn beat(rests: &Rests) {
    let beat = samples::event("beat", "db-1", "SEVERITY_INFO", "done");
    until_accepted(rests, EVENTS, &samples::events(&[beat])).await;
}

/// Returns the messages to a path by delivery id, each with the time of its first arrival.
fn messages(receiver: &Receiver, path: &str) -> BTreeMap<String, (Instant, Value)> {
    let mut all = BTreeMap::new();
    for it in receiver.received().iter().filter(|it| it.path == path) {
        let id = it.delivery_id().to_owned();
        all.entry(id).or_insert_with(|| (it.at, it.json()));
    }
    all
}

fn host(message: &Value) -> &str {
    let host = &message["event"]["dimensions"]["host"];
    host.as_str()
        .or(message["host"].as_str())
        .unwrap_or_default()
}

/// One round: its events, and the times at which they were sent and the silence ends.
struct Round {
    hosts: BTreeMap<&'static str, BTreeSet<String>>,
    sent: Instant,
    /// The host whose first page is acknowledged.
    acknowledged: String,
    /// Number of events, in all rounds so far, for the destination with a budget.
    budgeted: usize,
}

/// Returns the number of events in the single messages and digests of all rounds.
fn budgeted(receiver: &Receiver) -> usize {
    let all = messages(receiver, "/budget").into_values();
    let counts = all.map(|(_, it)| it["digest"]["count"].as_u64().unwrap_or(1));
    usize::try_from(counts.sum::<u64>()).unwrap()
}

impl Round {
    async fn send(number: usize, rests: &Rests) -> Self {
        let silence = json!({"name": format!("round-{number}"), "reason": "work",
            "ruleNames": ["held"], "span": {"endTime": samples::in_seconds(SILENCE_SECONDS)}});
        let sent = Instant::now();
        until_accepted(rests, &format!("{NOTIFICATION}/silences"), &silence).await;
        let mut hosts = BTreeMap::new();
        let mut events = Vec::new();
        for (name, count) in [
            ("page", 3),
            ("plain", 5),
            ("group", 4),
            ("budget", 8),
            ("held", 3),
        ] {
            let all: BTreeSet<_> = (0..count)
                .map(|at| format!("{name}-{number}-{at}"))
                .collect();
            for host in &all {
                let mut event = samples::event(name, host, "SEVERITY_ERROR", "full");
                event["dimensions"]["round"] = json!(number.to_string());
                events.push(event);
            }
            hosts.insert(name, all);
        }
        until_accepted(rests, EVENTS, &samples::events(&events)).await;
        Self {
            sent,
            budgeted: (number + 1) * hosts["budget"].len(),
            acknowledged: format!("page-{number}-0"),
            hosts,
        }
    }

    /// Acknowledges a page by its link as soon as the page arrives, and sends beats until then.
    async fn acknowledge(&self, receiver: &Receiver, rests: &Rests) {
        let link = eventually_within(RECOVERY_MAX, "the first page", async || {
            beat(rests).await;
            let pages = messages(receiver, "/push").into_values();
            let mut pages = pages.map(|(_, page)| page);
            let page = pages.find(|page| host(page) == self.acknowledged)?;
            Some(page["ack"].as_str()?.to_owned())
        })
        .await;
        let path = link.split_once("/acknowledge/").unwrap().1;
        let path = format!("/acknowledge/{path}");
        until_accepted(rests, &path, &json!({})).await;
    }

    fn of_round<'a>(
        &self,
        name: &str,
        messages: &'a BTreeMap<String, (Instant, Value)>,
    ) -> Vec<(&'a Instant, &'a Value)> {
        let hosts = &self.hosts[name];
        let all = messages.values().map(|(at, message)| (at, message));
        all.filter(|(_, it)| hosts.contains(host(it))).collect()
    }

    /// Returns what is missing.
    fn missing(&self, receiver: &Receiver) -> Option<String> {
        for name in ["plain", "held"] {
            let count = self
                .of_round(name, &messages(receiver, &format!("/{name}")))
                .len();
            if count < self.hosts[name].len() {
                return Some(format!("{name}: {count}"));
            }
        }
        let unacknowledged = self.hosts["page"].len() - 1;
        for path in ["/push", "/text"] {
            let pages = messages(receiver, path);
            let pages = self.of_round("page", &pages);
            let count = pages
                .iter()
                .filter(|(_, it)| host(it) != self.acknowledged)
                .count();
            if count < 2 * unacknowledged {
                return Some(format!("{path}: {count}"));
            }
        }
        let (grouped, budgeted) = (self.grouped(receiver).0, budgeted(receiver));
        let is_missing = grouped < self.hosts["group"].len() || budgeted < self.budgeted;
        is_missing.then(|| format!("group: {grouped}, budget: {budgeted}"))
    }

    /// Returns the number of members in the messages of the group, and the number of messages.
    fn grouped(&self, receiver: &Receiver) -> (usize, usize) {
        let messages = messages(receiver, "/group");
        let hosts = &self.hosts["group"];
        let events = |it: &Value| {
            it["group"]["events"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        let of_it = |it: &Value| {
            let host = it["dimensions"]["host"].as_str().unwrap_or_default();
            hosts.contains(host)
        };
        let all = messages.values().map(|(_, it)| events(it));
        let counts = all.map(|it| it.iter().filter(|it| of_it(it)).count());
        let counts: Vec<_> = counts.filter(|it| *it > 0).collect();
        (counts.iter().sum(), counts.len())
    }

    /// Asserts that no message is duplicated or early.
    fn check(&self, receiver: &Receiver) {
        for name in ["plain", "held"] {
            let all = messages(receiver, &format!("/{name}"));
            let all = self.of_round(name, &all);
            assert_eq!(all.len(), self.hosts[name].len(), "{name}: {all:?}");
        }
        let silence = Duration::from_secs(SILENCE_SECONDS.unsigned_abs());
        for (at, _) in self.of_round("held", &messages(receiver, "/held")) {
            // The end of the silence was rounded down to the precision of the request.
            let since = at.duration_since(self.sent);
            assert!(since + AFTER / 2 >= silence, "early: {since:?}");
        }
        for (path, after) in [("/push", Duration::ZERO), ("/text", AFTER)] {
            let mut pages: BTreeSet<(String, String)> = BTreeSet::new();
            let all = messages(receiver, path);
            for (at, page) in self.of_round("page", &all) {
                let to = page["to"].as_str().unwrap_or_default().to_owned();
                let step = if to == "ben" { STEP } else { Duration::ZERO };
                let since = at.duration_since(self.sent);
                assert!(since >= step + after, "{path} early: {since:?}, {page}");
                let is_new = pages.insert((host(page).to_owned(), to));
                assert!(is_new, "{path} twice: {page}");
            }
        }
        assert_eq!(self.grouped(receiver), (self.hosts["group"].len(), 1));
        assert_eq!(budgeted(receiver), self.budgeted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_in_progress_survives_faults_of_each_kind() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(database));
    let receiver = Receiver::start().await;
    let rests = Arc::clone(&cluster.rests);
    set_up(&cluster.worlds[0].rest(), &receiver).await;
    let kinds = if is_measured() {
        &FAULTS[..]
    } else {
        &FAULTS[..1]
    };
    let all = kinds.iter().cycle().take(kinds.len() * rounds(1));
    for (number, fault) in all.enumerate() {
        beat(&rests).await;
        let round = Round::send(number, &rests).await;
        let (acknowledged, ()) = tokio::join!(
            tokio::time::timeout(RECOVERY_MAX, round.acknowledge(&receiver, &rests)),
            cluster.cause(*fault),
        );
        acknowledged.expect("the page is acknowledged");
        eventually_within(RECOVERY_MAX, "all messages of a round", async || {
            beat(&rests).await;
            round.missing(&receiver).is_none().then_some(())
        })
        .await;
        sleep(QUIET).await;
        round.check(&receiver);
        let query = json!({"query": {"filter": "name=\"beat missing\""}});
        let rest = cluster.worlds[0].rest();
        let found = rest.post("/v1/events:search", &query).await.ok();
        assert!(
            found["results"].as_array().is_none_or(Vec::is_empty),
            "{found}"
        );
        eprintln!("round {number}: {fault:?}, nothing lost, duplicated or early");
    }
    for world in &mut cluster.worlds {
        assert!(world.terminate().success());
    }
}
