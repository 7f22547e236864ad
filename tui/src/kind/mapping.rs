//! Intake mappings: conversions of webhooks to events, or to actions on events.

use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext,
    field::{DESCRIPTION, LANGUAGE, NAME, TAGS},
    shared,
};
use crate::{
    data::{Kind, Object, Role},
    document::{Document, span},
    text,
    theme::Token,
};

pub(super) const SEVERITIES: &[(&str, &str)] = &[
    ("not stated", ""),
    ("debug", "SEVERITY_DEBUG"),
    ("info", "SEVERITY_INFO"),
    ("warning", "SEVERITY_WARNING"),
    ("error", "SEVERITY_ERROR"),
    ("critical", "SEVERITY_CRITICAL"),
];
const MEANT: &[(&str, &str)] = SEVERITIES.split_at(1).1;
const HANDSHAKES: &[(&str, &str)] = &[("none", ""), ("sns", "SNS"), ("event-grid", "EVENT_GRID")];
const SCHEMES: &[(&str, &str)] = &[
    ("none", ""),
    ("hub-sha256", "HUB_SHA256"),
    ("sentry", "SENTRY"),
    ("standard-webhooks", "STANDARD_WEBHOOKS"),
    ("slack", "SLACK"),
    ("pagerduty", "PAGERDUTY"),
    ("jira", "JIRA"),
    ("telegram", "TELEGRAM"),
    ("discord", "DISCORD"),
];

pub(super) const SPEC: KindSpec = KindSpec {
    service: "IntakeMappingService",
    list: "ListIntakeMappings",
    create: Some("CreateIntakeMapping"),
    update: Some("UpdateIntakeMapping"),
    delete: Some("DeleteIntakeMapping"),
    detail: Some("GetIntakeMapping"),
    naming: None,
    message: "IntakeMapping",
    nested: true,
    output: &["rejectedDocuments", "createTime", "updateTime", "etag"],
    role: Role::Editor,
    columns: &[
        shared::NAME,
        Column::new("Event", 20, 2, 0, |_, it: &Object| {
            Cell::new(Token::Text, it.text("event.name"))
        })
        .sort_by_key(|it| Key::Text(it.text("event.name").to_owned())),
        Column::new("Each", 12, 1, 2, |_, it: &Object| {
            Cell::new(Token::Dim, it.text("each"))
        }),
        Column::new("Closed when", 20, 2, 1, |_, it: &Object| {
            Cell::new(Token::Dim, shared::condition_text(it, "event.closed"))
        }),
        Column::new("Signed", 17, 0, 3, |_, it: &Object| {
            Cell::new(Token::Text, signature_scheme(it))
        })
        .sort_by_key(|it| Key::Text(signature_scheme(it).to_owned())),
    ],
    searched: |it| vec![it.text("event.name"), it.text("each"), signature_scheme(it)],
    fields: &[
        NAME,
        FieldSpec::new(
            "event.name",
            "Event name",
            FieldKind::Text,
            "Template for the name, such as `{{data.monitor.name}}`. Required without an action.",
        ),
        FieldSpec::new(
            "event.dimensions",
            "Dimensions",
            FieldKind::Pairs,
            "Dimensions, one per line, such as `host: {{data.host}}`. ‹form_test› shows the result.",
        ),
        FieldSpec::new(
            "event.summary",
            "Summary",
            FieldKind::Text,
            "Template for the summary; truncated at 1 KiB.",
        ),
        FieldSpec::new(
            "event.body",
            "Body",
            FieldKind::Lines,
            "Template for the details.",
        ),
        FieldSpec::new(
            "event.type",
            "Event type",
            FieldKind::Text,
            "Template for the type of event.",
        ),
        FieldSpec::new(
            "event.severity.from",
            "Severity from",
            FieldKind::Text,
            "Path of the severity (word or number), such as data.level.",
        ),
        FieldSpec::new(
            "event.severity.map",
            "Severity map",
            FieldKind::WordPairs(MEANT),
            "Values mapped to severities, one per line: `p1: critical`.",
        ),
        FieldSpec::new(
            "event.severity.default",
            "Severity else",
            FieldKind::Named(SEVERITIES),
            "Severity for all other values.",
        ),
        FieldSpec::new(
            "event.closed",
            "Closed when",
            FieldKind::Clause,
            "Condition for closing, such as `data.status equals resolved`. Empty: never.",
        ),
        FieldSpec::new(
            "event.acknowledged",
            "Acknowledged",
            FieldKind::Clause,
            "Condition for acknowledging. Empty: unchanged.",
        ),
        FieldSpec::new(
            "each",
            "Each",
            FieldKind::Text,
            "Path of a list whose entries (`item`) are events. Empty: the document is one event.",
        ),
        FieldSpec::new(
            "drop",
            "Ignored",
            FieldKind::Clause,
            "Items to ignore, such as `item.test equals true`.",
        ),
        FieldSpec::new(
            "signature.scheme",
            "Signed",
            FieldKind::Named(SCHEMES),
            "Signature required in addition to the key.",
        ),
        FieldSpec::new(
            "signature.secret",
            "Signing secret",
            FieldKind::Secret,
            "Signing secret. Leave it unchanged to keep the stored secret.",
        ),
        FieldSpec::new(
            "parse",
            "Decode first",
            FieldKind::Words,
            "Paths of strings that contain JSON, plain or base64, such as Message.",
        ),
        FieldSpec::new(
            "handshake",
            "Handshake",
            FieldKind::Named(HANDSHAKES),
            "Handshake by which the service verifies the endpoint.",
        ),
        FieldSpec::new(
            "reply",
            "Reply",
            FieldKind::Lines,
            "Template for the JSON body of the response. Empty: the numbers of items.",
        ),
        FieldSpec::section(
            "#response",
            "Action",
            "An action on an existing event or group, instead of a new event.",
        ),
        FieldSpec::new(
            "response.action",
            "Action",
            FieldKind::Text,
            "Template: acknowledge, unacknowledge, close, note, assign or silence. Empty: ignored.",
        ),
        FieldSpec::new(
            "response.thread.id",
            "Thread",
            FieldKind::Text,
            "Template for the `thread_id` of a message, or an event's id.",
        ),
        FieldSpec::new(
            "response.thread.keptName",
            "Kept value",
            FieldKind::Text,
            "Name of a value that the destinations keep, such as issue.",
        ),
        FieldSpec::new(
            "response.thread.keptValue",
            "Kept value is",
            FieldKind::Text,
            "Template for that value, such as `{{issue.key}}`.",
        ),
        FieldSpec::new(
            "response.destinationNames",
            "Receiver",
            FieldKind::Names(Kind::Destination),
            "Destinations of the receiver. They get no update about the action.",
        ),
        FieldSpec::new(
            "response.author",
            "User",
            FieldKind::Text,
            "Template for the receiver's user. Empty: the client.",
        ),
        FieldSpec::new(
            "response.note",
            "Note",
            FieldKind::Lines,
            "Template for a note. Empty: none.",
        ),
        FieldSpec::new(
            "response.duration",
            "Duration",
            FieldKind::Text,
            "Template for the duration of a silence or acknowledgement, such as 4h.",
        ),
        FieldSpec::new(
            "response.assignee",
            "Assignee",
            FieldKind::Text,
            "Template for the client that the event is assigned to.",
        ),
        FieldSpec {
            path: "response.templateLanguage",
            ..LANGUAGE
        },
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No mappings yet.\n\nA mapping converts webhooks from any service into events: its \
        templates define the name, the host and the summary. ‹new› creates one, and in its form \
        ‹form_test› shows the events \
        of a document before it is saved. The topic «mappings» of the reference has examples.",
    beside: &[],
};

fn signature_scheme(mapping: &Object) -> &str {
    let wire = mapping.text("signature.scheme");
    let known = SCHEMES.iter().find(|(_, name)| *name == wire);
    known.map_or(wire, |(word, _)| word)
}

fn write_document(into: &mut Document, around: &dyn RenderContext, mapping: &Object) {
    shared::write_head(into, mapping);
    let address = format!("POST /v1/intake/webhooks/{}", mapping.name());
    into.field("sent to", Token::Text, &address);
    into.field("signed", Token::Text, signature_scheme(mapping));
    let each = mapping.text("each");
    if !each.is_empty() {
        into.field("each of", Token::Text, each);
    }
    let parsed = mapping.value_at("parse").and_then(Value::as_array);
    let parsed = parsed.into_iter().flatten().filter_map(Value::as_str);
    let parsed: Vec<_> = parsed.collect();
    if !parsed.is_empty() {
        into.field("decoded", Token::Text, &parsed.join(", "));
    }
    let handshake = mapping.text("handshake");
    if !handshake.is_empty() {
        let known = HANDSHAKES.iter().find(|(_, name)| *name == handshake);
        let word = known.map_or(handshake, |(word, _)| word);
        into.field("handshake", Token::Text, word);
    }
    let reply = mapping.text("reply");
    if !reply.is_empty() {
        into.field("reply", Token::Text, reply);
    }
    let dropped = shared::condition_text(mapping, "drop");
    if !dropped.is_empty() {
        into.field("passed over", Token::Text, &dropped);
    }
    shared::write_times(into, around, mapping);
    let words = "‹test_mapping› shows the resulting events without creating them";
    into.text(Token::Dim, 0, &around.expand_keys(words));
    let event = mapping.value_at("event").and_then(Value::as_object);
    if event.is_some() {
        into.heading("The event");
    }
    for (key, value) in event.into_iter().flatten() {
        match key.as_str() {
            "closed" | "acknowledged" => {
                let condition = shared::condition_text(mapping, &format!("event.{key}"));
                into.field(key, Token::Text, &condition);
            }
            _ => into.tree(0, key, value),
        }
    }
    if let Some(response) = mapping.value_at("response") {
        into.heading("The action");
        into.tree(0, "response", response);
    }
    write_rejected_documents(into, around, mapping);
}

fn write_rejected_documents(into: &mut Document, around: &dyn RenderContext, mapping: &Object) {
    let all = mapping
        .value_at("rejectedDocuments")
        .and_then(Value::as_array);
    let Some(all) = all.filter(|it| !it.is_empty()) else {
        return;
    };
    into.heading("Rejected and dropped");
    for rejected in all {
        let part = |name: &str| rejected[name].as_str().unwrap_or_default();
        let (token, word) = if rejected["dropped"] == true {
            (Token::Dim, "dropped")
        } else {
            (Token::Bad, "rejected")
        };
        let time = shared::timestamp_ms(rejected, "time").map(|ms| around.format_time(ms));
        let bytes = rejected["sizeBytes"].as_i64().unwrap_or_default();
        let about = format!(
            "{} · {} · {} bytes",
            time.unwrap_or_default(),
            part("client"),
            text::group_digits(bytes),
        );
        let spans = vec![span(token, &format!("{word:<9}")), span(Token::Dim, &about)];
        into.line(spans);
        into.text(Token::Text, 9, part("reason"));
        into.text(Token::Dim, 9, part("document"));
    }
}
