//! Shared settings: the stored values apply on every node, regardless of its file.

use std::time::{Duration, Instant};

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use serde_json::{Value, json};

use super::{EVENTS as EVENTS_PATH, join, join_with, leader, store, three};
use crate::{journey, postgres::Database, samples};

const SETTINGS: &str = "/v1/settings";
const EVENTS: usize = 12;
const IN_FORCE_WITHIN: Duration = Duration::from_secs(60);

async fn put(rest: &Rest, host: &str) {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let answer = rest
        .post(EVENTS_PATH, &samples::events(&[event]))
        .await
        .ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
}

async fn deliveries(rest: &Rest) -> usize {
    let listed = rest.get("/v1/notification/deliveries").await.ok();
    listed["deliveries"].as_array().map_or(0, Vec::len)
}

async fn settings(rest: &Rest) -> Value {
    rest.get(SETTINGS).await.ok()["settings"].clone()
}

async fn settings_event(rest: &Rest) -> Option<String> {
    let query = json!({"query": {}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let mut results = found["results"].as_array()?.iter();
    let event = results.find(|it| it["name"] == "settings differ")?;
    let newest = &event["occurrences"][0];
    Some(newest["status"].as_str()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn new_leader_uses_the_stored_retention_not_its_file() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut one = database.world();
    let mut two = join(&database, &one, "two");
    let lines = database.settings_of("three");
    let lines = lines.replace("[delivery]\n", "[delivery]\nretention = \"1s\"\n");
    let filter = "log_filter = \"info,bellwether_backend::delivery::retention=debug\"\n";
    let three = join_with(&one, &format!("{filter}{lines}"));
    let receiver = Receiver::start().await;
    journey::set_up(&one.rest(), &receiver).await;
    for number in 0..EVENTS {
        put(&one.rest(), &format!("h{number}")).await;
    }
    eventually("notifications of every event", async || {
        (receiver.count() >= EVENTS).then_some(())
    })
    .await;

    let differs = "delivery.retention = \"1s\" (stored: \"30d\")";
    let shown = process::run(store(&one.data_dir(), &["status"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(differs), "{shown}");
    let overview = one.rest().get("/v1/overview").await.ok();
    let nodes = overview["nodes"].as_array().unwrap();
    let ignored = nodes.iter().map(|it| it["ignoredSettings"].clone());
    let ignored: Vec<_> = ignored.filter(|it| !it.is_null()).collect();
    assert_eq!(ignored, [json!([differs])]);
    assert!(three.service().log().contains("the stored value applies"));
    let rest = three.rest();
    eventually("the node to report it", async || {
        (settings_event(&rest).await? == "STATUS_OPEN").then_some(())
    })
    .await;

    one.kill();
    two.kill();
    eventually("the node to lead", async || {
        (leader(&three).await == "three").then_some(())
    })
    .await;
    eventually("the leader to scan for old deliveries", async || {
        let log = three.service().log();
        log.contains("no deliveries have expired").then_some(())
    })
    .await;
    assert_eq!(deliveries(&rest).await, EVENTS);

    // The stored value takes effect without a restart.
    let mut edited = settings(&rest).await;
    edited["deliveryRetention"] = json!("1s");
    rest.put(SETTINGS, &edited).await.ok();
    eventually("old deliveries to be deleted", async || {
        (deliveries(&rest).await == 0).then_some(())
    })
    .await;
    eventually("the node to report that its file matches", async || {
        (settings_event(&rest).await? == "STATUS_CLOSED").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_change_applies_on_all_nodes_and_survives_them() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let rests: Vec<_> = worlds.iter().map(World::rest).collect();
    let receiver = Receiver::start().await;
    journey::set_up(&rests[0], &receiver).await;
    for (at, rest) in rests.iter().enumerate() {
        let tenant = format!("tenant {at}");
        let mut edited = settings(rest).await;
        edited["tenant"] = json!(tenant);
        let etag = edited["etag"].clone();
        rest.put(SETTINGS, &edited).await.ok();
        for other in &rests {
            assert_eq!(settings(other).await["tenant"], tenant);
        }
        // An edit based on the previous version fails.
        edited["etag"] = etag;
        let refused = rests[(at + 1) % 3].put(SETTINGS, &edited).await;
        assert_eq!(refused.status, 409);
        let (begun, mut number) = (Instant::now(), 0);
        loop {
            let before = receiver.count();
            put(&rests[at], &format!("h{at}-{number}")).await;
            number += 1;
            let message = eventually("a message", async || {
                receiver.received().get(before).cloned()
            })
            .await;
            if message.json()["tenant"] == *tenant {
                break;
            }
            assert!(begun.elapsed() < IN_FORCE_WITHIN, "{}", message.json());
        }
    }
    for world in &mut worlds {
        world.kill();
    }
    let again = join(&database, &worlds[0], "four");
    assert_eq!(settings(&again.rest()).await["tenant"], "tenant 2");
}
