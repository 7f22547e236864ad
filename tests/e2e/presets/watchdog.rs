//! The preset for the `Watchdog` alert of Prometheus: the next alert closes the alarm.

use bellwether_tests::{eventually::eventually, process, rest::Rest, world::World};
use serde_json::{Value, json};

use super::folder;

pub(super) const WATCHDOG: &str = "watchdog";

async fn status(rest: &Rest) -> Option<Value> {
    let request = json!({"query": {"filter": "name=\"no alerts from Prometheus\""}});
    let found = rest.post("/v1/events:search", &request).await.ok();
    let status = found["results"][0]["occurrences"][0]["status"].clone();
    (!status.is_null()).then_some(status)
}

#[tokio::test]
async fn watchdog_alarm_closes_on_firing_but_not_on_resolved() {
    let world = World::start();
    let file = folder().join("watchdog.yaml");
    let output = process::run(world.command(&["apply", "-f", file.to_str().unwrap()]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let rest = world.rest();
    let webhook = async |status: &str| {
        let (start, end) = match status {
            "resolved" => ("2026-01-31T08:00:00Z", "2026-01-31T08:00:01Z"),
            _ => ("2026-01-31T08:05:00Z", "0001-01-01T00:00:00Z"),
        };
        let alert = json!({"status": status, "labels": {"alertname": "Watchdog",
            "severity": "none", "cluster": "a"}, "annotations": {"summary": "always fires"},
            "startsAt": start, "endsAt": end});
        let message = json!({"version": "4", "status": status, "alerts": [alert]});
        rest.post("/v1/intake/alertmanager", &message).await.ok();
    };
    let beat = async || {
        let path = "/v1/notification/heartbeats/watchdog";
        rest.get(path).await.ok()["heartbeat"]["lastBeatTime"].clone()
    };
    assert!(beat().await.is_null());
    // Report a failure, which opens the same event as a missed beat but without a wait.
    let failed = json!({"exit": 1});
    let path = "/v1/data-receiver/heartbeats/watchdog:beat";
    rest.post(path, &failed).await.ok();
    let opened = async || status(&rest).await.filter(|it| it == "STATUS_OPEN");
    eventually("the event is open", opened).await;
    let before = beat().await;
    webhook("resolved").await;
    assert_eq!(beat().await, before);
    webhook("firing").await;
    let closed = async || status(&rest).await.filter(|it| it == "STATUS_CLOSED");
    eventually("the event is closed", closed).await;
    let beaten = async || (beat().await != before).then_some(());
    eventually("the beat is stored", beaten).await;
}
