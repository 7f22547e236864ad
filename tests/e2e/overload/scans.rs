//! Tests of a client that repeats the most expensive requests: ingest and other clients are hardly
//! affected, and abandoned scans end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bellwether_tests::{
    rest::{Answer, Rest},
    world::World,
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::interval};

use super::{EVENTS, attack::hostile_times, peak_mib};

const CALLS: usize = 64;
const CLAUSES: usize = 400;
const BODY_BYTES: usize = 30_000;
const ROUNDS: usize = 15;
/// Time limits for other clients on a busy machine, in a debug build; `just bench` has the figures
/// of a release.
const HEALTH_MAX: Duration = Duration::from_secs(10);
const OTHERS_MAX: Duration = Duration::from_secs(30);
const END_MAX: Duration = Duration::from_secs(30);

/// Returns a query that matches no event and reads the whole body in each clause.
fn costly() -> Value {
    let clause =
        |at: usize| json!({"contains": {"field": "body", "value": format!("nEEdle {at}")}});
    json!({"or": {"clauses": (0..CLAUSES).map(clause).collect::<Vec<_>>()}})
}

fn calls(event: &str) -> Vec<(&'static str, String, Value)> {
    let clause = costly();
    let query = json!({"clause": clause});
    let trigger = json!({"name": "draft", "type": {"event": {"query": query}}});
    let silence = json!({"name": "draft", "reason": "r", "query": query,
        "span": {"endTime": crate::samples::in_seconds(3_600)}});
    let inhibition =
        json!({"name": "draft", "source": query, "target": query, "equal": [{"source": "host"}]});
    let rule = json!({"name": "draft", "triggerNames": ["draft"], "destinationNames": []});
    let impact = json!({"documents": [{"trigger": trigger}, {"rule": rule}]});
    let matching = json!({"query": {"clause": {"matches":
        {"field": "body", "value": "(x?y?z?){60}[a-z ]{30}needle"}}}});
    let list = "body~\"[a-z]needle\" ".repeat(100);
    let list = format!(
        "/v1/notification/deliveries?filter={}",
        list.replace(' ', "%20")
            .replace('"', "%22")
            .replace('[', "%5B")
            .replace(']', "%5D")
    );
    vec![
        ("count", "/v1/events:count".into(), json!({"query": query})),
        (
            "search",
            "/v1/events:search".into(),
            json!({"query": query}),
        ),
        ("patterns", "/v1/events:count".into(), matching),
        (
            "frequency",
            "/v1/events:frequency".into(),
            json!({"query": query}),
        ),
        (
            "group",
            "/v1/events:group".into(),
            json!({"query": query, "field": "host"}),
        ),
        (
            "silence",
            "/v1/notification/silences:preview".into(),
            silence,
        ),
        (
            "inhibition",
            "/v1/notification/inhibitions:preview".into(),
            inhibition,
        ),
        ("impact", "/v1/config:impact".into(), impact),
        ("test", "/v1/notification/triggers:test".into(), trigger),
        (
            "explain",
            format!("/v1/events/{event}:explain"),
            Value::Null,
        ),
        ("deliveries", list, Value::Null),
    ]
}

async fn store_large(rest: &Rest, count: usize) {
    let body = "Xy z".repeat(BODY_BYTES / 4);
    for at in (0..count).step_by(50) {
        let event = |host: usize| json!({"name": "large", "dimensions": {"host": host.to_string()}, "body": body});
        let events: Vec<Value> = (at..at + 50).map(event).collect();
        rest.post(EVENTS, &json!({"events": events})).await.ok();
    }
}

/// Longest waits of other clients: for a health check, for storing an event, and for a search.
#[derive(Debug, Default)]
struct Waited {
    health: Duration,
    event: Duration,
    search: Duration,
}

async fn others(rest: &Rest, reader: &Rest) -> Waited {
    let mut waited = Waited::default();
    let small = json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "small"}},
        "severities": ["SEVERITY_CRITICAL"]}});
    for round in 0..ROUNDS {
        let health = rest.get("/healthz");
        assert_eq!(timed(&mut waited.health, health).await.status, 200);
        let event = json!({"events": [{"name": "small", "severity": "SEVERITY_CRITICAL",
            "dimensions": {"host": round.to_string()}}]});
        timed(&mut waited.event, rest.post(EVENTS, &event))
            .await
            .ok();
        let search = reader.post("/v1/events:search", &small);
        timed(&mut waited.search, search).await.ok();
    }
    waited
}

async fn timed(longest: &mut Duration, call: impl Future<Output = Answer>) -> Answer {
    let start = Instant::now();
    let answer = call.await;
    *longest = (*longest).max(start.elapsed());
    answer
}

/// Returns the CPU time of the scan threads, in ticks of 10 ms.
fn scanned_ticks(world: &World) -> u64 {
    let tasks = format!("/proc/{}/task", world.service().id());
    let stats = std::fs::read_dir(tasks).unwrap().flatten();
    let ticks = stats.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once(") ")?;
        let fields: Vec<_> = rest.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        name.ends_with("(scan")
            .then(|| Some(ticks(11)? + ticks(12)?))?
    });
    ticks.sum()
}

async fn until_rest(world: &World) -> Duration {
    let start = Instant::now();
    let mut pace = interval(Duration::from_millis(200));
    pace.tick().await;
    let mut before = scanned_ticks(world);
    while start.elapsed() < 10 * END_MAX {
        pace.tick().await;
        let now = scanned_ticks(world);
        // The scans have ended once they use at most a fifth of a processor.
        if now - before <= 4 {
            return start.elapsed();
        }
        before = now;
    }
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expensive_queries_delay_no_other_client_and_end_on_disconnect() {
    let world = World::start();
    let greedy = Arc::new(
        world
            .rest()
            .with_key(Some(&world.client("greedy", "operator"))),
    );
    let reader = world
        .rest()
        .with_key(Some(&world.client("reader", "viewer")));
    let rest = world.rest();
    store_large(&rest, hostile_times(1_000, 4_000)).await;
    let first = json!({"query": {"pageInput": {"limit": 1}}});
    let first = rest.post("/v1/events:search", &first).await;
    let event = first.ok()["results"][0]["id"].as_str().unwrap().to_owned();
    let quiet = others(&rest, &reader).await;
    for (name, path, body) in calls(&event) {
        let mut asking = JoinSet::new();
        for _ in 0..CALLS {
            let (greedy, path, body) = (Arc::clone(&greedy), path.clone(), body.clone());
            asking.spawn(async move {
                loop {
                    let answer = if body.is_null() {
                        greedy.get(&path).await
                    } else {
                        greedy.post(&path, &body).await
                    };
                    let status = answer.status.as_u16();
                    assert!(
                        matches!(status, 200 | 429 | 503 | 504),
                        "{path}: {}",
                        answer.text()
                    );
                    // The client waits less than the response requests. Clients that do not wait
                    // at all are tested in `unauthenticated`.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        let waited = others(&rest, &reader).await;
        eprintln!("{name}: {waited:?}, quiet {quiet:?}");
        assert!(waited.health <= HEALTH_MAX, "{name}: {waited:?}");
        assert!(waited.event <= OTHERS_MAX, "{name}: {waited:?}");
        assert!(waited.search <= OTHERS_MAX, "{name}: {waited:?}");
        if let Some(ended) = asking.try_join_next() {
            ended.unwrap();
        }
        asking.shutdown().await;
        let ended = until_rest(&world).await;
        eprintln!("{name}: ended after {ended:?}");
        assert!(ended <= END_MAX, "{name}: ended after {ended:?}");
    }
    let peak = peak_mib(&world);
    assert!(peak < super::MEMORY_MAX_MIB, "{peak} MiB");
}
