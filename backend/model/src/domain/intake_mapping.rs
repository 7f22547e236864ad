//! Intake mappings: what happens to a webhook of any service.

use std::collections::BTreeMap;

use crate::domain::{Clause, Name, RecordId, Secret, Severity};

/// Makes events of a JSON document.
#[derive(Debug, Clone, PartialEq)]
pub struct IntakeMapping {
    /// Distinguishes it from an earlier mapping of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// The path of a list, of whose entries each is an event; empty when the document is one.
    pub each: String,
    /// What is passed over.
    pub drop: Option<Clause>,
    /// What happens to the others.
    pub event: MappedEvent,
    /// What has to prove who sent a request.
    pub signature: Option<WebhookSignature>,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

impl IntakeMapping {
    /// The paths of the secrets that are other ones than before; of all that are there, when there was
    /// nothing before.
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

/// An event built from a document: templates and clauses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappedEvent {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub dimensions: BTreeMap<String, String>,
    /// How bad it is.
    pub severity: MappedSeverity,
    /// Whether it is over.
    pub closed: Option<Clause>,
    /// Whether a user looks after it.
    pub acknowledged: Option<Clause>,
    /// The line for people.
    pub summary: String,
    /// The details.
    pub body: String,
    /// The kind of event.
    pub kind: String,
}

/// How bad an event is, from a word or number of the document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedSeverity {
    /// The path of it; empty means the default always.
    pub from: String,
    /// What each of its values means.
    pub map: BTreeMap<String, Severity>,
    /// What every other value means.
    pub default: Option<Severity>,
}

/// What proves who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSignature {
    /// How it is signed.
    pub scheme: SignatureScheme,
    /// What with.
    pub secret: Secret,
}

/// How a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureScheme {
    /// HMAC-SHA256 of the body in `x-hub-signature-256`.
    HubSha256,
    /// HMAC-SHA256 of the body in `sentry-hook-signature`.
    Sentry,
    /// Standard Webhooks, version 1.
    StandardWebhooks,
}
