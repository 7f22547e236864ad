//! Conversion of mapping parts between the wire and the domain.

use bellwether_proto::{
    cloud,
    v1::{self, intake_mapping::Handshake as WireHandshake, webhook_signature::Scheme},
};

use crate::{
    domain::{
        Clause, Handshake, IntakeMapping, MappedEvent, MappedResponse, MappedSeverity,
        MappedThread, NO_SNIPPETS, Name, Secret, Severity, SignatureScheme, TemplateLanguage,
        WebhookSignature,
    },
    error::Violation,
    etag::compute_etag,
    from_domain::FromDomain,
    message::template_violation,
    wire::{query::clause, time::timestamp},
};

pub(super) struct MappingParts {
    pub(super) drop: Option<Clause>,
    pub(super) event: Option<MappedEvent>,
    pub(super) response: Option<MappedResponse>,
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
            response: responding,
            signature: signed,
            ..
        } = draft.clone();
        Self {
            drop: drop.map(|it| clause(it, "drop", violations)),
            event: mapped.map(|it| event(it, violations)),
            response: responding.and_then(|it| response(it, violations)),
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

fn response(wire: v1::MappedResponse, violations: &mut Vec<Violation>) -> Option<MappedResponse> {
    let thread = wire.thread.unwrap_or_default();
    if thread.kept_name.is_empty() {
        let (path, source) = ("response.thread.keptValue".into(), &thread.kept_value);
        let wrong = template_violation(path, TemplateLanguage::Mustache, source, &NO_SNIPPETS);
        violations.extend(wrong);
    }
    let mut add =
        |field: &str, why: &str| violations.push(Violation::new(format!("response.{field}"), why));
    match (&*thread.id, &*thread.kept_name, &*thread.kept_value) {
        ("", "", "") => add("thread", "is required: `id`, or `keptName` and `keptValue`"),
        ("", "", _) => add("thread.keptName", "is required with `keptValue`"),
        ("", _, "") => add("thread.keptValue", "is required with `keptName`"),
        ("", ..) if wire.destination_names.is_empty() => {
            add("destinationNames", "is required with `thread.keptName`");
        }
        ("", ..) | (_, "", "") => {}
        _ => add("thread.id", "excludes `keptName` and `keptValue`"),
    }
    let language = TemplateLanguage::from_number(wire.template_language);
    if language.is_none() {
        add("templateLanguage", "is not one of MUSTACHE, JINJA");
    }
    let names = wire.destination_names.iter().enumerate();
    let names = names.filter_map(|(at, name)| {
        let invalid = |why: String| add(&format!("destinationNames[{at}]"), &why);
        Name::parse(name).map_err(invalid).ok()
    });
    let destination_names = names.collect();
    Some(MappedResponse {
        thread: MappedThread {
            template: if thread.kept_name.is_empty() {
                thread.id
            } else {
                thread.kept_value
            },
            kept_name: thread.kept_name,
        },
        action: wire.action,
        author: wire.author,
        note: wire.note,
        duration: wire.duration,
        assignee: wire.assignee,
        destination_names,
        template_language: language?,
    })
}

fn response_to_wire(response: MappedResponse) -> v1::MappedResponse {
    let MappedThread {
        kept_name,
        template,
    } = response.thread;
    let (id, kept_value) = if kept_name.is_empty() {
        (template, String::new())
    } else {
        (String::new(), template)
    };
    let names = response.destination_names.iter();
    v1::MappedResponse {
        thread: Some(v1::MappedThread {
            id,
            kept_name,
            kept_value,
        }),
        action: response.action,
        author: response.author,
        note: response.note,
        duration: response.duration,
        assignee: response.assignee,
        destination_names: names.map(ToString::to_string).collect(),
        template_language: response.template_language.number(),
    }
}

fn event_to_wire(event: MappedEvent) -> v1::MappedEvent {
    let severity = event.severity;
    let is_stated = severity != MappedSeverity::default();
    let map = severity.map.into_iter();
    v1::MappedEvent {
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
    }
}

const UNKNOWN_SEVERITY: &str = "is not one of SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_WARNING, \
     SEVERITY_ERROR, SEVERITY_CRITICAL";

const SCHEMES: [(SignatureScheme, Scheme); 8] = [
    (SignatureScheme::HubSha256, Scheme::HubSha256),
    (SignatureScheme::Sentry, Scheme::Sentry),
    (SignatureScheme::StandardWebhooks, Scheme::StandardWebhooks),
    (SignatureScheme::Slack, Scheme::Slack),
    (SignatureScheme::PagerDuty, Scheme::Pagerduty),
    (SignatureScheme::Jira, Scheme::Jira),
    (SignatureScheme::Telegram, Scheme::Telegram),
    (SignatureScheme::Discord, Scheme::Discord),
];

fn signature(
    wire: v1::WebhookSignature,
    violations: &mut Vec<Violation>,
) -> Option<WebhookSignature> {
    let known = SCHEMES.iter().find(|(_, it)| *it == wire.scheme());
    let Some((scheme, _)) = known.copied() else {
        let names: Vec<_> = SCHEMES.iter().map(|(_, it)| it.as_str_name()).collect();
        let message = format!("is required: one of {}", names.join(", "));
        violations.push(Violation::new("signature.scheme", message));
        return None;
    };
    Some(WebhookSignature {
        scheme,
        secret: Secret::new(wire.secret),
    })
}

impl FromDomain<IntakeMapping> for v1::IntakeMapping {
    fn from_domain(mapping: IntakeMapping) -> Self {
        let signature = mapping.signature.map(|it| {
            let known = SCHEMES.iter().find(|(scheme, _)| *scheme == it.scheme);
            v1::WebhookSignature {
                scheme: known.map_or(0, |(_, scheme)| i32::from(*scheme)),
                // Converting a secret to a string returns its mask.
                secret: it.secret.to_string(),
            }
        });
        Self {
            name: mapping.name.to_string(),
            description: mapping.description,
            tags: mapping.tags,
            each: mapping.each,
            drop: mapping.drop.as_ref().map(Into::into),
            event: mapping.event.map(event_to_wire),
            response: mapping.response.map(|it| response_to_wire(*it)),
            signature,
            parse: mapping.parse,
            handshake: match mapping.handshake {
                None => WireHandshake::Unspecified,
                Some(Handshake::Sns) => WireHandshake::Sns,
                Some(Handshake::EventGrid) => WireHandshake::EventGrid,
            }
            .into(),
            reply: mapping.reply,
            rejected_documents: Vec::new(),
            create_time: Some(timestamp(mapping.create_ms)),
            update_time: Some(timestamp(mapping.update_ms)),
            etag: compute_etag(mapping.id, mapping.revision),
        }
    }
}
