//! Deliveries and escalation steps of nodes with a latency of some milliseconds to their database.

use std::time::{Duration, Instant};

use bellwether_tests::{
    distance::Distance,
    engine::{Engine, Variables},
    postgres::Postgres,
    world::World,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use url::Url;

use crate::{
    delivery::rate,
    load::over_grpc,
    postgres::{divided, events, world},
    report::{Figure, Goal, Report, say},
    sink::{Sink, route},
};

const DESTINATIONS: usize = 60;
/// Time that a receiver takes to respond.
const RECEIVER_TIME: Duration = Duration::from_millis(20);
const BATCH: usize = 100;
/// Concurrent requests with events.
const SENDERS: usize = 8;
const NAMES: [&str; 3] = ["one", "two", "three"];
const NEAR: Duration = Duration::ZERO;
const ZONE: Duration = Duration::from_millis(2);
const FAR: Duration = Duration::from_millis(20);
const PAGES: usize = 200;
const STEP: Duration = Duration::from_secs(10);
/// Number of alternating runs; the median ratio is reported.
const TURNS: usize = 3;

pub(crate) async fn measure(report: &mut Report) {
    let (rates, pages) = ("latency: deliveries", "latency: pages");
    if !report.wants(rates) && !report.wants(pages) {
        return;
    }
    if !Engine::usable().contains(&Engine::Database) {
        return say("latency: left out");
    }
    if report.wants(rates) {
        deliveries(report).await;
    }
    if report.wants(pages) {
        storm(report).await;
    }
}

/// Nodes over one database, whose connections to the database have a latency.
struct Nodes {
    all: Vec<World>,
    // Its folder contains the keys of the store.
    _first: World,
    _distance: Distance,
}

impl Nodes {
    async fn start(count: usize, latency: Duration) -> Self {
        let mut first = world(Engine::Database);
        let url = |variables: &Variables| {
            let url = variables.iter().find(|(name, _)| *name == URL);
            let url = url.and_then(|(_, url)| Url::parse(url).ok());
            url.and_then(|url| url.port()).expect("a port")
        };
        let distance = Distance::start(url(first.variables()), latency);
        assert!(first.terminate().success(), "the first node stops");
        let key = first.admin_key();
        let start = |name: &&str| {
            let other = |(variable, value): &(&'static str, String)| match *variable {
                URL => (*variable, Postgres::url_of(distance.port())),
                "BELLWETHER_STORE_NODE_NAME" => (*variable, (*name).to_owned()),
                _ => (*variable, value.clone()),
            };
            let prepare = |data_dir: &std::path::Path| {
                std::fs::create_dir_all(data_dir).expect("a folder");
                std::fs::write(data_dir.join("admin.key"), &key).expect("a key");
            };
            let variables = first.variables().iter().map(other).collect();
            World::with_variables(prepare, "", variables)
        };
        let all: Vec<_> = NAMES.iter().take(count).map(start).collect();
        divided(&all).await;
        Self {
            all,
            _first: first,
            _distance: distance,
        }
    }
}

const URL: &str = "BELLWETHER_STORE_URL";

async fn deliveries(report: &mut Report) {
    let count = events("BELLWETHER_BENCH_DELIVERIES", 12_000);
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let near = delivered(1, NEAR, count).await;
        let zone = delivered(1, ZONE, count).await;
        let three = delivered(3, ZONE, count).await;
        let far = delivered(1, FAR, count).await;
        turns.push([near, zone, three, far]);
    }
    let mut add = |name: &str, of: usize, beside: (&str, usize), least: f64| {
        let ratio = |turn: &[f64; 4]| turn[of] / turn[beside.1];
        turns.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let median = turns[TURNS / 2];
        let reference = median[beside.1];
        report.add(
            Figure::new(format!("latency: deliveries, {name}"), median[of], "/s")
                .goal(Goal::Least(least * reference))
                .beside(beside.0, Some(reference)),
        );
    };
    add("one node at 2 ms", 1, ("at 0 ms", 0), 0.7);
    add("three nodes at 2 ms", 2, ("one node", 1), 2.0);
    add("one node at 20 ms", 3, ("at 0 ms", 0), 0.0);
}

/// Returns the deliveries per second to receivers that take [`RECEIVER_TIME`] to respond.
async fn delivered(nodes: usize, latency: Duration, count: usize) -> f64 {
    let sink = Sink::with_delay(RECEIVER_TIME).await;
    let nodes = Nodes::start(nodes, latency).await;
    for number in 0..DESTINATIONS {
        let part = number.to_string();
        let clause = json!({"equals": {"field": "dimensions.part", "stringVal": part}});
        let url = sink.url(&format!("/{number}"));
        route(&nodes.all[0].rest(), &format!("d{number}"), &url, &clause).await;
    }
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let rest = nodes.all[sender % nodes.all.len()].rest();
        senders.spawn(async move {
            for first in (sender * BATCH..count).step_by(SENDERS * BATCH) {
                let events: Vec<_> = (first..first + BATCH).map(event).collect();
                let sent = rest
                    .post("/v1/data-receiver/events", &json!({"events": events}))
                    .await;
                sent.ok();
            }
        });
    }
    senders.join_all().await;
    sink.wait_for(count).await;
    let messages = sink.take();
    let (arrived, number) = (messages.len(), nodes.all.len());
    assert!(
        arrived >= count,
        "{arrived} of {count} arrived: {number} nodes at {latency:?}"
    );
    let rate = rate(&messages);
    say(&format!("  {number} nodes at {latency:?}: {rate:.0}/s"));
    rate
}

fn event(number: usize) -> Value {
    let part = (number % DESTINATIONS).to_string();
    let dimensions = json!({"host": format!("h{number}"), "part": part});
    json!({"name": "bench", "summary": format!("number {number}"), "dimensions": dimensions})
}

/// Measures the delay of the second steps of responses that begin at the same time.
async fn storm(report: &mut Report) {
    let sink = Sink::start().await;
    let nodes = Nodes::start(1, FAR).await;
    let rest = nodes.all[0].rest();
    let create = async |path: &str, body: Value| {
        let path = format!("/v1/notification/{path}");
        rest.post(&path, &body).await.ok();
    };
    let webhook = json!({"url": sink.url("/"), "payload": "{\"to\": \"{{contact.name}}\"}"});
    let destination = json!({"name": "push", "type": {"webhook": webhook}});
    create("destinations", destination).await;
    for name in ["ana", "ben"] {
        let methods = json!([{"destinationName": "push"}]);
        create("contacts", json!({"name": name, "methods": methods})).await;
    }
    let step = |name: &str| json!({"targets": [{"contactName": name}], "wait": format!("{}s", STEP.as_secs())});
    let policy = json!({"name": "all", "steps": [step("ana"), step("ben")]});
    create("escalation-policies", policy).await;
    let trigger = json!({"name": "all", "type": {"event": {"filter": "name=bench"}}});
    create("triggers", trigger).await;
    let rule = json!({"name": "all", "enabled": true, "triggerNames": ["all"],
        "escalationPolicyName": "all"});
    create("rules", rule).await;
    let begin = Instant::now();
    over_grpc(nodes.all[0].grpc(), 0, PAGES).await;
    tokio::time::sleep(STEP).await;
    sink.wait_for(2 * PAGES).await;
    let second = |body: &[u8]| String::from_utf8_lossy(body).contains("ben");
    let messages = sink.take();
    let second = messages.iter().filter(|it| second(&it.body));
    let second: Vec<_> = second.map(|it| it.at).collect();
    assert_eq!(
        second.len(),
        PAGES,
        "each response ran its second step once"
    );
    let last = second.into_iter().max().expect("a message");
    let late = (last - begin).saturating_sub(STEP).as_secs_f64();
    let name = format!("latency: pages, last of {PAGES} second steps at 20 ms");
    report.add(Figure::new(name, late, "s late").goal(Goal::Most(2.0)));
}
