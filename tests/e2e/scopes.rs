//! Clients that are kept to a part of what their role may.

use bellwether_tests::{eventually::eventually, process::run, rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

/// Makes a client with these further arguments; answers its key.
fn client(world: &World, name: &str, role: &str, further: &[&str]) -> String {
    let create = ["client", "create", name, "--role", role];
    let made = run(world.command(&[&create[..], further].concat()));
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn trigger(name: &str, tags: &[&str]) -> Value {
    let mut trigger = samples::trigger(name, "disk");
    trigger["tags"] = json!(tags);
    trigger
}

const TRIGGERS: &str = "/v1/notification/triggers";

async fn refused(rest: &Rest, method: Method, path: &str, body: &Value) -> String {
    let answer = rest.send(method, path, body.to_string()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    answer.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_is_kept_to_tags_changes_what_carries_them_and_nothing_else() {
    let world = World::start();
    let admin = world.rest();
    let key = client(&world, "db", "editor", &["--scope-tag", "team:db"]);
    let db = world.rest().with_key(Some(&key));

    admin
        .post(TRIGGERS, &trigger("theirs", &["team:web"]))
        .await
        .ok();
    db.post(TRIGGERS, &trigger("ours", &["team:db", "x"]))
        .await
        .ok();
    let theirs = format!("{TRIGGERS}/theirs");
    let why = refused(&db, Method::POST, TRIGGERS, &trigger("new", &["team:web"])).await;
    assert!(why.contains("team:db") && why.contains("`new`"), "{why}");
    let checked = format!("{TRIGGERS}?validateOnly=true");
    refused(&db, Method::POST, &checked, &trigger("new", &[])).await;
    // Neither a foreign one made one's own, nor one's own made foreign.
    refused(&db, Method::PUT, &theirs, &trigger("theirs", &["team:db"])).await;
    let ours = format!("{TRIGGERS}/ours");
    refused(&db, Method::PUT, &ours, &trigger("ours", &["team:web"])).await;
    let answer = db.delete(&theirs).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    db.put(&ours, &trigger("ours", &["team:db"])).await.ok();

    // As documents, also only to look.
    for validate_only in [true, false] {
        let documents = json!({
            "validateOnly": validate_only,
            "documents": [{ "trigger": trigger("theirs", &["team:db"]) }],
        });
        let answer = db.post("/v1/config:apply", &documents).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    eventually("the refusals in the audit log", async || {
        let list = admin.get("/v1/audit?clientNames=db").await.ok();
        let is_told = list.to_string().contains("carries none of the tags");
        is_told.then_some(())
    })
    .await;
    let whole = run(world.command(&["client", "update", "db", "--no-scope"]));
    assert!(whole.status.success(), "{whole:?}");
    db.put(&theirs, &trigger("theirs", &["team:db"])).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_is_kept_to_sources_sends_events_of_these_alone() {
    let world = World::start();
    let sources = ["--scope-source", "cron", "--dialect", "cloudevents"];
    let key = client(&world, "cron", "ingest", &sources);
    let rest = world.rest().with_key(Some(&key));
    let send = async |dimensions: Value| {
        let events = json!({ "detailedResponse": true, "events": [
            { "name": "job failed", "summary": "it failed", "severity": "SEVERITY_ERROR",
              "dimensions": dimensions },
        ] });
        let answer = rest.post("/v1/data-receiver/events", &events).await.json();
        (
            answer["succeeded"].as_i64().unwrap_or(0),
            answer.to_string(),
        )
    };
    assert_eq!(send(json!({"source": "cron"})).await.0, 1);
    let (taken, answer) = send(json!({"source": "web"})).await;
    assert_eq!(taken, 0);
    assert!(
        answer.contains("is `web`; this key sends events of `cron` only"),
        "{answer}"
    );
    let (taken, answer) = send(json!({"host": "a"})).await;
    assert_eq!(taken, 0);
    assert!(answer.contains("is missing"), "{answer}");
    // In the words of another service.
    let event = json!({ "specversion": "1.0", "id": "1", "type": "job", "source": "web" });
    let answer = rest.post("/v1/intake/cloudevents", &event).await;
    assert!(!answer.status.is_success(), "{}", answer.text());
}
