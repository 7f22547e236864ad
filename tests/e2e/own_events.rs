//! Tests that senders cannot forge the service's own events, whatever path they use.

use std::collections::BTreeMap;

use bellwether_proto::cloud::{
    self, EventWrapper, data_receiver_service_client::DataReceiverServiceClient,
    event_wrapper::EventType,
};
use bellwether_tests::{eventually::eventually, grpc, process, world::World};
use serde_json::{Value, json};
use tonic::Code;

const EVENTS: &str = "/v1/data-receiver/events";

async fn alarm(world: &World) -> Option<Value> {
    let clause = json!({"equals": {"field": "name", "stringVal": "key refused"}});
    let query = json!({"query": {"clause": clause}});
    let found = world.rest().post("/v1/events:search", &query).await.ok();
    let occurrence = &found["results"].get(0)?["occurrences"][0];
    Some(json!([
        found["results"].as_array()?.len(),
        occurrence["status"]
    ]))
}

#[tokio::test]
async fn senders_cannot_forge_or_close_service_alarms() {
    let world = World::start();
    let unknown = world.rest().with_key(Some("bw_wrong"));
    for _ in 0..20 {
        unknown.get("/v1/notification/rules").await;
    }
    let open = eventually("the alarm", async || alarm(&world).await).await;
    assert_eq!(open, json!([1, "STATUS_OPEN"]));
    let mut make = world.command(&["client", "create", "sender", "--role", "ingest"]);
    for dialect in ["alertmanager", "cloudevents", "pagerduty"] {
        make.args(["--dialect", dialect]);
    }
    let key = String::from_utf8(process::run(make).stdout).unwrap();
    let key = key.trim();

    refused_by_rest(&world, key).await;
    refused_by_grpc(&world, key).await;
    refused_by_dialects(&world, key).await;

    // No dialect can create an event with the service's own source.
    let all = json!({"query": {"clause": {"equals": {"field": "source",
        "stringVal": "bellwether"}}}});
    let found = world.rest().post("/v1/events:search", &all).await.ok();
    let results = found["results"].as_array().unwrap();
    assert!(
        results.iter().all(|event| event["name"] == "key refused"),
        "{found}"
    );
    assert_eq!(alarm(&world).await, Some(open));
}

fn dimensions() -> BTreeMap<String, String> {
    let pairs = [
        ("source", "bellwether"),
        ("why", "key"),
        ("address", "127.0.0.1"),
    ];
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

async fn refused_by_rest(world: &World, key: &str) {
    let rest = world.rest().with_key(Some(key));
    let mut event = json!({"name": "key refused", "dimensions": dimensions(),
        "status": "STATUS_CLOSED"});
    let answer = rest
        .post(EVENTS, &json!({"events": [event]}))
        .await
        .refused();
    assert_eq!(answer["failed"], 1, "{answer}");
    let reported = answer["message"].as_str().unwrap();
    assert!(
        reported.contains("dimensions: `source` = `bellwether`"),
        "{reported}"
    );
    event["status"] = json!("STATUS_OPEN");
    event["name"] = json!("disk nearly full");
    let answer = rest
        .post(EVENTS, &json!({"events": [event]}))
        .await
        .refused();
    assert_eq!(answer["failed"], 1, "{answer}");
}

async fn refused_by_grpc(world: &World, key: &str) {
    let wire = cloud::Event {
        name: "key refused".into(),
        dimensions: dimensions(),
        status: 2,
        ..cloud::Event::default()
    };
    let channel = grpc::channel(world.service().address("grpc"), Some(key));
    let mut receiver = DataReceiverServiceClient::new(channel);
    let list = cloud::Events {
        detailed_response: false,
        events: vec![wire.clone()],
    };
    assert_eq!(
        receiver.put_events(list).await.unwrap().into_inner().failed,
        1
    );
    let one = tokio_stream::once(EventWrapper {
        event_type: Some(EventType::Canonical(wire)),
    });
    let refused = receiver.put_event(one).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
}

async fn refused_by_dialects(world: &World, key: &str) {
    let rest = world.rest().with_key(Some(key));
    let labels = {
        let mut labels = json!(dimensions());
        labels["alertname"] = json!("key refused");
        labels
    };
    let alerts = json!({"version": "4", "status": "resolved", "alerts": [{"status": "resolved",
        "labels": labels, "annotations": {}, "startsAt": "2026-01-01T00:00:00Z",
        "endsAt": "2026-01-01T00:01:00Z"}]});
    let answer = rest.post("/v1/intake/alertmanager", &alerts).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let incident = json!({"routing_key": key, "event_action": "trigger", "payload":
        {"summary": "x", "source": "bellwether", "severity": "critical"}});
    let answer = rest.post("/v2/enqueue", &incident).await;
    assert!(!answer.status.is_success(), "{}", answer.text());
    let cloud = rest.try_send(
        http::Method::POST,
        "/v1/intake/cloudevents",
        &[("content-type", "application/cloudevents+json")],
        json!({"specversion": "1.0", "id": "1", "type": "key refused", "source": "bellwether",
            "data": {}})
        .to_string(),
    );
    assert_eq!(cloud.await.unwrap().status, 400);
}
