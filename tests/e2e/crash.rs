//! `kill -9` during a burst of events, and during deliveries: no acknowledged event is lost, every
//! delivery arrives with its single attempt, and duplicates are identical.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{journey, samples};

const BURST: usize = 5_000;
const BATCH: usize = 50;
const SENDERS: usize = 4;
const ROUNDS: usize = 2;
/// A single attempt, which a kill must not use up.
const SETTINGS: &str = "[delivery]\nschedule = [\"0s\"]\nmax_in_flight_per_destination = 64\n";

/// Number of events of a round in which the service is killed during deliveries.
const SLOW_BURST: usize = 600;
const SLOW: Duration = Duration::from_millis(40);

/// Returns the number of rounds, which `BELLWETHER_TEST_KILLS` overrides.
pub(crate) fn rounds(unless: usize) -> usize {
    std::env::var_os("BELLWETHER_TEST_KILLS")
        .and_then(|rounds| rounds.to_str()?.parse().ok())
        .unwrap_or(unless)
}

/// Whether no other test runs at the same time, so that times are meaningful.
pub(crate) fn is_measured() -> bool {
    std::env::var_os("BELLWETHER_TEST_KILLS").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_and_deliveries_survive_kills() {
    let mut world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    for round in 0..rounds(ROUNDS) {
        burst(&mut world, round, &answered).await;
        world.start_again();
    }

    let rest = world.rest();
    let stored = stored_hosts(&rest).await;
    let answered = answered.lock().expect("no sender failed").clone();
    let lost: Vec<_> = answered.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "{} acknowledged events are lost, such as {:?}",
        lost.len(),
        lost[0]
    );
    assert!(
        !answered.is_empty(),
        "no event was acknowledged before the kill"
    );

    let known = delivered_names(&rest).await;
    let requests = receiver.received();
    let arrived: BTreeSet<_> = requests
        .iter()
        .map(|request| request.delivery_id().to_owned())
        .collect();
    assert_eq!(
        known, arrived,
        "every delivery arrives, and each id is known"
    );
    let hosts = notified_hosts(&receiver);
    assert_eq!(hosts, stored, "every stored event is notified");
    assert_eq!(known.len(), stored.len(), "and has one delivery");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_during_delivery_loses_and_alters_no_message() {
    let mut world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    receiver.set_default_reply(Reply {
        delay: SLOW,
        ..Reply::status(200)
    });
    for round in 0..rounds(ROUNDS) {
        let before = receiver.received().len();
        let hosts = (0..SLOW_BURST).map(|number| format!("r{round}-{number}"));
        let event = |host: String| samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
        let events: Vec<_> = hosts.map(event).collect();
        let rest = world.rest();
        let answer = rest
            .post("/v1/data-receiver/events", &samples::events(&events))
            .await
            .ok();
        assert_eq!(answer["succeeded"], SLOW_BURST);
        // Kill the service early, halfway or late, by turns.
        let wanted = before + SLOW_BURST * (round % 3 + 1) / 4;
        eventually("messages to be in flight", async || {
            (receiver.received().len() >= wanted).then_some(())
        })
        .await;
        world.kill();
        world.start_again();
    }

    let rest = world.rest();
    let known = delivered_names(&rest).await;
    assert_eq!(
        known.len(),
        rounds(ROUNDS) * SLOW_BURST,
        "one for each event"
    );
    let mut arrived: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for request in receiver.received() {
        let id = request.delivery_id().to_owned();
        arrived.entry(id).or_default().push(request);
    }
    assert!(known.iter().eq(arrived.keys()), "no delivery is missing");
    let repeated = arrived.iter().filter(|(_, requests)| requests.len() > 1);
    let mut repeats = 0;
    for (id, requests) in repeated {
        repeats += 1;
        let path = format!("/v1/notification/deliveries/{id}");
        let attempts = rest.get(&path).await.ok()["delivery"]["attempts"].clone();
        let attempts = attempts.as_array().expect("attempts");
        assert!(requests.len() <= attempts.len(), "{attempts:?}");
        assert_eq!(attempts[0]["outcome"], "OUTCOME_UNKNOWN", "{attempts:?}");
        for request in requests {
            assert_eq!(request.body, requests[0].body);
            assert_eq!(request.headers["idempotency-key"], *id);
        }
    }
    assert!(repeats > 0, "no kill hit a message in flight");
}

async fn delivered_names(rest: &Rest) -> BTreeSet<String> {
    let mut left = usize::MAX;
    loop {
        let deliveries = eventually("further deliveries to end", async || {
            let deliveries = deliveries(rest).await;
            let waiting = deliveries.iter().filter(|it| it["endTime"].is_null());
            let waiting = waiting.count();
            (waiting < left).then(|| {
                left = waiting;
                deliveries
            })
        })
        .await;
        if left == 0 {
            let others = deliveries.iter().filter(|it| it["state"] != "DELIVERED");
            let others: Vec<_> = others.take(3).collect();
            assert!(others.is_empty(), "not delivered, such as {others:?}");
            return deliveries.iter().map(|it| text(&it["id"])).collect();
        }
    }
}

/// Sends a burst, and kills the service when about half of it is accepted.
async fn burst(world: &mut World, round: usize, answered: &Arc<Mutex<BTreeSet<String>>>) {
    let before = answered.lock().expect("no sender failed").len();
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (rest, answered) = (world.rest(), Arc::clone(answered));
        senders.spawn(async move {
            for batch in (sender..BURST / BATCH).step_by(SENDERS) {
                let host = |number: usize| format!("r{round}-b{batch}-{number}");
                let event = |number| {
                    samples::event("full", &host(number), "SEVERITY_ERROR", "disk is full")
                };
                let events: Vec<_> = (0..BATCH).map(event).collect();
                let body = samples::events(&events).to_string();
                let post = http::Method::POST;
                let Ok(answer) = rest
                    .try_send(post, "/v1/data-receiver/events", &[], body)
                    .await
                else {
                    break;
                };
                if answer.status == 200 && answer.json()["succeeded"] == BATCH {
                    answered
                        .lock()
                        .expect("no sender failed")
                        .extend((0..BATCH).map(host));
                }
            }
        });
    }
    eventually("responses to half of the burst", async || {
        let acknowledged = answered.lock().expect("no sender failed").len() - before;
        (acknowledged >= BURST / 2).then_some(())
    })
    .await;
    world.kill();
    senders.join_all().await;
}

pub(crate) fn notified_hosts(receiver: &Receiver) -> BTreeSet<String> {
    let received = receiver.received();
    let hosts = received.iter();
    hosts
        .map(|it| text(&it.json()["event"]["dimensions"]["host"]))
        .collect()
}

pub(crate) async fn stored_hosts(rest: &Rest) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = json!({"query": {"pageInput": {"limit": 1_000, "cursor": cursor}}});
        let page = rest.post("/v1/events:search", &page).await.ok();
        let events = page["results"].as_array().expect("a page");
        // Events about the service itself have no host.
        let found = events
            .iter()
            .filter_map(|it| it["dimensions"]["host"].as_str());
        hosts.extend(found.map(str::to_owned));
        if page["pageInfo"]["hasNext"] != true {
            return hosts;
        }
        cursor = text(&page["pageInfo"]["endCursor"]);
    }
}

pub(crate) async fn deliveries(rest: &Rest) -> Vec<Value> {
    let mut deliveries = Vec::new();
    let mut token = String::new();
    loop {
        let path = format!("/v1/notification/deliveries?pageSize=1000&pageToken={token}");
        let page = rest.get(&path).await.ok();
        deliveries.extend(page["deliveries"].as_array().cloned().unwrap_or_default());
        match page["nextPageToken"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return deliveries,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
