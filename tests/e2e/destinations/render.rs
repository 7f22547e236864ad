//! Requests that are rendered without being sent, and durations of requests that are sent.

use bellwether_tests::{receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use crate::samples;

const RENDER: &str = "/v1/notification/destinations:render";

async fn render_draft(rest: &Rest, draft: &Value) -> Value {
    rest.post(RENDER, draft).await.ok()
}

fn kinds() -> Vec<(&'static str, Value)> {
    let secret = "s3cret-0123456789";
    vec![
        (
            "webhook",
            json!({"url": "https://hooks.invalid/x", "headers": {"authorization": format!("Bearer {secret}")}}),
        ),
        ("email", json!({"to": "ops@example.com"})),
        ("slack", json!({"channel": "#alerts", "token": secret})),
        (
            "msteams",
            json!({"url": format!("https://teams.invalid/{secret}")}),
        ),
        ("pagerduty", json!({"routingKey": secret})),
        (
            "servicenow",
            json!({"instanceUrl": "https://snow.invalid", "clientId": "me", "clientSecret": secret}),
        ),
        (
            "event",
            json!({"nameTemplate": "echo", "typeTemplate": "echo", "summaryTemplate": "heard of {{event.summary}}",
                "severity": "SEVERITY_ERROR"}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_destination_type_renders_offline_without_secrets() {
    let world = World::start();
    let rest = world.rest();
    for (word, settings) in kinds() {
        let answer = render_draft(&rest, &json!({"type": {word: settings}})).await;
        let request = &answer["request"];
        assert!(request.is_object(), "{word}: {answer}");
        assert!(!answer.to_string().contains("s3cret"), "{word}: {answer}");
        let body = request["body"].as_str().unwrap_or_default();
        assert!(!body.is_empty(), "{word}: {answer}");
        assert!(answer["sizeBytes"].as_i64() > Some(0), "{word}: {answer}");
    }
    let slack = render_draft(&rest, &json!({"type": {"slack": kinds()[2].1}})).await;
    assert_eq!(slack["request"]["method"], "POST");
    let url = slack["request"]["url"].as_str().expect("an address");
    assert!(url.ends_with("/api/chat.postMessage"), "{url}");
    let authorization = &slack["request"]["headers"]["authorization"];
    assert_eq!(*authorization, "Bearer ********");
    // The warning names the only obstacle that is known without a network.
    let mail = render_draft(&rest, &json!({"type": {"email": kinds()[1].1}})).await;
    assert_eq!(mail["request"]["headers"]["to"], "ops@example.com");
    let warning = mail["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("smtp.host"), "{mail}");
    // Rendering recorded no delivery.
    let found = rest.get("/v1/notification/deliveries").await.ok();
    assert_eq!(found["deliveries"].as_array().map_or(0, Vec::len), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rendered_request_has_no_valid_signature() {
    let world = World::start();
    let rest = world.rest();
    let signed = json!({"type": {"webhook": {
        "url": "https://hooks.invalid/x",
        "signingSecret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
    }}});
    let answer = render_draft(&rest, &signed).await;
    let headers = &answer["request"]["headers"];
    assert_eq!(headers["webhook-signature"], "(set when sent)", "{answer}");
    assert!(!headers["webhook-id"].is_null(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rendered_request_equals_the_test_request_and_is_not_sent() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    let kind = json!({"webhook": {"url": receiver.url("/hook?host={{event.dimensions.host}}"), "method": "PUT",
        "payload": "{\"text\": \"{{event.summary}}\"}", "headers": {"x-team": "ops"}, "plainHeaders": ["x-team"]}});
    let event = samples::event("full", "db 1", "SEVERITY_ERROR", "disk \"/var\" is full");
    let request = json!({"type": kind, "event": event});
    let rendered = render_draft(&rest, &request).await;
    assert_eq!(rendered["warnings"], json!(null), "{rendered}");
    assert_eq!(receiver.received().len(), 0);
    let tested = rest
        .post("/v1/notification/destinations:test", &request)
        .await
        .ok();
    assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
    for part in ["method", "url", "body"] {
        assert_eq!(rendered["request"][part], tested["request"][part], "{part}");
    }
    assert_eq!(rendered["request"]["headers"]["x-team"], "ops");
    assert_eq!(receiver.received().len(), 1);
    // The durations of the phases of the exchange.
    let seconds = |part: &str| {
        let text = tested["times"][part].as_str();
        let text = text.unwrap_or_else(|| panic!("{part}: {tested}"));
        text.trim_end_matches('s').parse::<f64>().expect("seconds")
    };
    assert!(seconds("resolve") + seconds("connect") <= seconds("firstByte"));
    assert!(seconds("firstByte") <= seconds("total"), "{tested}");
    assert!(tested["times"]["tls"].is_null(), "{tested}");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_test_lists_the_rules_that_would_notify() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    for name in ["echo", "other"] {
        let trigger = json!({"name": name, "type": {"event": {"filter": format!("name={name}")}}});
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        let rule = samples::rule(&format!("tells of {name}"), name, "hook", "");
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
    let (_, settings) = kinds().remove(6);
    let answer = render_draft(&rest, &json!({"type": {"event": settings}})).await;
    assert_eq!(answer["route"]["ruleNames"], json!(["tells of echo"]));
    assert_eq!(answer["route"]["destinationNames"], json!(["hook"]));
    assert_eq!(answer["request"]["method"], "EVENT");
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    assert_eq!(found["results"].as_array().map_or(0, Vec::len), 0);
}
