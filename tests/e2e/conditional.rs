//! Conditional requests: entity tags, `If-None-Match` and `If-Match`.

use bellwether_tests::{
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const TRIGGERS: &str = "/v1/notification/triggers";
const TRIGGER: &str = "/v1/notification/triggers/disk";

async fn get(rest: &Rest, path: &str, if_none_match: &str) -> Answer {
    let header = [("if-none-match", if_none_match)];
    rest.try_send(Method::GET, path, &header, "").await.unwrap()
}

async fn change(rest: &Rest, method: Method, if_match: &str, body: &Value) -> Answer {
    let header = [("if-match", if_match)];
    let body = if method == Method::DELETE {
        String::new()
    } else {
        body.to_string()
    };
    rest.try_send(method, TRIGGER, &header, body).await.unwrap()
}

async fn world_with_a_trigger() -> World {
    let world = World::start();
    world
        .rest()
        .post(TRIGGERS, &samples::trigger("disk", "disk"))
        .await
        .ok();
    let event = samples::event("disk-full", "a", "SEVERITY_ERROR", "disk is full");
    let events = samples::events(&[event]);
    world
        .rest()
        .post("/v1/data-receiver/events", &events)
        .await
        .ok();
    world
}

#[tokio::test]
async fn unchanged_resource_is_304_without_a_body() {
    let world = world_with_a_trigger().await;
    let rest = world.rest();
    let found = rest
        .post("/v1/events:search", &json!({"query": {}}))
        .await
        .ok();
    let event = format!(
        "/v1/events/{}",
        found["results"][0]["id"].as_str().expect("an id")
    );
    let paths = [
        TRIGGER,
        TRIGGERS,
        &event,
        "/v1/notification/deliveries",
        "/openapi.json",
        "/docs",
        "/llms.txt",
        "/docs/filters.md",
    ];
    for path in paths {
        let first = rest.get(path).await;
        assert_eq!(first.status, 200, "{path}");
        let tag = first.header("etag").to_owned();
        assert!(
            tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'),
            "{path}: {tag}"
        );
        let table = [
            (tag.clone(), 304),
            (format!("W/{tag}"), 304),
            (format!("\"other\", {tag}"), 304),
            ("*".to_owned(), 304),
            ("\"other\"".to_owned(), 200),
            (String::new(), 200),
        ];
        for (condition, status) in table {
            let answer = get(&rest, path, &condition).await;
            assert_eq!(answer.status, status, "{path} {condition}");
            assert_eq!(answer.header("etag"), tag, "{path} {condition}");
            assert_eq!(answer.body.is_empty(), status == 304, "{path} {condition}");
            assert_eq!(
                answer.header("content-type").is_empty(),
                status == 304,
                "{path} {condition}"
            );
        }
    }
    assert_eq!(
        get(&rest, "/v1/notification/triggers/none", "*")
            .await
            .status,
        404
    );
    assert_eq!(get(&rest.with_key(None), TRIGGER, "*").await.status, 401);
    let created = rest.post(TRIGGERS, &samples::trigger("other", "x")).await;
    assert_eq!(created.header("etag"), "", "only GET returns an etag");
}

#[tokio::test]
async fn etag_changes_with_the_resource_and_its_usage() {
    let world = world_with_a_trigger().await;
    let rest = world.rest();
    let tag = rest.get(TRIGGER).await.header("etag").to_owned();
    rest.put(TRIGGER, &samples::trigger("disk", "space"))
        .await
        .ok();
    let changed = get(&rest, TRIGGER, &tag).await;
    assert_eq!(changed.status, 200);
    let tag = changed.header("etag").to_owned();

    let webhook = samples::webhook("hook", "http://127.0.0.1:9");
    rest.post("/v1/notification/destinations", &webhook)
        .await
        .ok();
    let rule = samples::rule("tell", "disk", "hook", "");
    rest.post("/v1/notification/rules", &rule).await.ok();
    let used = get(&rest, TRIGGER, &tag).await;
    assert_eq!(used.ok()["trigger"]["ruleNames"], json!(["tell"]));
    assert_ne!(used.header("etag"), tag);
}

#[tokio::test]
async fn if_match_accepts_one_several_or_any_etag() {
    let world = world_with_a_trigger().await;
    let rest = world.rest();
    let body = samples::trigger("disk", "disk");
    let stale = rest.get(TRIGGER).await;
    rest.put(TRIGGER, &body).await.ok();
    for form in ["TAG", "W/TAG", "\"x\", TAG", "TAG,\"x\"", "*", "STORED"] {
        let current = rest.get(TRIGGER).await;
        let stored = current.json()["trigger"]["etag"]
            .as_str()
            .expect("an etag")
            .to_owned();
        let condition = form
            .replace("TAG", current.header("etag"))
            .replace("STORED", &stored);
        let answer = change(&rest, Method::PUT, &condition, &body).await;
        assert_eq!(answer.status, 200, "{form}: {}", answer.text());
    }
    let old = stale.header("etag");
    for condition in [old.to_owned(), format!("{old}, \"x\""), "\"x\"".to_owned()] {
        for method in [Method::PUT, Method::DELETE] {
            let answer = change(&rest, method, &condition, &body).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (409, 10),
                "{condition}"
            );
        }
    }
    for condition in ["", " ", ",", "\"a\"b\""] {
        let answer = change(&rest, Method::PUT, condition, &body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, 3),
            "{condition}"
        );
    }
    let current = rest.get(TRIGGER).await.header("etag").to_owned();
    let mut other = body.clone();
    other["etag"] = stale.json()["trigger"]["etag"].clone();
    let answer = change(&rest, Method::PUT, &current, &other).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (400, 3),
        "body and header differ"
    );

    let gone = change(&rest, Method::DELETE, &format!("\"x\", {current}"), &body).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(change(&rest, Method::PUT, "*", &body).await.status, 404);
}
