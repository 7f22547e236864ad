//! `kill -9` in the middle of a burst: what was answered stays, and every delivery arrives.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use bellwether_tests::{eventually::eventually, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{journey, samples};

/// Events of one burst, and of one request.
const BURST: usize = 5_000;
const BATCH: usize = 50;
/// Senders at once.
const SENDERS: usize = 4;
/// Rounds unless `BELLWETHER_TEST_KILLS` says otherwise.
const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill_and_every_delivery_arrives() {
    let rounds = std::env::var_os("BELLWETHER_TEST_KILLS")
        .and_then(|rounds| rounds.to_str()?.parse().ok())
        .unwrap_or(ROUNDS);
    let settings = "[delivery]\nschedule = [\"0s\", \"200ms\", \"1s\", \"5s\", \"5s\"]\n\
                    max_in_flight_per_destination = 64\n";
    let mut world = World::with_settings(settings);
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    for round in 0..rounds {
        burst(&mut world, round, &answered).await;
        world.start_again();
    }

    let rest = world.rest();
    let stored = stored_hosts(&rest).await;
    let answered = answered.lock().expect("no sender failed").clone();
    let lost: Vec<_> = answered.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "{} answered events are lost, such as {:?}",
        lost.len(),
        lost[0]
    );
    assert!(!answered.is_empty(), "nothing was answered before the kill");

    let deliveries = eventually("every delivery to end", async || {
        let deliveries = deliveries(&rest).await;
        let ended = deliveries
            .iter()
            .all(|delivery| delivery["endTime"].is_string());
        ended.then_some(deliveries)
    })
    .await;
    let known: BTreeSet<_> = deliveries
        .iter()
        .map(|delivery| text(&delivery["id"]))
        .collect();
    let requests = receiver.received();
    let arrived: BTreeSet<_> = requests
        .iter()
        .map(|request| request.delivery_id().to_owned())
        .collect();
    let hosts: BTreeSet<_> = requests
        .iter()
        .map(|request| text(&request.json()["event"]["dimensions"]["host"]))
        .collect();
    assert_eq!(
        known, arrived,
        "every delivery arrives, and each id is known"
    );
    assert_eq!(hosts, stored, "every stored event is told of");
    assert_eq!(known.len(), stored.len(), "and has one delivery");
}

/// Sends a burst and kills the service when about half of it is answered.
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
    eventually("half of the burst to be answered", async || {
        let so_far = answered.lock().expect("no sender failed").len() - before;
        (so_far >= BURST / 2).then_some(())
    })
    .await;
    world.kill();
    senders.join_all().await;
}

/// The hosts of all stored events.
async fn stored_hosts(rest: &Rest) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = json!({"query": {"pageInput": {"limit": 1_000, "cursor": cursor}}});
        let page = rest.post("/v1/events:search", &page).await.ok();
        for event in page["results"].as_array().expect("a page") {
            hosts.insert(text(&event["dimensions"]["host"]));
        }
        if page["pageInfo"]["hasNext"] != true {
            return hosts;
        }
        cursor = text(&page["pageInfo"]["endCursor"]);
    }
}

/// All deliveries.
async fn deliveries(rest: &Rest) -> Vec<Value> {
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
