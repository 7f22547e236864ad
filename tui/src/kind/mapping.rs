//! Intake mappings: conversions of webhooks to events, or to actions on events.

use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, LANGUAGE, NAME, TAGS},
    shared,
};
use crate::{
    data::{Kind, Object},
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
    detail: Some("GetIntakeMapping"),
    output: &["rejectedDocuments", "createTime", "updateTime", "etag"],
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
        FieldSpec::text("event.name", "Event name")
            .help("Template for the name, such as `{{data.monitor.name}}`. Required without an action."),
        FieldSpec::pairs("event.dimensions", "Dimensions")
            .help("Dimensions, one per line, such as `host: {{data.host}}`. ‹form_test› shows the result."),
        FieldSpec::text("event.summary", "Summary")
            .help("Template for the summary; truncated at 1 KiB."),
        FieldSpec::lines("event.body", "Body")
            .help("Template for the details."),
        FieldSpec::text("event.type", "Event type")
            .help("Template for the type of event."),
        FieldSpec::text("event.severity.from", "Severity from")
            .help("Path of the severity (word or number), such as data.level."),
        FieldSpec::new("event.severity.map", "Severity map", FieldKind::WordPairs(MEANT))
            .help("Values mapped to severities, one per line: `p1: critical`."),
        FieldSpec::new("event.severity.default", "Severity else", FieldKind::Named(SEVERITIES))
            .help("Severity for all other values."),
        FieldSpec::clause("event.closed", "Closed when")
            .help("Condition for closing, such as `data.status equals resolved`. Empty: never."),
        FieldSpec::clause("event.acknowledged", "Acknowledged")
            .help("Condition for acknowledging. Empty: unchanged."),
        FieldSpec::text("each", "Each")
            .help("Path of a list whose entries (`item`) are events. Empty: the document is one event."),
        FieldSpec::clause("drop", "Ignored")
            .help("Items to ignore, such as `item.test equals true`."),
        FieldSpec::new("signature.scheme", "Signed", FieldKind::Named(SCHEMES))
            .help("Signature required in addition to the key."),
        FieldSpec::secret("signature.secret", "Signing secret")
            .help("Signing secret. Leave it unchanged to keep the stored secret."),
        FieldSpec::words("parse", "Decode first")
            .help("Paths of strings that contain JSON, plain or base64, such as Message."),
        FieldSpec::new("handshake", "Handshake", FieldKind::Named(HANDSHAKES))
            .help("Handshake by which the service verifies the endpoint."),
        FieldSpec::lines("reply", "Reply")
            .help("Template for the JSON body of the response. Empty: the numbers of items."),
        FieldSpec::section("#response", "Action")
            .help("An action on an existing event or group, instead of a new event."),
        FieldSpec::text("response.action", "Action")
            .help("Template: acknowledge, unacknowledge, close, note, assign or silence. Empty: ignored."),
        FieldSpec::text("response.thread.id", "Thread")
            .help("Template for the `thread_id` of a message, or an event's id."),
        FieldSpec::text("response.thread.keptName", "Kept value")
            .help("Name of a value that the destinations keep, such as issue."),
        FieldSpec::text("response.thread.keptValue", "Kept value is")
            .help("Template for that value, such as `{{issue.key}}`."),
        FieldSpec::new("response.destinationNames", "Receiver", FieldKind::Names(Kind::Destination))
            .help("Destinations of the receiver. They get no update about the action."),
        FieldSpec::text("response.author", "User")
            .help("Template for the receiver's user. Empty: the client."),
        FieldSpec::lines("response.note", "Note")
            .help("Template for a note. Empty: none."),
        FieldSpec::text("response.duration", "Duration")
            .help("Template for the duration of a silence or acknowledgement, such as 4h."),
        FieldSpec::text("response.assignee", "Assignee")
            .help("Template for the client that the event is assigned to."),
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
    ..edited!("IntakeMapping", "IntakeMappings")
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
