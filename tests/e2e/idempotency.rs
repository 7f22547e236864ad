//! Repeated requests with the same idempotency key.

use bellwether_proto::cloud::{
    self, data_receiver_service_client::DataReceiverServiceClient, event_wrapper::EventType,
};
use bellwether_tests::{grpc::Grpc, rest::Answer, rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};
use tonic::{Code, Request};
use tonic_types::StatusExt;

const PATH: &str = "/v1/data-receiver/events";

fn body(host: &str) -> Value {
    let event = |host: &str| json!({"name": "disk", "dimensions": {"host": host}});
    let nameless = json!({"dimensions": {"host": host}, "summary": "has no name"});
    json!({"detailedResponse": true, "events": [event(host), nameless, event("shared")]})
}

async fn send(rest: &Rest, key: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", key)];
    let sent = rest.try_send(Method::POST, PATH, &headers, body.to_string());
    sent.await.expect("the service responds")
}

/// Returns the number of times that the event about a host was accepted.
async fn count(rest: &Rest, host: &str) -> i64 {
    let clause = json!({"equals": {"field": "host", "stringVal": host}});
    let query = json!({"query": {"clause": clause}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    found["results"]
        .as_array()
        .map_or(0, |events| events.iter().map(count_of).sum())
}

fn count_of(event: &Value) -> i64 {
    let count = event["count"].as_str().unwrap_or_default();
    count.parse().unwrap_or_default()
}

#[tokio::test]
async fn repeated_request_gets_the_first_response_even_after_a_crash() {
    let mut world = World::start();
    let first = send(&world.rest(), "night-batch-7", &body("a")).await;
    let answered = first.ok();
    assert_eq!(
        (&answered["succeeded"], &answered["failed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(answered["failedEvents"][0]["event"], body("a")["events"][1]);
    assert_eq!(first.header("idempotent-replayed"), "");
    world.kill();
    world.start_again();
    let rest = world.rest();
    let again = send(&rest, "night-batch-7", &body("a")).await;
    assert_eq!(again.ok(), answered);
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(count(&rest, "shared").await, 1);

    let other = send(&rest, "night-batch-7", &body("b")).await;
    assert_eq!((other.status.as_u16(), other.code()), (409, 6));
    assert!(other.text().contains("another body"), "{}", other.text());
    assert_eq!(count(&rest, "b").await, 0);

    // Keys of different clients are independent.
    let sender = rest.with_key(Some(&world.client("sender", "ingest")));
    let elsewhere = send(&sender, "night-batch-7", &body("a")).await;
    assert_eq!(elsewhere.header("idempotent-replayed"), "");
    assert_eq!(count(&rest, "shared").await, 2);
}

#[tokio::test]
async fn concurrent_identical_requests_run_once() {
    let world = World::start();
    let rest = world.rest();
    let request = body("a");
    let calls = (0..50).map(|_| send(&rest, "k", &request));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|it| it.ok() == answers[0].json()));
    let replayed = |it: &&Answer| it.header("idempotent-replayed") == "true";
    assert_eq!(answers.iter().filter(replayed).count(), 49);
    assert_eq!(count(&rest, "shared").await, 1);
}

#[tokio::test]
async fn failed_request_is_not_remembered() {
    let world = World::start();
    let rest = world.rest();
    let too_many = json!({"events": vec![body("a")["events"][0].clone(); 1_001]});
    for _ in 0..2 {
        assert_eq!(send(&rest, "k", &too_many).await.status, 400);
    }
    let nobody = send(&rest.with_key(None), "k", &body("a")).await;
    assert_eq!(nobody.status, 401);
    let first = send(&rest, "k", &body("a")).await;
    assert_eq!(first.ok()["succeeded"], 2);
    assert_eq!(first.header("idempotent-replayed"), "");
}

#[tokio::test]
async fn invalid_idempotency_key_is_rejected() {
    let world = World::start();
    let rest = world.rest();
    for key in ["", "two words", &"x".repeat(256)] {
        let refused = send(&rest, key, &body("a")).await;
        assert_eq!((refused.status.as_u16(), refused.code()), (400, 3), "{key}");
        assert!(refused.text().contains("idempotency-key"), "{key}");
    }
    assert_eq!(count(&rest, "shared").await, 0);
    let longest = send(&rest, &"x".repeat(255), &body("a")).await;
    assert_eq!(longest.ok()["succeeded"], 2);
}

#[tokio::test]
async fn oversized_response_is_truncated_on_the_first_call_too() {
    let world = World::start();
    let rest = world.rest();
    // A thousand events, each with every possible violation.
    let wrong = json!({
        "summary": "s".repeat(1_025), "severity": 9, "status": 9, "timestamp": 1,
        "type": "t".repeat(300), "dimensions": {"name": "n"},
    });
    let request = json!({"detailedResponse": true, "events": vec![wrong; 1_000]});
    let first = send(&rest, "all-wrong", &request).await.refused();
    assert_eq!(first["failed"], 1_000);
    let failed = first["failedEvents"].as_array().expect("details");
    assert_eq!(failed.len(), 1_000);
    let reason = |at: usize| failed[at]["error"].as_str().unwrap_or_default().to_owned();
    assert!(reason(0).contains("severity"), "{}", reason(0));
    assert!(reason(999).contains("without an idempotency key"));
    let bytes: usize = (0..1_000).map(|at| reason(at).len()).sum();
    assert!(bytes < 150_000, "{bytes} bytes of reasons");
    let again = send(&rest, "all-wrong", &request).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.refused(), first);
    // Without a key, no receipt is stored, and every violation is reported.
    let reported = rest.post(PATH, &request).await.refused();
    let reason = |at: usize| {
        let reason = reported["failedEvents"][at]["error"]
            .as_str()
            .expect("a text");
        reason.replace(&format!("events[{at}]: "), "")
    };
    assert_eq!(reason(999), reason(0));
}

fn keyed<T>(message: T, key: &'static str) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("idempotency-key", key.parse().expect("a key is a header"));
    request
}

fn event(host: &str) -> cloud::Event {
    cloud::Event {
        name: "disk".into(),
        dimensions: [("host".to_owned(), host.to_owned())].into(),
        ..cloud::Event::default()
    }
}

async fn put(channel: &Grpc, host: &str) -> Result<bool, tonic::Status> {
    let events = cloud::Events {
        detailed_response: false,
        events: vec![event(host)],
    };
    let mut client = DataReceiverServiceClient::new(channel.clone());
    let answer = client.put_events(keyed(events, "grpc-1")).await?;
    Ok(answer.metadata().contains_key("idempotent-replayed"))
}

#[tokio::test]
async fn grpc_accepts_idempotency_keys_except_on_streams() {
    let world = World::start();
    let channel = world.grpc();
    assert!(!put(&channel, "a").await.unwrap());
    assert!(put(&channel, "a").await.unwrap());
    let other = put(&channel, "b").await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    let reason = other.get_details_error_info().unwrap().reason;
    assert_eq!(reason, "IDEMPOTENCY_KEY_USED");
    let wrapper = cloud::EventWrapper {
        event_type: Some(EventType::Canonical(event("c"))),
    };
    let stream = tokio_stream::iter([wrapper]);
    let mut client = DataReceiverServiceClient::new(channel);
    let refused = client.put_event(keyed(stream, "grpc-1")).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(count(&world.rest(), "c").await, 0);
}
