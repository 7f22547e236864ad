//! Pages that the gateway serves without calling the backend's API.

use std::collections::BTreeSet;

use bellwether_proto::reference::TOPICS;

use crate::{backend::Act, world::World};

#[tokio::test]
async fn readiness_follows_the_backend_health_service() {
    let world = World::new().await;
    // A health response is one enum field: 1 is serving, 2 is not serving. The first response is
    // for the whole service, the second for its read-only part.
    let (serving, not_serving) = (vec![8, 1], vec![8, 2]);
    for (whole, reading, status, why) in [
        (&serving, &serving, 200, ""),
        (&not_serving, &serving, 503, "events are refused"),
        (&not_serving, &not_serving, 503, "the backend is not ready"),
        (&Vec::new(), &Vec::new(), 503, "the backend is not ready"),
    ] {
        for answer in [whole, reading] {
            world.backend.next(Act::Answer(answer.clone().into()));
        }
        let answer = world.get("/readyz").await;
        assert_eq!(answer.status, status);
        if status == 503 {
            assert!(answer.message().starts_with(why), "{}", answer.message());
            assert_eq!(answer.header("retry-after"), "1");
        } else {
            // The gateway made only one call, so consume the second response.
            world.get("/readyz").await;
        }
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
        format!("duration_seconds_bucket{{le=\"+Inf\",operation=\"{service}/ListTriggers\"}} 1"),
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
async fn docs_page_loads_no_external_resources() {
    let world = World::new().await;
    let answer = world.get("/docs").await;
    assert!(answer.header("content-type").starts_with("text/html"));
    let page = String::from_utf8(answer.body.to_vec()).unwrap();
    for text in [
        "/v1/notification/triggers/{name}",
        "Replaces a trigger",
        "ZenossEvent",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_loads_no_external_resource(&page, "/docs");
    let icon = world.get("/favicon.svg").await;
    assert_eq!(icon.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn every_operation_and_type_in_the_docs_has_an_anchor() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    let page = world.get("/docs").await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let ids = page.split(" id=\"").skip(1);
    let ids: BTreeSet<_> = ids.map(|rest| rest.split('"').next().unwrap()).collect();
    for place in page.split("href=\"#").skip(1) {
        let place = place.split('"').next().unwrap();
        assert!(ids.contains(place), "{place}");
    }
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|item| item.as_object().unwrap().values());
    for operation in operations {
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
        let sample = operation["x-codeSamples"][0]["source"].as_str().unwrap();
        assert!(sample.starts_with("curl --request "), "{sample}");
    }
    for landmark in ["<header>", "<nav ", "<main ", "type=\"search\""] {
        assert!(page.contains(landmark), "{landmark}");
    }
}

fn assert_loads_no_external_resource(page: &str, path: &str) {
    for outside in ["<img", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{path}: {outside}");
    }
    for to in page.split("href=\"").skip(1) {
        assert!(to.starts_with(['/', '#']), "{path}: {to:.40}");
    }
}

#[tokio::test]
async fn reference_topics_are_pages_linked_to_each_other() {
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
            ("<pre", "</pre>"),
        ] {
            assert_eq!(
                page.matches(tag).count(),
                page.matches(end).count(),
                "{path} {tag}"
            );
        }
        assert_loads_no_external_resource(&page, &path);
        for to in page.split("href=\"").skip(1) {
            let to = to.split(['"', '#']).next().unwrap();
            let to = if to.is_empty() { &path } else { to };
            assert_eq!(world.get(to).await.status, 200, "{path}: {to}");
        }
    }
    assert_eq!(world.get("/docs/nothing").await.status, 404);
    assert_eq!(world.post("/docs/templates", "").await.status, 405);
}
