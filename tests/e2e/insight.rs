//! The noise report over REST and gRPC, as JSON and CSV, also after a kill.

use bellwether_tests::{process, receiver::Receiver, rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const NOISE: &str = "/v1/notification/noise";
const HOSTS: usize = 14;

async fn send(rest: &Rest, host: usize, change: impl Fn(&mut Value)) {
    let mut event = samples::event(
        "full",
        &format!("host-{host}"),
        "SEVERITY_ERROR",
        "disk is full",
    );
    change(&mut event);
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
}

async fn row(rest: &Rest, by: &str, name: &str) -> Value {
    let found = rest.get(&format!("{NOISE}?by={by}")).await.ok();
    assert_eq!(found["by"], by, "{found}");
    let rows = found["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name} in {found}"))
        .clone()
}

/// Sends 14 events. 3 are acknowledged, and 2 others are closed by their sender.
async fn lived_through(rest: &Rest, receiver: &Receiver) {
    samples::disks_to_hook(rest, receiver).await;
    let rule = samples::rule("page", "disk", "hook", "{{event.summary}}");
    rest.post("/v1/notification/rules", &rule).await.ok();
    for host in 0..HOSTS {
        send(rest, host, |_| {}).await;
    }
    let found = rest
        .post(
            "/v1/events:search",
            &json!({"query": {"filter": "name=full"}}),
        )
        .await
        .ok();
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), HOSTS);
    let acknowledged = results.iter().filter(|it| {
        let host = it["dimensions"]["host"].as_str().unwrap_or_default();
        ["host-0", "host-1", "host-2"].contains(&host)
    });
    let statuses: Vec<_> = acknowledged
        .map(|it| json!({"eventId": it["id"], "acknowledged": true}))
        .collect();
    assert_eq!(statuses.len(), 3);
    rest.post(
        "/v1/event-management/status",
        &json!({"statuses": statuses}),
    )
    .await
    .ok();
    for host in [5, 6] {
        send(rest, host, |event| {
            event["severity"] = json!("SEVERITY_DEFAULT");
            event["status"] = json!("STATUS_CLOSED");
        })
        .await;
    }
}

fn assert_is_the_expected_row(row: &Value) {
    for (field, count) in [
        ("notificationCount", 14),
        ("deliveryCount", 14),
        ("digestedCount", 0),
        ("dryRunCount", 0),
        ("occurrenceCount", 14),
        ("acknowledgedCount", 3),
        ("closedSoonCount", 2),
        ("neverActedOnCount", 2),
    ] {
        assert_eq!(row[field], count, "{field} of {row}");
    }
    let share = row["acknowledgedShare"].as_f64().unwrap();
    assert!((share - 3.0 / 14.0).abs() < 1e-9, "{row}");
    assert_eq!(row["medianAcknowledgeTime"], "60s");
    let night = row["nightCount"].as_i64().unwrap();
    assert!((0..=14).contains(&night), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn noise_report_counts_notifications_and_their_outcome() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    lived_through(&world.rest(), &receiver).await;
    world.kill();
    world.start_again();
    let rest = world.rest();

    for (by, name) in [
        ("RULE", "page"),
        ("TRIGGER", "disk"),
        ("DESTINATION", "hook"),
        ("EVENT_NAME", "full"),
    ] {
        assert_is_the_expected_row(&row(&rest, by, name).await);
    }
    let page = row(&rest, "RULE", "page").await;
    let events = json!([{"name": "full", "notificationCount": 14}]);
    assert_eq!(page["events"], events);
    assert_eq!(page["skippedCount"], 0);
    assert!(
        row(&rest, "TRIGGER", "disk")
            .await
            .get("skippedCount")
            .is_none()
    );
    let contacts = rest.get(&format!("{NOISE}?by=CONTACT")).await.ok();
    assert_eq!(contacts.get("rows"), None, "no one was paged");

    let accept = [("accept", "text/csv")];
    let path = format!("{NOISE}?by=RULE");
    let table = rest.try_send(Method::GET, &path, &accept, "");
    let table = table.await.unwrap();
    assert_eq!(table.header("content-type"), "text/csv; charset=utf-8");
    let text = table.text();
    assert!(
        text.starts_with("name,notificationCount,deliveryCount,"),
        "{text}"
    );
    assert!(text.contains("\r\npage,14,14,0,0,0,"), "{text}");
    let command = process::run(world.command(&["report", "noise", "--by", "rule", "--csv"]));
    assert!(command.status.success(), "{command:?}");
    let printed = String::from_utf8(command.stdout).unwrap();
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        text.lines().collect::<Vec<_>>()
    );
    let command = process::run(world.command(&["report", "noise", "--by", "event-name"]));
    let printed = String::from_utf8(command.stdout).unwrap();
    assert!(
        printed.contains("full\t14 notifications\t14 deliveries\t21 % acknowledged"),
        "{printed}"
    );
}

#[tokio::test]
async fn invalid_noise_query_names_its_field() {
    let world = World::start();
    let rest = world.rest();
    for (query, field) in [
        ("start=2027-01-02T00:00:00Z&end=2027-01-01T00:00:00Z", "end"),
        ("start=2025-01-01T00:00:00Z&end=2027-01-01T00:00:00Z", "end"),
        ("by=SEVERITY", "by"),
        ("timeZone=Mars%2FPolar", "timeZone"),
        ("timeZone=Asia%2FKathmandu", "timeZone"),
        ("days=7", "days"),
    ] {
        let refused = rest.get(&format!("{NOISE}?{query}")).await;
        assert_eq!(refused.status, 400, "{query}");
        let text = refused.text();
        assert!(
            text.contains(&format!("\"field\":\"{field}\"")),
            "{query}: {text}"
        );
    }
    let usual = rest
        .get(&format!("{NOISE}?timeZone=Europe%2FBerlin"))
        .await
        .ok();
    assert_eq!((&usual["by"], usual.get("rows")), (&json!("RULE"), None));
}
