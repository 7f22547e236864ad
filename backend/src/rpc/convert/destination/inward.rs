//! Destinations from the wire.

use std::time::Duration;

use bellwether_proto::v1::{self, destination_type::Type};

use crate::{
    domain::{
        DeliverySettings, DestinationKind, Secret, Severity,
        destination::{
            Email, EventTemplates, Header, HeaderValue, MsTeams, PagerDuty, ServiceNow, Slack,
            Webhook, WebhookMethod,
        },
    },
    error::Violation,
    ops::destination::{DestinationDraft, is_plain_header, is_secret_header},
};

impl From<v1::Destination> for DestinationDraft {
    fn from(wire: v1::Destination) -> Self {
        let mut faults = Vec::new();
        let kind = destination_type(wire.r#type, &mut faults);
        let delivery = delivery_settings(wire.delivery, &mut faults);
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            kind,
            delivery,
            etag: wire.etag,
            faults,
        }
    }
}

/// Takes where messages go; none together with a fault. Use it only when no fault was added.
pub fn destination_type(
    wire: Option<v1::DestinationType>,
    faults: &mut Vec<Violation>,
) -> Option<DestinationKind> {
    let Some(kind) = wire.and_then(|wire| wire.r#type) else {
        faults.push(Violation::new(
            "type",
            "is required: exactly one of webhook, email, slack, msteams, pagerduty, servicenow, \
             event",
        ));
        return None;
    };
    Some(match kind {
        Type::Webhook(wire) => DestinationKind::Webhook(webhook(wire, faults)),
        Type::Email(wire) => DestinationKind::Email(Email {
            to: wire.to,
            subject: wire.subject,
            body: wire.body,
        }),
        Type::Slack(wire) => DestinationKind::Slack(Slack {
            channel: wire.channel,
            token: Secret::new(wire.token),
        }),
        Type::Msteams(wire) => DestinationKind::MsTeams(MsTeams {
            url: Secret::new(wire.url),
        }),
        Type::Pagerduty(wire) => DestinationKind::PagerDuty(PagerDuty {
            routing_key: Secret::new(wire.routing_key),
        }),
        Type::Servicenow(wire) => DestinationKind::ServiceNow(ServiceNow {
            instance_url: wire.instance_url,
            client_id: wire.client_id,
            client_secret: Secret::new(wire.client_secret),
            token_url: wire.token_url,
            refresh_token: Secret::new(wire.refresh_token),
        }),
        Type::Event(wire) => DestinationKind::Event(event(wire, faults)),
    })
}

fn webhook(wire: v1::Webhook, faults: &mut Vec<Violation>) -> Webhook {
    let method = match wire.method.as_str() {
        "" | "POST" => WebhookMethod::Post,
        "PUT" => WebhookMethod::Put,
        "PATCH" => WebhookMethod::Patch,
        _ => {
            faults.push(Violation::new(
                "type.webhook.method",
                "is none of POST, PUT, PATCH",
            ));
            WebhookMethod::Post
        }
    };
    for name in &wire.plain_headers {
        let fault = if !wire
            .headers
            .keys()
            .any(|other| other.eq_ignore_ascii_case(name))
        {
            "is the name of no header that is given"
        } else if is_secret_header(name) {
            "speaks of a secret: the value of such a header is never shown"
        } else {
            continue;
        };
        let start: String = name.chars().take(100).collect();
        let field = format!("type.webhook.plainHeaders[{start}]");
        faults.push(Violation::new(field, fault));
    }
    let is_plain = |name: &str| {
        let mut plain = wire.plain_headers.iter().map(String::as_str);
        plain.any(|plain| plain.eq_ignore_ascii_case(name)) || is_plain_header(name)
    };
    let header = |(name, value): (String, String)| Header {
        value: if is_plain(&name) {
            HeaderValue::Plain(value)
        } else {
            HeaderValue::Secret(Secret::new(value))
        },
        name,
    };
    Webhook {
        url: wire.url,
        secret_url: Secret::new(wire.secret_url),
        method,
        headers: wire.headers.into_iter().map(header).collect(),
        payload: wire.payload,
        signing_secret: Secret::new(wire.signing_secret),
    }
}

fn event(wire: v1::EventDestination, faults: &mut Vec<Violation>) -> EventTemplates {
    let severity = Severity::from_number(wire.severity).unwrap_or_else(|| {
        faults.push(Violation::new(
            "type.event.severity",
            "is required: SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR or \
             SEVERITY_CRITICAL",
        ));
        Severity::Info
    });
    EventTemplates {
        name_template: wire.name_template,
        type_template: wire.type_template,
        summary_template: wire.summary_template,
        severity,
    }
}

/// Takes how messages are delivered.
pub fn delivery_settings(
    wire: Option<v1::DeliverySettings>,
    faults: &mut Vec<Violation>,
) -> DeliverySettings {
    let wire = wire.unwrap_or_default();
    let mut count = |field: &str, count: i32| match u32::try_from(count) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(_negative) => {
            faults.push(Violation::new(format!("delivery.{field}"), "is negative"));
            None
        }
    };
    DeliverySettings {
        max_in_flight: count("maxInFlight", wire.max_in_flight),
        max_per_minute: count("maxPerMinute", wire.max_per_minute),
        max_attempts: count("maxAttempts", wire.max_attempts),
        timeout: wire.timeout.and_then(|timeout| {
            let taken = Duration::try_from(timeout);
            taken
                .map_err(|_negative| {
                    faults.push(Violation::new("delivery.timeout", "is not 1s to 30s"));
                })
                .ok()
        }),
    }
}
