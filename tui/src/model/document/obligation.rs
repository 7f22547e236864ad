//! Outstanding resolutions: receivers not yet notified about a closing.

use std::cmp::Reverse;

use bellwether_proto::v1::{ListObligationsRequest, ListObligationsResponse};

use crate::{
    data::{Kind, Label, to_millis},
    document::{Document, Link, span},
    model::Model,
    route::Route,
    theme::Token,
};

pub(super) fn describe_request(into: &mut Document, filter: &ListObligationsRequest) {
    let message =
        "Outstanding resolutions: receivers notified of the opening but not yet of the closing.";
    into.text(Token::Dim, 0, message);
    for name in &filter.rule_names {
        into.link("of rule", name, Link::object(Kind::Rule, name));
    }
    for name in &filter.destination_names {
        let link = Link::object(Kind::Destination, name);
        into.link("to destination", name, link);
    }
    if !filter.event_id.is_empty() {
        let link = Link::event(&filter.event_id);
        into.link("about event", &filter.event_id, link);
    }
}

pub(super) fn write(into: &mut Document, model: &Model, read: &ListObligationsResponse) {
    let rows = &read.obligations;
    if rows.is_empty() {
        into.text(Token::Good, 0, "all are resolved");
    }
    for of_event in rows.chunk_by(|one, other| one.occurrence_id == other.occurrence_id) {
        let Some(first) = of_event.first() else {
            continue;
        };
        let line = vec![
            span(
                first.severity().into(),
                &format!("{:<9}", first.severity().label()),
            ),
            span(Token::Link, &first.summary),
        ];
        into.linked_line(line, Link::event(&first.occurrence_id));
        // Entries of one decision have the same time and arrive in random order.
        let mut of_event: Vec<_> = of_event.iter().collect();
        of_event.sort_by_key(|row| {
            let decided = Reverse(to_millis(row.notify_time.as_ref()));
            (decided, &row.destination_name, &row.rule_name)
        });
        for row in of_event {
            let at = to_millis(row.notify_time.as_ref());
            let at = at.map(|ms| model.format_time(ms)).unwrap_or_default();
            let contact = match row.contact_name.as_str() {
                "" => String::new(),
                contact => format!("{contact} via "),
            };
            let line = vec![
                span(Token::Dim, &format!("  {at:<17}decided for {contact}")),
                span(Token::Link, &row.destination_name),
                span(Token::Dim, &format!(" (rule {})", row.rule_name)),
            ];
            let destination = Route::Object(Kind::Destination, row.destination_name.clone());
            into.linked_line(line, Link::Go(destination));
        }
    }
    if !read.next_page_token.is_empty() {
        into.blank_line();
        let message = format!("only {} are shown; there are more", rows.len());
        into.text(Token::Warning, 0, &message);
    }
}
