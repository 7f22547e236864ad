//! The pages that the gateway answers itself.

use std::collections::BTreeSet;

use bellwether_proto::reference::TOPICS;
use serde_json::Value;

use crate::{backend::Act, world::World};

#[tokio::test]
async fn readiness_is_what_the_backends_health_service_says() {
    let world = World::new().await;
    // A health answer is one enum field: 1 is serving, 2 is not.
    for (answer, status) in [(vec![8, 1], 200), (vec![8, 2], 503), (vec![], 503)] {
        world.backend.next(Act::Answer(answer.into()));
        assert_eq!(world.get("/readyz").await.status, status);
        let call = world.backend.calls().pop().unwrap();
        assert_eq!(call.path, "/grpc.health.v1.Health/Check");
    }
}

#[tokio::test]
async fn metrics_count_requests_by_operation_and_code() {
    let world = World::new().await;
    world.get("/v1/notification/triggers").await;
    world.post("/v1/notification/triggers", "x").await;
    world.get("/v1/secret-name").await;
    let answer = world.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain"));
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let service = "bellwether.v1.TriggerService";
    let lines = [
        format!("requests_total{{operation=\"{service}/ListTriggers\",code=\"200\"}} 1"),
        format!("requests_total{{operation=\"{service}/CreateTrigger\",code=\"400\"}} 1"),
        "requests_total{operation=\"unmatched\",code=\"404\"} 1".to_owned(),
        format!("duration_seconds_bucket{{operation=\"{service}/ListTriggers\",le=\"+Inf\"}} 1"),
        "request_body_bytes_total 1".to_owned(),
    ];
    for line in lines {
        assert!(
            text.contains(&format!("bellwether_gateway_{line}\n")) || text.contains(&line),
            "{line}\n{text}"
        );
    }
    assert!(!text.contains("secret-name"), "labels are bounded");
}

#[tokio::test]
async fn the_openapi_document_has_every_path_and_no_loose_end() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let table = [
        ("/v1/notification/triggers", "post"),
        ("/v1/notification/triggers/{name}", "put"),
        ("/v1/notification/destinations:test", "post"),
        ("/v1/notification/deliveries/{id}:retry", "post"),
        ("/v1/events/{id}:explain", "get"),
        ("/v1/data-receiver/events", "post"),
    ];
    for (path, method) in table {
        assert!(
            paths[path][method]["operationId"].is_string(),
            "{method} {path}"
        );
    }
    let mut ids = BTreeSet::new();
    for operation in paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
    {
        assert!(
            ids.insert(operation["operationId"].to_string()),
            "{operation}"
        );
        assert!(
            !operation["description"].as_str().unwrap().is_empty(),
            "{operation}"
        );
        assert!(
            operation["responses"]["200"].is_object()
                && operation["responses"]["default"].is_object()
        );
    }
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_openapi_document_says_where_unknown_fields_are_taken() {
    let document = World::new().await.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["zenoss.cloud.Events"]["additionalProperties"], true);
    assert_eq!(
        schemas["zenoss.cloud.Events"]["properties"]["events"]["type"],
        "array"
    );
    assert_eq!(
        schemas["bellwether.v1.Trigger"]["additionalProperties"],
        false
    );
    let parameters = &document["paths"]["/v1/notification/triggers"]["get"]["parameters"];
    let names: Vec<_> = parameters
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["pageSize", "pageToken", "names", "tags", "q"]);
}

fn collect_references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                into.insert(reference.clone());
            }
            map.values()
                .for_each(|value| collect_references(value, into));
        }
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_references(value, into)),
        _ => {}
    }
}

#[tokio::test]
async fn the_docs_are_one_page_without_outside_resources() {
    let world = World::new().await;
    let answer = world.get("/docs").await;
    assert!(answer.header("content-type").starts_with("text/html"));
    let page = String::from_utf8(answer.body.to_vec()).unwrap();
    for text in [
        "/v1/notification/triggers/{name}",
        "Replaces a trigger",
        "zenoss.cloud.Event",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for outside in [
        "<script", "<link", "<img", "src=", "@import", "http://", "https://",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[tokio::test]
async fn each_reference_topic_is_a_page_that_leads_to_the_others() {
    let world = World::new().await;
    let index = world.get("/docs").await;
    let index = String::from_utf8(index.body.to_vec()).unwrap();
    for topic in TOPICS {
        let path = format!("/docs/{}", topic.name);
        assert!(index.contains(&format!("href=\"{path}\"")), "{path}");
        let answer = world.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.header("content-type").starts_with("text/html"));
        let page = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(
            page.contains(&format!("<h1>{}</h1>", topic.title())),
            "{path}"
        );
        for (tag, end) in [
            ("<table>", "</table>"),
            ("<ol", "</ol>"),
            ("<pre>", "</pre>"),
        ] {
            assert_eq!(
                page.matches(tag).count(),
                page.matches(end).count(),
                "{path} {tag}"
            );
        }
        for outside in ["<script", "<link", "<img", "src=", "@import", "href=\"http"] {
            assert!(!page.contains(outside), "{path}: {outside}");
        }
        for to in page.split("href=\"").skip(1) {
            let to = to.split('"').next().unwrap();
            assert_eq!(world.get(to).await.status, 200, "{path}: {to}");
        }
    }
    assert_eq!(world.get("/docs/nothing").await.status, 404);
    assert_eq!(world.post("/docs/templates", "").await.status, 405);
}
