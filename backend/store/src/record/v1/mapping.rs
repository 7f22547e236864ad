//! Intake mappings.

use crate::{
    domain::{
        Handshake, IntakeMapping, MappedEvent, MappedResponse, MappedSeverity, MappedThread,
        Severity, SignatureScheme, WebhookSignature,
    },
    record::table::{numbers, record},
};

const SECRET: &str = "signature.secret";

record! { IntakeMapping {
    1 id, 2 name, 3 description, 4 tags, 5 each, 6 drop, 7 event, 8 signature, 9 revision,
    10 create_ms, 11 update_ms, 12 parse, 13 handshake, 14 response,
    15 reply,
} }

record! {
    MappedEvent as it {
        1 name, 2 dimensions,
        3 from = it.severity.from,
        4 map = it.severity.map,
        5 default = it.severity.default.map_or(0, |it| it as i32),
        6 closed, 7 acknowledged, 8 summary, 9 body, 10 kind,
    } with {
        severity: MappedSeverity { from, map, default: Severity::from_number(default) },
    }
}

record! { MappedResponse {
    1 thread, 2 action, 3 author, 4 note, 5 duration, 6 assignee, 7 destination_names,
    8 template_language,
} }

record! { MappedThread { 1 kept_name, 2 template } }

record! {
    WebhookSignature as it, secrets {
        1 scheme,
        2 sealed = secrets.seal_even_if_empty(SECRET, &it.secret).unwrap_or_default(),
    } with { secret: secrets.open(SECRET, Some(sealed))? }
}

numbers! {
    SignatureScheme {
        1 HubSha256, 2 Sentry, 3 StandardWebhooks, 4 Slack, 5 PagerDuty, 6 Jira, 7 Telegram,
        8 Discord
    }
    Handshake { 1 Sns, 2 EventGrid }
}
