//! Intake mappings: storage, editing, deletion, and evaluation.

mod act;
mod action;
mod body;
mod decode;
mod entry;
mod evaluate;
mod event;
mod excerpt;
mod handshake;
mod merge;
mod parts;
mod rejected;
mod signature;
#[cfg(test)]
mod tests;

use bellwether_proto::v1;

use crate::{
    domain::{
        Clause, IntakeMapping, MappedEvent, MappedResponse, NO_SNIPPETS, Name, SignatureScheme,
        TemplateLanguage, WebhookSignature, secret::MASK,
    },
    error::Error,
    limits::{
        EVENT_DIMENSIONS_MAX, MAPPED_DESTINATIONS_MAX, MAPPING_PARSE_MAX, MAPPING_PATH_BYTES_MAX,
        MAPPINGS_MAX, SETTING_BYTES_MAX, VALUE_MAP_MAX, VALUE_NAME_MAX,
    },
    matching::DocumentQuery,
    message,
    resource::{AuthoredResource, Origin, Resources, resource},
    store::Changes,
    tag_scope::TagScope,
    validate::Violations,
};

use parts::MappingParts;

pub use act::ThreadActions;
pub use action::ThreadAction;
pub use body::IncomingBody;
pub use evaluate::{Evaluator, MappingResult, evaluate};
pub use handshake::Handshakes;
pub use merge::find_merges;
pub use rejected::{ReceivedDocument, RejectedDocument, RejectedDocuments};
pub use signature::verify;

pub type Mappings = Resources<IntakeMapping>;

resource!(IntakeMapping, v1::IntakeMapping, "mapping", |_| None);

impl AuthoredResource for IntakeMapping {
    type Draft = v1::IntakeMapping;
    type View = v1::IntakeMapping;

    async fn from_draft(
        all: &Mappings,
        draft: &v1::IntakeMapping,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let parts = violations.read(|it| MappingParts::read(draft, it));
        let name = violations.name(&draft.name, stored.is_none());
        let mapping = build_mapping(draft, parts, stored, &mut violations);
        let is_responding = mapping.as_ref().is_some_and(|it| it.response.is_some());
        if name
            .as_ref()
            .is_some_and(|it| is_responding && Name::for_receiver(it, "user").is_none())
        {
            let message = "is reserved: a mapping with `response` names the receiver's users";
            violations.add("name", message);
        }
        if is_responding && TagScope::from_caller().is_some() {
            // A signature allows actions on all events.
            let message = "response: requires a client whose scope is not limited to tags";
            return Err(Error::PermissionDenied(message.into()));
        }
        all.check_room(stored, MAPPINGS_MAX).await?;
        let mapping = name.zip(mapping).map(|(name, mapping)| Self {
            id: origin.id,
            name,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
            ..mapping
        });
        Ok((violations.into_result(mapping)?, all.store.new_changes()))
    }

    fn new_secrets(&self, before: &Self) -> Vec<String> {
        self.changed_secrets(Some(before))
    }
}

/// Returns a rejected or dropped body for operators, with secrets masked.
pub fn reject_body(
    mapping: &IntakeMapping,
    body: &[u8],
    (reason, dropped): (&str, bool),
) -> RejectedDocument {
    let secret = mapping.signature.as_ref();
    let secret = secret.map_or("", |it| it.secret.reveal());
    RejectedDocument {
        dropped,
        reason: excerpt::excerpt_reason(reason, secret),
        size_bytes: body.len(),
        document: excerpt::excerpt_body(body, secret),
    }
}

/// Validates a draft without storing it; the name is optional.
pub fn try_draft(draft: &v1::IntakeMapping) -> Result<IntakeMapping, Error> {
    let mut violations = Violations::default();
    let mut parts = violations.read(|it| MappingParts::read(draft, it));
    // Tests do not require a signature.
    parts.signature = None;
    let mapping = build_mapping(draft, parts, None, &mut violations);
    violations.into_result(mapping)
}

/// Builds a mapping from a draft under a placeholder name.
fn build_mapping(
    draft: &v1::IntakeMapping,
    parts: MappingParts,
    stored: Option<&IntakeMapping>,
    violations: &mut Violations,
) -> Option<IntakeMapping> {
    violations.check_texts(&draft.description, &draft.tags);
    check_path("each", &draft.each, violations);
    check_parse(&draft.parse, violations);
    check_clause("drop", parts.drop.as_ref(), violations);
    let previous = stored.and_then(|it| it.signature.as_ref());
    let signature = parts
        .signature
        .map(|it| fill_signature_secret(it, previous, violations));
    match (&parts.event, &parts.response) {
        (Some(_), Some(_)) => violations.add("response", "excludes `event`"),
        (Some(event), None) => check_event(event, violations),
        (None, Some(response)) => check_response(response, violations),
        (None, None) if draft.response.is_some() => {}
        (None, None) => violations.add_new("event", "is required, unless `response` is set"),
    }
    let language = parts.response.as_ref().map(|it| it.template_language);
    violations.extend(
        message::template_violation(
            "reply".into(),
            language.unwrap_or(TemplateLanguage::Mustache),
            &draft.reply,
            &NO_SNIPPETS,
        )
        .into_iter()
        .collect(),
    );
    let origin = Origin::new(0);
    Some(IntakeMapping {
        id: origin.id,
        name: Name::parse("draft").ok()?,
        description: draft.description.clone(),
        tags: draft.tags.clone(),
        each: draft.each.clone(),
        drop: parts.drop,
        event: parts.event,
        response: parts.response.map(Box::new),
        signature,
        parse: draft.parse.clone(),
        handshake: parts.handshake,
        reply: draft.reply.clone(),
        revision: origin.revision,
        create_ms: origin.create_ms,
        update_ms: origin.update_ms,
    })
}

fn check_event(event: &MappedEvent, violations: &mut Violations) {
    if event.name.trim().is_empty() {
        violations.add("event.name", "is required: a template for the event's name");
    }
    let texts = [
        ("event.name", &event.name),
        ("event.summary", &event.summary),
        ("event.body", &event.body),
        ("event.type", &event.kind),
    ];
    for (path, source) in texts {
        violations.extend(
            message::template_violation(
                path.into(),
                TemplateLanguage::Mustache,
                source,
                &NO_SNIPPETS,
            )
            .into_iter()
            .collect(),
        );
    }
    if !(1..=EVENT_DIMENSIONS_MAX).contains(&event.dimensions.len()) {
        let pairs = event.dimensions.len();
        violations.add(
            "event.dimensions",
            format!(
                "has {pairs} pairs; expected 1 to {EVENT_DIMENSIONS_MAX} that identify the entity"
            ),
        );
    }
    for (key, source) in event.dimensions.iter().take(EVENT_DIMENSIONS_MAX) {
        let shown: String = key.chars().take(100).collect();
        let path = format!("event.dimensions[{shown}]");
        if key.is_empty() || key == "name" || key.chars().any(char::is_control) {
            violations.add(&path, "is not a valid dimension key");
        }
        violations.extend(
            message::template_violation(path, TemplateLanguage::Mustache, source, &NO_SNIPPETS)
                .into_iter()
                .collect(),
        );
    }
    check_path("event.severity.from", &event.severity.from, violations);
    if event.severity.map.len() > VALUE_MAP_MAX {
        let count = event.severity.map.len();
        violations.add(
            "event.severity.map",
            format!("has {count} values; the limit is {VALUE_MAP_MAX}"),
        );
    }
    if event
        .severity
        .map
        .keys()
        .any(|it| it.len() > MAPPING_PATH_BYTES_MAX)
    {
        violations.add(
            "event.severity.map",
            format!("contains a value of more than {MAPPING_PATH_BYTES_MAX} bytes"),
        );
    }
    check_clause("event.closed", event.closed.as_ref(), violations);
    check_clause(
        "event.acknowledged",
        event.acknowledged.as_ref(),
        violations,
    );
}

fn check_response(response: &MappedResponse, violations: &mut Violations) {
    if response.action.trim().is_empty() {
        let message = "is required: a template such as `acknowledge`";
        violations.add("response.action", message);
    }
    let is_kept = !response.thread.kept_name.is_empty();
    let thread = if is_kept {
        "thread.keptValue"
    } else {
        "thread.id"
    };
    let texts = [
        (thread, &response.thread.template),
        ("action", &response.action),
        ("author", &response.author),
        ("note", &response.note),
        ("duration", &response.duration),
        ("assignee", &response.assignee),
    ];
    for (field, source) in texts {
        let (path, language) = (format!("response.{field}"), response.template_language);
        let wrong = message::template_violation(path, language, source, &NO_SNIPPETS);
        violations.extend(wrong.into_iter().collect());
    }
    let characters = response.thread.kept_name.chars().count();
    if characters > VALUE_NAME_MAX {
        violations.add(
            "response.thread.keptName",
            format!("has {characters} characters; the limit is {VALUE_NAME_MAX}"),
        );
    }
    let count = response.destination_names.len();
    if count > MAPPED_DESTINATIONS_MAX {
        violations.add(
            "response.destinationNames",
            format!("has {count} names; the limit is {MAPPED_DESTINATIONS_MAX}"),
        );
    }
}

fn check_parse(paths: &[String], violations: &mut Violations) {
    if paths.len() > MAPPING_PARSE_MAX {
        let count = paths.len();
        violations.add(
            "parse",
            format!("has {count} paths; the limit is {MAPPING_PARSE_MAX}"),
        );
    }
    for (at, it) in paths.iter().take(MAPPING_PARSE_MAX).enumerate() {
        let field = format!("parse[{at}]");
        if it.is_empty() {
            violations.add(&field, "is empty; expected a path such as `message.data`");
        }
        check_path(&field, it, violations);
    }
}

fn check_path(field: &str, path: &str, violations: &mut Violations) {
    if path.len() > MAPPING_PATH_BYTES_MAX {
        let bytes = path.len();
        violations.add(
            field,
            format!("is {bytes} bytes; the limit is {MAPPING_PATH_BYTES_MAX}"),
        );
    }
}

fn check_clause(field: &str, clause: Option<&Clause>, violations: &mut Violations) {
    let compiled = clause.map(DocumentQuery::compile);
    if let Some(Err(found)) = compiled {
        violations.add_with_prefix(field, found);
    }
}

fn fill_signature_secret(
    mut signature: WebhookSignature,
    stored: Option<&WebhookSignature>,
    violations: &mut Violations,
) -> WebhookSignature {
    const FIELD: &str = "signature.secret";
    let is_mask = signature.secret.reveal() == MASK;
    if is_mask || signature.secret.is_empty() {
        match stored {
            // A key of one scheme may be invalid in another, or mean another key.
            Some(stored) if stored.scheme != signature.scheme => {
                violations.add(
                    FIELD,
                    "belongs to another scheme; set it again for this one",
                );
                return signature;
            }
            Some(stored) => signature.secret = stored.secret.clone(),
            None => {
                let missing = if is_mask {
                    "is the mask, but no secret is stored"
                } else {
                    "is required"
                };
                violations.add(FIELD, missing);
                return signature;
            }
        }
    }
    let secret = signature.secret.reveal();
    if secret.len() > SETTING_BYTES_MAX {
        let bytes = secret.len();
        violations.add(
            FIELD,
            format!("is {bytes} bytes; the limit is {SETTING_BYTES_MAX}"),
        );
    }
    if signature::key(&signature).is_none() {
        let expected = match signature.scheme {
            SignatureScheme::Discord => "a public key of 64 hexadecimal digits",
            _ => "`whsec_` followed by base64",
        };
        violations.add(FIELD, format!("is not {expected}"));
    }
    signature
}
