//! The resources defined in the installation, and the silences that operators create.

use std::str::FromStr;

use bellwether_backend::{
    domain::{Clause, Literal, Query},
    ops::trigger::event_type,
};
use bellwether_proto::v1::{
    self, destination_service_client::DestinationServiceClient, destination_type::Type,
    inhibition_service_client::InhibitionServiceClient, rule_service_client::RuleServiceClient,
    silence_service_client::SilenceServiceClient, trigger_service_client::TriggerServiceClient,
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};

use super::outside::{Outside, RECEIVERS};

/// Number of rules, each with a trigger for one service.
const RULES: u64 = 500;
/// One rule in this many groups events.
const GROUPING: u64 = 5;
const INHIBITIONS: u64 = 20;
const HALF_AN_HOUR_MS: i64 = 30 * 60 * 1_000;

pub(super) type Grpc = InterceptedService<Channel, Key>;

pub(super) fn with_key(channel: Channel, key: &str) -> Grpc {
    let bearer = MetadataValue::from_str(&format!("Bearer {key}")).unwrap();
    InterceptedService::new(channel, Key(bearer))
}

/// Adds the key to every call.
#[derive(Debug, Clone)]
pub(super) struct Key(MetadataValue<Ascii>);

impl Interceptor for Key {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let headers = request.metadata_mut();
        headers.insert("authorization", self.0.clone());
        Ok(request)
    }
}

pub(super) async fn define(grpc: &Grpc, outside: &Outside) {
    let mut destinations = DestinationServiceClient::new(grpc.clone());
    for number in 0..RECEIVERS {
        let webhook = v1::Webhook {
            url: outside.url(number),
            ..v1::Webhook::default()
        };
        let destination = v1::Destination {
            name: format!("d{number}"),
            r#type: Some(v1::DestinationType {
                r#type: Some(Type::Webhook(webhook)),
            }),
            ..v1::Destination::default()
        };
        let request = v1::CreateDestinationRequest {
            destination: Some(destination),
            ..v1::CreateDestinationRequest::default()
        };
        destinations.create_destination(request).await.unwrap();
    }
    for number in 0..RULES {
        rule(grpc, number).await;
    }
    let mut inhibitions = InhibitionServiceClient::new(grpc.clone());
    for number in 0..INHIBITIONS {
        let inhibition = v1::Inhibition {
            name: format!("i{number}"),
            enabled: Some(true),
            source_filter: format!("severity=critical service=s{}", number * 10),
            target_filter: format!("severity=error service=s{}", number * 10),
            equal: vec![v1::EqualFields {
                source: "service".into(),
                target: String::new(),
            }],
            ..v1::Inhibition::default()
        };
        let request = v1::CreateInhibitionRequest {
            inhibition: Some(inhibition),
            ..v1::CreateInhibitionRequest::default()
        };
        inhibitions.create_inhibition(request).await.unwrap();
    }
}

async fn rule(grpc: &Grpc, number: u64) {
    let service = Literal::Text(format!("s{}", number * 10));
    let query = Query {
        clause: Clause::Equals("service".into(), service),
    };
    let trigger = v1::Trigger {
        name: format!("t{number}"),
        r#type: Some(event_type(&query)),
        ..v1::Trigger::default()
    };
    let request = v1::CreateTriggerRequest {
        trigger: Some(trigger),
        ..v1::CreateTriggerRequest::default()
    };
    let mut triggers = TriggerServiceClient::new(grpc.clone());
    triggers.create_trigger(request).await.unwrap();
    let minutes = |minutes: i64| prost_types::Duration {
        seconds: 60 * minutes,
        nanos: 0,
    };
    let group = number.is_multiple_of(GROUPING).then(|| v1::Grouping {
        by: vec!["service".into()],
        wait: Some(minutes(1)),
        interval: Some(minutes(10)),
    });
    let rule = v1::Rule {
        name: format!("r{number}"),
        enabled: Some(true),
        trigger_names: vec![format!("t{number}")],
        destination_names: vec![format!("d{}", number % RECEIVERS)],
        message: "{{event.severity}}: {{event.summary}}".into(),
        send_updates: Some(true),
        group,
        ..v1::Rule::default()
    };
    let request = v1::CreateRuleRequest {
        rule: Some(rule),
        ..v1::CreateRuleRequest::default()
    };
    let mut rules = RuleServiceClient::new(grpc.clone());
    rules.create_rule(request).await.unwrap();
}

/// Creates a silence for half an hour.
pub(super) async fn silence(grpc: &Grpc, hour: u64, now_ms: i64) {
    let end = jiff::Timestamp::from_millisecond(now_ms + HALF_AN_HOUR_MS).unwrap();
    let silence = v1::Silence {
        reason: "the service is moved".into(),
        filter: format!("service=s{}", hour * 10 % 5_000),
        span: Some(v1::SilenceSpan {
            end_time: Some(prost_types::Timestamp {
                seconds: end.as_second(),
                nanos: 0,
            }),
            ..v1::SilenceSpan::default()
        }),
        ..v1::Silence::default()
    };
    let request = v1::CreateSilenceRequest {
        silence: Some(silence),
        allow_broad: true,
        ..v1::CreateSilenceRequest::default()
    };
    let mut silences = SilenceServiceClient::new(grpc.clone());
    silences.create_silence(request).await.unwrap();
}
