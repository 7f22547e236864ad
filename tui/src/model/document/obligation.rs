//! Who is still to be told that an occurrence is over, event by event.

use super::{Document, Link, span};
use crate::{
    data::{Obligation, ObligationFilter},
    model::{Model, page::Route},
    theme::Token,
};

/// What the list is about.
pub(super) fn about(into: &mut Document, filter: &ObligationFilter) {
    let told = "Who was told of these events and is still to be told that they are over.";
    into.text(Token::Dim, 0, told);
    for name in &filter.rule_names {
        into.link("of rule", name, Link::Go(Route::Rule(name.clone())));
    }
    for name in &filter.destination_names {
        let link = Link::Go(Route::Destination(name.clone()));
        into.link("to destination", name, link);
    }
    if !filter.event_id.is_empty() {
        let link = Link::Go(Route::Event(filter.event_id.clone()));
        into.link("about event", &filter.event_id, link);
    }
}

pub(super) fn write(into: &mut Document, model: &Model, rows: &[Obligation], more: bool) {
    if rows.is_empty() {
        into.text(Token::Good, 0, "none is open");
    }
    for of_event in rows.chunk_by(|one, other| one.occurrence_id == other.occurrence_id) {
        let Some(first) = of_event.first() else {
            continue;
        };
        let line = vec![
            span(
                first.severity.into(),
                &format!("{:<9}", first.severity.word()),
            ),
            span(Token::Link, &first.summary),
        ];
        into.linked(line, Link::Go(Route::Event(first.occurrence_id.clone())));
        for row in of_event {
            let at = row.notify_ms.map(|ms| model.moment(ms)).unwrap_or_default();
            let line = vec![
                span(Token::Dim, &format!("  {at:<17}told ")),
                span(Token::Link, &row.destination_name),
                span(Token::Dim, &format!(" by {}", row.rule_name)),
            ];
            let destination = Route::Destination(row.destination_name.clone());
            into.linked(line, Link::Go(destination));
        }
    }
    if more {
        into.blank();
        let told = format!("these are {}; there are more", rows.len());
        into.text(Token::Warning, 0, &told);
    }
}
