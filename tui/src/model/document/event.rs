//! The page of an event: its fields, notes and history.

use bellwether_proto::v1;
use serde_json::Value;

use super::{explain, incident, timeline};
use crate::{
    data::{EventRow, Label, Sign, occurrence, struct_to_json},
    document::{Document, Link, format_duration, label, span},
    kind,
    model::{Model, loaded::Loaded, page::Tab},
    text,
    theme::Token,
};

pub(super) fn write(
    into: &mut Document,
    model: &Model,
    event: &v1::Event,
    tab: Tab,
    explanation: &Loaded<v1::ExplainEventResponse>,
) {
    let nothing = v1::Occurrence::default();
    let occurrence = occurrence(event).unwrap_or(&nothing);
    match tab {
        Tab::Details | Tab::Explain => {
            incident::write(into, model, event, occurrence, explanation);
            write_holds(into, model, occurrence);
            let explanation = explanation.value.as_ref();
            timeline::write(into, model, occurrence, explanation);
            incident::write_history(into, model, explanation);
            into.heading("Details");
            write_details(into, model, event, occurrence);
            write_contents(into, event, occurrence);
            into.heading("Ids");
            into.field("event", Token::Text, &event.id);
            into.field("occurrence", Token::Text, &occurrence.id);
        }
        Tab::Notes => write_notes(into, model, occurrence),
    }
}

/// Writes what the row of an event does not show: its state, timeline, receivers and fields.
pub(super) fn write_row_details(
    into: &mut Document,
    model: &Model,
    event: &v1::Event,
    explanation: &Loaded<v1::ExplainEventResponse>,
) {
    let nothing = v1::Occurrence::default();
    let occurrence = occurrence(event).unwrap_or(&nothing);
    incident::write(into, model, event, occurrence, explanation);
    write_holds(into, model, occurrence);
    let explained = explanation.value.as_ref();
    timeline::write(into, model, occurrence, explained);
    if let Some(found) = explained {
        explain::draw_diagrams(into, model, found);
    }
    incident::write_history(into, model, explained);
    write_contents(into, event, occurrence);
}

fn write_details(
    into: &mut Document,
    model: &Model,
    event: &v1::Event,
    occurrence: &v1::Occurrence,
) {
    if !event.r#type.is_empty() && event.r#type != event.name {
        into.field("type", Token::Text, &event.r#type);
    }
    into.field(
        "opened",
        Token::Text,
        &model.format_full_time(occurrence.start_time),
    );
    into.field(
        "last seen",
        Token::Text,
        &model.format_full_time(occurrence.last_seen),
    );
    if let Some(expires) = occurrence.expire_time {
        let words = format!("{} unless resent", model.format_full_time(expires));
        into.field("expires", Token::Text, &words);
    }
    let counts = match (
        occurrence.count.unwrap_or_default(),
        event.count.unwrap_or_default(),
    ) {
        (1, 1) => "once".to_owned(),
        (1, all) => format!("once, {} times in all occurrences", text::group_digits(all)),
        (count, all) if count == all => format!("{} times", text::group_digits(count)),
        (count, all) => format!(
            "{} times, {} in all occurrences",
            text::group_digits(count),
            text::group_digits(all)
        ),
    };
    into.field("seen", Token::Text, &counts);
    into.field("occurrence", Token::Text, &occurrence.number.to_string());
    if occurrence.number > 1 {
        let before = occurrence.number - 1;
        let id = format!("{}:{before}", event.id);
        into.link("", &format!("previous ({before})"), Link::event(id));
    }
    let link = Link::deliveries("event", &event.id);
    into.link("deliveries", "about this event", link);
    if !occurrence.annotations.is_empty() {
        let count = occurrence.annotations.len();
        let words = model.expand_keys(&format!("{count} (‹next_tab› shows them)"));
        into.field("notes", Token::Text, &words);
    }
}

fn write_holds(into: &mut Document, model: &Model, occurrence: &v1::Occurrence) {
    for hold in &occurrence.holds {
        into.field("held", Token::Held, &kind::format_hold(model, hold));
    }
}

fn write_contents(into: &mut Document, event: &v1::Event, occurrence: &v1::Occurrence) {
    into.heading("Dimensions");
    for (key, value) in &event.dimensions {
        into.field(key, Token::Text, value);
    }
    if !occurrence.body.is_empty() {
        into.heading("Body");
        into.text(Token::Text, 0, &occurrence.body);
    }
    let metadata = occurrence.metadata_fields.as_ref().map(struct_to_json);
    if let Some(Value::Object(fields)) = metadata
        && !fields.is_empty()
    {
        into.heading("Metadata");
        for (key, value) in &fields {
            into.tree(0, key, value);
        }
        if !occurrence.enriched_fields.is_empty() {
            let names = occurrence.enriched_fields.join(", ");
            into.field("from tables", Token::Dim, &names);
        }
    }
}

fn write_notes(into: &mut Document, model: &Model, occurrence: &v1::Occurrence) {
    into.heading("Notes");
    if occurrence.annotations.is_empty() {
        let message = model.expand_keys("none yet; ‹annotate› adds one");
        into.text(Token::Dim, 0, &message);
    }
    for note in &occurrence.annotations {
        let head = format!("{}  {}", model.format_time(note.update_time), note.author);
        into.text(Token::Dim, 0, &head);
        into.text(Token::Text, 2, &note.annotation);
    }
    into.heading("History");
    if occurrence.history.is_empty() {
        into.text(Token::Dim, 0, "no changes yet");
    }
    for entry in occurrence.history.iter().rev() {
        let author = if entry.author.is_empty() {
            "the service"
        } else {
            &entry.author
        };
        let change = match (&*entry.field, &*entry.from, &*entry.to) {
            ("status", "", "open") => "opened".to_owned(),
            (field, "", to) => format!("{field}: {to}"),
            (field, from, to) => format!("{field}: {from} → {to}"),
        };
        into.line(vec![
            span(
                Token::Dim,
                &format!("{:<17}", model.format_time(entry.time)),
            ),
            span(Token::Text, &change),
            span(Token::Dim, &format!("  by {author}")),
        ]);
    }
}

pub(super) fn write_row(into: &mut Document, model: &Model, row: &EventRow) {
    into.field("summary", Token::Title, &row.summary);
    into.line(vec![
        label("state"),
        span(row.severity.into(), row.severity.symbol()),
        span(row.severity.into(), &format!(" {}", row.severity.label())),
        span(Token::Text, ", "),
        span(row.status.into(), row.status.label()),
    ]);
    if row.acknowledged {
        into.field("", Token::Good, "acknowledged");
    }
    if !row.assignee.is_empty() {
        into.field("assignee", Token::Info, &row.assignee);
    }
    into.field("name", Token::Text, &row.name);
    let age = format_duration((model.now_ms - row.last_seen_ms).max(0));
    let seen = format!("{}, {age} ago", model.format_full_time(row.last_seen_ms));
    into.field("last seen", Token::Text, &seen);
    let sent = match row.count {
        1 => "once".to_owned(),
        count => format!("{} times", text::group_digits(count.into())),
    };
    into.field("seen", Token::Text, &sent);
    into.heading("Dimensions");
    for pair in row.entity.split(' ') {
        let (key, value) = pair.split_once('=').unwrap_or(("", pair));
        into.field(key, Token::Text, value);
    }
    into.blank_line();
    let words = model.expand_keys("‹open› opens it, ‹explain› explains who was notified");
    into.text(Token::Dim, 0, &words);
}
