//! Conversion of mapping parts between the wire and the domain.

use bellwether_proto::{
    cloud,
    v1::{self, intake_mapping::Handshake as WireHandshake, webhook_signature::Scheme},
};

use crate::{
    domain::{
        Clause, Handshake, IntakeMapping, MappedEvent, MappedSeverity, Secret, Severity,
        SignatureScheme, WebhookSignature,
    },
    error::Violation,
    ops::{
        etag::compute_etag,
        wire::{FromDomain, query::clause, time::timestamp},
    },
};

pub(super) struct MappingParts {
    pub(super) drop: Option<Clause>,
    pub(super) event: Option<MappedEvent>,
    pub(super) signature: Option<WebhookSignature>,
    pub(super) handshake: Option<Handshake>,
}

impl MappingParts {
    pub(super) fn read(draft: &v1::IntakeMapping, violations: &mut Vec<Violation>) -> Self {
        if WireHandshake::try_from(draft.handshake).is_err() {
            violations.push(Violation::new("handshake", "is not one of SNS, EVENT_GRID"));
        }
        let handshake = match draft.handshake() {
            WireHandshake::Unspecified => None,
            WireHandshake::Sns => Some(Handshake::Sns),
            WireHandshake::EventGrid => Some(Handshake::EventGrid),
        };
        let v1::IntakeMapping {
            drop,
            event: mapped,
            signature: signed,
            ..
        } = draft.clone();
        Self {
            drop: drop.map(|it| clause(it, "drop", violations)),
            event: mapped.map(|it| event(it, violations)),
            signature: signed.and_then(|it| signature(it, violations)),
            handshake,
        }
    }
}

fn event(wire: v1::MappedEvent, violations: &mut Vec<Violation>) -> MappedEvent {
    let severity = wire.severity.unwrap_or_default();
    let mut map = std::collections::BTreeMap::new();
    for (value, number) in severity.map {
        if let Some(severity) = Severity::from_number(number) {
            map.insert(value, severity);
        } else {
            let shown: String = value.chars().take(100).collect();
            let field = format!("event.severity.map[{shown}]");
            violations.push(Violation::new(field, UNKNOWN_SEVERITY));
        }
    }
    let default = Severity::from_number(severity.default);
    if default.is_none() && severity.default != cloud::Severity::Default as i32 {
        violations.push(Violation::new("event.severity.default", UNKNOWN_SEVERITY));
    }
    let mut condition =
        |wire: Option<v1::Clause>, path: &str| wire.map(|it| clause(it, path, violations));
    MappedEvent {
        name: wire.name,
        dimensions: wire.dimensions,
        severity: MappedSeverity {
            from: severity.from,
            map,
            default,
        },
        closed: condition(wire.closed, "event.closed"),
        acknowledged: condition(wire.acknowledged, "event.acknowledged"),
        summary: wire.summary,
        body: wire.body,
        kind: wire.r#type,
    }
}

const UNKNOWN_SEVERITY: &str = "is not one of SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_WARNING, \
     SEVERITY_ERROR, SEVERITY_CRITICAL";

fn signature(
    wire: v1::WebhookSignature,
    violations: &mut Vec<Violation>,
) -> Option<WebhookSignature> {
    let scheme = match wire.scheme() {
        Scheme::HubSha256 => SignatureScheme::HubSha256,
        Scheme::Sentry => SignatureScheme::Sentry,
        Scheme::StandardWebhooks => SignatureScheme::StandardWebhooks,
        Scheme::Unspecified => {
            violations.push(Violation::new(
                "signature.scheme",
                "is required: HUB_SHA256, SENTRY or STANDARD_WEBHOOKS",
            ));
            return None;
        }
    };
    Some(WebhookSignature {
        scheme,
        secret: Secret::new(wire.secret),
    })
}

impl FromDomain<IntakeMapping> for v1::IntakeMapping {
    fn from_domain(mapping: IntakeMapping) -> Self {
        let event = mapping.event;
        let severity = event.severity;
        let is_stated = severity != MappedSeverity::default();
        let map = severity.map.into_iter();
        let signature = mapping.signature.map(|it| v1::WebhookSignature {
            scheme: match it.scheme {
                SignatureScheme::HubSha256 => Scheme::HubSha256,
                SignatureScheme::Sentry => Scheme::Sentry,
                SignatureScheme::StandardWebhooks => Scheme::StandardWebhooks,
            }
            .into(),
            // Converting a secret to a string returns its mask.
            secret: it.secret.to_string(),
        });
        Self {
            name: mapping.name.to_string(),
            description: mapping.description,
            tags: mapping.tags,
            each: mapping.each,
            drop: mapping.drop.as_ref().map(Into::into),
            event: Some(v1::MappedEvent {
                name: event.name,
                dimensions: event.dimensions,
                severity: is_stated.then(|| v1::MappedSeverity {
                    from: severity.from,
                    map: map.map(|(value, it)| (value, it as i32)).collect(),
                    default: severity.default.map_or(0, |it| it as i32),
                }),
                closed: event.closed.as_ref().map(Into::into),
                acknowledged: event.acknowledged.as_ref().map(Into::into),
                summary: event.summary,
                body: event.body,
                r#type: event.kind,
            }),
            signature,
            parse: mapping.parse,
            handshake: match mapping.handshake {
                None => WireHandshake::Unspecified,
                Some(Handshake::Sns) => WireHandshake::Sns,
                Some(Handshake::EventGrid) => WireHandshake::EventGrid,
            }
            .into(),
            rejected_documents: Vec::new(),
            create_time: Some(timestamp(mapping.create_ms)),
            update_time: Some(timestamp(mapping.update_ms)),
            etag: compute_etag(mapping.id, mapping.revision),
        }
    }
}
