//! Errors over gRPC, with their codes and details.

use bellwether_proto::{
    cloud::{self, data_receiver_service_client::DataReceiverServiceClient},
    v1::{
        self, Clause, EventTrigger, GetTriggerRequest, ListTriggersRequest, Query, Trigger,
        TriggerType, clause::Kind, client_service_client::ClientServiceClient,
        event_query_service_client::EventQueryServiceClient,
        trigger_service_client::TriggerServiceClient, trigger_type,
    },
};
use bellwether_tests::{
    grpc::{self, Grpc},
    world::World,
};
use tonic::{Code, Status};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt;

fn trigger(name: &str, depth: usize) -> Trigger {
    let equals = v1::Equals {
        field: "name".into(),
        value: Some(v1::equals::Value::StringVal("x".into())),
    };
    let innermost = Clause {
        kind: Some(Kind::Equals(equals)),
    };
    let clause = (1..depth).fold(innermost, |clause, _| Clause {
        kind: Some(Kind::Not(Box::new(v1::Not {
            clause: Some(Box::new(clause)),
        }))),
    });
    let event = EventTrigger {
        query: Some(Query {
            clause: Some(clause),
        }),
        ..EventTrigger::default()
    };
    Trigger {
        name: name.into(),
        r#type: Some(TriggerType {
            r#type: Some(trigger_type::Type::Event(event)),
        }),
        ..Trigger::default()
    }
}

async fn create(channel: &Grpc, trigger: Trigger) -> Result<Trigger, Status> {
    let request = v1::CreateTriggerRequest {
        trigger: Some(trigger),
        ..v1::CreateTriggerRequest::default()
    };
    let answer = TriggerServiceClient::new(channel.clone())
        .create_trigger(request)
        .await?;
    Ok(answer.into_inner().trigger.expect("the trigger as stored"))
}

async fn list(channel: &Grpc, page_size: i32, page_token: &str) -> Result<i32, Status> {
    let request = ListTriggersRequest {
        page_size,
        page_token: page_token.into(),
        ..ListTriggersRequest::default()
    };
    let answer = TriggerServiceClient::new(channel.clone())
        .list_triggers(request)
        .await?;
    Ok(answer.into_inner().total_size.expect("always present"))
}

async fn put(channel: &Grpc, events: usize) -> Result<cloud::EventStatusResult, Status> {
    let event = |number: usize| cloud::Event {
        name: "over grpc".into(),
        dimensions: [("host".to_owned(), format!("h{number}"))].into(),
        ..cloud::Event::default()
    };
    let events = (0..events).map(event).collect();
    let request = cloud::Events {
        detailed_response: true,
        events,
    };
    let answer = DataReceiverServiceClient::new(channel.clone())
        .put_events(request)
        .await?;
    Ok(answer.into_inner())
}

async fn get(channel: &Grpc, name: &str) -> Result<(), Status> {
    let request = GetTriggerRequest { name: name.into() };
    TriggerServiceClient::new(channel.clone())
        .get_trigger(request)
        .await
        .map(drop)
}

fn expect_refusal<T: std::fmt::Debug>(code: Code, answer: Result<T, Status>) {
    let status = answer.expect_err("refused");
    assert_eq!(status.code(), code, "{}", status.message());
    assert!(!status.message().is_empty(), "no human-readable message");
}

#[tokio::test]
async fn invalid_requests_return_the_matching_code() {
    let world = World::start();
    let admin = world.grpc();
    create(&admin, trigger("first", 1))
        .await
        .expect("a trigger");

    expect_refusal(
        Code::AlreadyExists,
        create(&admin, trigger("first", 1)).await,
    );
    expect_refusal(Code::NotFound, get(&admin, "unknown").await);
    expect_refusal(
        Code::InvalidArgument,
        create(&admin, trigger("a/b", 1)).await,
    );
    expect_refusal(
        Code::InvalidArgument,
        create(&admin, trigger("deep", 33)).await,
    );
    expect_refusal(
        Code::InvalidArgument,
        create(&admin, Trigger::default()).await,
    );
    expect_refusal(Code::InvalidArgument, list(&admin, -1, "").await);
    expect_refusal(Code::InvalidArgument, list(&admin, 0, "forged").await);
    expect_refusal(Code::InvalidArgument, put(&admin, 1_001).await);
}

#[tokio::test]
async fn unauthorized_calls_return_the_matching_code() {
    let world = World::start();
    let address = world.service().address("grpc");
    let with_key = |key: &str| grpc::channel(address, Some(key));
    let viewer = with_key(&world.client("viewer", "viewer"));
    let ingest = with_key(&world.client("ingest", "ingest"));

    expect_refusal(
        Code::Unauthenticated,
        list(&grpc::channel(address, None), 0, "").await,
    );
    expect_refusal(Code::Unauthenticated, list(&with_key("wrong"), 0, "").await);
    expect_refusal(
        Code::PermissionDenied,
        create(&viewer, trigger("x", 1)).await,
    );
    expect_refusal(Code::PermissionDenied, put(&viewer, 1).await);
    expect_refusal(Code::PermissionDenied, get(&ingest, "first").await);
    assert_eq!(list(&viewer, 0, "").await.expect("a list"), 0);
    assert_eq!(
        put(&ingest, 1_000).await.expect("an answer").succeeded,
        1_000
    );
}

#[tokio::test]
async fn violations_use_json_field_names() {
    let world = World::start();
    let refused = create(&world.grpc(), trigger("a/b", 33))
        .await
        .expect_err("two invalid fields");

    let details = refused.get_error_details();
    let violations = &details
        .bad_request()
        .expect("field violations")
        .field_violations;
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert!(fields.contains(&"name"), "{fields:?}");
    assert!(
        fields
            .iter()
            .any(|field| field.starts_with("type.event.query.clause")),
        "{fields:?}"
    );
    assert_eq!(details.error_info().expect("a reason").domain, "bellwether");
}

#[tokio::test]
async fn unserved_upstream_methods_are_unimplemented() {
    let world = World::start();
    let mut client = tonic::client::Grpc::new(world.grpc());
    client.ready().await.expect("a channel");
    let path = http::uri::PathAndQuery::from_static("/zenoss.cloud.DataReceiverService/PutMetrics");
    let codec = tonic_prost::ProstCodec::<cloud::Void, cloud::Void>::default();
    let answer = client
        .unary(tonic::Request::new(cloud::Void {}), path, codec)
        .await;
    assert_eq!(answer.expect_err("no metrics").code(), Code::Unimplemented);
}

#[tokio::test]
async fn single_events_are_accepted_as_a_stream() {
    let world = World::start();
    let wrapped = |host: &str| cloud::EventWrapper {
        event_type: Some(cloud::event_wrapper::EventType::Canonical(cloud::Event {
            name: "streamed".into(),
            dimensions: [("host".to_owned(), host.to_owned())].into(),
            ..cloud::Event::default()
        })),
    };
    let events = tokio_stream::iter(["a", "b", "c"].map(wrapped));
    DataReceiverServiceClient::new(world.grpc())
        .put_event(events)
        .await
        .expect("an answer");

    let counted = EventQueryServiceClient::new(world.grpc())
        .count_events(v1::CountEventsRequest::default())
        .await
        .expect("an answer");
    assert_eq!(counted.into_inner().count, Some(3));
}

#[tokio::test]
async fn watch_streams_events_until_its_key_is_revoked() {
    let world = World::start();
    let key = world.client("watcher", "viewer");
    let watcher = grpc::channel(world.service().address("grpc"), Some(&key));
    let mut news = EventQueryServiceClient::new(watcher)
        .watch_events(v1::WatchEventsRequest::default())
        .await
        .expect("a stream")
        .into_inner();
    put(&world.grpc(), 3).await.expect("an answer");
    let mut seen = 0;
    while seen < 3 {
        seen += news
            .message()
            .await
            .expect("news")
            .expect("the stream continues")
            .events
            .len();
    }

    let request = v1::RevokeClientRequest {
        name: "watcher".into(),
    };
    ClientServiceClient::new(world.grpc())
        .revoke_client(request)
        .await
        .expect("revoked");
    let end = loop {
        match news.message().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(
        end.expect_err("the key is invalid").code(),
        Code::Unauthenticated
    );
}

/// Regression test: with the HTTP/2 library's default window, a server treated a few hundred small
/// unread messages as an attack and closed the connection.
#[tokio::test(flavor = "multi_thread")]
async fn thousand_concurrent_calls_share_one_connection() {
    let world = World::start();
    let channel = world.grpc();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        let mut receiver = DataReceiverServiceClient::new(channel.clone());
        let event = cloud::Event {
            name: "small".into(),
            dimensions: [("n".to_owned(), format!("{number}"))].into(),
            ..cloud::Event::default()
        };
        let events = cloud::Events {
            detailed_response: false,
            events: vec![event],
        };
        calls.spawn(async move { receiver.put_events(events).await });
    }
    while let Some(answer) = calls.join_next().await {
        assert_eq!(answer.unwrap().unwrap().into_inner().succeeded, 1);
    }
}

#[tokio::test]
async fn reflection_describes_error_details() {
    let world = World::start();
    let mut client = ServerReflectionClient::new(world.grpc());
    for symbol in [
        "google.rpc.ErrorInfo",
        "google.rpc.BadRequest",
        "google.rpc.RetryInfo",
        "bellwether.v1.Destination",
    ] {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(symbol.into())),
        };
        let requests = tokio_stream::iter([request]);
        let mut answers = client
            .server_reflection_info(requests)
            .await
            .unwrap()
            .into_inner();
        let answer = answers.message().await.unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
            panic!("{symbol}: {answer:?}");
        };
        assert!(!files.file_descriptor_proto.is_empty(), "{symbol}");
    }
}
