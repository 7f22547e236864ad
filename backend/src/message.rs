//! What is sent to each kind of destination, made from a delivery's content alone.

mod check;
mod cut;
mod document;
mod domain_json;
mod email;
mod event;
mod facts;
mod html;
mod msteams;
mod pagerduty;
pub mod sample;
mod servicenow;
mod slack;
#[cfg(test)]
mod tests;
mod webhook;

pub use check::{check, check_message, message_warnings};

use serde_json::{Value, json};

use crate::domain::{Content, DestinationKind, IncomingEvent, RecordId, Severity, Status};
use facts::Facts;

/// What a message tells beside its content.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The delivery; the time in it is the message's `timestamp`.
    pub delivery_id: RecordId,
    /// The destination's name; empty for the test of a draft without a name.
    pub destination_name: &'a str,
    /// The installation's name.
    pub tenant: &'a str,
    /// The address that `url` is and `link` starts with; empty leaves both empty.
    pub link_base: &'a str,
}

/// A message in the form its provider takes, without addresses and secrets.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The body of an HTTP request.
    Webhook {
        /// The body's `content-type`.
        content_type: String,
        /// The body.
        body: String,
    },
    /// A mail.
    Email {
        /// One line, never empty.
        subject: String,
        /// The part for programs that show no HTML.
        text: String,
        /// The HTML part.
        html: String,
    },
    /// `chat.postMessage` without `channel`.
    Slack {
        /// The JSON body.
        body: Value,
    },
    /// A card in the envelope that incoming webhooks take.
    MsTeams {
        /// The JSON body.
        body: Value,
    },
    /// An Events API v2 event without `routing_key`.
    PagerDuty {
        /// The JSON body.
        body: Value,
    },
    /// An `em_event` record.
    ServiceNow {
        /// The JSON body.
        body: Value,
    },
    /// A new event for this service.
    Event(Box<IncomingEvent>),
}

/// A message, and what went wrong while it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The message.
    pub message: Message,
    /// For people; empty when nothing went wrong.
    pub warnings: Vec<String>,
}

/// Makes the message for the content's kind of destination.
///
/// It always makes one: in place of a template that fails stands what is sent by default, and a
/// warning says why.
pub fn render(content: &Content, around: &Context<'_>) -> Rendered {
    let mut facts = Facts::new(content, around);
    let message = match &content.destination_kind {
        DestinationKind::Webhook(webhook) => webhook::message(&mut facts, webhook),
        DestinationKind::Email(email) => email::message(&mut facts, email),
        DestinationKind::Slack(_) => Message::Slack {
            body: slack::body(&mut facts),
        },
        DestinationKind::MsTeams(_) => Message::MsTeams {
            body: msteams::body(&mut facts),
        },
        DestinationKind::PagerDuty(_) => Message::PagerDuty {
            body: pagerduty::body(&mut facts),
        },
        DestinationKind::ServiceNow(_) => Message::ServiceNow {
            body: servicenow::body(&mut facts),
        },
        DestinationKind::Event(templates) => {
            Message::Event(Box::new(event::event(&mut facts, templates)))
        }
    };
    let mut rendered = Rendered {
        message,
        warnings: facts.warnings,
    };
    rendered.warn_of_size();
    rendered
}

impl Rendered {
    /// The message's size in bytes, without the envelope of HTTP or SMTP.
    pub fn size_bytes(&self) -> usize {
        match &self.message {
            Message::Webhook { body, .. } => body.len(),
            Message::Email {
                subject,
                text,
                html,
            } => subject.len() + text.len() + html.len(),
            _ => self.shown().to_string().len(),
        }
    }

    /// The most that the provider takes, in bytes; none where no limit is known.
    pub fn limit_bytes(&self) -> Option<usize> {
        match &self.message {
            Message::MsTeams { .. } => Some(msteams::BODY_BYTES_MAX),
            Message::PagerDuty { .. } => Some(pagerduty::BODY_BYTES_MAX),
            _ => None,
        }
    }

    /// The message as JSON for people to look at: there are no secrets in it.
    pub fn shown(&self) -> Value {
        match &self.message {
            Message::Webhook { content_type, body } => {
                json!({"contentType": content_type, "body": body})
            }
            Message::Email {
                subject,
                text,
                html,
            } => json!({"subject": subject, "text": text, "html": html}),
            Message::Slack { body }
            | Message::MsTeams { body }
            | Message::PagerDuty { body }
            | Message::ServiceNow { body } => body.clone(),
            Message::Event(event) => json!({
                "name": event.name,
                "type": event.kind,
                "dimensions": event.dimensions,
                "metadataFields": domain_json::object(&event.metadata),
                "summary": event.summary,
                "body": event.body,
                "severity": event.severity.map(Severity::enum_name),
                "status": event.status.map(Status::enum_name),
                "timestamp": event.timestamp_ms,
            }),
        }
    }

    fn warn_of_size(&mut self) {
        if let Some(limit) = self.limit_bytes() {
            let size = self.size_bytes();
            if size > limit {
                let warning = format!("the message has {size} bytes; the provider takes {limit}");
                self.warnings.push(warning);
            }
        }
    }
}
