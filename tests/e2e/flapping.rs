//! A flapping event: one notification in one thread, even if the service is killed.

use bellwether_tests::{
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

const RULES: &str = "/v1/notification/rules";

async fn send(rest: &Rest, status: &str) -> String {
    let mut event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    event["status"] = json!(status);
    let body = samples::events(&[event]);
    let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
    assert_eq!(answer["succeeded"], 1);
    let search = json!({"query": {"filter": "host=a"}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    found["results"][0]["id"].as_str().unwrap().to_owned()
}

fn rule(flapping: Value) -> Value {
    let message = "{{event.flapping}} {{event.status}}";
    let mut rule = samples::rule("page", "disk", "hook", message);
    rule["sendUpdates"] = json!(true);
    rule["flapping"] = flapping;
    rule
}

fn received_messages(receiver: &Receiver) -> Vec<(String, String)> {
    let all = receiver.received();
    let reported = all.iter().map(Received::json);
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    reported
        .map(|it| (text(&it["rule"]["message"]), text(&it["thread_id"])))
        .collect()
}

#[tokio::test]
async fn flapping_event_notifies_once_and_closes_despite_a_kill() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let wrong = json!({"openCount": 2, "window": "86401s"});
    let refused = rest.post(RULES, &rule(wrong)).await;
    assert_eq!(refused.status, 400);
    let fields = refused.json()["details"][1]["fieldViolations"].clone();
    let fields = fields.as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|it| it["field"].clone()).collect();
    assert_eq!(
        json!(fields),
        json!(["flapping.openCount", "flapping.window", "flapping.settle"])
    );
    let calm = json!({"openCount": 3, "window": "3600s", "settle": "900s"});
    let made = rest.post(RULES, &rule(calm.clone())).await.ok();
    assert_eq!(made["rule"]["flapping"], calm);

    let mut event = String::new();
    for round in 0..5 {
        send(&rest, "STATUS_OPEN").await;
        receiver.wait_for((2 * round + 1).min(5)).await;
        event = send(&rest, "STATUS_CLOSED").await;
        receiver.wait_for((2 * round + 2).min(5)).await;
    }
    let reported = received_messages(&receiver);
    let texts: Vec<_> = reported.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        texts,
        [
            "false open",
            "false closed",
            "false open",
            "false closed",
            "true open"
        ]
    );
    assert_eq!(reported[4].1, format!("{event}:3"));
    let waits = rest.get("/v1/notification/pending").await.ok();
    assert_eq!(
        waits["pending"][0]["holds"][0]["kind"],
        "HOLD_KIND_FLAPPING"
    );
    assert_eq!(waits["pending"].as_array().unwrap().len(), 1);

    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(rest.get("/v1/notification/pending").await.ok(), waits);
    send(&rest, "STATUS_OPEN").await;
    send(&rest, "STATUS_CLOSED").await;
    let mut edited = rule(Value::Null);
    edited.as_object_mut().unwrap().remove("flapping");
    rest.put(&format!("{RULES}/page"), &edited).await.ok();
    receiver.wait_for(6).await;
    let reported = received_messages(&receiver);
    assert_eq!(
        reported[5],
        ("false closed".to_owned(), format!("{event}:3"))
    );
    let explained = rest.get(&format!("/v1/events/{event}:explain")).await.ok();
    let steps = explained["rules"][0]["holdSteps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["kind"], "released");
}
