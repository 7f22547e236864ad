//! Triggers, destinations and rules over REST: responses and errors of each operation.

use bellwether_tests::{
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const KINDS: [(&str, &str); 3] = [
    ("triggers", "trigger"),
    ("destinations", "destination"),
    ("rules", "rule"),
];

fn definition(kind: &str, name: &str) -> Value {
    match kind {
        "triggers" => samples::trigger(name, "disk"),
        "destinations" => samples::webhook(name, "http://127.0.0.1:9/hook"),
        _ => samples::rule(name, "base", "base", "{{event.summary}}"),
    }
}

/// Starts a service with a trigger and a destination, both named `base`.
async fn world() -> (World, Rest) {
    let world = World::start();
    let rest = world.rest();
    for (kind, path) in [("triggers", triggers()), ("destinations", destinations())] {
        rest.post(path, &definition(kind, "base")).await.ok();
    }
    (world, rest)
}

fn triggers() -> &'static str {
    "/v1/notification/triggers"
}

fn destinations() -> &'static str {
    "/v1/notification/destinations"
}

fn expect_refusal(answer: &Answer, status: u16, code: i64, case: &str) -> String {
    assert_eq!(answer.status, status, "{case}: {}", answer.text());
    assert_eq!(answer.code(), code, "{case}");
    assert_eq!(answer.header("content-type"), "application/json", "{case}");
    let message = answer.json()["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(!message.is_empty(), "{case}: no human-readable message");
    message
}

#[tokio::test]
async fn resources_support_create_read_list_update_and_delete() {
    let (_world, rest) = world().await;
    for (kind, key) in KINDS {
        let path = format!("/v1/notification/{kind}");
        let mut draft = definition(kind, "first");
        draft["description"] = json!("the first one");
        draft["tags"] = json!(["team-a", "prod"]);

        let created = rest.post(&path, &draft).await.ok()[key].clone();
        assert_eq!(created["name"], "first", "{kind}");
        assert_eq!(created.get("type").is_some(), kind != "rules", "{kind}");
        for field in ["createTime", "updateTime", "etag"] {
            assert!(
                created[field].is_string(),
                "{kind}: no {field} in {created}"
            );
        }
        assert_eq!(created["recentNotificationCount"], 0, "{kind}");

        let read = rest.get(&format!("{path}/first")).await.ok()[key].clone();
        assert_eq!(read, created, "{kind}");

        let list = rest
            .get(&format!("{path}?q=FIRST&tags=prod&tags=team-a"))
            .await
            .ok();
        assert_eq!(list[kind], json!([created]), "{kind}");
        assert_eq!(list["totalSize"], 1, "{kind}");

        draft["description"] = json!("changed");
        let changed = rest.put(&format!("{path}/first"), &draft).await.ok()[key].clone();
        assert_eq!(changed["description"], "changed", "{kind}");
        assert_eq!(changed["createTime"], created["createTime"], "{kind}");
        assert_ne!(changed["etag"], created["etag"], "{kind}");

        assert_eq!(
            rest.delete(&format!("{path}/first")).await.ok(),
            json!({}),
            "{kind}"
        );
        let gone = rest.get(&format!("{path}/first")).await;
        expect_refusal(&gone, 404, 5, kind);
    }
}

#[tokio::test]
async fn duplicate_unknown_or_changed_names_are_rejected() {
    let (_world, rest) = world().await;
    rest.post("/v1/notification/rules", &definition("rules", "base"))
        .await
        .ok();
    for (kind, _) in KINDS {
        let path = format!("/v1/notification/{kind}");
        let duplicate = rest.post(&path, &definition(kind, "base")).await;
        let message = expect_refusal(&duplicate, 409, 6, kind);
        assert!(message.contains("base"), "{kind}: {message}");

        for method in [Method::GET, Method::DELETE] {
            let unknown = rest
                .send(method.clone(), &format!("{path}/unknown"), "")
                .await;
            let message = expect_refusal(&unknown, 404, 5, kind);
            assert!(message.contains("unknown"), "{kind} {method}: {message}");
        }
        let unknown = rest
            .put(&format!("{path}/unknown"), &definition(kind, "unknown"))
            .await;
        expect_refusal(&unknown, 404, 5, kind);

        let changed = rest
            .put(&format!("{path}/base"), &definition(kind, "other"))
            .await;
        let message = expect_refusal(&changed, 400, 3, kind);
        assert!(message.contains("name"), "{kind}: {message}");
        let mut nameless = definition(kind, "base");
        nameless
            .as_object_mut()
            .expect("a definition")
            .remove("name");
        rest.put(&format!("{path}/base"), &nameless).await.ok();
    }
}

#[tokio::test]
async fn invalid_bodies_are_rejected_by_field() {
    let (_world, rest) = world().await;
    for (kind, _) in KINDS {
        let path = format!("/v1/notification/{kind}");
        let with = |field: &str, value: Value| {
            let mut body = definition(kind, "second");
            body[field] = value;
            body.to_string()
        };
        let cases = [
            ("no JSON", "{\"name\": ".to_owned(), ""),
            ("not an object", "[]".to_owned(), ""),
            ("an empty body", String::new(), ""),
            ("an empty object", "{}".to_owned(), "name"),
            (
                "an unknown field",
                with("descripton", json!("x")),
                "description",
            ),
            (
                "a number for a text",
                with("description", json!(3)),
                "description",
            ),
            ("a text for a list", with("tags", json!("x")), "tags"),
            ("an empty name", with("name", json!("")), "name"),
            ("a name of blanks", with("name", json!("  ")), "name"),
            ("a name with a slash", with("name", json!("a/b")), "name"),
            (
                "a name of 101 characters",
                with("name", json!("n".repeat(101))),
                "name",
            ),
            (
                "a long description",
                with("description", json!("d".repeat(1_001))),
                "description",
            ),
        ];
        for (case, body, field) in cases {
            let case = format!("{kind}: {case}");
            let answer = rest.send(Method::POST, &path, body).await;
            let message = expect_refusal(&answer, 400, 3, &case);
            assert!(answer.text().contains(field), "{case}: {message}");
        }
        let typo = rest
            .send(Method::POST, &path, with("descripton", json!("x")))
            .await
            .text();
        assert!(
            typo.contains("descripton") && typo.contains("description"),
            "{typo}"
        );
    }
}

#[tokio::test]
async fn all_violated_fields_are_listed() {
    let (_world, rest) = world().await;
    let rule = json!({
        "name": "bad/name",
        "triggerNames": ["base", "nowhere", "neither"],
        "destinationNames": ["missing"],
        "message": "{{#open}}",
        "repeatInterval": -1,
    });

    let answer = rest.post("/v1/notification/rules", &rule).await;

    expect_refusal(&answer, 400, 3, "rule");
    let text = answer.text();
    for part in [
        "name",
        "nowhere",
        "neither",
        "missing",
        "message",
        "repeatInterval",
    ] {
        assert!(text.contains(part), "{part} is not listed: {text}");
    }
}

#[tokio::test]
async fn fields_accept_every_canonical_json_form() {
    let (_world, rest) = world().await;
    let rule = json!({
        "name": "forms",
        "trigger_names": ["base"],
        "destinationNames": ["base"],
        "description": null,
        "tags": null,
        "repeat": true,
        "repeat_interval": "60",
    });

    let stored = rest.post("/v1/notification/rules", &rule).await.ok()["rule"].clone();

    assert_eq!(stored["triggerNames"], json!(["base"]));
    assert_eq!(stored["repeatInterval"], "60");
    assert_eq!(stored["repeat"], true);
    assert_eq!(stored["enabled"], false);
    assert_eq!(stored["sendUpdates"], false);
    assert_eq!(stored.get("description"), None);

    let mut number = rule;
    number["repeat_interval"] = json!(90);
    let changed = rest.put("/v1/notification/rules/forms", &number).await.ok();
    assert_eq!(changed["rule"]["repeatInterval"], "90");
    let read = rest.get("/v1/notification/rules/forms").await;
    assert!(read.header("content-type").starts_with("application/json"));
}

#[tokio::test]
async fn unicode_names_are_reached_by_their_encoded_path() {
    let (_world, rest) = world().await;
    let cases = [
        ("disk full", "disk%20full"),
        ("caf\u{e9}", "caf%C3%A9"),
        ("\u{78c1}\u{76d8}.1", "%E7%A3%81%E7%9B%98.1"),
        ("a-b_c.d", "a%2Db_c%2ed"),
    ];
    for (name, encoded) in cases {
        rest.post(triggers(), &samples::trigger(name, "x"))
            .await
            .ok();
        let path = format!("{}/{encoded}", triggers());
        assert_eq!(rest.get(&path).await.ok()["trigger"]["name"], name);
        rest.put(&path, &samples::trigger(name, "y")).await.ok();
        rest.delete(&path).await.ok();
        assert_eq!(rest.get(&path).await.status, 404, "{name}");
    }
    // The path is decoded once: `%2520` becomes the text `%20`, which no name contains.
    let twice = rest.get(&format!("{}/disk%2520full", triggers())).await;
    assert!(
        [400, 404].contains(&twice.status.as_u16()),
        "{}",
        twice.text()
    );
}

#[tokio::test]
async fn list_is_paged_and_rejects_invalid_tokens() {
    let (_world, rest) = world().await;
    for number in 0..7 {
        rest.post(triggers(), &samples::trigger(&format!("t{number}"), "x"))
            .await
            .ok();
    }

    let mut names = Vec::new();
    let mut token = String::new();
    loop {
        let page = rest
            .get(&format!("{}?pageSize=3&pageToken={token}", triggers()))
            .await
            .ok();
        assert_eq!(page["totalSize"], 8);
        let page_names = page["triggers"].as_array().expect("a page").iter();
        names.extend(page_names.map(|trigger| trigger["name"].as_str().unwrap_or("").to_owned()));
        match page["nextPageToken"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => break,
        }
    }
    assert_eq!(names, ["base", "t0", "t1", "t2", "t3", "t4", "t5", "t6"]);

    let half = &token[..token.len() / 2];
    let cases = [
        ("pageSize=-1".to_owned(), "pageSize"),
        ("pageSize=many".to_owned(), "pageSize"),
        ("pageToken=forged".to_owned(), "pageToken"),
        (format!("pageToken={half}"), "pageToken"),
        (format!("pageToken={token}&q=other"), "pageToken"),
        ("pagesize=3".to_owned(), "pageSize"),
    ];
    for (query, field) in cases {
        let answer = rest.get(&format!("{}?{query}", triggers())).await;
        expect_refusal(&answer, 400, 3, &query);
        assert!(answer.text().contains(field), "{query}: {}", answer.text());
    }
    let chosen = rest
        .get(&format!("{}?names=t1&names=t5", triggers()))
        .await
        .ok();
    assert_eq!(chosen["totalSize"], 2);
}

#[tokio::test]
async fn stale_etag_makes_no_change() {
    let (_world, rest) = world().await;
    let path = format!("{}/base", triggers());
    let first = rest.get(&path).await.ok()["trigger"].clone();
    let mut second = samples::trigger("base", "second");
    second["etag"] = first["etag"].clone();
    let current = rest.put(&path, &second).await.ok()["trigger"].clone();

    let stale = rest.put(&path, &second).await;
    expect_refusal(&stale, 409, 10, "etag in the body");
    let old_etag = first["etag"].as_str().expect("a text");
    for (method, body) in [
        (Method::PUT, samples::trigger("base", "x").to_string()),
        (Method::DELETE, String::new()),
    ] {
        let header = [("if-match", old_etag)];
        let stale = rest
            .try_send(method, &path, &header, body)
            .await
            .expect("an answer");
        expect_refusal(&stale, 409, 10, "If-Match");
    }
    assert_eq!(rest.get(&path).await.ok()["trigger"], current);

    let header = [("if-match", current["etag"].as_str().expect("a text"))];
    let deleted = rest
        .try_send(Method::DELETE, &path, &header, "")
        .await
        .expect("an answer");
    deleted.ok();
}

#[tokio::test]
async fn resource_used_by_a_rule_is_deleted_only_with_force() {
    let (_world, rest) = world().await;
    rest.post("/v1/notification/rules", &definition("rules", "user"))
        .await
        .ok();
    for (kind, key) in [
        ("triggers", "triggerNames"),
        ("destinations", "destinationNames"),
    ] {
        let path = format!("/v1/notification/{kind}/base");
        let used = rest.delete(&path).await;
        let message = expect_refusal(&used, 400, 9, kind);
        assert!(message.contains("user"), "{message}");

        rest.delete(&format!("{path}?force=true")).await.ok();
        let rule = rest.get("/v1/notification/rules/user").await.ok()["rule"].clone();
        assert_eq!(rule.get(key), None, "{rule}");
    }
}

#[tokio::test]
async fn invalid_queries_are_rejected_on_save() {
    let (_world, rest) = world().await;
    let event = |clause: Value| json!({"event": {"query": {"clause": clause}}});
    let field =
        |name: &str, value: Value| json!({"greaterAndEquals": {"field": name, "value": value}});
    let cases = [
        ("depth 33", event(samples::nested_clause(33)), "32"),
        ("no clause", json!({"event": {"query": {}}}), "clause"),
        (
            "an empty and",
            event(json!({"and": {"clauses": []}})),
            "clauses",
        ),
        (
            "an unknown clause",
            event(json!({"equal": {"field": "name"}})),
            "equals",
        ),
        (
            "no severity",
            event(field("severity", json!("awful"))),
            "value",
        ),
        ("no number", event(field("count", json!("many"))), "value"),
        (
            "no field",
            event(json!({"contains": {"value": "x"}})),
            "field",
        ),
        ("no type", json!({}), "type"),
        (
            "anomaly",
            json!({"anomaly": {}}),
            "this service ingests events",
        ),
        (
            "metrics",
            json!({"metricThreshold": {}}),
            "this service ingests events",
        ),
    ];
    for (case, definition, says) in cases {
        let body = json!({"name": "query", "type": definition});
        let answer = rest.post(triggers(), &body).await;
        expect_refusal(&answer, 400, 3, case);
        assert!(answer.text().contains(says), "{case}: {}", answer.text());
    }
    let deepest = json!({"name": "deepest", "type": event(samples::nested_clause(32))});
    rest.post(triggers(), &deepest).await.ok();
}
