//! PagerDuty: triggering, acknowledging, updating and resolving an alert.

use bellwether_tests::{
    eventually::eventually,
    providers::{Mischief, StandIn, pagerduty::PagerDuty},
    receiver::Reply,
    world::World,
};
use serde_json::{Value, json};

use super::stage::{SUMMARY, Stage};
use crate::samples;

pub(super) const ROUTING_KEY: &str = "0123456789abcdef0123456789abcdef";

pub(super) fn rules() -> PagerDuty {
    PagerDuty {
        routing_key: ROUTING_KEY.into(),
    }
}

#[tokio::test]
async fn pagerduty_gets_one_alert_from_opening_to_closing() {
    let pagerduty = StandIn::start(rules()).await;
    let settings = format!(
        "link_base = \"https://bell.example\"\n[providers]\npagerduty = {:?}\n",
        pagerduty.url("")
    );
    let world = World::with_settings(&settings);
    let kind = json!({"pagerduty": {"routingKey": ROUTING_KEY}});
    let stage = Stage::new(world, kind, "").await;

    stage.opens().await;
    let opening = stage.wait_received(&pagerduty, 1).await.json();
    stage.is_acknowledged().await;
    let acknowledged = stage.wait_received(&pagerduty, 2).await.json();
    stage.gets_worse().await;
    stage.wait_received(&pagerduty, 3).await;
    stage.closes().await;
    let closing = stage.wait_received(&pagerduty, 4).await.json();

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
    let reported = pagerduty.accepted();
    assert_eq!(reported[2].json()["payload"]["severity"], "critical");
    for message in reported {
        assert_eq!(message.json()["dedup_key"], occurrence, "one alert");
    }
    stage.delivered(4).await;
}

const UNKNOWN_KEY: [&str; 5] = [
    r#"{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect (should be 32 characters)"]}"#,
    r#"{"status":"invalid key","message":"Invalid routing key","errors":["Invalid routing key"]}"#,
    r#"{"status":"invalid event","message":"Event object is invalid"}"#,
    r#"{"error":{"message":"Integration not found","code":2001}}"#,
    "Invalid routing key",
];

#[tokio::test]
async fn rotated_pagerduty_key_loses_no_page() {
    for said in UNKNOWN_KEY {
        let pagerduty = StandIn::start(rules()).await;
        pagerduty.misbehave(Mischief::Answers(Reply {
            body: said.into(),
            ..Reply::status(400)
        }));
        let settings = format!(
            "[providers]\npagerduty = {:?}\n[delivery]\nschedule = [\"0s\", \"1s\", \"1h\"]\n",
            pagerduty.url("")
        );
        let world = World::with_settings(&settings);
        let rest = world.rest();
        let kind = json!({"pagerduty": {"routingKey": "e".repeat(32)}});
        let mut destination = json!({"name": "place", "type": kind});
        for (path, draft) in [
            ("destinations", &destination),
            ("triggers", &samples::trigger("disk", "disk")),
            ("rules", &samples::rule("teller", "disk", "place", "")),
        ] {
            let path = format!("/v1/notification/{path}");
            rest.post(&path, draft).await.ok();
        }
        let hosts = (0..12).map(|host| format!("db-{host}"));
        let events = hosts.map(|host| samples::event("full", &host, "SEVERITY_ERROR", "disk"));
        let events = samples::events(&events.collect::<Vec<_>>());
        rest.post("/v1/data-receiver/events", &events).await.ok();
        let health = eventually("the destination to be failing", async || {
            let place = rest.get("/v1/notification/destinations/place").await.ok();
            let health = place["destination"]["health"].clone();
            (health["state"] == "FAILING" && pagerduty.requests() >= 5).then_some(health)
        })
        .await;
        assert!(
            health["lastError"]
                .as_str()
                .is_some_and(|it| it.contains("400")),
            "{health}"
        );

        // The operator saves a new key.
        pagerduty.misbehave(None);
        destination["type"]["pagerduty"]["routingKey"] = json!(ROUTING_KEY);
        rest.put("/v1/notification/destinations/place", &destination)
            .await
            .ok();
        let states = eventually("all pages to arrive", async || {
            let list = rest.get("/v1/notification/deliveries").await.ok();
            let all = list["deliveries"].as_array().cloned().unwrap_or_default();
            let ended = all.iter().all(|it| it["endTime"].is_string());
            (all.len() >= 12 && ended).then_some(all)
        })
        .await;
        let dead = states.iter().filter(|it| it["state"] != "DELIVERED");
        assert_eq!(
            dead.collect::<Vec<&Value>>(),
            Vec::<&Value>::new(),
            "{said}"
        );
        assert_eq!(pagerduty.accepted().len(), 12, "{said}");
    }
}
