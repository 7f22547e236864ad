//! Event destinations: each creates an event of this service, until the loop guard stops the rule.

use bellwether_tests::{eventually::eventually, world::World};
use serde_json::{Value, json};

use super::stage::Stage;

fn kind() -> Value {
    json!({"event": {
        "nameTemplate": "echo of {{event.name}}",
        "typeTemplate": "echo",
        "summaryTemplate": "heard of {{event.summary}}",
        "severity": "SEVERITY_CRITICAL",
    }})
}

async fn find_event(stage: &Stage, name: &str) -> Option<Value> {
    let query = json!({"query": {"clause": {"equals": {"field": "name", "stringVal": name}}}});
    let found = stage.rest.post("/v1/events:search", &query).await.ok();
    found["results"].get(0).cloned()
}

#[tokio::test]
async fn event_destination_creates_events_and_stops_loops() {
    let stage = Stage::new(World::start(), kind(), "told by {{rule.name}}").await;

    stage.opens().await;

    let echo = eventually("the new event", async || {
        find_event(&stage, "echo of full").await
    })
    .await;
    let occurrence = &echo["occurrences"][0];
    assert_eq!(
        (&echo["type"], &echo["dimensions"]["host"]),
        (&json!("echo"), &json!("db-1"))
    );
    assert_eq!(occurrence["severity"], "SEVERITY_CRITICAL");
    assert_eq!(occurrence["body"], "told by teller");
    let summary = occurrence["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("heard of disk"), "{summary}");

    // The new event matches the rule's own trigger.
    let notice = eventually("an event about the loop", async || {
        find_event(&stage, "rule stopped by the loop guard").await
    })
    .await;
    assert_eq!(notice["dimensions"]["source"], "bellwether");
    let said = notice["occurrences"][0]["summary"]
        .as_str()
        .expect("a summary");
    assert!(
        said.contains("teller") && said.contains("matches an event that it caused"),
        "{said}"
    );
    assert_eq!(find_event(&stage, "echo of echo of full").await, None);
    assert_eq!(
        stage.delivered(1).await[0]["eventId"],
        stage.event().await["id"]
    );
}

#[tokio::test]
async fn derived_event_closes_with_its_source() {
    let stage = Stage::new(World::start(), kind(), "").await;
    stage.opens().await;
    eventually("the new event", async || {
        find_event(&stage, "echo of full").await
    })
    .await;

    stage.closes().await;

    let closed = eventually("the new event to close", async || {
        let echo = find_event(&stage, "echo of full").await?;
        let newest = echo["occurrences"][0].clone();
        (newest["status"] == "STATUS_CLOSED").then_some(newest)
    })
    .await;
    assert_eq!(closed["number"], 1, "{closed}");
}
