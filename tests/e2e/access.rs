//! Keys, roles, methods and sizes: requests that are rejected before an operation reads them.

use bellwether_tests::world::World;
use http::Method;
use serde_json::{Value, json};

use crate::samples;

/// Returns every operation of the API document: method, path, a body, and the minimum role.
fn operations() -> Vec<(Method, String, Value, &'static str)> {
    let mut operations = vec![
        (
            Method::POST,
            "/v1/notification/destinations:test".to_owned(),
            samples::webhook("x", "http://127.0.0.1:9/"),
            "operator",
        ),
        (
            Method::POST,
            "/v1/data-receiver/events".to_owned(),
            samples::events(&[samples::event("x", "h", "SEVERITY_INFO", "x")]),
            "ingest",
        ),
        (
            Method::POST,
            "/v1/event-management/annotate".to_owned(),
            json!({"annotations": []}),
            "operator",
        ),
        (
            Method::POST,
            "/v1/event-management/status".to_owned(),
            json!({"statuses": []}),
            "operator",
        ),
    ];
    for (kind, definition) in [
        ("triggers", samples::trigger("x", "x")),
        ("destinations", samples::webhook("x", "http://127.0.0.1:9/")),
        ("rules", samples::rule("x", "x", "x", "")),
    ] {
        let all = format!("/v1/notification/{kind}");
        let one = format!("{all}/x");
        operations.extend([
            (Method::GET, all.clone(), Value::Null, "viewer"),
            (Method::POST, all, definition.clone(), "editor"),
            (Method::GET, one.clone(), Value::Null, "viewer"),
            (Method::PUT, one.clone(), definition, "editor"),
            (Method::DELETE, one, Value::Null, "editor"),
        ]);
    }
    operations
}

fn text(body: &Value) -> String {
    if body.is_null() {
        String::new()
    } else {
        body.to_string()
    }
}

#[tokio::test]
async fn every_operation_requires_a_key_with_a_sufficient_role() {
    let world = World::start();
    let rest = world.rest();
    let viewer = rest.with_key(Some(&world.client("a-viewer", "viewer")));
    let ingest = rest.with_key(Some(&world.client("a-sender", "ingest")));
    let operations = operations();
    assert_eq!(operations.len(), 19);

    for (method, path, body, role) in operations {
        let case = format!("{method} {path}");
        for key in [None, Some("wrong"), Some("")] {
            let answer = rest
                .with_key(key)
                .send(method.clone(), &path, text(&body))
                .await;
            assert_eq!(answer.status, 401, "{case} with {key:?}: {}", answer.text());
            assert_eq!(answer.code(), 16, "{case} with {key:?}");
        }
        // An ingest key may not read. A viewer key may not send events or make changes.
        let wrong = if role == "viewer" { &ingest } else { &viewer };
        let answer = wrong.send(method.clone(), &path, text(&body)).await;
        assert_eq!(answer.status, 403, "{case}: {}", answer.text());
        assert_eq!(answer.code(), 7, "{case}");
        assert!(answer.text().contains(role), "{case}: {}", answer.text());
    }
}

#[tokio::test]
async fn key_is_accepted_in_either_header() {
    let world = World::start();
    let key = world.admin_key();
    let bare = world.rest().with_key(None);
    let bearer = format!("Bearer {key}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("zenoss-api-key", key.as_str()),
    ] {
        let headers = [(name, value)];
        let answer = bare
            .try_send(Method::GET, "/v1/notification/rules", &headers, "")
            .await
            .expect(name);
        answer.ok();
    }
}

#[tokio::test]
async fn revoked_key_is_rejected_immediately() {
    let world = World::start();
    let viewer = world
        .rest()
        .with_key(Some(&world.client("short", "viewer")));
    viewer.get("/v1/notification/rules").await.ok();

    let revoked = bellwether_tests::process::run(world.command(&["client", "revoke", "short"]));

    assert!(
        revoked.status.success(),
        "{}",
        String::from_utf8_lossy(&revoked.stderr)
    );
    assert_eq!(viewer.get("/v1/notification/rules").await.status, 401);
}

#[tokio::test]
async fn wrong_method_lists_the_allowed_methods_and_unknown_path_is_404() {
    let world = World::start();
    let rest = world.rest();
    let cases = [
        (Method::PATCH, "/v1/notification/triggers/x", "PUT"),
        (Method::DELETE, "/v1/notification/rules", "POST"),
        (Method::GET, "/v1/data-receiver/events", "POST"),
        (Method::GET, "/v1/notification/destinations:test", "POST"),
        (Method::PUT, "/v1/event-management/status", "POST"),
    ];
    for (method, path, allowed) in cases {
        let answer = rest.send(method.clone(), path, "{}").await;
        assert_eq!(answer.status, 405, "{method} {path}: {}", answer.text());
        let allow = answer.header("allow");
        assert!(allow.contains(allowed), "{method} {path}: {allow}");
    }
    for path in [
        "/v1",
        "/v1/notification/nothing",
        "/v1/notification/triggers/a/b",
    ] {
        let answer = rest.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert_eq!(answer.code(), 5, "{path}");
    }
}

#[tokio::test]
async fn oversized_requests_are_rejected() {
    let world = World::start();
    let rest = world.rest();
    let large = json!({"events": [{"name": "x", "body": "b".repeat(4 * 1024 * 1024)}]});
    let answer = rest.post("/v1/data-receiver/events", &large).await;
    assert_eq!(answer.status, 413, "{}", answer.text());

    let one = samples::event("x", "h", "SEVERITY_INFO", "x");
    let many = samples::events(&vec![one; 1_001]);
    let answer = rest.post("/v1/data-receiver/events", &many).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.code(), 3);
    assert!(
        answer.text().contains("1,000") || answer.text().contains("1000"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn gateway_pages_need_no_key() {
    let world = World::start();
    let bare = world.rest().with_key(None);
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/llms.txt",
    ] {
        let answer = bare.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let described = bare.get("/openapi.json").await.json();
    for (method, path, _, _) in operations() {
        let path = path.replace("/x", "/{name}");
        let method = method.as_str().to_lowercase();
        assert!(
            described["paths"][&path][&method].is_object(),
            "{method} {path} is not described"
        );
    }
}

#[tokio::test]
async fn request_id_is_retained_or_generated() {
    let world = World::start();
    let rest = world.rest();
    let given = [("x-request-id", "from-the-client")];
    let answer = rest
        .try_send(Method::GET, "/v1/notification/rules", &given, "")
        .await;
    assert_eq!(
        answer.expect("an answer").header("x-request-id"),
        "from-the-client"
    );
    let made = rest.get("/v1/notification/rules").await;
    assert!(!made.header("x-request-id").is_empty());
}

#[tokio::test]
async fn audit_log_records_successful_changes_with_their_author() {
    let world =
        World::with_settings("log_filter = \"bellwether::audit=info\"\nlog_format = \"json\"");
    let rest = world.rest();
    let ada = world.client("ada", "editor");
    let editor = rest.with_key(Some(&ada));
    let trigger = samples::trigger("disk-full", "disk");
    let path = "/v1/notification/triggers";
    editor
        .post(&format!("{path}?validateOnly=true"), &trigger)
        .await
        .ok();
    editor.post(path, &trigger).await.ok();
    assert_eq!(editor.post(path, &trigger).await.status, 409);
    editor
        .put(&format!("{path}/disk-full"), &trigger)
        .await
        .ok();
    editor.delete(&format!("{path}/disk-full")).await.ok();
    let lines = world.service().log();
    let noted: Vec<_> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["target"] == "bellwether::audit")
        .map(|line| {
            let id = line["request_id"].as_str().unwrap_or_default();
            assert!(!id.is_empty(), "{line}");
            ["author", "change", "what", "name"]
                .map(|field| line[field].as_str().unwrap_or_default().to_owned())
                .join(" ")
        })
        .collect();
    let expected = [
        "admin create client ada",
        "ada create trigger disk-full",
        "ada update trigger disk-full",
        "ada delete trigger disk-full",
    ];
    assert_eq!(noted, expected);
}
