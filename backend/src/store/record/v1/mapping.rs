//! Intake mappings.

use std::collections::BTreeMap;

use super::{occurrence::record_id, query::ClauseV1};
use crate::{
    domain::{
        IntakeMapping, MappedEvent, MappedSeverity, Name, Secret, Severity, SignatureScheme,
        WebhookSignature,
    },
    store::seal::{SealContext, Sealer},
};

/// The one secret of a mapping.
const SECRET: &str = "signature.secret";

/// A clause that may be absent; ends the function when it is there and cannot be.
macro_rules! clause {
    ($record:expr) => {
        match $record {
            None => None,
            Some(record) => Some(record.into_query()?.clause),
        }
    };
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MappingV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    each: String,
    #[prost(message, optional, tag = "6")]
    drop: Option<ClauseV1>,
    #[prost(message, optional, tag = "7")]
    event: Option<EventV1>,
    #[prost(message, optional, tag = "8")]
    signature: Option<SignatureV1>,
    #[prost(uint64, tag = "9")]
    revision: u64,
    #[prost(int64, tag = "10")]
    create_ms: i64,
    #[prost(int64, tag = "11")]
    update_ms: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EventV1 {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(btree_map = "string, string", tag = "2")]
    dimensions: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    severity_from: String,
    #[prost(btree_map = "string, int32", tag = "4")]
    severities: BTreeMap<String, i32>,
    #[prost(int32, tag = "5")]
    severity_default: i32,
    #[prost(message, optional, tag = "6")]
    closed: Option<ClauseV1>,
    #[prost(message, optional, tag = "7")]
    acknowledged: Option<ClauseV1>,
    #[prost(string, tag = "8")]
    summary: String,
    #[prost(string, tag = "9")]
    body: String,
    #[prost(string, tag = "10")]
    kind: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SignatureV1 {
    #[prost(enumeration = "SchemeV1", tag = "1")]
    scheme: i32,
    #[prost(bytes = "vec", tag = "2")]
    secret: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum SchemeV1 {
    Unknown = 0,
    HubSha256 = 1,
    Sentry = 2,
    StandardWebhooks = 3,
}

impl MappingV1 {
    pub(crate) fn new(mapping: &IntakeMapping, sealer: &Sealer) -> Self {
        Self::with(mapping, Some(sealer))
    }

    /// For who is to know what it is, and no secret of it.
    pub(crate) fn without_secrets(mapping: &IntakeMapping) -> Self {
        Self::with(mapping, None)
    }

    fn with(mapping: &IntakeMapping, sealer: Option<&Sealer>) -> Self {
        let event = &mapping.event;
        let severities = event.severity.map.iter();
        let context = SealContext {
            record: mapping.id,
            field: SECRET,
        };
        let signature = |it: &WebhookSignature| SignatureV1 {
            scheme: match it.scheme {
                SignatureScheme::HubSha256 => SchemeV1::HubSha256,
                SignatureScheme::Sentry => SchemeV1::Sentry,
                SignatureScheme::StandardWebhooks => SchemeV1::StandardWebhooks,
            }
            .into(),
            secret: sealer.map_or_else(Vec::new, |sealer| sealer.seal(context, &it.secret)),
        };
        Self {
            id: mapping.id.to_bytes().into(),
            name: mapping.name.to_string(),
            description: mapping.description.clone(),
            tags: mapping.tags.clone(),
            each: mapping.each.clone(),
            drop: mapping.drop.as_ref().map(ClauseV1::from),
            event: Some(EventV1 {
                name: event.name.clone(),
                dimensions: event.dimensions.clone(),
                severity_from: event.severity.from.clone(),
                severities: severities
                    .map(|(word, it)| (word.clone(), *it as i32))
                    .collect(),
                severity_default: event.severity.default.map_or(0, |it| it as i32),
                closed: event.closed.as_ref().map(ClauseV1::from),
                acknowledged: event.acknowledged.as_ref().map(ClauseV1::from),
                summary: event.summary.clone(),
                body: event.body.clone(),
                kind: event.kind.clone(),
            }),
            signature: mapping.signature.as_ref().map(signature),
            revision: mapping.revision,
            create_ms: mapping.create_ms,
            update_ms: mapping.update_ms,
        }
    }

    pub(crate) fn into_mapping(self, sealer: &Sealer) -> Option<IntakeMapping> {
        self.opened(Some(sealer))
    }

    pub(crate) fn into_bare_mapping(self) -> Option<IntakeMapping> {
        self.opened(None)
    }

    fn opened(self, sealer: Option<&Sealer>) -> Option<IntakeMapping> {
        let id = record_id(self.id)?;
        let event = self.event?;
        let severities = event.severities.into_iter();
        let severities = severities.map(|(word, it)| Some((word, Severity::from_number(it)?)));
        let signature = match self.signature {
            None => None,
            Some(record) => Some(WebhookSignature {
                scheme: match SchemeV1::try_from(record.scheme).ok()? {
                    SchemeV1::Unknown => return None,
                    SchemeV1::HubSha256 => SignatureScheme::HubSha256,
                    SchemeV1::Sentry => SignatureScheme::Sentry,
                    SchemeV1::StandardWebhooks => SignatureScheme::StandardWebhooks,
                },
                secret: match sealer {
                    None => Secret::default(),
                    Some(sealer) => {
                        let context = SealContext {
                            record: id,
                            field: SECRET,
                        };
                        sealer.open(context, &record.secret).ok()?
                    }
                },
            }),
        };
        Some(IntakeMapping {
            id,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            each: self.each,
            drop: clause!(self.drop),
            event: MappedEvent {
                name: event.name,
                dimensions: event.dimensions,
                severity: MappedSeverity {
                    from: event.severity_from,
                    map: severities.collect::<Option<_>>()?,
                    default: Severity::from_number(event.severity_default),
                },
                closed: clause!(event.closed),
                acknowledged: clause!(event.acknowledged),
                summary: event.summary,
                body: event.body,
                kind: event.kind,
            },
            signature,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}
