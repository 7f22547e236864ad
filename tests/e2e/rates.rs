//! Rate limits of clients, and rejected keys.

use bellwether_proto::cloud::{
    self, data_receiver_service_client::DataReceiverServiceClient, event_wrapper::EventType,
};
use bellwether_tests::{
    eventually::eventually,
    grpc,
    process::run,
    rest::{Answer, Rest},
    world::World,
};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

const PATH: &str = "/v1/data-receiver/events";

fn events(count: usize) -> Value {
    let event = |at: usize| json!({"name": "disk", "dimensions": {"host": at.to_string()}});
    json!({"events": (0..count).map(event).collect::<Vec<_>>()})
}

async fn count_stored(rest: &Rest) -> i64 {
    let clause = json!({"equals": {"field": "name", "stringVal": "disk"}});
    let query = json!({"query": {"clause": clause}});
    let count = rest.post("/v1/events:count", &query).await.ok()["count"].clone();
    count
        .as_i64()
        .or_else(|| count.as_str()?.parse().ok())
        .unwrap()
}

fn command(world: &World, arguments: &[&str]) -> String {
    let output = run(world.command(arguments));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn assert_rate_limited(answer: &Answer) {
    assert_eq!((answer.status.as_u16(), answer.code()), (429, 8));
    let wait: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[tokio::test]
async fn request_over_the_rate_is_rejected_as_a_whole() {
    let world = World::start();
    let rest = world.rest();
    let create = ["client", "create", "slow", "--role", "ingest"];
    let key = command(
        &world,
        &[&create[..], &["--events-per-second", "5"]].concat(),
    );
    let slow = rest.with_key(Some(&key));
    // A list larger than the rate is accepted; later requests are rejected until it is made up for.
    let first = slow.post(PATH, &events(200)).await;
    assert_eq!(first.ok()["succeeded"], 200);
    assert_eq!(
        first.header("ratelimit-policy"),
        "\"events\";q=5;w=1;qu=\"events\""
    );
    assert!(first.header("ratelimit").starts_with("\"events\";r=0;t="));
    let second = slow.post(PATH, &events(201)).await;
    assert_rate_limited(&second);
    assert!(
        second
            .text()
            .contains("`slow` may send 5 events per second")
    );
    assert_eq!(
        second.header("ratelimit-policy"),
        first.header("ratelimit-policy")
    );
    assert_eq!(count_stored(&rest).await, 200);

    let mut grpc =
        DataReceiverServiceClient::new(grpc::channel(world.service().address("grpc"), Some(&key)));
    let event = cloud::Event {
        name: "disk".into(),
        dimensions: [("host".to_owned(), "over grpc".to_owned())].into(),
        ..cloud::Event::default()
    };
    let list = cloud::Events {
        detailed_response: false,
        events: vec![event.clone()],
    };
    let status = grpc.put_events(list).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_some());
    assert!(status.metadata().contains_key("ratelimit"));

    // The limit can be removed without a new key, and an open stream continues.
    let reported = command(
        &world,
        &["client", "update", "slow", "--events-per-second", "0"],
    );
    assert!(
        reported.starts_with("slow\tingest") && !reported.contains("/s"),
        "{reported}"
    );
    let wrapper = cloud::EventWrapper {
        event_type: Some(EventType::Canonical(event)),
    };
    grpc.put_event(tokio_stream::iter([wrapper])).await.unwrap();
    assert_eq!(slow.post(PATH, &events(200)).await.header("ratelimit"), "");
    assert_eq!(count_stored(&rest).await, 201);
}

#[tokio::test]
async fn rate_limit_of_one_client_does_not_affect_others() {
    let world = World::start();
    let rest = world.rest();
    let create = ["client", "create", "eager", "--role", "viewer"];
    let key = command(
        &world,
        &[&create[..], &["--requests-per-second", "3"]].concat(),
    );
    assert!(command(&world, &["client", "list"]).contains("3 calls/s"));
    let eager = rest.with_key(Some(&key));
    let calls = (0..40).map(|_| eager.get("/v1/notification/rules"));
    let answers = futures_util::future::join_all(calls).await;
    let let_in = answers.iter().filter(|it| it.status == 200).count();
    assert!((3..40).contains(&let_in), "{let_in}");
    for answer in answers.iter().filter(|it| it.status != 200) {
        assert_rate_limited(answer);
    }
    rest.get("/v1/notification/rules").await.ok();
    // Frequent rejections of a key are reported.
    let reported = eventually("an event of the service's own", || async {
        let clause = json!({"equals": {"field": "source", "stringVal": "bellwether"}});
        let query = json!({"query": {"clause": clause}});
        let event = rest.post("/v1/events:search", &query).await.ok()["results"][0].clone();
        event.is_object().then_some(event)
    })
    .await;
    let dimensions = json!({"source": "bellwether", "why": "rate", "client": "eager"});
    assert_eq!(reported["dimensions"], dimensions);
}

#[tokio::test]
async fn key_guessing_is_reported_by_address() {
    let world = World::start();
    let rest = world.rest();
    for at in 0..25 {
        let guessed = rest.with_key(Some(&format!("bw_guess-{at}")));
        assert_eq!(guessed.get("/v1/notification/rules").await.status, 401);
    }
    let reported = eventually("an event of the service's own", || async {
        let clause = json!({"equals": {"field": "type", "stringVal": "key-refused"}});
        let query = json!({"query": {"clause": clause}});
        let event = rest.post("/v1/events:search", &query).await.ok()["results"][0].clone();
        event.is_object().then_some(event)
    })
    .await;
    let dimensions = json!({"source": "bellwether", "why": "key", "address": "127.0.0.1"});
    assert_eq!(reported["dimensions"], dimensions);
    assert!(!reported.to_string().contains("bw_guess"), "{reported}");
}

#[tokio::test]
async fn invalid_rates_are_rejected() {
    let world = World::start();
    for arguments in [
        &[
            "client",
            "create",
            "a",
            "--role",
            "ingest",
            "--requests-per-second",
            "1000001",
        ][..],
        &[
            "client",
            "update",
            "admin",
            "--events-per-second",
            "10000001",
        ],
        &["client", "update", "nobody", "--events-per-second", "1"],
        &["client", "update", "admin", "--events-per-second", "-1"],
    ] {
        let output = run(world.command(arguments));
        assert!(!output.status.success(), "{arguments:?}");
    }
    assert_eq!(command(&world, &["client", "list"]).lines().count(), 1);
}
