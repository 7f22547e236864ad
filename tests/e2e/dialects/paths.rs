//! Guarantees of the native path that also hold for all dialects: accepted events are not lost,
//! invalid input is rejected, and rate limits and idempotency keys apply.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bellwether_tests::{
    eventually::eventually,
    process,
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::sender;

struct IntakePath {
    dialect: &'static str,
    path: &'static str,
    content_type: &'static str,
    name: &'static str,
    body: fn(host: &str, key: &str) -> Value,
    wrong: &'static str,
    /// The status that makes the sender retry.
    later: u16,
}

const JSON: &str = "application/json";

static INTAKE_PATHS: [IntakePath; 7] = [
    IntakePath {
        dialect: "alertmanager",
        path: "/v1/intake/alertmanager",
        content_type: JSON,
        name: "am-paths",
        body: |host, _| json!({"version": "4", "status": "firing", "alerts": [alert("am-paths", host)]}),
        wrong: r#"{"alerts": [{"labels": {"alertname": ""}}]}"#,
        later: 503,
    },
    IntakePath {
        dialect: "prometheus",
        path: "/api/v2/alerts",
        content_type: JSON,
        name: "prom-paths",
        body: |host, _| json!([alert("prom-paths", host)]),
        wrong: r#"[{"labels": {}}]"#,
        later: 429,
    },
    IntakePath {
        dialect: "pagerduty",
        path: "/v2/enqueue",
        content_type: JSON,
        name: "pagerduty",
        body: |host, key| {
            let payload = json!({"summary": "s", "source": "x", "severity": "error"});
            json!({
                "routing_key": key, "event_action": "trigger", "dedup_key": host, "payload": payload,
            })
        },
        wrong: r#"{"event_action": "trigger"}"#,
        later: 429,
    },
    IntakePath {
        dialect: "opsgenie",
        path: "/v2/alerts",
        content_type: JSON,
        name: "opsgenie",
        body: |host, _| json!({"message": "m", "alias": host, "priority": "P2"}),
        wrong: r#"{"alias": "x"}"#,
        later: 429,
    },
    IntakePath {
        dialect: "cloudevents",
        path: "/v1/intake/cloudevents",
        content_type: "application/cloudevents+json",
        name: "ce-paths",
        body: |host, _| {
            json!({
                "specversion": "1.0", "type": "ce-paths", "source": "s", "subject": host, "id": host,
            })
        },
        wrong: r#"{"specversion": "1.0", "type": "x"}"#,
        later: 429,
    },
    IntakePath {
        dialect: "otlp",
        path: "/v1/logs",
        content_type: JSON,
        name: "otlp-paths",
        body: |host, _| {
            let host = json!([{"key": "host.name", "value": {"stringValue": host}}]);
            let body = json!({"stringValue": "b"});
            let record = json!({"eventName": "otlp-paths", "severityNumber": 17, "body": body});
            json!({"resourceLogs": [{
                "resource": {"attributes": host}, "scopeLogs": [{"logRecords": [record]}],
            }]})
        },
        wrong: r#"{"resourceLogs": 5}"#,
        later: 429,
    },
    IntakePath {
        dialect: "webhooks",
        path: "/v1/intake/webhooks/paths",
        content_type: JSON,
        name: "map-paths",
        body: |host, _| json!({"host": host}),
        wrong: r#"{"other": 1}"#,
        later: 429,
    },
];

fn alert(name: &str, host: &str) -> Value {
    json!({"status": "firing", "labels": {"alertname": name, "host": host}})
}

async fn world(rate: &[&str]) -> (World, String) {
    let world = World::with_settings("[gateway]\nbody_limit = \"64KiB\"\n");
    let mapping = json!({
        "name": "paths",
        "event": {"name": "map-paths", "dimensions": {"host": "{{host}}"}},
    });
    let rest = world.rest();
    rest.post("/v1/intake/mappings", &mapping).await.ok();
    let dialects: Vec<_> = INTAKE_PATHS.iter().map(|way| way.dialect).collect();
    let key = sender(&world, "all", &dialects);
    if !rate.is_empty() {
        let update = [&["client", "update", "all"][..], rate].concat();
        assert!(process::run(world.command(&update)).status.success());
    }
    (world, key)
}

impl IntakePath {
    async fn send(&self, rest: &Rest, extra: &[(&str, &str)], body: String) -> Option<Answer> {
        let headers = [&[("content-type", self.content_type)][..], extra].concat();
        // Try again, since a connection that the previous response closed is only detected on use.
        for _ in 0..3 {
            let sent = rest.try_send(Method::POST, self.path, &headers, body.clone());
            if let Ok(answer) = sent.await {
                return Some(answer);
            }
        }
        None
    }
}

async fn stored_events(rest: &Rest) -> Vec<(String, String, String)> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    loop {
        let query = json!({"query": {"pageInput": {"limit": 1_000, "cursor": cursor}}});
        let page = rest.post("/v1/events:search", &query).await.ok();
        for event in page["results"].as_array().into_iter().flatten() {
            let count = text(&event["occurrences"][0]["count"]);
            for value in event["dimensions"].as_object().unwrap().values() {
                found.push((text(&event["name"]), text(value), count.clone()));
            }
        }
        if page["pageInfo"]["hasNext"] != true {
            return found;
        }
        cursor = text(&page["pageInfo"]["endCursor"]);
    }
}

#[tokio::test]
async fn invalid_requests_are_rejected_as_a_whole() {
    let (world, key) = world(&[]).await;
    let rest = world.rest().with_key(Some(&key));
    for way in &INTAKE_PATHS {
        let large = format!("{{\"x\": \"{}\"}}", "x".repeat(100 * 1024));
        for wrong in [way.wrong, "{", "", "\u{0}", "null", &large] {
            let start: String = wrong.chars().take(40).collect();
            let answer = way.send(&rest, &[], wrong.to_owned()).await;
            let answer = answer.unwrap_or_else(|| panic!("{}: no response: {start}", way.dialect));
            let status = answer.status.as_u16();
            let is_refused = (400..500).contains(&status);
            assert!(
                is_refused,
                "{}: {status} to {start}: {}",
                way.dialect,
                answer.text()
            );
            assert!(
                !answer.body.is_empty(),
                "{}: it does not report {start}",
                way.dialect
            );
        }
    }
    let found = stored_events(&world.rest()).await;
    let unknown = found.iter().filter(|(_, value, _)| value != "bellwether");
    assert_eq!(unknown.count(), 0, "{found:?}");
}

#[tokio::test]
async fn idempotency_and_rate_limits_apply_to_all_paths() {
    let (world, key) = world(&["--events-per-second", "1"]).await;
    let rest = world.rest().with_key(Some(&key));
    // A burst beyond the rate is accepted once; it then delays requests on every path.
    let event = |at: usize| json!({"name": "native", "dimensions": {"host": at.to_string()}});
    let many: Vec<_> = (0..600).map(event).collect();
    let first = rest
        .post("/v1/data-receiver/events", &json!({"events": many}))
        .await;
    assert_eq!(first.status, 200, "{}", first.text());
    for way in &INTAKE_PATHS {
        let body = (way.body)("h1", &key).to_string();
        let answer = way.send(&rest, &[], body).await.unwrap();
        assert_eq!(
            answer.status.as_u16(),
            way.later,
            "{}: {}",
            way.dialect,
            answer.text()
        );
        assert!(!answer.header("retry-after").is_empty(), "{}", way.dialect);
    }
    let update = ["client", "update", "all", "--events-per-second", "1000"];
    assert!(process::run(world.command(&update)).status.success());
    for way in &INTAKE_PATHS {
        let once = [("idempotency-key", way.dialect)];
        let body = (way.body)("h1", &key).to_string();
        let send = async || {
            let answer = way.send(&rest, &once, body.clone()).await.unwrap();
            (answer.status.as_u16() != way.later).then_some(answer)
        };
        // After a while, the rate allows a request again.
        let first = eventually("the rate", send).await;
        assert!(
            first.status.is_success(),
            "{}: {}",
            way.dialect,
            first.text()
        );
        let again = eventually("the rate", send).await;
        assert_eq!(again.status, first.status, "{}", way.dialect);
    }
    let found = stored_events(&world.rest()).await;
    for way in &INTAKE_PATHS {
        let is_it = |it: &&(String, String, String)| it.0 == way.name && it.1 == "h1";
        let counts: Vec<_> = found.iter().filter(is_it).map(|it| it.2.as_str()).collect();
        assert_eq!(counts, ["1"], "{}", way.dialect);
    }
}

#[tokio::test]
async fn same_alert_in_two_dialects_is_one_event() {
    let (world, key) = world(&[]).await;
    let rest = world.rest().with_key(Some(&key));
    let labels = json!({"alertname": "DiskFull", "host": "db-1", "severity": "critical"});
    let prometheus = json!([{"labels": labels, "annotations": {"summary": "full"}}]);
    let accepted = rest.post("/api/v2/alerts", &prometheus).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    // As sent by Grafana 11: with additional fields, values, and an end in the year 1.
    let grafana = json!({
        "receiver": "bellwether", "status": "firing", "orgId": 1, "version": "1",
        "groupLabels": {"alertname": "DiskFull"}, "commonLabels": labels, "commonAnnotations": {},
        "externalURL": "http://grafana.example/", "groupKey": "{}:{}", "truncatedAlerts": 0,
        "title": "[FIRING:1] DiskFull", "state": "alerting", "message": "**Firing**",
        "alerts": [{
            "status": "firing", "labels": labels, "annotations": {"summary": "full"},
            "startsAt": "2026-01-31T08:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://grafana.example/alerting/1", "fingerprint": "57c6d9296de2ad39",
            "silenceURL": "http://grafana.example/silence", "dashboardURL": "", "panelURL": "",
            "values": {"A": 97.5}, "valueString": "[ var='A' value=97.5 ]",
        }],
    });
    rest.post("/v1/intake/alertmanager", &grafana).await.ok();
    let found = super::events(&world.rest(), "DiskFull").await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1["count"], "2");
    assert_eq!(found[0].1["severity"], "SEVERITY_CRITICAL");
    let mut resolved = grafana;
    resolved["status"] = json!("resolved");
    resolved["alerts"][0]["status"] = json!("resolved");
    resolved["alerts"][0]["endsAt"] = json!("2026-01-31T09:00:00Z");
    rest.post("/v1/intake/alertmanager", &resolved).await.ok();
    let found = super::events(&world.rest(), "DiskFull").await;
    assert_eq!(found[0].1["status"], "STATUS_CLOSED");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_of_every_path_survive_a_kill() {
    const ANSWERED: usize = 300;
    let (mut world, key) = world(&[]).await;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let count = Arc::new(AtomicUsize::new(0));
    let mut sending = JoinSet::new();
    for way in &INTAKE_PATHS {
        let (rest, key) = (world.rest().with_key(Some(&key)), key.clone());
        let (answered, count) = (Arc::clone(&answered), Arc::clone(&count));
        sending.spawn(async move {
            // Repeats until the service has stopped.
            for number in 0.. {
                let host = format!("h{number}");
                let body = (way.body)(&host, &key).to_string();
                let Some(answer) = way.send(&rest, &[], body).await else {
                    return;
                };
                if !answer.status.is_success() {
                    return;
                }
                answered.lock().unwrap().insert((way.name, host));
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    eventually("answers", async || {
        (count.load(Ordering::Relaxed) >= ANSWERED).then_some(())
    })
    .await;
    world.kill();
    sending.join_all().await;
    world.start_again();
    let found: BTreeSet<_> = stored_events(&world.rest())
        .await
        .into_iter()
        .map(|(name, value, _)| (name, value))
        .collect();
    let answered = answered.lock().unwrap();
    for (name, host) in &*answered {
        let it = ((*name).to_owned(), host.clone());
        assert!(found.contains(&it), "{name} about {host} is lost");
    }
    for way in &INTAKE_PATHS {
        let any = answered.iter().any(|(name, _)| *name == way.name);
        assert!(any, "{} was never used", way.dialect);
    }
}
