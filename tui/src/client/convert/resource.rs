//! Triggers, destinations and rules from the wire.

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    basic::{millis, severity},
    event::event_rows,
    value::{clause, structure},
};
use crate::{
    client::Answer,
    data::{
        DeliverySettings, Destination, DestinationSpec, DestinationType, Email, EventDestination,
        EventTrigger, Health, HealthState, MsTeams, PagerDuty, Query, Rule, RulePreview, RuleSpec,
        ServiceNow, Slack, Trigger, TriggerSpec, TriggerTest, TriggerType, Webhook,
    },
};

pub(super) fn health(from: Option<v1::DestinationHealth>) -> Health {
    use v1::destination_health::State;
    let from = from.unwrap_or_default();
    let state = match State::try_from(from.state) {
        Ok(State::Healthy) => HealthState::Healthy,
        Ok(State::Failing) => HealthState::Failing,
        Ok(State::Paused) => HealthState::Paused,
        Ok(State::Unspecified) | Err(_) => HealthState::Unknown,
    };
    Health {
        state,
        since_ms: millis(from.since),
        last_error: from.last_error,
    }
}

pub(in crate::client) fn trigger(from: v1::Trigger) -> Trigger {
    use v1::trigger_type::Type;
    let clause = match from.r#type.and_then(|kind| kind.r#type) {
        Some(Type::Event(event)) => event.query.and_then(|query| query.clause).and_then(clause),
        _ => None,
    };
    Trigger {
        spec: TriggerSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            kind: TriggerType {
                event: EventTrigger {
                    query: Query { clause },
                },
            },
        },
        rule_names: from.rule_names,
        recent_count: from.recent_notification_count.unwrap_or_default(),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

pub(in crate::client) fn trigger_test(from: v1::TestTriggerResponse) -> Answer {
    Answer::TriggerTest(Box::new(TriggerTest {
        matched: from.matched.unwrap_or_default(),
        matched_by_saved: from.matched_by_saved,
        scanned: from.scanned.unwrap_or_default(),
        occurrences: from.occurrences.into_iter().flat_map(event_rows).collect(),
        stopped_at_ms: from.reached_time.filter(|_| from.stopped_early),
    }))
}

pub(in crate::client) fn rule(from: v1::Rule) -> Rule {
    Rule {
        spec: RuleSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            enabled: from.enabled.unwrap_or_default(),
            trigger_names: from.trigger_names,
            destination_names: from.destination_names,
            message: from.message,
            repeat: from.repeat.unwrap_or_default(),
            repeat_interval: from.repeat_interval,
            send_updates: from.send_updates.unwrap_or_default(),
        },
        recent_count: from.recent_notification_count.unwrap_or_default(),
        last_notification_ms: millis(from.last_notification_time),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

pub(in crate::client) fn rule_preview(from: v1::PreviewRuleResponse) -> Answer {
    let preview = |from: v1::RulePreview| RulePreview {
        destination_name: from.destination_name,
        rendered: from.rendered.map_or(Value::Null, structure),
        size_bytes: from.size_bytes.unwrap_or_default(),
        limit_bytes: from.limit_bytes,
        warnings: from.warnings,
    };
    Answer::RulePreview {
        previews: from.previews.into_iter().map(preview).collect(),
        warnings: from.warnings,
    }
}

pub(in crate::client) fn destination(from: v1::Destination) -> Destination {
    Destination {
        spec: DestinationSpec {
            name: from.name,
            description: from.description,
            tags: from.tags,
            kind: from
                .r#type
                .and_then(|kind| kind.r#type)
                .map(destination_type),
            delivery: from.delivery.map(|settings| DeliverySettings {
                timeout: settings
                    .timeout
                    .map_or_else(String::new, |timeout| seconds(&timeout)),
                max_in_flight: settings.max_in_flight,
                max_per_minute: settings.max_per_minute,
                max_attempts: settings.max_attempts,
            }),
        },
        rule_names: from.rule_names,
        recent_count: from.recent_notification_count.unwrap_or_default(),
        health: health(from.health),
        create_ms: millis(from.create_time),
        update_ms: millis(from.update_time),
        etag: from.etag,
    }
}

pub(super) fn seconds(duration: &prost_types::Duration) -> String {
    let fraction = format!("{:09}", duration.nanos.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{}s", duration.seconds)
    } else {
        format!("{}.{fraction}s", duration.seconds)
    }
}

pub(super) fn destination_type(from: v1::destination_type::Type) -> DestinationType {
    use v1::destination_type::Type;
    match from {
        Type::Webhook(v1::Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }) => DestinationType::Webhook(Webhook {
            url,
            method,
            headers,
            payload,
            signing_secret,
        }),
        Type::Email(v1::Email { to, subject, body }) => {
            DestinationType::Email(Email { to, subject, body })
        }
        Type::Slack(v1::Slack { channel, token }) => {
            DestinationType::Slack(Slack { channel, token })
        }
        Type::Msteams(v1::MsTeams { url }) => DestinationType::MsTeams(MsTeams { url }),
        Type::Pagerduty(v1::PagerDuty { routing_key }) => {
            DestinationType::PagerDuty(PagerDuty { routing_key })
        }
        Type::Servicenow(now) => DestinationType::ServiceNow(ServiceNow {
            instance_url: now.instance_url,
            client_id: now.client_id,
            client_secret: now.client_secret,
            token_url: now.token_url,
            refresh_token: now.refresh_token,
        }),
        Type::Event(event) => DestinationType::Event(EventDestination {
            name_template: event.name_template,
            type_template: event.type_template,
            summary_template: event.summary_template,
            severity: severity(event.severity).word().to_owned(),
        }),
    }
}
