//! What one client that asks for all that costs most does to ingest and to signs of life.

use std::time::{Duration, Instant};

use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    load::percentile_99,
    report::{Figure, Goal, Report},
};

/// Calls of that client concurrently.
const CALLS: usize = 64;
/// Events that they look at, and the bytes of the body of each.
const EVENTS: usize = 4_000;
const BODY_BYTES: usize = 30_000;
/// Clauses of the query.
const CLAUSES: usize = 400;
/// Events and signs of life that are asked for, quiet and beside it.
const ROUNDS: usize = 10_000;

const INGEST: &str = "/v1/data-receiver/events";

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("scans") {
        return;
    }
    let world = World::start();
    let rest = world.rest();
    store(&rest).await;
    let (quiet, _) = rounds(&rest).await;
    let greedy = world
        .rest()
        .with_key(Some(&world.client("greedy", "viewer")));
    let clause =
        |at: usize| json!({"contains": {"field": "body", "value": format!("nEEdle {at}")}});
    let clauses: Vec<Value> = (0..CLAUSES).map(clause).collect();
    let query = json!({"query": {"clause": {"or": {"clauses": clauses}}}});
    let mut asking = JoinSet::new();
    for _ in 0..CALLS {
        let (greedy, query) = (greedy.clone(), query.clone());
        asking.spawn(async move {
            loop {
                let answer = greedy.post("/v1/events:count", &query).await;
                // As the response asks.
                if let Ok(seconds) = answer.header("retry-after").parse() {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                }
            }
        });
    }
    let (beside, health) = rounds(&rest).await;
    asking.shutdown().await;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let name = "scans: 64 calls of one viewer, longest /healthz";
    report.add(Figure::new(name, ms(health), "ms").goal(Goal::Most(100.0)));
    let (quiet, beside) = (percentile_99(quiet), percentile_99(beside));
    let name = "scans: 64 calls of one viewer, p99 of ingest";
    report.add(Figure::new(name, ms(beside), "ms").beside("quiet", Some(ms(quiet))));
    let ratio = beside.as_secs_f64() / quiet.as_secs_f64();
    let name = "scans: 64 calls of one viewer, ratio of ingest";
    report.add(Figure::new(name, ratio, "x").goal(Goal::Most(3.0)));
}

async fn store(rest: &Rest) {
    let body = "Xy z".repeat(BODY_BYTES / 4);
    for at in (0..EVENTS).step_by(50) {
        let event = |host: usize| json!({"name": "large", "dimensions": {"host": host.to_string()}, "body": body});
        let events: Vec<Value> = (at..at + 50).map(event).collect();
        rest.post(INGEST, &json!({"events": events})).await.ok();
    }
}

/// How long each event took to be stored, and a sign of life at most.
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
