//! What a destination of each kind must hold.

use std::{collections::HashSet, ops::RangeInclusive, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue as WireValue};
use lettre::Address;

use crate::{
    domain::{
        DeliverySettings, DestinationKind, Secret,
        destination::{Email, EventTemplates, Header, HeaderValue, ServiceNow, Slack, Webhook},
    },
    limits::{HEADER_VALUE_BYTES_MAX, HEADERS_MAX, SETTING_BYTES_MAX},
    message,
    ops::validate::Faults,
};

const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);
const IN_FLIGHT: RangeInclusive<u32> = 1..=64;
const PER_MINUTE: RangeInclusive<u32> = 1..=60_000;
const ATTEMPTS: RangeInclusive<u32> = 1..=8;

/// Bytes of a signing secret.
const SIGNING_KEY_BYTES: RangeInclusive<usize> = 24..=64;
/// Signing secrets at once, while one takes over from the other.
const SIGNING_SECRETS_MAX: usize = 2;

/// Headers that the service or its HTTP client sets itself.
const FORBIDDEN_HEADERS: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What the names of further such headers begin with.
const FORBIDDEN_PREFIX: &str = "webhook-";

/// Checks how messages are delivered.
pub(super) fn settings(settings: DeliverySettings, faults: &mut Faults) {
    if settings
        .timeout
        .is_some_and(|timeout| !TIMEOUT.contains(&timeout))
    {
        faults.add("delivery.timeout", "is not 1s to 30s");
    }
    let counts = [
        ("delivery.maxInFlight", settings.max_in_flight, IN_FLIGHT),
        ("delivery.maxPerMinute", settings.max_per_minute, PER_MINUTE),
        ("delivery.maxAttempts", settings.max_attempts, ATTEMPTS),
    ];
    for (field, count, range) in counts {
        if count.is_some_and(|count| !range.contains(&count)) {
            let (least, most) = range.into_inner();
            faults.add(
                field,
                format!("is not {least} to {most}, or 0 for the default"),
            );
        }
    }
}

/// Checks where messages go, with its secrets filled in.
pub(super) fn kind(kind: &DestinationKind, faults: &mut Faults) {
    faults.extend(message::check(kind));
    match kind {
        DestinationKind::Webhook(webhook) => check_webhook(webhook, faults),
        DestinationKind::Email(email) => check_email(email, faults),
        DestinationKind::Slack(slack) => check_slack(slack, faults),
        DestinationKind::MsTeams(teams) => faults.url("type.msteams.url", teams.url.reveal()),
        DestinationKind::PagerDuty(pagerduty) => {
            secret("type.pagerduty.routingKey", &pagerduty.routing_key, faults);
        }
        DestinationKind::ServiceNow(servicenow) => check_servicenow(servicenow, faults),
        DestinationKind::Event(event) => check_event(event, faults),
    }
}

fn check_webhook(webhook: &Webhook, faults: &mut Faults) {
    faults.url("type.webhook.url", &webhook.url);
    if webhook.headers.len() > HEADERS_MAX {
        let count = webhook.headers.len();
        faults.add(
            "type.webhook.headers",
            format!("holds {count} headers; at most {HEADERS_MAX} are sent"),
        );
    }
    let mut seen = HashSet::new();
    for header in webhook.headers.iter().take(HEADERS_MAX) {
        check_header(header, faults);
        if !seen.insert(header.name.to_ascii_lowercase()) {
            faults.add(
                header_path(header),
                "is given twice, in different letter case",
            );
        }
    }
    if let Some(secrets) = &webhook.signing_secret
        && !is_signing_secret(secrets)
    {
        faults.add(
            "type.webhook.signingSecret",
            "is not `whsec_` and base64 of 24 to 64 bytes, or two of these parted by a space",
        );
    }
}

fn header_path(header: &Header) -> String {
    let name: String = header.name.chars().take(100).collect();
    format!("type.webhook.headers[{name}]")
}

fn check_header(header: &Header, faults: &mut Faults) {
    let path = header_path(header);
    let Ok(name) = HeaderName::try_from(header.name.as_str()) else {
        return faults.add(path, "is not the name of an HTTP header");
    };
    if FORBIDDEN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(FORBIDDEN_PREFIX) {
        return faults.add(path, "is set by the service itself");
    }
    let value = match &header.value {
        HeaderValue::Plain(text) => text,
        HeaderValue::Secret(secret) if secret.reveal().is_empty() => {
            return faults.add(path, "has no value, and none is stored that could be kept");
        }
        HeaderValue::Secret(secret) => secret.reveal(),
    };
    if header.name.len() + value.len() > HEADER_VALUE_BYTES_MAX {
        faults.add(
            path,
            format!("is larger than {HEADER_VALUE_BYTES_MAX} bytes"),
        );
    } else if WireValue::try_from(value).is_err() || value.trim() != value {
        faults.add(
            path,
            "has a value with control characters, or white space around it",
        );
    }
}

/// Whether the values of headers of that name are kept secret.
pub fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "authorization",
        "authentication",
        "cookie",
        "token",
        "secret",
        "password",
        "passwd",
        "credential",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    let is_key = |word: &str| matches!(word, "key" | "apikey" | "auth");
    PARTS.iter().any(|part| name.contains(part)) || name.split(['-', '_', '.']).any(is_key)
}

fn is_signing_secret(secrets: &Secret) -> bool {
    let secrets: Vec<_> = secrets.reveal().split(' ').collect();
    let is_one = |secret: &str| {
        let key = secret.strip_prefix("whsec_");
        key.and_then(|key| STANDARD.decode(key).ok())
            .is_some_and(|key| SIGNING_KEY_BYTES.contains(&key.len()))
    };
    secrets.len() <= SIGNING_SECRETS_MAX && secrets.into_iter().all(is_one)
}

fn check_email(email: &Email, faults: &mut Faults) {
    if email.to.is_empty() {
        faults.add("type.email.to", "is required: one mail address");
    } else if email.to.len() > SETTING_BYTES_MAX || email.to.parse::<Address>().is_err() {
        faults.add(
            "type.email.to",
            "is not one mail address, such as `ops@example.com`",
        );
    }
}

fn check_slack(slack: &Slack, faults: &mut Faults) {
    setting("type.slack.channel", &slack.channel, faults);
    secret("type.slack.token", &slack.token, faults);
}

fn check_servicenow(servicenow: &ServiceNow, faults: &mut Faults) {
    faults.url("type.servicenow.instanceUrl", &servicenow.instance_url);
    setting("type.servicenow.clientId", &servicenow.client_id, faults);
    secret(
        "type.servicenow.clientSecret",
        &servicenow.client_secret,
        faults,
    );
    if !servicenow.token_url.is_empty() {
        faults.url("type.servicenow.tokenUrl", &servicenow.token_url);
    }
    if let Some(token) = &servicenow.refresh_token {
        secret("type.servicenow.refreshToken", token, faults);
    }
}

fn check_event(event: &EventTemplates, faults: &mut Faults) {
    let templates = [
        ("type.event.nameTemplate", &event.name_template),
        ("type.event.typeTemplate", &event.type_template),
        ("type.event.summaryTemplate", &event.summary_template),
    ];
    for (field, text) in templates {
        faults.required(field, text);
    }
}

/// Checks a required setting of one line.
fn setting(field: &str, text: &str, faults: &mut Faults) {
    faults.required(field, text);
    one_line(field, text, faults);
}

/// Checks a required secret, which is sent in a header, a form or a JSON text.
fn secret(field: &str, secret: &Secret, faults: &mut Faults) {
    faults.required(field, secret.reveal());
    one_line(field, secret.reveal(), faults);
}

fn one_line(field: &str, text: &str, faults: &mut Faults) {
    if text.len() > SETTING_BYTES_MAX {
        faults.add(field, format!("is longer than {SETTING_BYTES_MAX} bytes"));
    } else if text.chars().any(char::is_control) {
        faults.add(field, "holds control characters or line breaks");
    }
}
