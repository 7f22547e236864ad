//! Clients that are kept to a part of what their role may, over both ways in; names of hosts; proxies.

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

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_host_of_another_name_is_refused_by_both_listeners() {
    let world = World::with_settings("hosts = [\"ops.example.net\"]");
    for part in ["rest", "grpc"] {
        let address = world.service().address(part);
        let address = address
            .strip_prefix("http://")
            .unwrap_or(address)
            .to_owned();
        for (host, expected) in [
            ("evil.example", "421"),
            (
                "ops.example.net",
                if part == "rest" { "200" } else { "415" },
            ),
            (&*address, if part == "rest" { "200" } else { "415" }),
        ] {
            let answer = raw(
                &address,
                &format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
            )
            .await;
            let status = answer.split(' ').nth(1).unwrap_or_default();
            let is_other = expected == "421";
            assert_eq!(status == "421", is_other, "{part} {host}: {answer}");
        }
    }
    // The console and the command call by an address.
    let listed = run(world.command(&["client", "list"]));
    assert!(listed.status.success(), "{listed:?}");
}

async fn raw(address: &str, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_says_for_whom_it_asks_and_nobody_else_does() {
    for (settings, expected) in [
        ("trusted_proxies = [\"127.0.0.0/8\"]", "192.0.2.7"),
        ("", "127.0.0.1"),
    ] {
        let world = World::with_settings(settings);
        let address = world.service().address("rest");
        let address = address
            .strip_prefix("http://")
            .unwrap_or(address)
            .to_owned();
        let key = world.admin_key();
        let body = trigger("disk", &[]).to_string();
        let answer = raw(
            &address,
            &format!(
                "POST {TRIGGERS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {key}\r\nx-forwarded-for: 198.51.100.1, 192.0.2.7\r\n\
             content-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        let log = world.rest().get("/v1/audit").await.ok();
        assert!(log.to_string().contains(expected), "{log}");
    }
}
