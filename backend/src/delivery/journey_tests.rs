//! End-to-end tests on a disk, from an event on the wire to a received message and a log entry.

use std::{collections::BTreeMap, time::Duration};

use bellwether_proto::{
    cloud::{self, data_receiver_service_client::DataReceiverServiceClient},
    v1::{
        self, delivery_service_client::DeliveryServiceClient,
        destination_service_client::DestinationServiceClient,
        rule_service_client::RuleServiceClient, trigger_service_client::TriggerServiceClient,
    },
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Request, transport::Channel};

use crate::{
    config::Config,
    sending::receiver::{Receiver, Reply},
    server::Backend,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn with_key<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

fn destination_type(url: String) -> v1::DestinationType {
    let webhook = v1::Webhook {
        url,
        ..v1::Webhook::default()
    };
    v1::DestinationType {
        r#type: Some(v1::destination_type::Type::Webhook(webhook)),
    }
}

fn disk_event() -> cloud::Events {
    cloud::Events {
        detailed_response: true,
        events: vec![cloud::Event {
            name: "disk-full".into(),
            dimensions: BTreeMap::from([("host".into(), "db-1".into())])
                .into_iter()
                .collect(),
            summary: "disk /var is full".into(),
            severity: cloud::Severity::Error.into(),
            ..cloud::Event::default()
        }],
    }
}

/// Creates a trigger on events whose summary contains "disk", a webhook, and a rule that connects
/// them.
async fn set_up(channel: &Channel, key: &str, url: String) {
    let clause = v1::Clause {
        kind: Some(v1::clause::Kind::Contains(v1::Contains {
            field: "summary".into(),
            value: "disk".into(),
        })),
    };
    let query = v1::Query {
        clause: Some(clause),
    };
    let event = v1::EventTrigger {
        query: Some(query),
        ..v1::EventTrigger::default()
    };
    let trigger = v1::Trigger {
        name: "disk".into(),
        r#type: Some(v1::TriggerType {
            r#type: Some(v1::trigger_type::Type::Event(event)),
        }),
        ..v1::Trigger::default()
    };
    let request = v1::CreateTriggerRequest {
        trigger: Some(trigger),
        ..v1::CreateTriggerRequest::default()
    };
    let mut triggers = TriggerServiceClient::new(channel.clone());
    triggers
        .create_trigger(with_key(key, request))
        .await
        .unwrap();
    let destination = v1::Destination {
        name: "hook".into(),
        r#type: Some(destination_type(url)),
        ..v1::Destination::default()
    };
    let request = v1::CreateDestinationRequest {
        destination: Some(destination),
        ..v1::CreateDestinationRequest::default()
    };
    let mut destinations = DestinationServiceClient::new(channel.clone());
    destinations
        .create_destination(with_key(key, request))
        .await
        .unwrap();
    let rule = v1::Rule {
        name: "tell".into(),
        enabled: Some(true),
        trigger_names: vec!["disk".into()],
        destination_names: vec!["hook".into()],
        ..v1::Rule::default()
    };
    let request = v1::CreateRuleRequest {
        rule: Some(rule),
        ..v1::CreateRuleRequest::default()
    };
    let mut rules = RuleServiceClient::new(channel.clone());
    rules.create_rule(with_key(key, request)).await.unwrap();
}

#[tokio::test]
async fn event_is_delivered_and_recorded_end_to_end() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(folder.path());
    config.grpc_listen = "127.0.0.1:0".parse().unwrap();
    config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    let backend = Backend::bind(config).await.unwrap();
    let uri = format!("http://{}", backend.grpc_addr());
    let shutdown = CancellationToken::new();
    let mut service = JoinSet::new();
    service.spawn(backend.serve(shutdown.clone()));
    let key = std::fs::read_to_string(folder.path().join("admin.key")).unwrap();
    let key = key.trim();
    let channel = Channel::from_shared(uri).unwrap().connect().await.unwrap();
    set_up(&channel, key, receiver.url("/hook")).await;
    let mut intake = DataReceiverServiceClient::new(channel.clone());
    let accepted = intake
        .put_events(with_key(key, disk_event()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (accepted.succeeded, accepted.failed),
        (1, 0),
        "{accepted:?}"
    );
    let mut log = DeliveryServiceClient::new(channel.clone());
    let entry = tokio::time::timeout(PATIENCE, async {
        loop {
            let request = v1::ListDeliveriesRequest {
                states: vec![v1::delivery::State::Delivered.into()],
                rule_names: vec!["tell".into()],
                ..v1::ListDeliveriesRequest::default()
            };
            let listed = log.list_deliveries(with_key(key, request)).await.unwrap();
            if let Some(entry) = listed.into_inner().deliveries.pop() {
                return entry;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it is delivered in time");
    let [got] = receiver.received_requests().try_into().unwrap();
    assert_eq!(got.header("webhook-id"), entry.id);
    assert_eq!(got.json()["event"]["summary"], "disk /var is full");
    assert_eq!(
        (entry.destination_name.as_str(), entry.attempt_count),
        ("hook", Some(1))
    );
    let test = v1::TestDestinationRequest {
        r#type: Some(destination_type(receiver.url("/draft"))),
        ..v1::TestDestinationRequest::default()
    };
    let mut destinations = DestinationServiceClient::new(channel);
    let tested = destinations
        .test_destination(with_key(key, test))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(tested.outcome(), v1::Outcome::Delivered, "{tested:?}");
    assert_eq!(receiver.received_requests()[1].path, "/draft");
    shutdown.cancel();
    service.join_next().await.unwrap().unwrap().unwrap();
}
