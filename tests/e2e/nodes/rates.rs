//! Limits of a destination apply across all nodes, and when its owner changes.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    world::World,
};
use serde_json::{Value, json};

use super::{
    owners::{all_own, attempts},
    three,
};
use crate::{journey, postgres::Database, samples};

const IN_FLIGHT: usize = 2;
const PER_MINUTE: usize = 20;
const TAKES: Duration = Duration::from_millis(150);
const MARGIN: Duration = Duration::from_millis(50);
/// Time limit for all messages: a minute each for the limits of the old and the new owner, and time
/// for a busy machine.
const COMES_WITHIN: Duration = Duration::from_secs(300);

/// Returns the arrival times of messages about events sent to three nodes. The destination's owner
/// is killed after `killed_after` messages.
async fn arrivals(limits: Value, events: usize, killed_after: usize) -> Option<Vec<Instant>> {
    let database = Database::start()?;
    let mut worlds = three(&database);
    all_own(&worlds).await;
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&arrivals);
    let receiver = Receiver::with_rule(move |_request| {
        noted.lock().unwrap().push(Instant::now());
        Reply {
            delay: TAKES,
            ..Reply::status(200)
        }
    })
    .await;
    let rests: Vec<_> = worlds.iter().map(World::rest).collect();
    journey::set_up(&rests[0], &receiver).await;
    let mut hook = samples::webhook("hook", &receiver.url("/hook"));
    hook["delivery"] = limits;
    let path = "/v1/notification/destinations/hook";
    rests[1].put(path, &hook).await.ok();
    for number in 0..events {
        let event = samples::event("full", &format!("h{number}"), "SEVERITY_ERROR", "disk");
        let body = samples::events(&[event]);
        let answer = rests[number % 3].post("/v1/data-receiver/events", &body);
        assert_eq!(answer.await.ok()["succeeded"], 1);
    }
    let until = async |count: usize| {
        let begin = Instant::now();
        while arrivals.lock().unwrap().len() < count {
            assert!(begin.elapsed() < COMES_WITHIN, "messages are missing");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    until(killed_after).await;
    let mut killed = None;
    for (at, world) in worlds.iter().enumerate() {
        if attempts(world).await > 0 {
            assert_eq!(killed.replace(at), None, "one node delivers");
        }
    }
    let killed = killed.unwrap();
    worlds[killed].kill();
    let rest = &rests[(killed + 1) % 3];
    until(events).await;
    eventually("every delivery to end", async || {
        let left = rest.get("/v1/notification/pending?pageSize=1").await.ok();
        left["pending"]
            .as_array()
            .is_none_or(Vec::is_empty)
            .then_some(())
    })
    .await;
    Some(arrivals.lock().unwrap().clone())
}

fn no_more_than(count: usize, within: Duration, arrivals: &[Instant]) {
    for window in arrivals.windows(count + 1) {
        let span = window[count] - window[0];
        assert!(span + MARGIN >= within, "{count} and one in {span:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_flight_limit_holds_across_nodes() {
    let limits = json!({"maxInFlight": IN_FLIGHT});
    if let Some(arrivals) = arrivals(limits, 60, 30).await {
        no_more_than(IN_FLIGHT, TAKES, &arrivals);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn per_minute_limit_holds_across_nodes() {
    if std::env::var_os("BELLWETHER_TEST_STOPS").is_none() {
        // Write to standard error directly, so that a skipped test is visible.
        let notice = "skipped: minutes of a destination pass when `just stops` asks for it\n";
        return drop(std::io::stderr().write_all(notice.as_bytes()));
    }
    let limits = json!({"maxPerMinute": PER_MINUTE});
    if let Some(arrivals) = arrivals(limits, 2 * PER_MINUTE, PER_MINUTE).await {
        no_more_than(PER_MINUTE, Duration::from_secs(60), &arrivals);
    }
}
