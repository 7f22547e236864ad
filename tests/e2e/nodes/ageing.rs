//! Each node closes and deletes due events that it owns, and other nodes take over when it fails.

use std::time::{Duration, Instant};

use bellwether_tests::{eventually::eventually_within, rest::Rest, world::World};
use serde_json::json;

use super::{EVENTS, owners::sample, three};
use crate::{postgres::Database, samples};

const SETTINGS: &str = "/v1/settings";
/// Number of due events; enough that each of three nodes owns some if it owns any of the 16 slots.
const DUE: usize = 1_500;
const BATCH: usize = 500;
/// Time limit for processing all due events on a busy machine, without the failover.
const WITHIN: Duration = Duration::from_secs(60);

async fn put(rest: &Rest, round: &str) {
    for first in (0..DUE).step_by(BATCH) {
        let event = |number| {
            let host = format!("{round}-{number}");
            samples::event("full", &host, "SEVERITY_ERROR", "disk is full")
        };
        let events: Vec<_> = (first..first + BATCH).map(event).collect();
        let answer = rest.post(EVENTS, &samples::events(&events)).await.ok();
        assert_eq!(answer["succeeded"], BATCH, "{answer}");
    }
}

async fn set(rest: &Rest) {
    let mut settings = rest.get(SETTINGS).await.ok()["settings"].clone();
    settings["errorAgeMax"] = json!("3s");
    settings["eventRetention"] = json!("4s");
    rest.put(SETTINGS, &settings).await.ok();
}

async fn until_none(rest: &Rest, filter: &str) -> Duration {
    let begin = Instant::now();
    let query = json!({"query": {"filter": filter, "pageInput": {"limit": 1}}});
    eventually_within(WITHIN, "everything that is due", async || {
        let found = rest.post("/v1/events:search", &query).await.ok();
        let left = found["results"].as_array().map_or(0, Vec::len);
        (left == 0).then_some(())
    })
    .await;
    begin.elapsed()
}

/// Returns the number of evaluations by each node.
async fn decision_counts(worlds: &[World]) -> Vec<usize> {
    let mut all = Vec::new();
    for world in worlds {
        all.push(sample(world, "bellwether_evaluations_total").await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_close_their_due_events_and_those_of_lost_nodes() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    super::owners::all_own(&worlds).await;
    let rest = worlds[0].rest();
    set(&rest).await;
    put(&rest, "first").await;
    let before = decision_counts(&worlds).await;
    let took = until_none(&rest, "name=full AND status=open").await;
    let after = decision_counts(&worlds).await;
    let closed: Vec<_> = after
        .iter()
        .zip(&before)
        .map(|(is, was)| is - was)
        .collect();
    eprintln!("{DUE} events closed by {closed:?} after {took:.1?}");
    // A node that is delayed for seconds hands over its slots, so one node may have closed none.
    let nodes = closed.iter().filter(|it| **it > 0).count();
    assert!(nodes >= 2, "{closed:?}");
    assert_eq!(closed.iter().sum::<usize>(), DUE, "none was closed twice");

    // The leader fails while it owns due events, all of which must still be processed.
    put(&rest, "second").await;
    worlds[0].kill();
    let took = until_none(&worlds[1].rest(), "name=full").await;
    eprintln!(
        "{} events deleted after {took:.1?}, beside the loss of a node",
        2 * DUE
    );
}
