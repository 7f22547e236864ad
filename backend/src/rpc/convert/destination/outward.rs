//! Destinations to the wire, secrets masked.

use bellwether_proto::v1::{self, destination_type::Type};

use super::super::{
    health::health,
    list::count,
    time::{duration, timestamp},
};
use crate::{
    domain::{
        DeliverySettings, DestinationKind, Secret,
        destination::{Header, HeaderValue, WebhookMethod},
        secret::MASK,
    },
    ops::{destination::DestinationView, etag::etag},
};

impl From<DestinationView> for v1::Destination {
    fn from(view: DestinationView) -> Self {
        let destination = view.destination;
        let is_default = destination.delivery == DeliverySettings::default();
        Self {
            etag: etag(destination.id, destination.revision),
            name: destination.name.to_string(),
            description: destination.description,
            tags: destination.tags,
            r#type: Some(v1::DestinationType {
                r#type: Some(masked(destination.kind)),
            }),
            delivery: (!is_default).then(|| settings(destination.delivery)),
            rule_names: view.rule_names.iter().map(ToString::to_string).collect(),
            recent_notification_count: Some(count(view.recent_notifications)),
            health: Some(health(view.health.as_ref())),
            create_time: Some(timestamp(destination.create_ms)),
            update_time: Some(timestamp(destination.update_ms)),
        }
    }
}

fn masked(kind: DestinationKind) -> Type {
    match kind {
        DestinationKind::Webhook(webhook) => Type::Webhook(v1::Webhook {
            url: webhook.url,
            method: match webhook.method {
                WebhookMethod::Post => "POST",
                WebhookMethod::Put => "PUT",
                WebhookMethod::Patch => "PATCH",
            }
            .into(),
            headers: webhook.headers.into_iter().map(header).collect(),
            payload: webhook.payload,
            signing_secret: mask_of(webhook.signing_secret.as_ref()),
        }),
        DestinationKind::Email(email) => Type::Email(v1::Email {
            to: email.to,
            subject: email.subject,
            body: email.body,
        }),
        DestinationKind::Slack(slack) => Type::Slack(v1::Slack {
            channel: slack.channel,
            token: MASK.into(),
        }),
        DestinationKind::MsTeams(_) => Type::Msteams(v1::MsTeams { url: MASK.into() }),
        DestinationKind::PagerDuty(_) => Type::Pagerduty(v1::PagerDuty {
            routing_key: MASK.into(),
        }),
        DestinationKind::ServiceNow(servicenow) => Type::Servicenow(v1::ServiceNow {
            instance_url: servicenow.instance_url,
            client_id: servicenow.client_id,
            client_secret: MASK.into(),
            token_url: servicenow.token_url,
            refresh_token: mask_of(servicenow.refresh_token.as_ref()),
        }),
        DestinationKind::Event(event) => Type::Event(v1::EventDestination {
            name_template: event.name_template,
            type_template: event.type_template,
            summary_template: event.summary_template,
            severity: event.severity as i32,
        }),
    }
}

fn header(header: Header) -> (String, String) {
    let value = match header.value {
        HeaderValue::Plain(text) => text,
        HeaderValue::Secret(_) => MASK.into(),
    };
    (header.name, value)
}

/// The mask of a secret that is there; empty for one that is not.
fn mask_of(secret: Option<&Secret>) -> String {
    secret.map_or_else(String::new, |_| MASK.into())
}

fn settings(settings: DeliverySettings) -> v1::DeliverySettings {
    let number =
        |count: Option<u32>| count.map_or(0, |count| i32::try_from(count).unwrap_or(i32::MAX));
    v1::DeliverySettings {
        timeout: settings.timeout.map(duration),
        max_in_flight: number(settings.max_in_flight),
        max_per_minute: number(settings.max_per_minute),
        max_attempts: number(settings.max_attempts),
    }
}
