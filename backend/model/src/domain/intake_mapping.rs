//! Intake mappings, which turn webhooks from any service into events, or into actions on events.

use std::collections::BTreeMap;

use crate::domain::{Clause, Name, RecordId, Secret, Severity, TemplateLanguage};

#[derive(Debug, Clone, PartialEq)]
pub struct IntakeMapping {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    /// The path of a list whose entries are events; empty if the document is the event.
    pub each: String,
    /// The condition for entries to ignore.
    pub drop: Option<Clause>,
    /// The mapping of the entries that are not ignored; `None` if `response` is set.
    pub event: Option<MappedEvent>,
    /// The mapping to actions on threads; `None` if `event` is set.
    pub response: Option<Box<MappedResponse>>,
    pub signature: Option<WebhookSignature>,
    /// Paths of texts that contain JSON, decoded in this order.
    pub parse: Vec<String>,
    pub handshake: Option<Handshake>,
    /// A template for the JSON body of the response; empty for the default.
    pub reply: String,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

impl IntakeMapping {
    /// Returns the paths of the secrets that differ from those in `before`, or of all set secrets
    /// if `before` is `None`.
    pub fn changed_secrets(&self, before: Option<&Self>) -> Vec<String> {
        let of = |mapping: &Self| mapping.signature.as_ref().map(|it| it.secret.clone());
        let (after, before) = (of(self), before.and_then(of));
        let is_new = after.is_some() && after != before;
        is_new
            .then(|| "signature.secret".to_owned())
            .into_iter()
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappedEvent {
    pub name: String,
    pub dimensions: BTreeMap<String, String>,
    pub severity: MappedSeverity,
    pub closed: Option<Clause>,
    pub acknowledged: Option<Clause>,
    pub summary: String,
    pub body: String,
    pub kind: String,
}

/// The mapping of an entry to an action on a thread, with templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedResponse {
    pub thread: MappedThread,
    pub action: String,
    pub author: String,
    pub note: String,
    pub duration: String,
    pub assignee: String,
    /// The destinations of the receiver, which get no update about the action.
    pub destination_names: Vec<Name>,
    pub template_language: TemplateLanguage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedThread {
    /// The name of a value that one of the destinations keeps; empty for the id of a thread.
    pub kept_name: String,
    /// A template for the kept value or the id.
    pub template: String,
}

/// The mapping of a severity from a value in the document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedSeverity {
    /// The path of the value; if empty, the default always applies.
    pub from: String,
    pub map: BTreeMap<String, Severity>,
    pub default: Option<Severity>,
}

/// A handshake that a sender requires before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    Sns,
    EventGrid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSignature {
    pub scheme: SignatureScheme,
    pub secret: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureScheme {
    /// HMAC-SHA256 of the body in `x-hub-signature-256`.
    HubSha256,
    /// HMAC-SHA256 of the body in `sentry-hook-signature`.
    Sentry,
    /// Standard Webhooks, version 1.
    StandardWebhooks,
    /// HMAC-SHA256 of the time and the body in `x-slack-signature`.
    Slack,
    /// HMAC-SHA256 of the body in `x-pagerduty-signature`.
    PagerDuty,
    /// HMAC-SHA256 of the body in `x-hub-signature`.
    Jira,
    /// The secret in `x-telegram-bot-api-secret-token`.
    Telegram,
    /// Ed25519 of the time and the body in `x-signature-ed25519`.
    Discord,
}
