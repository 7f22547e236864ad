//! Tests with the original clients of other products: their messages become the expected events.

mod alerts;
mod paths;
mod prometheus;
mod storm;

use std::process::{Command, Output};

use bellwether_proto::reference::{Block, Topic};
use bellwether_tests::{process, rest::Rest, tree, world::World};
use serde_json::{Value, json};

use crate::foreign::python;

/// Runs a script with a sender's Python client, and returns its output; `None` if the client is not
/// installed.
fn client(script: &str, modules: &str, arguments: &[&str]) -> Option<Value> {
    let python = python(modules)?;
    let output: Output = Command::new(python)
        .arg(tree::root().join("tests/e2e/dialects").join(script))
        .args(arguments)
        .output()
        .expect("python starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {errors}");
    let reported = serde_json::from_slice(&output.stdout);
    Some(reported.unwrap_or_else(|error| panic!("{script}: {error}: {errors}")))
}

fn sender(world: &World, name: &str, dialects: &[&str]) -> String {
    let mut command = world.command(&["client", "create", name, "--role", "ingest"]);
    for dialect in dialects {
        command.args(["--dialect", dialect]);
    }
    let output = process::run(command);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the newest occurrence of each event of this name, with the event's dimensions as
/// `key=value`.
async fn events(rest: &Rest, name: &str) -> Vec<(String, Value)> {
    let clause = json!({"equals": {"field": "name", "stringVal": name}});
    let found = rest
        .post("/v1/events:search", &json!({"query": {"clause": clause}}))
        .await
        .ok();
    let found = found["results"].as_array().cloned().unwrap_or_default();
    let mut events: Vec<_> = found
        .into_iter()
        .map(|event| {
            let dimensions = event["dimensions"].as_object().unwrap().iter();
            let dimensions = dimensions.map(|(key, value)| {
                let value = value.as_str().unwrap();
                format!("{key}={value}")
            });
            let dimensions: Vec<_> = dimensions.collect();
            let newest = event["occurrences"].as_array().unwrap().last().cloned();
            (dimensions.join(" "), newest.unwrap())
        })
        .collect();
    events.sort_by(|a, b| a.0.cmp(&b.0));
    events
}

/// Returns severity, status, acknowledgement, count and summary of an occurrence.
fn state(occurrence: &Value) -> Value {
    json!([
        occurrence["severity"],
        occurrence["status"],
        occurrence["acknowledged"],
        occurrence["count"],
        occurrence["summary"],
    ])
}

#[tokio::test]
async fn pagerduty_client_triggers_acknowledges_and_resolves() {
    let world = World::start();
    let key = sender(&world, "pages", &["pagerduty"]);
    let address = world.service().address("rest").to_owned();
    let Some(reported) = client("send_pagerduty.py", "pagerduty", &[&address, &key]) else {
        return;
    };
    let made = reported["made"].as_str().unwrap();
    assert_eq!(reported["given"], "api-1/latency");
    assert_eq!(reported["same"], true);
    let refused = json!({"severity": [400, "invalid event"], "key": [400, "invalid event"]});
    assert_eq!(reported["refused"], refused);
    let events = events(&world.rest(), "pagerduty").await;
    assert_eq!(events.len(), 3, "{events:#?}");
    let of = |dimensions: &str| {
        let found = events.iter().find(|(it, _)| it == dimensions);
        found.unwrap_or_else(|| panic!("{dimensions}")).1.clone()
    };
    let slow = of("dedup_key=api-1/latency");
    assert_eq!(slow["severity"], "SEVERITY_CRITICAL");
    assert_eq!(
        (&slow["status"], &slow["acknowledged"]),
        (&json!("STATUS_OPEN"), &json!(true))
    );
    assert_eq!(slow["count"], "3");
    let full = of(&format!("dedup_key={made}"));
    assert_eq!(full["status"], "STATUS_CLOSED");
    let change = events.iter().find(|(_, it)| it["summary"] == "deployed");
    assert_eq!(change.unwrap().1["status"], "STATUS_CLOSED");
}

#[tokio::test]
async fn opsgenie_client_creates_acknowledges_notes_and_closes() {
    let world = World::start();
    let key = sender(&world, "genie", &["opsgenie"]);
    let annotator = world.client("annotator", "operator");
    let address = world.service().address("rest").to_owned();
    let arguments = [&*address, &key, &annotator];
    let Some(reported) = client("send_opsgenie.py", "opsgenie_sdk", &arguments) else {
        return;
    };
    let made = reported["made"].as_str().unwrap();
    assert_eq!(reported["result"], "Request will be processed");
    assert_eq!(
        (&reported["success"], &reported["action"]),
        (&json!(true), &json!("Create"))
    );
    assert_eq!(reported["alert"], "db/disk 1");
    assert_eq!(reported["beat"], "PONG - Heartbeat received");
    let closed = reported["closed"].as_str().unwrap();
    assert!(closed.contains("its note was not stored"), "{closed}");
    let refused = json!({"message": 422, "note": 403, "request": 404, "key": 401});
    assert_eq!(reported["refused"], refused);
    let rest = world.rest();
    let alerts = events(&rest, "opsgenie").await;
    assert_eq!(alerts.len(), 2, "{alerts:#?}");
    let of = |dimensions: String| {
        let found = alerts.iter().find(|(it, _)| *it == dimensions);
        found.unwrap_or_else(|| panic!("{dimensions}")).1.clone()
    };
    let full = of("alias=db/disk 1".into());
    assert_eq!(full["severity"], "SEVERITY_CRITICAL");
    assert_eq!(
        (&full["status"], &full["acknowledged"]),
        (&json!("STATUS_OPEN"), &json!(true))
    );
    assert_eq!(full["annotations"][0]["annotation"], "ada: looking");
    assert_eq!(of(format!("alias={made}"))["status"], "STATUS_CLOSED");
    let beats = events(&rest, "opsgenie-heartbeat").await;
    assert_eq!(beats[0].0, "heartbeat=nightly");
    assert_eq!(beats[0].1["status"], "STATUS_CLOSED");
}

#[tokio::test]
async fn cloudevents_sdk_events_are_stored_once_in_every_mode() {
    let world = World::start();
    let key = sender(&world, "cloud", &["cloudevents"]);
    let address = world.service().address("rest").to_owned();
    let Some(reported) = client("send_cloudevents.py", "cloudevents.core", &[&address, &key])
    else {
        return;
    };
    assert_eq!(reported["statuses"], json!([204, 204, 204, 204, 204, 204]));
    assert_eq!(reported["refused"], json!([415, 400, 401]));
    let rest = world.rest();
    let late = events(&rest, "order.late").await;
    assert_eq!(late.len(), 1, "{late:#?}");
    assert_eq!(late[0].0, "source=/shop subject=order 7");
    // The same event in three modes counts once; the closing counts too.
    let closed = ["SEVERITY_ERROR", "STATUS_CLOSED"];
    assert_eq!([&late[0].1["severity"], &late[0].1["status"]], closed);
    assert_eq!(late[0].1["count"], "2");
    let parts = events(&rest, "batch.part").await;
    assert_eq!(state(&parts[0].1)[3], "3", "the batch arrived twice");
}

#[tokio::test]
async fn opentelemetry_exporter_works_with_and_without_gzip() {
    let world = World::start();
    let key = sender(&world, "logs", &["otlp"]);
    let address = world.service().address("rest").to_owned();
    let modules = "opentelemetry.exporter.otlp.proto.http._log_exporter";
    let Some(reported) = client("send_otlp.py", modules, &[&address, &key]) else {
        return;
    };
    assert_eq!(reported, json!({"content": [], "refused": true}));
    let logs = events(&world.rest(), "shop.orders").await;
    assert_eq!(logs.len(), 1, "{logs:#?}");
    assert_eq!(logs[0].0, "host.name=web-1 service.name=shop");
    let expected = json!([
        "SEVERITY_CRITICAL",
        "STATUS_OPEN",
        false,
        "2",
        "payment failed"
    ]);
    assert_eq!(state(&logs[0].1), expected);
}

#[tokio::test]
async fn dialect_is_rejected_unless_granted_to_the_client() {
    let world = World::start();
    let key = sender(&world, "grafana", &[]);
    let grafana = world.rest().with_key(Some(&key));
    let alerts = json!({"alerts": [{"labels": {"alertname": "DiskFull", "host": "db-1"}}]});
    let path = "/v1/intake/alertmanager";
    let in_path = format!("{path}/{key}");
    let update = |arguments: &[&str]| {
        let command = world.command(&[&["client", "update", "grafana"][..], arguments].concat());
        let output = process::run(command);
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let refused = grafana.post(path, &alerts).await;
    assert_eq!(refused.status, 403);
    let message = refused.json()["message"].to_string();
    assert!(
        message.contains("bellwether client update grafana --dialect alertmanager"),
        "{message}"
    );

    let (done, reported) = update(&["--dialect", "alertmanager"]);
    assert!(
        done && reported.trim_end().ends_with("\talertmanager"),
        "{reported}"
    );
    grafana.post(path, &alerts).await.ok();
    let without = world.rest().with_key(None);
    without.post(&in_path, &alerts).await.ok();
    assert_eq!(grafana.post("/api/v2/alerts", &json!([])).await.status, 403);

    assert!(update(&["--events-per-second", "500"]).0);
    grafana.post(path, &alerts).await.ok();
    assert!(update(&["--no-dialect"]).0);
    assert_eq!(without.post(&in_path, &alerts).await.status, 403);
    assert!(!update(&["--dialect", "nagios"]).0);

    // An admin may send all dialects, but not with the key in a path.
    let admin = world.admin_key();
    let answer = without.post(&format!("{path}/{admin}"), &alerts).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    world.rest().post(path, &alerts).await.ok();
    let found = events(&world.rest(), "DiskFull").await;
    assert_eq!(found[0].1["count"], "4");
}

#[tokio::test]
async fn client_can_be_created_for_every_documented_dialect() {
    let world = World::start();
    let blocks = Topic::find("senders").unwrap().blocks().into_iter();
    let tables = blocks.filter_map(|block| match block {
        Block::Table(rows) if rows[0][0] == "dialect" => Some(rows),
        _ => None,
    });
    let rows = tables.flatten().skip(1);
    let dialects: std::collections::BTreeSet<_> = rows
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    assert_eq!(dialects.len(), 7, "{dialects:?}");
    let dialects: Vec<_> = dialects.iter().map(String::as_str).collect();
    sender(&world, "all", &dialects);
}

#[tokio::test]
async fn keys_in_paths_and_bodies_are_not_logged() {
    let world = World::with_settings("log_filter = \"trace\"\n");
    let key = sender(&world, "pages", &["pagerduty", "cloudevents"]);
    let rest = world.rest().with_key(None);
    let trigger = json!({
        "routing_key": key,
        "event_action": "trigger",
        "payload": {"summary": "s", "source": "x", "severity": "info"},
    });
    assert_eq!(rest.post("/v2/enqueue", &trigger).await.status, 202);
    let path = format!("/v1/intake/cloudevents/{key}");
    assert_eq!(rest.post(&path, &json!({})).await.status, 415);
    let log = std::fs::read_to_string(world.folder().join("log")).unwrap();
    assert!(
        log.contains("/v1/intake/cloudevents/{key}"),
        "the request is reported"
    );
    assert!(!log.contains(&key), "its key is not");
}

#[tokio::test]
async fn openapi_examples_of_sender_paths_are_accepted() {
    let world = World::start();
    let rest = world.rest();
    let mapping = json!({
        "name": "grafana",
        "event": {"name": "webhook", "dimensions": {"title": "{{title}}"}},
    });
    rest.post("/v1/intake/mappings", &mapping).await.ok();
    let dialects = [
        "alertmanager",
        "prometheus",
        "pagerduty",
        "opsgenie",
        "cloudevents",
        "otlp",
        "webhooks",
    ];
    let key = sender(&world, "all", &dialects);
    let service = format!("http://{}", world.service().address("rest"));
    let document = rest.get("/openapi.json").await.ok();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|it| it.as_object().unwrap());
    let mut tried = 0;
    for (method, operation) in operations {
        let is_sender = operation["tags"][0] == "Senders";
        if !is_sender || method == "get" {
            continue;
        }
        let example = operation["x-codeSamples"][0]["source"].as_str().unwrap();
        // Adding a note requires another role; the test of Opsgenie's client covers it.
        if example.contains("/notes") {
            continue;
        }
        let example = example.replace("\"KEY\"", &format!("\"{key}\""));
        let output = Command::new("sh")
            .args([
                "-c",
                &example.replace("curl ", "curl -sS --fail-with-body "),
            ])
            .env("SERVICE", &service)
            .env("KEY", &key)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}: {printed} {errors}");
        tried += 1;
    }
    assert!(tried >= 16, "{tried}");
    for name in ["DiskFull", "pagerduty", "opsgenie", "webhook"] {
        assert!(!events(&rest, name).await.is_empty(), "{name}");
    }
}
