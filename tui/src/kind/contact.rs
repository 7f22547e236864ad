//! Contacts: people and teams, with their notification methods.

use super::{
    Cell, Column, FieldKind, FieldSpec, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    line_format::LineFormat,
    shared,
};
use crate::{data::Object, document::Document, theme::Token};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &["reachedBy", "createTime", "updateTime", "etag"],
    columns: &[
        shared::NAME,
        Column::new("Methods", 30, 3, 1, |_, it: &Object| {
            Cell::new(Token::Text, method_lines(it).join("; "))
        }),
        Column::new("Time zone", 14, 1, 3, |_, it: &Object| {
            Cell::new(Token::Dim, it.text("timeZone"))
        }),
        Column::new("Acknowledges as", 16, 1, 2, |_, it: &Object| {
            Cell::new(Token::Dim, identity_text(it))
        }),
    ],
    searched: |it| vec![it.text("clientName"), it.text("subject")],
    fields: &[
        NAME,
        FieldSpec::new("methods", "Methods", FieldKind::LineFormat(LineFormat::Methods)).with_required()
            .help("One per line, such as `push`, or `call after 2m from error in office hours: phone=+49301234`."),
        FieldSpec::text("timeZone", "Time zone")
            .help("IANA time zone of this person, such as Europe/Berlin. Empty: UTC."),
        FieldSpec::text("clientName", "Client")
            .help("API client of this person. Set this, the user name, or neither."),
        FieldSpec::text("subject", "User name")
            .help("User name of this person at sign-in."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No contacts yet.\n\nA contact is a person or a team, and the destinations that notify them. \
        Schedules and escalation policies name contacts. ‹new› creates one.",
    ..edited!("Contact", "Contacts")
};

fn method_lines(contact: &Object) -> Vec<String> {
    let lines = LineFormat::Methods.format(contact.value_at("methods"));
    lines.lines().map(str::to_owned).collect()
}

fn identity_text(contact: &Object) -> String {
    match (contact.text("clientName"), contact.text("subject")) {
        ("", "") => String::new(),
        ("", subject) => format!("user {subject}"),
        (client, _) => format!("client {client}"),
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, contact: &Object) {
    shared::write_head(into, contact);
    for method in method_lines(contact) {
        into.field("method", Token::Text, &method);
    }
    let zone = match contact.text("timeZone") {
        "" => "UTC",
        zone => zone,
    };
    into.field("time zone", Token::Text, zone);
    let identity = identity_text(contact);
    if !identity.is_empty() {
        into.field("acts as", Token::Text, &identity);
    }
    let words = "‹feed› shows the URL of its iCalendar feed, ‹revoke_feed› replaces it";
    into.field("feed", Token::Dim, &around.expand_keys(words));
    shared::write_times(into, around, contact);
}
