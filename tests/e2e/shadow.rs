//! Dry-run rules: their notifications are recorded but not sent, and promoting a rule does not
//! notify of past events.

use std::time::Duration;

use bellwether_tests::{receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use crate::samples;

const RULES: &str = "/v1/notification/rules";
const DELIVERIES: &str = "/v1/notification/deliveries";

async fn send(rest: &Rest, host: &str) -> String {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    let search = json!({"query": {"filter": format!("host={host}")}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    found["results"][0]["id"].as_str().unwrap().to_owned()
}

fn rule(shadow: bool) -> Value {
    let mut rule = samples::rule(
        "page",
        "disk",
        "hook",
        "{{event.summary}} on {{event.dimensions.host}}",
    );
    rule["sendUpdates"] = json!(true);
    rule["shadow"] = json!(shadow);
    rule
}

#[tokio::test]
async fn shadow_rule_records_messages_and_can_be_promoted() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let made = rest.post(RULES, &rule(true)).await.ok();
    assert_eq!(made["rule"]["shadow"], true);
    let event = send(&rest, "a").await;

    let listed = rest.get(&format!("{DELIVERIES}?ruleNames=page")).await.ok();
    let listed = listed["deliveries"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "SHADOWED");
    assert_eq!(listed[0]["endTime"], listed[0]["createTime"]);
    let by_state = rest
        .get(&format!("{DELIVERIES}?states=SHADOWED"))
        .await
        .ok();
    assert_eq!(by_state["deliveries"].as_array().unwrap(), listed);
    let path = format!("{DELIVERIES}/{}", listed[0]["id"].as_str().unwrap());
    let read = rest.get(&path).await.ok();
    let rendered = read["delivery"]["rendered"].to_string();
    assert!(rendered.contains("disk is full on a"), "{rendered}");
    assert_eq!(read["delivery"]["attemptCount"], 0);
    let refused = rest.post(&format!("{path}:retry"), &json!({})).await;
    assert_eq!(refused.status, 400);
    let text = refused.json().to_string();
    assert!(text.contains("a dry run's record cannot be sent"), "{text}");
    let many = json!({"filter": {"states": ["SHADOWED"]}});
    let many = rest.post(&format!("{DELIVERIES}:retry"), &many).await.ok();
    assert_eq!(many["skipped"][0]["reason"], "SHADOWED");
    assert_eq!(many["count"], 0);

    let shown = rest.get(&format!("{RULES}/page")).await.ok();
    assert_eq!(shown["rule"]["recentNotificationCount"], 0);
    assert_eq!(shown["rule"]["recentShadowCount"], 1);
    assert!(shown["rule"]["lastNotificationTime"].is_null());
    let owed = rest.get("/v1/notification/obligations").await.ok();
    assert!(owed["obligations"].as_array().is_none_or(Vec::is_empty));
    let explained = rest.get(&format!("/v1/events/{event}:explain")).await.ok();
    let of_rule = &explained["rules"][0];
    assert_eq!(of_rule["notified"], false);
    assert_eq!(
        of_rule["reason"],
        "Only recorded (dry run): trigger `disk` matched. 1 recorded, none sent"
    );
    let timeline = explained["timeline"].as_array().unwrap();
    let kinds: Vec<_> = timeline.iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(json!(kinds), json!(["opened", "shadowed"]));

    // The rule also remains a dry-run rule after a kill. Once promoted, it notifies only about
    // later matches.
    world.kill();
    world.start_again();
    let rest = world.rest();
    rest.put(&format!("{RULES}/page"), &rule(false)).await.ok();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(receiver.count(), 0);
    send(&rest, "a").await;
    receiver.wait_for(1).await;
    let shown = rest.get(&format!("{RULES}/page")).await.ok();
    assert_eq!(shown["rule"]["recentNotificationCount"], 1);
    assert_eq!(shown["rule"]["recentShadowCount"], 1);
    let owed = rest.get("/v1/notification/obligations").await.ok();
    assert_eq!(owed["obligations"].as_array().unwrap().len(), 1);
}
