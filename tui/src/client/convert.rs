//! Console data to wire types. With the rooms below, which go inward, the only place that takes
//! wire types apart.

mod basic;
mod bulk;
mod delivery;
mod event;
mod explanation;
mod resource;
mod value;

use bellwether_proto::{cloud, v1};
use prost_types::value::Kind as WireKind;
use serde_json::Value;

use self::bulk::delivery_filter;
pub(super) use self::{
    basic::{caller, client, failure, item_results, misplaced, new_client, overview, unreachable},
    bulk::{cancel_deliveries, cancelled, list_obligations, obligation, retried, retry_deliveries},
    delivery::{delivery, test_report},
    event::{event_detail, event_page, watched},
    explanation::explanation,
    resource::{destination, rule, rule_preview, trigger, trigger_test},
};
use super::{DeliveryFilter, EventFilter, StatusChange};
use crate::{
    data::{
        Clause, DeliverySettings, DestinationSpec, DestinationType, Failure, FailureKind,
        FieldError, Role, RuleSpec, Status, TriggerSpec, Webhook,
    },
    limits,
};

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
pub(super) fn failed(status: tonic::Status) -> Failure {
    failure(&status)
}

pub(super) fn role(role: Role) -> v1::Role {
    match role {
        Role::Unknown => v1::Role::Unspecified,
        Role::Ingest => v1::Role::Ingest,
        Role::Viewer => v1::Role::Viewer,
        Role::Operator => v1::Role::Operator,
        Role::Editor => v1::Role::Editor,
        Role::Admin => v1::Role::Admin,
    }
}

/// A query; with a cursor (which may be empty) one page of it.
pub(super) fn event_query(filter: EventFilter, cursor: Option<String>) -> v1::EventQuery {
    let statuses = if filter.open_only {
        vec![cloud::Status::Open.into(), cloud::Status::Suppressed.into()]
    } else {
        Vec::new()
    };
    v1::EventQuery {
        clause: filter.clause.map(clause),
        statuses,
        page_input: cursor.map(|cursor| v1::PageInput {
            limit: limits::EVENT_PAGE,
            cursor,
            ..v1::PageInput::default()
        }),
        ..v1::EventQuery::default()
    }
}

pub(super) fn clause(from: Clause) -> v1::Clause {
    use v1::clause::Kind;
    let kind = match from {
        Clause::And { clauses } => Kind::And(v1::And {
            clauses: clauses.into_iter().map(clause).collect(),
        }),
        Clause::Or { clauses } => Kind::Or(v1::Or {
            clauses: clauses.into_iter().map(clause).collect(),
        }),
        Clause::Not { clause: inner } => Kind::Not(Box::new(v1::Not {
            clause: Some(Box::new(clause(*inner))),
        })),
        Clause::Equals(equals) => {
            use v1::equals::Value as Wanted;
            let number = equals.number_val.and_then(|number| number.as_f64());
            let value = equals
                .string_val
                .map(Wanted::StringVal)
                .or(number.map(Wanted::NumberVal))
                .or(equals.bool_val.map(Wanted::BoolVal));
            Kind::Equals(v1::Equals {
                field: equals.field,
                value,
            })
        }
        Clause::In { field, values } => Kind::In(v1::In {
            field,
            values: values.into_iter().map(value).collect(),
        }),
        Clause::GreaterAndEquals {
            field,
            value: bound,
        } => Kind::GreaterAndEquals(v1::GreaterAndEquals {
            field,
            value: Some(value(bound)),
        }),
        Clause::LessAndEquals {
            field,
            value: bound,
        } => Kind::LessAndEquals(v1::LessAndEquals {
            field,
            value: Some(value(bound)),
        }),
        Clause::Contains { field, value } => Kind::Contains(v1::Contains { field, value }),
        Clause::StartsWith { field, value } => Kind::StartsWith(v1::StartsWith { field, value }),
        Clause::EndsWith { field, value } => Kind::EndsWith(v1::EndsWith { field, value }),
        Clause::Matches { field, value } => Kind::Matches(v1::Matches { field, value }),
        Clause::Exists { field } => Kind::Exists(v1::Exists { field }),
        Clause::Greater {
            field,
            value: bound,
        } => Kind::Greater(v1::Greater {
            field,
            value: Some(value(bound)),
        }),
        Clause::Less {
            field,
            value: bound,
        } => Kind::Less(v1::Less {
            field,
            value: Some(value(bound)),
        }),
    };
    v1::Clause { kind: Some(kind) }
}

fn value(from: Value) -> prost_types::Value {
    let kind = match from {
        Value::Null => WireKind::NullValue(0),
        Value::Bool(flag) => WireKind::BoolValue(flag),
        Value::Number(number) => WireKind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => WireKind::StringValue(text),
        Value::Array(items) => WireKind::ListValue(prost_types::ListValue {
            values: items.into_iter().map(value).collect(),
        }),
        Value::Object(fields) => WireKind::StructValue(prost_types::Struct {
            fields: fields
                .into_iter()
                .map(|(key, item)| (key, value(item)))
                .collect(),
        }),
    };
    prost_types::Value { kind: Some(kind) }
}

fn trigger_type(from: crate::data::TriggerType) -> v1::TriggerType {
    let query = v1::Query {
        clause: from.event.query.clause.map(clause),
    };
    v1::TriggerType {
        r#type: Some(v1::trigger_type::Type::Event(v1::EventTrigger {
            query: Some(query),
            ..v1::EventTrigger::default()
        })),
    }
}

pub(super) fn trigger_spec(from: TriggerSpec) -> v1::Trigger {
    v1::Trigger {
        name: from.name,
        description: from.description,
        tags: from.tags,
        r#type: Some(trigger_type(from.kind)),
        ..v1::Trigger::default()
    }
}

pub(super) fn test_trigger(from: TriggerSpec, start_ms: Option<i64>) -> v1::TestTriggerRequest {
    v1::TestTriggerRequest {
        name: from.name,
        r#type: Some(trigger_type(from.kind)),
        time_range: start_ms.map(|start_ms| v1::TimeRange {
            start: Some(start_ms),
            end: None,
        }),
        ..v1::TestTriggerRequest::default()
    }
}

pub(super) fn rule_spec(from: RuleSpec) -> v1::Rule {
    v1::Rule {
        name: from.name,
        description: from.description,
        tags: from.tags,
        enabled: Some(from.enabled),
        trigger_names: from.trigger_names,
        destination_names: from.destination_names,
        message: from.message,
        repeat: Some(from.repeat),
        repeat_interval: from.repeat_interval,
        send_updates: Some(from.send_updates),
        ..v1::Rule::default()
    }
}

pub(super) fn preview_rule(from: RuleSpec, event_id: String) -> v1::PreviewRuleRequest {
    v1::PreviewRuleRequest {
        name: from.name,
        description: from.description,
        trigger_names: from.trigger_names,
        destination_names: from.destination_names,
        message: from.message,
        repeat_interval: from.repeat_interval,
        event_id,
        ..v1::PreviewRuleRequest::default()
    }
}

pub(super) fn destination_spec(from: DestinationSpec) -> Result<v1::Destination, Failure> {
    Ok(v1::Destination {
        name: from.name,
        description: from.description,
        tags: from.tags,
        r#type: from.kind.map(destination_type).transpose()?,
        delivery: from.delivery.map(delivery_settings).transpose()?,
        ..v1::Destination::default()
    })
}

pub(super) fn test_destination(
    name: String,
    spec: Option<DestinationSpec>,
    event_id: String,
) -> Result<v1::TestDestinationRequest, Failure> {
    let (kind, delivery) = spec.map_or((None, None), |spec| (spec.kind, spec.delivery));
    Ok(v1::TestDestinationRequest {
        name,
        r#type: kind.map(destination_type).transpose()?,
        delivery: delivery.map(delivery_settings).transpose()?,
        event_id,
        ..v1::TestDestinationRequest::default()
    })
}

fn destination_type(from: DestinationType) -> Result<v1::DestinationType, Failure> {
    use v1::destination_type::Type;
    let kind = match from {
        DestinationType::Webhook(Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }) => Type::Webhook(v1::Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }),
        DestinationType::Email(email) => Type::Email(v1::Email {
            to: email.to,
            subject: email.subject,
            body: email.body,
        }),
        DestinationType::Slack(slack) => Type::Slack(v1::Slack {
            channel: slack.channel,
            token: slack.token,
        }),
        DestinationType::MsTeams(teams) => Type::Msteams(v1::MsTeams { url: teams.url }),
        DestinationType::PagerDuty(pager) => Type::Pagerduty(v1::PagerDuty {
            routing_key: pager.routing_key,
        }),
        DestinationType::ServiceNow(now) => Type::Servicenow(v1::ServiceNow {
            instance_url: now.instance_url,
            client_id: now.client_id,
            client_secret: now.client_secret,
            token_url: now.token_url,
            refresh_token: now.refresh_token,
        }),
        DestinationType::Event(event) => {
            let severity = severity(&event.severity).ok_or_else(|| {
                invalid(
                    "type.event.severity",
                    "one of debug, info, warning, error, critical",
                )
            })?;
            Type::Event(v1::EventDestination {
                name_template: event.name_template,
                type_template: event.type_template,
                summary_template: event.summary_template,
                severity: severity.into(),
            })
        }
    };
    Ok(v1::DestinationType { r#type: Some(kind) })
}

fn severity(word: &str) -> Option<cloud::Severity> {
    let name = word.trim().to_uppercase();
    if name.is_empty() {
        return Some(cloud::Severity::Default);
    }
    cloud::Severity::from_str_name(&name)
        .or_else(|| cloud::Severity::from_str_name(&format!("SEVERITY_{name}")))
}

fn invalid(path: &str, message: &str) -> Failure {
    Failure {
        kind: FailureKind::Invalid,
        message: format!("{path}: {message}"),
        fields: vec![FieldError {
            path: path.to_owned(),
            message: message.to_owned(),
        }],
    }
}

fn delivery_settings(from: DeliverySettings) -> Result<v1::DeliverySettings, Failure> {
    let DeliverySettings {
        timeout,
        max_in_flight,
        max_per_minute,
        max_attempts,
    } = from;
    let typed = timeout.trim();
    let timeout = if typed.is_empty() {
        None
    } else {
        let seconds = typed
            .strip_suffix('s')
            .unwrap_or(typed)
            .trim()
            .parse::<f64>()
            .ok();
        let duration = seconds
            .and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok())
            .and_then(|duration| prost_types::Duration::try_from(duration).ok());
        Some(duration.ok_or_else(|| invalid("delivery.timeout", "seconds, as in `15s`"))?)
    };
    Ok(v1::DeliverySettings {
        timeout,
        max_in_flight,
        max_per_minute,
        max_attempts,
    })
}

pub(super) fn list_deliveries(
    filter: DeliveryFilter,
    page_token: String,
) -> v1::ListDeliveriesRequest {
    let filter = delivery_filter(filter);
    v1::ListDeliveriesRequest {
        page_size: limits::DELIVERY_PAGE,
        page_token,
        states: filter.states,
        rule_names: filter.rule_names,
        destination_names: filter.destination_names,
        event_id: filter.event_id,
        start: filter.start,
        end: filter.end,
    }
}

/// The event's id of an occurrence's.
fn event_id(occurrence_id: &str) -> String {
    occurrence_id
        .split_once(':')
        .map_or(occurrence_id, |(event, _)| event)
        .to_owned()
}

pub(super) fn set_status(ids: Vec<String>, change: StatusChange) -> v1::SetStatusRequest {
    let status = match change {
        StatusChange::Status(Status::Open) => cloud::Status::Open,
        StatusChange::Status(Status::Suppressed) => cloud::Status::Suppressed,
        StatusChange::Status(Status::Closed) => cloud::Status::Closed,
        StatusChange::Status(Status::Unknown) | StatusChange::Acknowledged(_) => {
            cloud::Status::Default
        }
    };
    let acknowledged = match change {
        StatusChange::Acknowledged(flag) => Some(flag),
        StatusChange::Status(_) => None,
    };
    let statuses = ids.into_iter().map(|occurrence_id| v1::StatusItem {
        event_id: event_id(&occurrence_id),
        occurrence_id,
        status: status.into(),
        acknowledged,
    });
    v1::SetStatusRequest {
        statuses: statuses.collect(),
    }
}

pub(super) fn annotate(ids: Vec<String>, text: &str) -> v1::AnnotateRequest {
    let annotations = ids.into_iter().map(|occurrence_id| v1::AnnotationItem {
        event_id: event_id(&occurrence_id),
        occurrence_id,
        annotation_id: String::new(),
        annotation: text.to_owned(),
    });
    v1::AnnotateRequest {
        annotations: annotations.collect(),
    }
}
