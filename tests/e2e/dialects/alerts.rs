//! Tests that no alert is lost because of unusual clocks, severities or texts.

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, tree, world::World,
};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{events, sender};
use crate::samples;

const WEBHOOK: &str = "/v1/intake/alertmanager";
const ALERTS: &str = "/api/v2/alerts";

/// Creates a rule that notifies a URL when alerts that match a filter open or close.
async fn notify_of(rest: &Rest, filter: &str, url: &str) {
    let trigger = json!({"name": "alerts", "type": {"event": {"filter": filter}}});
    let mut rule = samples::rule("alerts", "alerts", "hook", "");
    rule["sendUpdates"] = json!(true);
    for (kind, draft) in [
        ("triggers", trigger),
        ("destinations", samples::webhook("hook", url)),
        ("rules", rule),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
}

fn at(seconds: i64) -> String {
    let now = Timestamp::now().as_millisecond();
    Timestamp::from_millisecond(now + seconds * 1_000)
        .unwrap()
        .to_string()
}

/// Waits for `count` messages, and returns whether each is a closing.
async fn closings(receiver: &Receiver, count: usize) -> Vec<bool> {
    receiver.wait_for(count).await;
    let received = receiver.received();
    let clear = received.iter().map(|it| it.json()["clear"] == json!(true));
    clear.collect()
}

#[tokio::test]
async fn alert_firing_again_after_expiry_notifies_again() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    notify_of(&rest, "name=Down", &receiver.url("/hook")).await;
    let key = sender(&world, "am", &["alertmanager"]);
    let alertmanager = rest.with_key(Some(&key));
    let (start, ended) = (at(-600), at(-60));
    let send = async |from: &str, end: Option<&str>| {
        let alert = json!({
            "status": if end.is_some() { "resolved" } else { "firing" },
            "labels": {"alertname": "Down", "host": "a"},
            "startsAt": start,
            "endsAt": end.unwrap_or("0001-01-01T00:00:00Z"),
        });
        let message = json!({"version": "4", "externalURL": from, "alerts": [alert]});
        let answer = alertmanager.post(WEBHOOK, &message).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    send("http://am-1:9093", None).await;
    send("http://am-1:9093", Some(&ended)).await;
    // A delayed report of the second Alertmanager does not reopen the alert.
    send("http://am-2:9093", None).await;
    assert_eq!(closings(&receiver, 2).await, [false, true]);
    send("http://am-1:9093", None).await;
    assert_eq!(closings(&receiver, 3).await, [false, true, false]);
    let open = json!({"query": {"filter": "name=Down status=open"}});
    let count = async || rest.post("/v1/events:count", &open).await.ok()["count"].clone();
    assert_eq!(count().await, 1);
    // A delayed resolution does not close an alert that fires again.
    send("http://am-2:9093", Some(&ended)).await;
    assert_eq!(count().await, 1);
    send("http://am-1:9093", Some(&at(0))).await;
    assert_eq!(closings(&receiver, 4).await, [false, true, false, true]);
}

#[tokio::test]
async fn prometheus_alert_closes_at_once_despite_clock_skew() {
    let world = World::start();
    let rest = world.rest();
    let key = sender(&world, "prometheus", &["prometheus"]);
    let prometheus = rest.with_key(Some(&key));
    for ahead in [-60, -20, 0, 20, 60] {
        let name = format!("Down{ahead}");
        let send = async |end: i64| {
            let alert = json!({
                "labels": {"alertname": name, "host": "a"},
                "generatorURL": format!("http://p:9090/graph?g0.expr=up%3D%3D{end}"),
                "startsAt": at(ahead - 300),
                "endsAt": at(ahead + end),
            });
            let answer = prometheus.post(ALERTS, &json!([alert])).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        };
        send(240).await;
        assert_eq!(
            events(&rest, &name).await[0].1["status"],
            "STATUS_OPEN",
            "{ahead}"
        );
        send(0).await;
        let found = events(&rest, &name).await;
        assert_eq!(found[0].1["status"], "STATUS_CLOSED", "{ahead}: {found:#?}");
        assert_eq!(found[0].1["closeReason"], "SENDER", "{ahead}");
    }
}

const KUBE_PROMETHEUS: &str = r#"
inhibit_rules:
- equal: [namespace, alertname]
  source_matchers: [severity = critical]
  target_matchers: [severity =~ warning|info]
- equal: [namespace, alertname]
  source_matchers: [severity = warning]
  target_matchers: [severity = info]
- equal: [namespace]
  source_matchers: [alertname = InfoInhibitor]
  target_matchers: [severity = info]
receivers:
- name: "null"
route:
  receiver: "null"
"#;

#[tokio::test]
async fn warning_and_critical_are_two_events_with_inhibition() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    let folder = world.folder();
    let configuration = folder.join("alertmanager.yml");
    std::fs::write(&configuration, KUBE_PROMETHEUS).unwrap();
    let imported =
        process::run(world.command(&["import", "alertmanager", configuration.to_str().unwrap()]));
    assert!(imported.status.success(), "{imported:?}");
    let documents = folder.join("imported.yaml");
    std::fs::write(&documents, &imported.stdout).unwrap();
    let shipped = tree::root().join("tests/examples/config/severities.yaml");
    for file in [documents, shipped] {
        let applied = process::run(world.command(&["apply", "-f", file.to_str().unwrap()]));
        assert!(applied.status.success(), "{applied:?}");
    }
    let active = async || {
        let found = rest.get("/v1/notification/inhibitions").await.ok();
        let all = found["inhibitions"].as_array()?.clone();
        let is_active = |it: &Value| it["state"] == "ACTIVE";
        (all.len() == 5 && all.iter().all(is_active)).then_some(())
    };
    eventually("the inhibitions to be active", active).await;
    notify_of(
        &rest,
        "name=KubePersistentVolumeFillingUp",
        &receiver.url("/hook"),
    )
    .await;
    let key = sender(&world, "prometheus", &["prometheus"]);
    let prometheus = rest.with_key(Some(&key));
    let alert = |severity: &str, end: i64| {
        json!({
            "labels": {
                "alertname": "KubePersistentVolumeFillingUp", "namespace": "shop",
                "persistentvolumeclaim": "data", "severity": severity,
            },
            "annotations": {"summary": severity},
            "startsAt": at(-300),
            "endsAt": at(end),
        })
    };
    for _ in 0..5 {
        let both = json!([alert("warning", 240), alert("critical", 240)]);
        prometheus.post(ALERTS, &both).await.text();
    }
    receiver.wait_for(1).await;
    let found = events(&rest, "KubePersistentVolumeFillingUp").await;
    assert_eq!(found.len(), 2, "{found:#?}");
    let critical = &found[0];
    assert_eq!(
        critical.0,
        "namespace=shop persistentvolumeclaim=data severity=critical"
    );
    assert_eq!(critical.1["severity"], "SEVERITY_CRITICAL");
    assert_eq!(critical.1["count"], "5");
    // The critical alert is resolved, the warning remains open.
    let both = json!([alert("warning", 240), alert("critical", 0)]);
    prometheus.post(ALERTS, &both).await.text();
    let found = events(&rest, "KubePersistentVolumeFillingUp").await;
    let statuses: Vec<_> = found.iter().map(|it| it.1["status"].clone()).collect();
    assert_eq!(statuses, ["STATUS_CLOSED", "STATUS_OPEN"]);
    assert_eq!(closings(&receiver, 2).await, [false, true]);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one journey")]
async fn opsgenie_calls_succeed_with_a_sender_key() {
    let world = World::start();
    let rest = world.rest();
    let key = sender(&world, "og", &["opsgenie"]);
    let sender = rest.with_key(Some(&key));
    let alert = json!({
        "message": "disk", "alias": "a/1", "priority": "P3",
        "responders": [{"name": "ops", "type": "team"}, {"id": "x", "type": "user"}],
    });
    assert_eq!(sender.post("/v2/alerts/", &alert).await.status, 202);
    let calls = [
        (Method::PUT, "message", json!({"message": "disk of db"})),
        (Method::PUT, "description", json!({"description": "97 %"})),
        (Method::PUT, "priority", json!({"priority": "P1"})),
        (Method::POST, "acknowledge", json!({})),
        (Method::POST, "unacknowledge", json!({"user": "ada"})),
        (
            Method::POST,
            "snooze",
            json!({"endTime": "2099-01-01T00:00:00Z"}),
        ),
        (
            Method::POST,
            "assign",
            json!({"owner": {"username": "ada"}}),
        ),
        (
            Method::POST,
            "escalate",
            json!({"escalation": {"name": "ops"}}),
        ),
        (Method::POST, "tags", json!({"tags": ["a"]})),
        (Method::POST, "details", json!({"details": {"a": "b"}})),
        (Method::POST, "actions/restart", json!({})),
    ];
    for (method, call, body) in calls {
        let path = format!("/v2/alerts/a%2F1/{call}?identifierType=alias");
        let answer = sender.send(method, &path, body.to_string()).await;
        assert_eq!(answer.status, 202, "{call}: {}", answer.text());
    }
    for call in ["tags?tags=a", "details?keys=a"] {
        let path = format!("/v2/alerts/a%2F1/{call}");
        assert_eq!(sender.delete(&path).await.status, 202, "{call}");
    }
    let found = rest.get("/v2/alerts/a%2F1?identifierType=alias").await.ok();
    let data = &found["data"];
    assert_eq!(data["message"], "disk of db");
    assert_eq!(data["description"], "97 %");
    assert_eq!(data["priority"], "P1");
    assert_eq!(data["acknowledged"], false);
    assert_eq!(data["responders"], json!([{"id": "x", "type": "user"}]));
    let close = sender.post("/v2/alerts/a%2F1/close", &json!({})).await;
    assert_eq!(close.status, 202);
    let update = json!({"message": "late"}).to_string();
    let late = sender
        .send(Method::PUT, "/v2/alerts/a%2F1/message", update)
        .await;
    assert_eq!(late.status, 202);
    let found = rest.get("/v2/alerts/a%2F1").await.ok();
    assert_eq!(found["data"]["status"], "closed");
    sender.post("/v2/alerts", &alert).await.text();
    let listed = rest
        .get("/v2/alerts?query=status%3Aopen&limit=5")
        .await
        .ok();
    assert_eq!(listed["data"][0]["alias"], "a/1");
    let counted = rest.get("/v2/alerts/count?query=status%3Aopen").await.ok();
    assert_eq!(counted["data"]["count"], 1);
    for path in [
        "/v2/heartbeats/nightly/ping/",
        "/v2/heartbeats/nightly/ping",
    ] {
        assert_eq!(sender.get(path).await.status, 202);
    }
    let event = json!({"events": [{"name": "n", "dimensions": {"host": "a"}}]});
    let native = rest.post("/v1/data-receiver/events/", &event).await;
    assert_eq!(native.status, 200, "{}", native.text());
    let heartbeats = rest.get("/v2/heartbeats").await.ok();
    assert_eq!(heartbeats["data"]["heartbeats"][0]["name"], "nightly");
    let made = sender
        .post("/v2/heartbeats", &json!({"name": "weekly"}))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    for path in ["", "/enable", "/disable"] {
        let path = format!("/v2/heartbeats/weekly{path}");
        let method = if path.ends_with("weekly") {
            Method::PATCH
        } else {
            Method::POST
        };
        assert_eq!(sender.send(method, &path, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one journey")]
async fn malformed_text_is_replaced_on_every_intake_path() {
    let world = World::start();
    let rest = world.rest();
    let mapping = json!({"name": "any", "event": {
        "name": "m", "dimensions": {"host": "{{host}}"}, "summary": "{{summary}}",
    }});
    rest.post("/v1/intake/mappings", &mapping).await.ok();
    let text = r"a\ud83db";
    let alert = format!(
        r#"{{"labels": {{"alertname": "m", "host": "HOST"}}, "annotations": {{"summary": "{text}"}}}}"#
    );
    let ways = [
        (
            "/v1/data-receiver/events",
            format!(
                r#"{{"events": [{{"name": "m", "dimensions": {{"host": "HOST"}}, "summary": "{text}"}}]}}"#
            ),
        ),
        (ALERTS, format!("[{alert}]")),
        (WEBHOOK, format!(r#"{{"alerts": [{alert}]}}"#)),
        (
            "/v2/enqueue",
            format!(
                r#"{{"routing_key": "KEY", "event_action": "trigger", "dedup_key": "HOST",
                "payload": {{"summary": "{text}", "source": "s", "severity": "error"}}}}"#
            ),
        ),
        (
            "/v2/alerts",
            format!(r#"{{"message": "{text}", "alias": "HOST"}}"#),
        ),
        (
            "/v1/intake/cloudevents",
            format!(
                r#"{{"specversion": "1.0", "id": "1", "source": "HOST", "type": "m",
                "data": {{"summary": "{text}"}}}}"#
            ),
        ),
        (
            "/v1/intake/webhooks/any",
            format!(r#"{{"host": "HOST", "summary": "{text}"}}"#),
        ),
        (
            "/v1/logs",
            format!(
                r#"{{"resourceLogs": [{{"scopeLogs": [{{"logRecords": [
                {{"severityNumber": 17, "eventName": "HOST", "body": {{"stringValue": "{text}"}}}}
            ]}}]}}]}}"#
            ),
        ),
    ];
    for (way, body) in ways {
        for (malformed, mark, byte) in [
            ("escape", &b""[..], None),
            ("mark", b"\xef\xbb\xbf", None),
            ("byte", b"", Some(0xff)),
        ] {
            let body = body
                .replace("HOST", malformed)
                .replace("KEY", &world.admin_key());
            let mut bytes = [mark, body.as_bytes()].concat();
            if let Some(byte) = byte {
                let place = bytes.windows(8).position(|it| it == br"a\ud83db").unwrap();
                bytes.splice(place + 1..place + 7, [byte]);
            }
            let headers = [("content-type", "application/json")];
            let answer = rest
                .try_send(Method::POST, way, &headers, bytes)
                .await
                .unwrap();
            assert!(
                answer.status.is_success(),
                "{way}, {malformed}: {}",
                answer.text()
            );
        }
    }
    let query = json!({"query": {"filter": "summary=\"a\u{fffd}b\""}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let found = found["results"].as_array().unwrap();
    // Four of the paths create the same event.
    assert_eq!(found.len(), 5 * 3, "{found:#?}");
    let metrics = rest.get("/metrics").await.text();
    let count = metrics.lines().find_map(|line| {
        line.strip_prefix("bellwether_replaced_characters_total ")?
            .parse::<f64>()
            .ok()
    });
    assert!(count.unwrap() >= 24.0, "{count:?}");
}

#[tokio::test]
async fn client_of_any_role_can_send_a_granted_dialect() {
    let world = World::start();
    let rest = world.rest();
    let create = |arguments: &[&str]| {
        let command = [&["client", "create"], arguments].concat();
        process::run(world.command(&command))
    };
    let created = create(&["grafana", "--role", "operator", "--dialect", "alertmanager"]);
    assert!(created.status.success(), "{created:?}");
    let key = String::from_utf8(created.stdout).unwrap();
    let grafana = rest.with_key(Some(key.trim()));
    let message = json!({"alerts": [{"labels": {"alertname": "A", "host": "a"}}]});
    let sent = grafana.post(WEBHOOK, &message).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    let listed = grafana.get(ALERTS).await.ok();
    assert_eq!(listed[0]["labels"]["alertname"], "A");
    // Other dialects, and native events, stay forbidden.
    assert_eq!(grafana.post(ALERTS, &json!([])).await.status, 403);
    let event = json!({"events": [{"name": "n", "dimensions": {"host": "a"}}]});
    assert_eq!(
        grafana
            .post("/v1/data-receiver/events", &event)
            .await
            .status,
        403
    );
    for (arguments, expected) in [
        (
            ["--role", "admin", "--dialect", "otlp"],
            "may send every dialect",
        ),
        (
            ["--role", "viewer", "--events-per-second", "5"],
            "cannot send events",
        ),
    ] {
        let refused = create(&[&["x"], &arguments[..]].concat());
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(errors.contains(expected), "{errors}");
    }
}

#[tokio::test]
async fn silences_use_labels_as_sent() {
    let world = World::start();
    let rest = world.rest();
    let alert = json!({"labels": {"alertname": "A", "name": "n1", "severity": "page"}});
    rest.post(ALERTS, &json!([alert])).await.text();
    let shown = rest.get(ALERTS).await.ok();
    assert_eq!(shown[0]["labels"], alert["labels"]);
    let silence = |matchers: Value| {
        json!({
            "matchers": matchers, "startsAt": "2026-01-31 08:00", "endsAt": at(3_600),
            "createdBy": "ada", "comment": "c",
        })
    };
    let equal = |name: &str, value: &str| json!({"name": name, "value": value, "isRegex": false});
    let all = json!([
        equal("alertname", "A"),
        equal("name", "n1"),
        equal("severity", "page")
    ]);
    let made = rest.post("/api/v2/silences", &silence(all)).await;
    assert_eq!(made.header("warning"), "", "{}", made.text());
    let id = made.ok()["silenceID"].clone();
    let shown = rest.get(ALERTS).await.ok();
    assert_eq!(shown[0]["status"]["silencedBy"], json!([id]));
    let none = silence(json!([equal("alertname", "B")]));
    let made = rest.post("/api/v2/silences", &none).await;
    assert!(
        made.header("warning").contains("matches no open alert"),
        "{}",
        made.text()
    );
    assert!(made.ok()["warnings"].is_array());
    for (filter, count) in [
        ("name%3Dn1", 1),
        ("severity%3Dpage", 1),
        ("name%3D~%22n.*%22", 1),
        ("name%3Dn2", 0),
        ("alertname%21%3DB", 1),
        ("name%3D%22%22", 1),
    ] {
        let found = rest
            .get(&format!("/api/v2/silences?filter={filter}"))
            .await
            .ok();
        assert_eq!(found.as_array().unwrap().len(), count, "{filter}: {found}");
    }
}
