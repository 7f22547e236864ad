//! Explanations of a decision after all definitions that it was based on were edited and deleted,
//! and after a crash.

use bellwether_tests::{eventually::eventually, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use crate::{journey, samples};

async fn send(rest: &Rest, event: Value) {
    let body = samples::events(&[event]);
    let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
}

fn full() -> Value {
    samples::event("full", "a", "SEVERITY_ERROR", "disk is full")
}

async fn explain_event(rest: &Rest) -> Value {
    let search = json!({"query": {}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    let id = found["results"][0]["id"].as_str().unwrap().to_owned();
    let answer = rest.get(&format!("/v1/events/{id}:explain")).await.ok();
    let rules = answer["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{answer}");
    rules[0].clone()
}

fn decision_of(rule: &Value) -> Value {
    json!([
        rule["ruleName"],
        rule["notified"],
        rule["basis"],
        rule["decisionTime"],
        rule["reason"],
        rule["triggers"][0]["clause"],
        rule["gates"],
    ])
}

#[tokio::test]
async fn explanation_of_a_decision_survives_edits_deletion_and_a_crash() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    journey::set_up(&rest, &receiver).await;
    let mut updating = samples::rule("disks", "disk", "hook", "as it was: {{event.summary}}");
    updating["sendUpdates"] = json!(true);
    let path = "/v1/notification/rules/disks";
    rest.put(path, &updating).await.ok();
    send(&rest, full()).await;
    let before = eventually("the message to be delivered", async || {
        let rule = explain_event(&rest).await;
        let delivered = rule["deliveries"][0]["state"] == "DELIVERED";
        delivered.then_some(rule)
    })
    .await;
    assert_eq!(before["basis"], "DECISION_BASIS_NOTIFICATION");
    assert_eq!(before["triggers"][0]["matched"], true);
    let attempt = &before["deliveries"][0]["attempts"][0];
    assert_eq!(attempt["outcome"], "OUTCOME_DELIVERED");
    let now = before["others"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&now["basis"], &now["notifies"]),
        (&json!("DECISION_BASIS_NOW"), &json!(false))
    );

    rest.put(
        "/v1/notification/triggers/disk",
        &samples::trigger("disk", "tape"),
    )
    .await
    .ok();
    let mut other = samples::rule("disks", "disk", "hook", "another text");
    other["sendUpdates"] = json!(true);
    rest.put(path, &other).await.ok();
    assert_eq!(
        decision_of(&explain_event(&rest).await),
        decision_of(&before)
    );

    rest.delete(path).await.ok();
    rest.delete("/v1/notification/triggers/disk?force=true")
        .await
        .ok();
    world.kill();
    world.start_again();
    let rest = world.rest();
    let after = explain_event(&rest).await;
    assert_eq!(decision_of(&after), decision_of(&before));
    assert_eq!(after["deleted"], true);

    let mut closed = full();
    closed["status"] = json!("STATUS_CLOSED");
    send(&rest, closed).await;
    let closing = eventually("the closing message", async || {
        let received = receiver.received();
        received.into_iter().find_map(|request| {
            let body: Value = serde_json::from_slice(&request.body).ok()?;
            (body["clear"] == true).then_some(body)
        })
    })
    .await;
    assert_eq!(closing["rule"]["message"], "as it was: disk is full");
    assert_eq!(closing["trigger"]["name"], "disk");
    let query = &closing["trigger"]["type"]["event"]["query"];
    assert!(query.to_string().contains("\"disk\""), "{query}");
}
