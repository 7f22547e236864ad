//! What is sent to each kind of destination, from the content alone.

use serde_json::{Value, json};

use crate::domain::{Content, DestinationKind, IncomingEvent, RecordId};

pub(crate) struct Context<'a> {
    pub(crate) delivery_id: RecordId,
    pub(crate) tenant: &'a str,
    pub(crate) link_base: &'a str,
}

pub(crate) enum Message {
    Webhook {
        content_type: String,
        body: String,
    },
    Email {
        subject: String,
        text: String,
        html: String,
    },
    Slack {
        body: Value,
    },
    MsTeams {
        body: Value,
    },
    PagerDuty {
        body: Value,
    },
    ServiceNow {
        body: Value,
    },
    Event(IncomingEvent),
}

pub(crate) struct Rendered {
    pub(crate) message: Message,
}

pub(crate) fn render(content: &Content, around: &Context<'_>) -> Rendered {
    let summary = content.occurrence.summary.clone();
    let document = json!({
        "id": around.delivery_id.to_string(),
        "tenant": around.tenant,
        "link": around.link_base,
        "clear": content.clear,
        "summary": summary,
    });
    let message = match &content.destination_kind {
        DestinationKind::Webhook(_) => Message::Webhook {
            content_type: "application/json".into(),
            body: document.to_string(),
        },
        DestinationKind::Email(_) => Message::Email {
            subject: summary.clone(),
            text: summary.clone(),
            html: summary,
        },
        DestinationKind::Slack(_) => Message::Slack {
            body: json!({"text": summary}),
        },
        DestinationKind::MsTeams(_) => Message::MsTeams {
            body: json!({"text": summary}),
        },
        DestinationKind::PagerDuty(_) => Message::PagerDuty { body: document },
        DestinationKind::ServiceNow(_) => Message::ServiceNow { body: document },
        DestinationKind::Event(templates) => Message::Event(IncomingEvent {
            name: templates.name_template.clone(),
            kind: templates.type_template.clone(),
            dimensions: content.occurrence.dimensions.clone(),
            metadata: content.occurrence.metadata.clone(),
            summary: templates.summary_template.clone(),
            body: String::new(),
            severity: Some(templates.severity),
            status: None,
            acknowledged: None,
            timestamp_ms: content.occurrence.last_seen_ms,
        }),
    };
    Rendered { message }
}
