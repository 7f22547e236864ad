//! Intake mappings, which turn webhooks from any service into events.

use std::collections::BTreeMap;

use crate::domain::{Clause, Name, RecordId, Secret, Severity};

/// Maps a JSON document to events.
#[derive(Debug, Clone, PartialEq)]
pub struct IntakeMapping {
    /// The identity; distinguishes it from an earlier mapping of the same name.
    pub id: RecordId,
    /// The name.
    pub name: Name,
    /// The human-readable description.
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    /// The path of a list whose entries are events; empty if the document is the event.
    pub each: String,
    /// The condition for entries to ignore.
    pub drop: Option<Clause>,
    /// The mapping of the others.
    pub event: MappedEvent,
    /// The signature that requests must have.
    pub signature: Option<WebhookSignature>,
    /// Paths of texts that contain JSON, decoded in this order.
    pub parse: Vec<String>,
    /// The handshake that the sender requires.
    pub handshake: Option<Handshake>,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    /// Time it was created, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

impl IntakeMapping {
    /// Returns the paths of the secrets that differ from `before`, or of all set secrets without
    /// it.
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

/// The mapping of an event: templates and conditions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappedEvent {
    /// The name.
    pub name: String,
    /// The dimensions.
    pub dimensions: BTreeMap<String, String>,
    /// The severity.
    pub severity: MappedSeverity,
    /// The condition for the event to be closed.
    pub closed: Option<Clause>,
    /// The condition for the event to be acknowledged.
    pub acknowledged: Option<Clause>,
    /// The one-line summary.
    pub summary: String,
    /// The details.
    pub body: String,
    /// The kind of event.
    pub kind: String,
}

/// The mapping of a severity from a value in the document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedSeverity {
    /// The path of the value; if empty, the default always applies.
    pub from: String,
    /// The severity for each value.
    pub map: BTreeMap<String, Severity>,
    /// The severity for any other value.
    pub default: Option<Severity>,
}

/// A handshake that a sender requires before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Amazon SNS.
    Sns,
    /// Azure Event Grid.
    EventGrid,
}

/// The signature of a webhook request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSignature {
    /// The scheme.
    pub scheme: SignatureScheme,
    /// The secret.
    pub secret: Secret,
}

/// A scheme for signing requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureScheme {
    /// HMAC-SHA256 of the body in `x-hub-signature-256`.
    HubSha256,
    /// HMAC-SHA256 of the body in `sentry-hook-signature`.
    Sentry,
    /// Standard Webhooks, version 1.
    StandardWebhooks,
}
