//! Budgets over REST: messages above a budget go into a digest, even if the service is killed in
//! the meantime.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Received, Receiver, Reply},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

const DESTINATIONS: &str = "/v1/notification/destinations";
const DELIVERIES: &str = "/v1/notification/deliveries";
const PENDING: &str = "/v1/notification/pending";

async fn send(rest: &Rest, hosts: std::ops::Range<usize>, severity: &str, status: &str) {
    let events: Vec<_> = hosts
        .map(|host| {
            let mut event =
                samples::event("full", &format!("host-{host}"), severity, "disk is full");
            event["status"] = status.into();
            event
        })
        .collect();
    let body = samples::events(&events);
    rest.post("/v1/data-receiver/events", &body).await.ok();
}

async fn list_deliveries(rest: &Rest, query: &str) -> Vec<Value> {
    let path = format!("{DELIVERIES}?pageSize=1000&{query}");
    let answer = rest.get(&path).await.ok();
    answer["deliveries"].as_array().cloned().unwrap_or_default()
}

fn digests(receiver: &Receiver) -> Vec<Value> {
    let received = receiver.received();
    let bodies = received.iter().map(Received::json);
    bodies.filter(|it| !it["digest"].is_null()).collect()
}

#[tokio::test]
async fn budget_is_validated_and_returned() {
    let world = World::start();
    let rest = world.rest();
    let mut hook = samples::webhook("hook", "http://127.0.0.1:1/");
    hook["delivery"] = json!({"budget": {"messages": 0, "per": "9s", "criticalShare": 101}});
    let refused = rest.post(DESTINATIONS, &hook).await;
    assert_eq!(refused.status, 400);
    let text = refused.json().to_string();
    for part in [
        "budget.messages",
        "1 to 10000",
        "budget.per",
        "10s to 24h",
        "criticalShare",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    hook["delivery"] = json!({"budget": {"messages": -1, "per": "600s", "criticalShare": -1}});
    let refused = rest.post(DESTINATIONS, &hook).await.json().to_string();
    assert!(refused.contains("is negative"), "{refused}");
    hook["delivery"] = json!({"budget": {"messages": 10, "per": "600s"}});
    let made = rest.post(DESTINATIONS, &hook).await.ok();
    let wanted = json!({"messages": 10, "per": "600s", "criticalShare": 20});
    assert_eq!(made["destination"]["delivery"]["budget"], wanted);
    hook["delivery"]["budget"]["criticalShare"] = json!(0);
    let path = format!("{DESTINATIONS}/hook");
    let saved = rest.put(&path, &hook).await.ok();
    assert_eq!(
        saved["destination"]["delivery"]["budget"]["criticalShare"],
        0
    );
    for kind in [
        json!({"pagerduty": {"routingKey": "R0"}}),
        json!({"event": {"nameTemplate": "a", "typeTemplate": "b", "summaryTemplate": "c",
            "severity": "SEVERITY_INFO"}}),
    ] {
        let draft = json!({"name": "other", "type": kind, "delivery": hook["delivery"]});
        let refused = rest.post(DESTINATIONS, &draft).await;
        assert_eq!(refused.status, 400);
        let text = refused.json().to_string();
        assert!(text.contains("keeps state per thread"), "{text}");
    }
}

/// Returns the id and the members of the pending digest of 13 messages.
async fn pending_digest(rest: &Rest) -> (String, Vec<Value>) {
    let pending = rest.get(&format!("{PENDING}?kinds=DIGEST")).await.ok();
    let [digest] = &pending["pending"].as_array().unwrap()[..] else {
        panic!("{pending}");
    };
    assert_eq!(digest["messageCount"], 13);
    assert_eq!(digest["holds"][0]["kind"], "HOLD_KIND_BUDGET");
    assert_eq!(digest["destinationNames"], json!(["hook"]));
    let id = digest["deliveryId"].as_str().unwrap().to_owned();
    let others = rest.get(&format!("{PENDING}?kinds=OPENING")).await.ok();
    assert!(others["pending"].is_null(), "{others}");

    let read = rest.get(&format!("{DELIVERIES}/{id}")).await.ok();
    let read = &read["delivery"];
    assert_eq!(
        (&read["isDigest"], &read["foldedCount"]),
        (&true.into(), &13.into())
    );
    assert_eq!(read["threadId"], format!("digest-{id}"));
    let why = read["waitReason"].as_str().unwrap();
    assert!(why.starts_with("a digest that collects"), "{why}");
    assert!(read["rendered"].to_string().contains("new_count"), "{read}");
    let folded = list_deliveries(rest, &format!("foldedInto={id}")).await;
    assert_eq!(folded.len(), 13);
    assert!(folded.iter().all(|it| it["foldedInto"] == *id));
    let one = folded[0]["id"].as_str().unwrap();
    let again = rest
        .post(&format!("{DELIVERIES}/{one}:retry"), &json!({}))
        .await;
    assert_eq!(again.status, 400);
    let text = again.json().to_string();
    assert!(text.contains(&id), "{text}");
    assert_eq!(
        rest.get(&format!("{DELIVERIES}?foldedInto=x")).await.status,
        400
    );
    (id, folded)
}

#[tokio::test]
async fn messages_beyond_the_budget_become_a_digest_despite_a_kill() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let mut hook = samples::webhook("hook", &receiver.url("/"));
    // The window is long enough that the kill comes first, even on a slow machine.
    hook["delivery"] = json!({"budget": {"messages": 2, "per": "20s", "criticalShare": 0}});
    rest.put(&format!("{DESTINATIONS}/hook"), &hook).await.ok();
    let mut rule = samples::rule("page", "disk", "hook", "");
    rule["sendUpdates"] = json!(true);
    rest.post("/v1/notification/rules", &rule).await.ok();
    send(&rest, 0..12, "SEVERITY_ERROR", "STATUS_OPEN").await;
    eventually("ten are folded", async || {
        (list_deliveries(&rest, "states=FOLDED").await.len() == 10).then_some(())
    })
    .await;
    send(&rest, 5..8, "SEVERITY_CRITICAL", "STATUS_OPEN").await;
    eventually("the increased severity is folded", async || {
        (list_deliveries(&rest, "states=FOLDED").await.len() == 13).then_some(())
    })
    .await;

    let (id, folded) = pending_digest(&rest).await;

    world.kill();
    assert_eq!(receiver.count(), 2);
    world.start_again();
    let rest = world.rest();
    let reported = eventually("the digest", async || digests(&receiver).pop()).await;
    assert_eq!(receiver.count(), 3);
    assert_eq!(reported["digest"]["count"], 13);
    assert_eq!(reported["digest"]["clear_count"], 3);
    let rows = reported["digest"]["rows"].as_array().unwrap();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["severity"].as_str().unwrap(),
                row["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, [("critical", 3), ("error", 10)]);

    let event = folded[0]["eventId"].as_str().unwrap();
    let explained = eventually("the arrival to be reported", async || {
        let explained = rest.get(&format!("/v1/events/{event}:explain")).await.ok();
        let text = explained.to_string();
        text.contains(", delivered)").then_some(text)
    })
    .await;
    for part in [" in a digest", "\"budget\"", "\"folded\"", &id] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
    let left = rest.get(&format!("{PENDING}?kinds=DIGEST")).await.ok();
    assert!(left["pending"].is_null(), "{left}");
}

#[tokio::test]
async fn digest_can_be_sent_early_and_its_messages_die_with_it() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let mut hook = samples::webhook("hook", &receiver.url("/"));
    hook["delivery"] = json!({"budget": {"messages": 1, "per": "3600s"}});
    rest.put(&format!("{DESTINATIONS}/hook"), &hook).await.ok();
    rest.post(
        "/v1/notification/rules",
        &samples::rule("page", "disk", "hook", ""),
    )
    .await
    .ok();
    send(&rest, 0..4, "SEVERITY_ERROR", "STATUS_OPEN").await;
    let digest = eventually("the digest", async || {
        let pending = rest.get(PENDING).await.ok();
        let first = &pending["pending"][0];
        (first["messageCount"] == 3).then(|| first["deliveryId"].as_str().unwrap().to_owned())
    })
    .await;
    // The message sent separately was accepted.
    eventually("the previous one", async || {
        (list_deliveries(&rest, "states=DELIVERED").await.len() == 1).then_some(())
    })
    .await;
    receiver.set_default_reply(Reply::status(400));
    let retry = format!("{DELIVERIES}/{digest}:retry");
    rest.post(&retry, &json!({})).await.ok();
    let dead = eventually(
        "the message in the digest to become a dead letter",
        async || {
            let dead = list_deliveries(&rest, "states=DEAD").await;
            (dead.len() == 4).then_some(dead)
        },
    )
    .await;
    receiver.set_default_reply(Reply::status(200));
    receiver.forget();
    let dry = json!({"filter": {}, "dryRun": true});
    let dry = rest.post(&format!("{DELIVERIES}:retry"), &dry).await.ok();
    assert_eq!(
        (&dry["count"], &dry["skipped"][0]["count"]),
        (&1.into(), &3.into())
    );
    assert_eq!(dry["skipped"][0]["reason"], "FOLDED");
    let folded = dead.iter().find(|it| it["foldedInto"] == *digest).unwrap();
    let retry = format!("{DELIVERIES}/{}:retry", folded["id"].as_str().unwrap());
    let again = rest.post(&retry, &json!({})).await.ok();
    assert_eq!(again["delivery"]["retryOf"], *digest);
    receiver.wait_for(1).await;
    assert_eq!(digests(&receiver)[0]["digest"]["count"], 3);
}
