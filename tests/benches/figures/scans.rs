//! Effect of a client with the most expensive requests on the latency of ingest and health checks.

use std::time::{Duration, Instant};

use bellwether_tests::{process, rest::Rest, world::World};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    load::percentile_99,
    report::{Figure, Goal, Report},
};

/// Concurrent calls of the expensive client.
const CALLS: usize = 64;
/// Number of scanned events, and the size of each body.
const EVENTS: usize = 4_000;
const BODY_BYTES: usize = 30_000;
/// Clauses of the query.
const CLAUSES: usize = 400;
/// Number of events sent and of health checks made in each phase, without and with load.
const ROUNDS: usize = 10_000;

const INGEST: &str = "/v1/data-receiver/events";

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("scans") {
        return;
    }
    let world = World::start();
    let rest = world.rest();
    store(&rest).await;
    let scope = ["--scope-tag", "team:db"];
    for (who, role, scope, (path, body)) in [
        ("a viewer", "viewer", &[][..], count()),
        ("an operator", "operator", &[], silence()),
        ("an operator who renders", "operator", &[], render()),
        ("a scoped editor", "editor", &scope, impact()),
    ] {
        let (quiet, _) = rounds(&rest).await;
        let key = key(&world, &who.replace(' ', "-"), role, scope);
        let greedy = rest.with_key(Some(&key));
        let mut asking = JoinSet::new();
        for _ in 0..CALLS {
            asking.spawn(ask(greedy.clone(), path, body.clone()));
        }
        let (beside, health) = rounds(&rest).await;
        asking.shutdown().await;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let name = format!("scans: 64 calls of {who}, longest /healthz");
        report.add(Figure::new(name, ms(health), "ms").goal(Goal::Most(100.0)));
        let (quiet, beside) = (percentile_99(quiet), percentile_99(beside));
        let name = format!("scans: 64 calls of {who}, p99 of ingest");
        let figure = Figure::new(name, ms(beside), "ms").goal(Goal::Most(3.0 * ms(quiet)));
        report.add(figure.beside("quiet", Some(ms(quiet))));
    }
}

/// Creates a client, and returns its key.
fn key(world: &World, name: &str, role: &str, scope: &[&str]) -> String {
    let mut command = world.command(&["client", "create", name, "--role", role]);
    command.args(scope);
    let made = process::run(command);
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout)
        .expect("a key")
        .trim()
        .to_owned()
}

/// Repeats a call forever, each time after the delay that the response requests.
async fn ask(greedy: Rest, path: &'static str, body: Value) {
    loop {
        let answer = greedy.post(path, &body).await;
        let is_costly = match answer.status.as_u16() {
            200 | 429 | 503 | 504 => true,
            // The template exceeds its step budget.
            400 => answer.text().contains("steps"),
            _ => false,
        };
        assert!(is_costly, "{path}: {}", answer.text());
        if let Ok(seconds) = answer.header("retry-after").parse() {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    }
}

/// Returns a query that matches no event and reads the whole body in each clause.
fn query() -> Value {
    let clause =
        |at: usize| json!({"contains": {"field": "body", "value": format!("nEEdle {at}")}});
    let clauses: Vec<Value> = (0..CLAUSES).map(clause).collect();
    json!({"clause": {"or": {"clauses": clauses}}})
}

fn count() -> (&'static str, Value) {
    ("/v1/events:count", json!({"query": query()}))
}

fn silence() -> (&'static str, Value) {
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let silence = json!({"name": "draft", "reason": "r", "query": query(),
        "span": {"endTime": end.to_string()}});
    ("/v1/notification/silences:preview", silence)
}

fn impact() -> (&'static str, Value) {
    let trigger = json!({"name": "draft", "tags": ["team:db"],
        "type": {"event": {"query": query()}}});
    let rule = json!({"name": "draft", "tags": ["team:db"], "triggerNames": ["draft"],
        "destinationNames": []});
    let documents = json!({"documents": [{"trigger": trigger}, {"rule": rule}]});
    ("/v1/config:impact", documents)
}

/// Returns a preview of a template whose pattern is searched from every byte to the end of the
/// text.
fn render() -> (&'static str, Value) {
    let payload = "{{ event.body|regex_replace('.*[^A-Z]|[A-Z]', '') }}";
    let event = json!({"name": "text", "dimensions": {"host": "a"},
        "body": "A".repeat(BODY_BYTES)});
    let body = json!({"type": {"webhook": {"url": "http://127.0.0.1:9/", "payload": payload}},
        "templateLanguage": "JINJA", "event": event});
    ("/v1/notification/destinations:render", body)
}

async fn store(rest: &Rest) {
    let body = "Xy z".repeat(BODY_BYTES / 4);
    for at in (0..EVENTS).step_by(50) {
        let event = |host: usize| json!({"name": "large", "dimensions": {"host": host.to_string()}, "body": body});
        let events: Vec<Value> = (at..at + 50).map(event).collect();
        rest.post(INGEST, &json!({"events": events})).await.ok();
    }
}

/// Returns the time that each event took to be stored, and the longest time of a health check.
async fn rounds(rest: &Rest) -> (Vec<Duration>, Duration) {
    let (mut stored, mut health) = (Vec::new(), Duration::ZERO);
    for round in 0..ROUNDS {
        let event =
            json!({"events": [{"name": "small", "dimensions": {"host": round.to_string()}}]});
        let start = Instant::now();
        rest.post(INGEST, &event).await.ok();
        stored.push(start.elapsed());
        let start = Instant::now();
        rest.get("/healthz").await;
        health = health.max(start.elapsed());
    }
    (stored, health)
}
