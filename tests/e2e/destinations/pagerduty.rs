//! PagerDuty: one alert that is opened, acknowledged, raised and resolved.

use bellwether_tests::{
    providers::{StandIn, pagerduty::PagerDuty},
    world::World,
};
use serde_json::json;

use super::stage::{SUMMARY, Stage};

pub(super) const ROUTING_KEY: &str = "0123456789abcdef0123456789abcdef";

pub(super) fn rules() -> PagerDuty {
    PagerDuty {
        routing_key: ROUTING_KEY.into(),
    }
}

#[tokio::test]
async fn pagerduty_sees_one_alert_from_its_opening_to_its_end() {
    let pagerduty = StandIn::start(rules()).await;
    let settings = format!(
        "link_base = \"https://bell.example\"\n[providers]\npagerduty = {:?}\n",
        pagerduty.url("")
    );
    let world = World::with_settings(&settings);
    let kind = json!({"pagerduty": {"routingKey": ROUTING_KEY}});
    let stage = Stage::new(world, kind, "").await;

    stage.opens().await;
    let opening = stage.told(&pagerduty, 1).await.json();
    stage.is_acknowledged().await;
    let acknowledged = stage.told(&pagerduty, 2).await.json();
    stage.gets_worse().await;
    stage.told(&pagerduty, 3).await;
    stage.closes().await;
    let closing = stage.told(&pagerduty, 4).await.json();

    let occurrence = stage.event().await["occurrences"][0]["id"].clone();
    assert_eq!(opening["dedup_key"], occurrence);
    assert_eq!(opening["event_action"], "trigger");
    assert_eq!(opening["client"], "Bellwether");
    let payload = &opening["payload"];
    assert_eq!(payload["summary"], SUMMARY);
    assert_eq!(payload["source"], "db-1");
    assert_eq!(payload["severity"], "error");
    assert_eq!(
        (&payload["component"], &payload["class"]),
        (&json!("full"), &json!("disk"))
    );
    let details = &payload["custom_details"];
    assert_eq!(details["dimensions"], json!({"host": "db-1"}));
    assert_eq!(details["fields"]["usedPercent"], 97.5);
    assert_eq!(details["rule"], "teller");
    let link = opening["links"][0]["href"].as_str().expect("a link");
    assert!(link.starts_with("https://bell.example/events/"), "{link}");

    assert_eq!(acknowledged["event_action"], "acknowledge");
    assert_eq!(closing["event_action"], "resolve");
    let told = pagerduty.taken();
    assert_eq!(told[2].json()["payload"]["severity"], "critical");
    for message in told {
        assert_eq!(message.json()["dedup_key"], occurrence, "one alert");
    }
    stage.delivered(4).await;
}
