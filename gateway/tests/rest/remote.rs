//! A backend in another process: the same answers, whatever the transport makes of them.

use std::time::Duration;

use bellwether_gateway::Config;
use bellwether_proto::cloud;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    backend::Act,
    serving::eventually,
    world::{World, config},
};

const LIST: &str = "/v1/notification/triggers";
const EVENTS: &str = "/v1/data-receiver/events";

#[tokio::test]
async fn calls_carry_headers_and_error_details() {
    let world = World::remote(config()).await;
    world.backend.answer(&cloud::EventStatusResult {
        succeeded: 2,
        ..Default::default()
    });
    let request = world.request("POST", EVENTS).header("zenoss-api-key", "k");
    let answer = world.send(request, r#"{"events":[{"name":"a"},{}]}"#).await;
    assert_eq!(answer.body, r#"{"succeeded":2}"#);
    let call = &world.backend.calls()[0];
    assert_eq!(call.metadata.get("zenoss-api-key").unwrap(), "k");
    assert!(call.metadata.contains_key("grpc-timeout"));
    assert_eq!(call.decode::<cloud::Events>().events.len(), 2);

    let details = ErrorDetails::with_bad_request_violation("name", "is taken");
    let status = Status::with_error_details(Code::AlreadyExists, "the name is taken", details);
    world.backend.next(Act::Fail(status));
    let answer = world.get(LIST).await;
    assert_eq!(answer.status, 409);
    assert_eq!(answer.violated(), ["name"]);
}

#[tokio::test]
async fn backend_panic_is_500_without_transport_details() {
    let world = World::remote(config()).await;
    world.backend.next(Act::Panic);
    let answer = world.get(LIST).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["code"], 13);
    assert!(!answer.message().contains("h2"), "{}", answer.message());
    assert_eq!(world.get(LIST).await.status, 200);
}

#[tokio::test]
async fn slow_backend_is_504() {
    let deadline = Duration::from_millis(100);
    let world = World::remote(Config {
        deadline,
        ..config()
    })
    .await;
    world.backend.next(Act::Hang);
    let answer = world.get(LIST).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["code"].as_i64()),
        (504, Some(4))
    );
}

#[tokio::test]
async fn backend_lost_during_a_call_is_503() {
    let world = World::remote(config()).await;
    world.backend.next(Act::Hang);
    let waiting = world.get(LIST);
    let killing = async {
        eventually(|| world.backend.calls().len() == 1).await;
        world.kill_backend();
    };
    let (answer, ()) = tokio::join!(waiting, killing);
    assert_eq!(answer.status, 503, "{}", answer.message());
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn response_over_the_default_size_limit_is_accepted() {
    let world = World::remote(config()).await;
    let message = "x".repeat(8 * 1024 * 1024);
    world.backend.answer(&cloud::EventStatusResult {
        message: message.clone(),
        ..Default::default()
    });
    let answer = world.post(EVENTS, "{}").await;
    assert_eq!(answer.json()["message"], message);
}
