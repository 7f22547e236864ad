//! Enrichment tables over REST and gRPC: values at ingest, routing, inhibition, previews, limits and
//! documents.

use std::{collections::BTreeSet, fmt::Write as _, fs};

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, wire::Wire, world::World,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::samples;

const TABLES: &str = "/v1/intake/enrichment-tables";
const EVENTS: &str = "/v1/data-receiver/events";

fn table(name: &str, csv: &str) -> Value {
    json!({"name": name, "enabled": true, "matchFields": ["host"], "csv": csv})
}

async fn send(rest: &Rest, events: &[Value]) {
    let answer = rest.post(EVENTS, &samples::events(events)).await.ok();
    assert_eq!(answer["succeeded"], events.len(), "{answer}");
}

fn event(name: &str, host: &str) -> Value {
    samples::event(name, host, "SEVERITY_ERROR", "something is wrong")
}

/// Returns the events that a filter finds, open and closed.
async fn find(rest: &Rest, filter: &str) -> Vec<Value> {
    let statuses = ["STATUS_OPEN", "STATUS_SUPPRESSED", "STATUS_CLOSED"];
    let query = json!({"query": {"filter": filter, "statuses": statuses}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    found["results"].as_array().cloned().unwrap_or_default()
}

/// Sends events over REST, gRPC, Alertmanager's API, a mapping and OpenTelemetry.
async fn send_with_each_protocol(world: &World) {
    let rest = world.rest();
    let mut sent = event("rest", "DB-1");
    sent["metadataFields"] = json!({"runbook": "https://mine"});
    send(&rest, &[sent, event("rest", "web-1")]).await;
    let [_, grpc] = world.wires();
    let request = samples::events(&[event("grpc", "db-2")]);
    grpc.ok("DataReceiverService/PutEvents", &request).await;
    let alerts = json!([{"labels": {"alertname": "prometheus", "host": "db-3"}}]);
    assert_eq!(rest.post("/api/v2/alerts", &alerts).await.status, 200);
    let mapping =
        json!({"name": "any", "event": {"name": "hook", "dimensions": {"host": "{{h}}"}}});
    rest.post("/v1/intake/mappings", &mapping).await.ok();
    let hook = rest
        .post("/v1/intake/webhooks/any", &json!({"h": "db-4"}))
        .await;
    assert!(hook.status.is_success(), "{}", hook.text());
    let record = json!({"body": {"stringValue": "x"}, "eventName": "otlp",
        "severityNumber": 17, "timeUnixNano": "0"});
    let resource = json!({"attributes": [
        {"key": "service.name", "value": {"stringValue": "shop"}}]});
    let logs = json!({"resourceLogs": [{"resource": resource,
        "scopeLogs": [{"logRecords": [record]}]}]});
    assert_eq!(rest.post("/v1/logs", &logs).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_set_for_every_protocol_and_the_identity_is_unchanged() {
    let mut world = World::start();
    let rest = world.rest();
    send(&rest, &[event("before", "db-1")]).await;
    let hosts = table(
        "hosts",
        "host,team,runbook\ndb-*,databases,https://wiki/db\n",
    );
    let made = rest.post(TABLES, &hosts).await.ok()["enrichment"].clone();
    assert_eq!(made["enabled"], true);
    let services = json!({"name": "services", "enabled": true, "matchFields": ["service.name"],
        "csv": "service.name,team\nshop,databases"});
    rest.post(TABLES, &services).await.ok();

    send_with_each_protocol(&world).await;
    let found = find(&rest, "team=databases").await;
    let names = found.iter().map(|it| it["name"].as_str().unwrap());
    let names: BTreeSet<_> = names.collect();
    let expected = ["grpc", "hook", "otlp", "prometheus", "rest"];
    assert_eq!(names, expected.into(), "{found:?}");
    assert_eq!(found.len(), 5, "{found:?}");
    let own = found.iter().find(|it| it["dimensions"]["host"] == "DB-1");
    let own = &own.unwrap()["occurrences"][0];
    let expected = json!({"runbook": "https://mine", "team": "databases"});
    assert_eq!(own["metadataFields"], expected);
    assert_eq!(own["enrichedFields"], json!(["team"]));

    // An open event gets the values with its next repeat, and remains the same event.
    let before = find(&rest, "name=before").await.remove(0);
    assert_eq!(before["occurrences"][0]["metadataFields"], json!(null));
    send(&rest, &[event("before", "db-1")]).await;
    let after = find(&rest, "name=before").await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["id"], before["id"]);
    assert_eq!(after[0]["occurrences"][0]["number"], 1);
    assert_eq!(after[0]["occurrences"][0]["count"], "2");
    let path = format!("{TABLES}/hosts");
    let mut edited = made.clone();
    edited["csv"] = json!("host,team\ndb-1,storage");
    rest.put(&path, &edited).await.ok();
    assert_eq!(rest.put(&path, &edited).await.status, 409);

    world.kill();
    world.start_again();
    let rest = world.rest();
    let mut closing = event("before", "db-1");
    closing["status"] = json!("STATUS_CLOSED");
    send(&rest, &[closing]).await;
    let closed = find(&rest, "name=before").await;
    assert_eq!(closed.len(), 1);
    let occurrence = &closed[0]["occurrences"][0];
    assert_eq!(occurrence["status"], "STATUS_CLOSED");
    assert_eq!(occurrence["metadataFields"], json!({"team": "storage"}));
    assert_eq!(rest.delete(&path).await.status, 200);
    send(&rest, &[event("before", "db-1")]).await;
    let again = &find(&rest, "name=before status=open").await[0];
    assert_eq!(again["id"], before["id"]);
    assert_eq!(again["occurrences"][0]["metadataFields"], json!(null));
    let output = process::run(world.command(&["check", "--json"]));
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn events_are_routed_by_team_and_held_by_their_parent() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let hosts = "host,team,parent\ndb-1,databases,rack-7\nweb-1,web,rack-8\n";
    rest.post(TABLES, &table("hosts", hosts)).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let trigger = json!({"name": "db", "type": {"event": {"filter": "team=databases"}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let rule = samples::rule(
        "page",
        "db",
        "hook",
        "{{event.name}} {{event.metadata.parent}}",
    );
    rest.post("/v1/notification/rules", &rule).await.ok();
    let inhibition = json!({"name": "parent", "enabled": true, "sourceFilter": "name=down",
        "targetFilter": "name!=down", "equal": [{"source": "host", "target": "parent"}]});
    let inhibitions = "/v1/notification/inhibitions";
    rest.post(inhibitions, &inhibition).await.ok();
    eventually("the inhibition to be active", async || {
        let read = rest.get(&format!("{inhibitions}/parent")).await.ok();
        (read["inhibition"]["state"] == "ACTIVE").then_some(())
    })
    .await;
    send(&rest, &[event("first", "db-1"), event("first", "web-1")]).await;
    receiver.wait_for(1).await;
    // The cause and its effect arrive in one request.
    send(&rest, &[event("full", "db-1"), event("down", "rack-7")]).await;
    let pending = rest.get("/v1/notification/pending").await.ok();
    let hold = &pending["pending"][0]["holds"][0];
    assert_eq!(hold["name"], "parent", "{pending}");
    assert_eq!(receiver.count(), 1);
    let message = receiver.received()[0].json();
    assert_eq!(message["rule"]["message"], "first rack-7", "{message}");
}

#[tokio::test]
async fn invalid_table_is_rejected_with_field_line_and_column() {
    let world = World::start();
    let rest = world.rest();
    let long = "x".repeat(1_025);
    let many = (0..10_001).fold("host,team\n".to_owned(), |mut rows, at| {
        writeln!(rows, "h{at},t").unwrap();
        rows
    });
    for (change, parts) in [
        (
            json!({"matchFields": []}),
            &["matchFields", "expected 1 to 4"][..],
        ),
        (
            json!({"matchFields": ["count"]}),
            &["matchFields[0]", "`count`"],
        ),
        (json!({"csv": ""}), &["csv", "names of the columns"]),
        (
            json!({"csv": "host,team\na,b\nc\n"}),
            &["csv", "line 3", "expected 2"],
        ),
        (
            json!({"csv": "host,team\na,b\n,c\n"}),
            &["csv", "line 3", "column `host`"],
        ),
        (
            json!({"csv": format!("host,team\na,{long}\n")}),
            &["line 2", "column `team`", "1025"],
        ),
        (
            json!({"csv": "host,severity\na,b\n"}),
            &["line 1", "column `severity`"],
        ),
        (json!({"csv": many}), &["csv", "more than 10000 rows"]),
        (
            json!({"csv": format!("host,team\n{}", "x".repeat(1 << 20))}),
            &["csv", "limit is 1048576"],
        ),
    ] {
        let mut draft = table("wrong", "host,team\na,b\n");
        for (key, value) in change.as_object().unwrap() {
            draft[key] = value.clone();
        }
        for path in [TABLES.to_owned(), format!("{TABLES}:preview")] {
            let refused = rest.post(&path, &draft).await;
            assert_eq!(refused.status, 400, "{parts:?}");
            for part in parts {
                assert!(refused.text().contains(part), "{part}: {}", refused.text());
            }
        }
    }
    for at in 0..20 {
        rest.post(TABLES, &table(&format!("t{at}"), "host,team\na,b"))
            .await
            .ok();
    }
    let refused = rest.post(TABLES, &table("t20", "host,team\na,b")).await;
    assert!(refused.text().contains("limit of 20"), "{}", refused.text());
    let viewer = rest.with_key(Some(&world.client("reader", "viewer")));
    assert_eq!(viewer.get(TABLES).await.ok()["totalSize"], 20);
    assert_eq!(
        viewer
            .post(TABLES, &table("v", "host,team\na,b"))
            .await
            .status,
        403
    );
    assert_eq!(viewer.delete(&format!("{TABLES}/t0")).await.status, 403);
}

#[tokio::test]
async fn key_with_a_tag_cannot_change_tables() {
    let world = World::start();
    let output = process::run(world.command(&[
        "client",
        "create",
        "db",
        "--role",
        "editor",
        "--scope-tag",
        "team:db",
    ]));
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let editor = Wire::Rest(Box::new(world.rest().with_key(Some(&key))));
    let mut draft = table("mine", "host,team\n*,db");
    draft["tags"] = json!(["team:db"]);
    let request = json!({"enrichment": draft});
    let create = "EnrichmentTableService/CreateEnrichmentTable";
    let refused = editor.refused(create, &request).await;
    assert_eq!(refused.code, Code::PermissionDenied, "{}", refused.message);
    assert!(
        refused.message.contains("all events"),
        "{}",
        refused.message
    );
    let preview = "EnrichmentTableService/PreviewEnrichmentTable";
    editor.ok(preview, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preview_covers_ten_thousand_stored_events_without_changing_them() {
    let world = World::start();
    let rest = world.rest();
    for part in 0..11 {
        let hosts = (0..1_000).map(|at| event("full", &format!("host-{}", part * 1_000 + at)));
        send(&rest, &hosts.collect::<Vec<_>>()).await;
    }
    let mut sent = event("own", "host-1");
    sent["metadataFields"] = json!({"team": "mine"});
    send(&rest, &[sent]).await;
    let mut csv = "host,team,rack\nnobody,x,\n".to_owned();
    for at in 0..9_999 {
        writeln!(csv, "host-{at},team-{},r{at}", at % 7).unwrap();
    }
    for wire in world.wires() {
        let mut draft = table("", &csv);
        draft["enabled"] = json!(false);
        let method = "EnrichmentTableService/PreviewEnrichmentTable";
        let found = wire.ok(method, &json!({"enrichment": draft})).await;
        assert_eq!(found["eventCount"], 10_000, "{found}");
        assert_eq!(found["rowCount"], 10_000);
        // The newest events are one of host-1, and those of 9,999 hosts from host-1000 on.
        assert_eq!(found["matchedCount"], 8_999);
        assert_eq!(found["changedCount"], found["matchedCount"]);
        assert_eq!(found["unmatchedRowCount"], 1_001);
        assert_eq!(found["unmatchedLines"].as_array().unwrap().len(), 20);
        assert_eq!(found["unmatchedLines"][0], 2);
        let events = found["events"].as_array().unwrap();
        assert_eq!(events.len(), 20);
        assert_eq!(events[0]["event"]["name"], "own");
        assert_eq!(events[0]["line"], 4);
        assert_eq!(events[0]["values"], json!({"rack": "r1"}));
        assert_eq!(events[0]["keptFields"], json!(["team"]));
        assert_eq!(found["stoppedEarly"], json!(null));
    }
    assert!(find(&rest, "rack=r1").await.is_empty());

    // The stored table is replaced by the draft of its name.
    rest.post(TABLES, &table("hosts", "host,rack\nhost-1,r1"))
        .await
        .ok();
    send(&rest, &[event("own", "host-1")]).await;
    let preview = format!("{TABLES}:preview");
    let same = rest
        .post(&preview, &table("hosts", "host,rack\nhost-1,r1"))
        .await
        .ok();
    assert_eq!(
        (&same["matchedCount"], &same["changedCount"]),
        (&json!(1), &json!(0))
    );
    let other = rest
        .post(&preview, &table("hosts", "host,rack\nhost-1,r2"))
        .await
        .ok();
    assert_eq!(other["changedCount"], 1);
    assert_eq!(other["events"][0]["values"], json!({"rack": "r2"}));
}

#[tokio::test]
async fn document_reads_the_table_from_a_file_and_round_trips() {
    let world = World::start();
    let csv = world.folder().join("hosts.csv");
    fs::write(
        &csv,
        "\u{feff}host,team,note\r\ndb-1,databases,\"a, \"\"b\"\"\"\r\n",
    )
    .unwrap();
    let document = world.folder().join("hosts.yaml");
    let text = format!(
        "kind: enrichment\nname: hosts\nenabled: true\nmatchFields: [host]\ncsv: {{fromFile: {}}}\n",
        csv.display()
    );
    fs::write(&document, text).unwrap();
    let document = document.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = process::run(world.command(arguments));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.code(),
            text + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (code, text) = run(&["apply", "-f", document]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("enrichment"), "{text}");
    let (code, text) = run(&["diff", "-f", document]);
    assert_eq!(code, Some(0), "{text}");
    let (_, exported) = run(&["export"]);
    let exported_file = world.folder().join("exported.yaml");
    fs::write(&exported_file, &exported).unwrap();
    let (code, text) = run(&["diff", "-f", exported_file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}\n{exported}");
    send(&world.rest(), &[event("full", "db-1")]).await;
    let found = find(&world.rest(), "team=databases").await;
    assert_eq!(
        found[0]["occurrences"][0]["metadataFields"]["note"],
        "a, \"b\""
    );
    fs::write(&csv, "host,team\ndb-1,storage\n").unwrap();
    let (code, text) = run(&["diff", "-f", document]);
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = run(&["apply", "-f", document]);
    assert_eq!(code, Some(0), "{text}");
    let log = world.rest().get("/v1/audit?kinds=enrichment").await.ok();
    assert_eq!(log["entries"].as_array().unwrap().len(), 2, "{log}");
    let (code, text) = run(&["delete", "enrichment", "hosts"]);
    assert_eq!(code, Some(0), "{text}");
}
