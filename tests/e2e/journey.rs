//! The main scenario from end to end: events in, messages out, over REST.

use std::collections::BTreeMap;

use bellwether_tests::{eventually::eventually, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use crate::samples;

const MESSAGE: &str = "{{event.summary}} on {{event.dimensions.host}}, says {{rule.name}}";

/// Creates a webhook destination for the receiver, a trigger on the word `disk`, and an enabled
/// rule.
pub(crate) async fn set_up(rest: &Rest, receiver: &Receiver) {
    let destination = samples::webhook("hook", &receiver.url("/hook"));
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    rest.post(
        "/v1/notification/triggers",
        &samples::trigger("disk", "disk"),
    )
    .await
    .ok();
    let rule = samples::rule("disks", "disk", "hook", MESSAGE);
    rest.post("/v1/notification/rules", &rule).await.ok();
}

async fn send(rest: &Rest, events: &[Value]) {
    let answer = rest
        .post("/v1/data-receiver/events", &samples::events(events))
        .await
        .ok();
    assert_eq!(answer["succeeded"], events.len(), "{answer}");
}

async fn deliveries(rest: &Rest) -> Vec<Value> {
    let list = rest
        .get("/v1/notification/deliveries?pageSize=1000")
        .await
        .ok();
    list["deliveries"].as_array().cloned().unwrap_or_default()
}

async fn settled_deliveries(rest: &Rest) -> Vec<Value> {
    eventually("every delivery to end", async || {
        let deliveries = deliveries(rest).await;
        deliveries
            .iter()
            .all(|delivery| delivery["endTime"].is_string())
            .then_some(deliveries)
    })
    .await
}

/// Sends ten events, three of which match: one of these is sent twice, and one is closed and
/// reopened.
async fn send_ten_events_three_matching(rest: &Rest) {
    let mut lab = samples::event("full", "lab1", "SEVERITY_ERROR", "disk is full");
    lab["dimensions"]["env"] = json!("LAB");
    let full = |host: &str| samples::event("full", host, "SEVERITY_ERROR", "The DISK is full");
    send(
        rest,
        &[
            full("a"),
            samples::event("full", "b", "SEVERITY_CRITICAL", "a disk is gone"),
            full("c"),
            lab,
            samples::event("full", "d", "SEVERITY_WARNING", "disk is filling"),
            samples::event("load", "a", "SEVERITY_ERROR", "load is high"),
            samples::event("load", "b", "SEVERITY_CRITICAL", "load is very high"),
            samples::event("full", "e", "SEVERITY_INFO", "disk is fine"),
            samples::event("full", "f", "SEVERITY_DEBUG", "disk was looked at"),
            json!({"name": "bare", "dimensions": {"host": "g"}}),
        ],
    )
    .await;
    send(rest, &[full("a")]).await;
    let mut closed = full("c");
    closed["status"] = json!("STATUS_CLOSED");
    send(rest, &[closed]).await;
    send(rest, &[full("c")]).await;
}

#[tokio::test]
pub(crate) async fn every_receiver_is_notified_once_per_occurrence() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;

    let tested = rest
        .post(
            "/v1/notification/destinations:test",
            &json!({"name": "hook"}),
        )
        .await
        .ok();
    assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
    assert_eq!(tested["response"]["status"], 200);
    assert_eq!(receiver.received().len(), 1, "a test sends one message");
    receiver.forget();

    send_ten_events_three_matching(&rest).await;
    let settled = settled_deliveries(&rest).await;

    let mut reported = BTreeMap::new();
    for received in receiver.received() {
        let message = received.json();
        assert_eq!(message["id"], received.delivery_id());
        assert_eq!(message["clear"], false);
        assert_eq!(message["trigger"]["name"], "disk");
        let occurrence = message["event"]["occurrence_id"].as_str().expect("an id");
        let number = occurrence.rsplit(':').next().expect("a number").to_owned();
        let host = message["event"]["dimensions"]["host"]
            .as_str()
            .expect("a host")
            .to_owned();
        let text = message["rule"]["message"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert_eq!(
            reported.insert((host, number), text),
            None,
            "notified twice"
        );
    }
    let text = |summary: &str, host: &str| format!("{summary} on {host}, says disks");
    let expected = [("a", "1"), ("b", "1"), ("c", "1"), ("c", "2")].map(|(host, number)| {
        let summary = if host == "b" {
            "a disk is gone"
        } else {
            "The DISK is full"
        };
        ((host.to_owned(), number.to_owned()), text(summary, host))
    });
    assert_eq!(reported, BTreeMap::from(expected));

    let delivered = settled.iter().filter(|delivery| delivery["test"] == false);
    assert!(
        delivered
            .clone()
            .all(|delivery| delivery["state"] == "DELIVERED"),
        "{settled:?}"
    );
    assert_eq!(delivered.count(), 4);
    let rule = rest.get("/v1/notification/rules/disks").await.ok()["rule"].clone();
    assert_eq!(rule["recentNotificationCount"], 4, "{rule}");
}

#[tokio::test]
pub(crate) async fn destination_can_be_tested_before_it_is_stored() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    let test = async |definition: &Value| {
        rest.post("/v1/notification/destinations:test", definition)
            .await
            .ok()
    };
    let mut draft = samples::webhook("draft", &receiver.url("/draft"));
    draft["type"]["webhook"]["headers"] = json!({"x-team": "storage"});
    draft["type"]["webhook"]["payload"] = json!("{\"text\": \"{{event.summary}}\"}");
    draft["event"] = samples::event("x", "h", "SEVERITY_ERROR", "said \"so\"");

    let delivered = test(&draft).await;

    assert_eq!(delivered["outcome"], "OUTCOME_DELIVERED", "{delivered}");
    let request = receiver.received().remove(0);
    assert_eq!(request.headers["x-team"], "storage");
    assert_eq!(request.json(), json!({"text": "said \"so\""}));
    assert!(rest.get("/v1/notification/destinations/draft").await.status == 404);

    receiver.reply([bellwether_tests::receiver::Reply::status(500)]);
    assert_eq!(test(&draft).await["outcome"], "OUTCOME_REJECTED");
    let nowhere = samples::webhook("nowhere", "http://127.0.0.1:9/");
    assert_eq!(test(&nowhere).await["outcome"], "OUTCOME_UNREACHABLE");
    let private = samples::webhook("private", "http://10.0.0.1/");
    let blocked = test(&private).await;
    assert_eq!(blocked["outcome"], "OUTCOME_BLOCKED", "{blocked}");
    let invalid = samples::webhook("invalid", "ftp://example.net/");
    let refused = rest
        .post("/v1/notification/destinations:test", &invalid)
        .await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("type.webhook.url"),
        "{}",
        refused.text()
    );

    let log = deliveries(&rest).await;
    assert_eq!(log.len(), 4, "{log:?}");
    assert!(
        log.iter().all(|delivery| delivery["test"] == true),
        "{log:?}"
    );
}

#[tokio::test]
pub(crate) async fn delivery_is_retried_until_it_succeeds() {
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"100ms\", \"100ms\"]\n");
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    let reply = bellwether_tests::receiver::Reply::status;
    receiver.reply([reply(503), reply(500)]);

    send(
        &rest,
        &[samples::event(
            "full",
            "a",
            "SEVERITY_ERROR",
            "disk is full",
        )],
    )
    .await;
    let settled = settled_deliveries(&rest).await;

    let requests = receiver.received();
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|request| request.delivery_id() == requests[0].delivery_id())
    );
    let id = settled[0]["id"].as_str().expect("an id");
    let delivery = rest
        .get(&format!("/v1/notification/deliveries/{id}"))
        .await
        .ok()["delivery"]
        .clone();
    assert_eq!(delivery["state"], "DELIVERED");
    let attempts = delivery["attempts"].as_array().expect("attempts");
    let statuses: Vec<_> = attempts
        .iter()
        .map(|attempt| &attempt["response"]["status"])
        .collect();
    assert_eq!(statuses, [503, 500, 200], "{delivery}");
}

#[tokio::test]
pub(crate) async fn dead_delivery_is_resent_manually() {
    let world = World::with_settings("[delivery]\nschedule = [\"0s\"]\n");
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    receiver.reply([bellwether_tests::receiver::Reply::status(500)]);
    send(
        &rest,
        &[samples::event(
            "full",
            "a",
            "SEVERITY_ERROR",
            "disk is full",
        )],
    )
    .await;
    let dead = settled_deliveries(&rest).await.remove(0);
    assert_eq!(dead["state"], "DEAD", "{dead}");

    let id = dead["id"].as_str().expect("an id");
    let path = format!("/v1/notification/deliveries/{id}:retry");
    let again = rest.post(&path, &json!({})).await.ok()["delivery"].clone();

    assert_eq!(again["retryOf"], dead["id"]);
    let settled = settled_deliveries(&rest).await;
    assert_eq!(settled[0]["state"], "DELIVERED", "{settled:?}");
    assert_eq!(receiver.received().len(), 2);
    let ended = rest
        .post(
            &format!("/v1/notification/deliveries/{id}:cancel"),
            &json!({}),
        )
        .await;
    assert_eq!(
        (ended.status.as_u16(), ended.code()),
        (400, 9),
        "{}",
        ended.text()
    );
}

#[tokio::test]
pub(crate) async fn disabled_rules_and_suppressed_occurrences_notify_nobody() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    let mut suppressed = samples::event("full", "quiet", "SEVERITY_ERROR", "disk is full");
    suppressed["status"] = json!("STATUS_SUPPRESSED");
    send(&rest, &[suppressed]).await;
    let mut rule = samples::rule("disks", "disk", "hook", MESSAGE);
    rule["enabled"] = json!(false);
    rest.put("/v1/notification/rules/disks", &rule).await.ok();
    send(
        &rest,
        &[samples::event(
            "full",
            "off",
            "SEVERITY_ERROR",
            "disk is full",
        )],
    )
    .await;
    rule["enabled"] = json!(true);
    rest.put("/v1/notification/rules/disks", &rule).await.ok();
    send(
        &rest,
        &[samples::event(
            "full",
            "on",
            "SEVERITY_ERROR",
            "disk is full",
        )],
    )
    .await;

    let settled = settled_deliveries(&rest).await;

    assert_eq!(settled.len(), 1, "{settled:?}");
    assert_eq!(
        receiver.received()[0].json()["event"]["dimensions"]["host"],
        "on"
    );
}
