//! Large requests and long strings that other services reject; every path accepts them.

use std::fs;

use bellwether_tests::{
    eventually::eventually,
    programs::{Running, port, programs},
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use super::{client, events, sender};

async fn count(rest: &Rest, name: &str) -> u64 {
    let clause = json!({"equals": {"field": "name", "stringVal": name}});
    let query = json!({"query": {"clause": clause}});
    let answer = rest.post("/v1/events:count", &query).await.ok();
    answer["count"].as_u64().unwrap_or_default()
}

fn alerts(name: &str, count: usize) -> Vec<Value> {
    let alert = |at| {
        json!({
            "labels": {"alertname": name, "host": format!("host-{at}"), "severity": "critical"},
            "annotations": {"summary": "the disk is full", "description": "d".repeat(600)},
            "startsAt": "2026-01-31T08:00:00Z",
        })
    };
    (0..count).map(alert).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn alertmanager_storm_in_one_message_is_stored() {
    let Some([alertmanager]) = programs(["prometheus-alertmanager"]) else {
        return;
    };
    let world = World::start();
    let rest = world.rest();
    let key = sender(&world, "alertmanager", &["alertmanager"]);
    let address = world.service().address("rest");
    for (name, most, stored, noted) in [("Whole", 0, 1_500, 0), ("Cut", 1_000, 1_000, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "route: {{receiver: us, group_by: [alertname], group_wait: 2s, group_interval: 2s}}\n\
             receivers:\n\
             - name: us\n  \
               webhook_configs:\n  \
               - url: http://{address}/v1/intake/alertmanager\n    \
                 max_alerts: {most}\n    \
                 http_config: {{authorization: {{credentials: {key}}}}}\n"
        );
        fs::write(folder.path().join("alertmanager.yml"), settings).unwrap();
        let listen = port();
        let _running = Running::start(
            folder.path(),
            &alertmanager,
            &[
                "--config.file=alertmanager.yml".to_owned(),
                "--storage.path=data".to_owned(),
                "--cluster.listen-address=".to_owned(),
                format!("--web.listen-address=127.0.0.1:{listen}"),
            ],
        );
        let source = Rest::new(&format!("127.0.0.1:{listen}"), None);
        let mut firing = alerts(name, 1_500);
        for alert in &mut firing {
            alert["startsAt"] = json!(jiff::Timestamp::now().to_string());
        }
        let firing = Value::Array(firing).to_string();
        let json = [("content-type", "application/json")];
        let sent = async || {
            let path = "/api/v2/alerts";
            let sent = source.try_send(Method::POST, path, &json, firing.clone());
            sent.await.ok().filter(|it| it.status == 200)
        };
        eventually("Alertmanager to accept its alerts", sent).await;
        let arrived = async || (count(&rest, name).await == stored).then_some(());
        eventually("the alerts to arrive", arrived).await;
        let notes = async || (count(&rest, "alertmanager-truncated").await == noted).then_some(());
        eventually("the omitted alerts to be reported", notes).await;
    }
    let refused = rest.get("/metrics").await.text();
    assert!(
        !refused.contains("alertmanager/v1/intake/alertmanager\",code=\"400\""),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_alerts_in_one_request_count_as_one_request() {
    let world = World::start();
    let rest = world.rest();
    let key = sender(&world, "all", &["alertmanager", "prometheus"]);
    let limited = ["client", "update", "all", "--requests-per-second", "1"];
    assert!(
        bellwether_tests::process::run(world.command(&limited))
            .status
            .success()
    );
    let as_sender = rest.with_key(Some(&key));
    let message =
        json!({"alerts": alerts("Webhook", 10_000), "receiver": "r", "truncatedAlerts": 1});
    assert!(message.to_string().len() > 6 * 1024 * 1024);
    let answer = as_sender.post("/v1/intake/alertmanager", &message).await;
    assert_eq!(answer.ok()["succeeded"], 10_001);
    assert_eq!(count(&rest, "Webhook").await, 10_000);
    let direct = Value::Array(alerts("Direct", 1_001));
    let read_rate = async || {
        let answer = as_sender.post("/api/v2/alerts", &direct).await;
        (answer.status != 429).then_some(answer)
    };
    let answer = eventually("the rate", read_rate).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(count(&rest, "Direct").await, 1_001);
    // The native API still limits the number of events in a request.
    let event = |at| json!({"name": "own", "dimensions": {"host": format!("h{at}")}});
    let own: Vec<_> = (0..1_001).map(event).collect();
    let answer = rest
        .post("/v1/data-receiver/events", &json!({"events": own}))
        .await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn gzipped_otlp_grpc_batch_is_stored() {
    const COUNT: u64 = 8_192;
    let world = World::start();
    let key = sender(&world, "collector", &["otlp"]);
    let address = world.service().address("grpc").to_owned();
    let modules = "grpc, opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc";
    let arguments = [&*address, &key, &COUNT.to_string()];
    let Some(reported) = client("send_otlp_grpc.py", modules, &arguments) else {
        return;
    };
    assert!(
        reported["bytes"].as_u64() > Some(4 * 1024 * 1024),
        "{reported}"
    );
    assert_eq!(reported["rejected"], 0, "{reported}");
    assert_eq!(reported["refused"], "UNAUTHENTICATED", "{reported}");
    let rest = world.rest();
    let clause = json!({"startsWith": {"field": "name", "value": "order "}});
    let query = json!({"query": {"clause": clause}});
    let answer = rest.post("/v1/events:count", &query).await.ok();
    assert_eq!(answer["count"], COUNT, "{answer}");
    let one = events(&rest, "order 8191 lost").await;
    assert_eq!(one[0].0, "host.name=web-1 service.name=shop");
    let attributes = &one[0].1["metadataFields"]["attributes"];
    assert_eq!(attributes["attribute 3"], "value 8191 3");
}

/// A request with a long text, used as an identity and as a description.
type Long = fn(identity: &str, text: &str, key: &str) -> (&'static str, &'static str, Value);

const SENDERS: [Long; 6] = [
    |identity, text, _| {
        let labels = json!({"alertname": identity, "host": "h"});
        let texts = json!({"summary": text, "description": text, "runbook": text});
        let alert = json!({"labels": labels, "annotations": texts});
        let path = "/v1/intake/alertmanager";
        ("application/json", path, json!({"alerts": [alert]}))
    },
    |identity, text, _| {
        let labels = json!({"alertname": "long label", "path": identity});
        let alert = json!({"labels": labels, "annotations": {"description": text}});
        ("application/json", "/api/v2/alerts", json!([alert]))
    },
    |identity, text, key| {
        let payload = json!({
            "summary": text, "source": "s", "severity": "fatal", "class": text,
            "custom_details": {"text": text, "small": 1},
        });
        let event = json!({
            "routing_key": key, "event_action": "trigger", "dedup_key": identity, "payload": payload,
        });
        ("application/json", "/v2/enqueue", event)
    },
    |identity, text, _| {
        let alert = json!({
            "message": text, "alias": identity, "description": text, "details": {"text": text},
        });
        ("application/json", "/v2/alerts", alert)
    },
    |identity, text, _| {
        let event = json!({
            "specversion": "1.0", "type": identity, "source": "s", "id": identity, "data": {"message": text},
        });
        (
            "application/cloudevents+json",
            "/v1/intake/cloudevents",
            event,
        )
    },
    |identity, text, _| {
        let body = json!({"stringValue": text});
        let attributes = json!([{"key": "long", "value": body}]);
        let record = json!({
            "eventName": identity, "severityNumber": 17, "body": body, "attributes": attributes,
        });
        let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
        ("application/json", "/v1/logs", logs)
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_lose_no_event_and_long_names_stay_distinct() {
    let world = World::start();
    let dialects = [
        "alertmanager",
        "prometheus",
        "pagerduty",
        "opsgenie",
        "cloudevents",
        "otlp",
    ];
    let key = sender(&world, "all", &dialects);
    let rest = world.rest();
    let as_sender = rest.with_key(Some(&key));
    let text = "long text ".repeat(10_000);
    // 90 characters of three bytes, and two names with the same beginning.
    let long = "\u{78c1}".repeat(90);
    let names = [
        long.clone(),
        format!("{long}a"),
        format!("{long}b"),
        "n".repeat(70_000),
    ];
    for (at, send) in SENDERS.iter().enumerate() {
        let before = all(&rest).await;
        for (number, name) in names.iter().enumerate() {
            for _ in 0..2 {
                let (content_type, path, body) = send(name, &text, &key);
                let headers = [("content-type", content_type)];
                let sent = as_sender.try_send(Method::POST, path, &headers, body.to_string());
                let answer = sent.await.unwrap();
                assert!(
                    answer.status.is_success(),
                    "{path} {number}: {}",
                    answer.text()
                );
                assert!(
                    !answer.text().contains("rejectedLogRecords"),
                    "{}",
                    answer.text()
                );
            }
        }
        let added = all(&rest).await - before;
        assert_eq!(added, names.len() as u64, "sender {at}");
    }
    let labels = |last: &str| {
        let label = |at| (format!("label_{at:02}"), json!("x"));
        let mut labels: serde_json::Map<_, _> = (0..80).map(label).collect();
        labels.insert("alertname".into(), json!("Labels"));
        labels.insert("zone".into(), json!(last));
        json!([{"labels": labels}])
    };
    for last in ["a", "b", "a"] {
        let answer = as_sender.post("/api/v2/alerts", &labels(last)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let found = events(&rest, "Labels").await;
    assert_eq!(found.len(), 2);
    let zone = |at: usize| found[at].1["metadataFields"]["dimensions"]["zone"].clone();
    assert_ne!(zone(0), zone(1));
}

async fn all(rest: &Rest) -> u64 {
    let answer = rest
        .post("/v1/events:count", &json!({"query": {}}))
        .await
        .ok();
    answer["count"].as_u64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn opsgenie_alert_is_read_and_deleted_by_alias() {
    let world = World::start();
    let key = sender(&world, "genie", &["opsgenie"]);
    let rest = world.rest();
    let genie = rest.with_key(Some(&key));
    let alert = json!({"message": "disk full", "alias": "db/1", "priority": "P2", "tags": ["a"]});
    assert_eq!(genie.post("/v2/alerts", &alert).await.status, 202);
    let path = "/v2/alerts/db%2F1?identifierType=alias";
    assert_eq!(
        genie.get(path).await.status,
        403,
        "it may send but not read"
    );
    let data = rest.get(path).await.ok()["data"].clone();
    assert_eq!(
        [
            &data["alias"],
            &data["message"],
            &data["status"],
            &data["priority"],
            &data["tags"]
        ],
        [
            &json!("db/1"),
            &json!("disk full"),
            &json!("open"),
            &json!("P2"),
            &json!(["a"])
        ]
    );
    assert_eq!(rest.get("/v2/alerts/unknown").await.status, 404);
    let deleted = genie.delete(path).await;
    assert_eq!(deleted.status, 202, "{}", deleted.text());
    let id = deleted.json()["requestId"].as_str().unwrap().to_owned();
    let request = genie.get(&format!("/v2/alerts/requests/{id}")).await.ok();
    assert_eq!(request["data"]["action"], "Delete");
    assert_eq!(rest.get(path).await.ok()["data"]["status"], "closed");
}
