//! The pane beside a list of rules or destinations: the last decisions, and the rendered message.

use bellwether_proto::v1::Delivery;

use super::report;
use crate::{
    data::{Kind, Label, to_millis},
    document::{Document, Link, span},
    kind::EventCell,
    model::{Model, form::LivePreview},
    theme::Token,
};

const TIME: usize = 9;
const STATE: usize = 10;
/// Minimum width of an event beside the destination or the rule of its delivery, in cells.
const OTHER_END: usize = 50;

pub(super) fn write_decided(into: &mut Document, model: &Model, kind: Kind) {
    let decided = &model.beside.decided;
    let Some(rows) = &decided.value else { return };
    into.heading("Last decisions");
    if rows.is_empty() {
        into.text(Token::Dim, 0, "none yet");
    }
    for row in rows {
        let at = to_millis(row.create_time.as_ref()).map(|ms| model.format_time(ms));
        let (at, state) = (at.unwrap_or_default(), row.state());
        let mut line = vec![
            span(Token::Dim, &format!("{at:<TIME$}")),
            span(state.into(), &format!("{:<STATE$}", state.label())),
        ];
        let spare = into.columns.saturating_sub(TIME + STATE + 1);
        if row.event_name.is_empty() {
            line.push(span(Token::Dim, "test message"));
        } else {
            let mut cell = EventCell::from_delivery(row, &model.host_field);
            if spare >= OTHER_END {
                cell.summary = describe_counterpart(kind, row);
            }
            line.extend(cell.spans(spare));
        }
        into.linked_line(line, Link::delivery(&row.id));
    }
}

/// Names the destination of a delivery in a list for a rule, or the rule in a list for a
/// destination.
fn describe_counterpart(kind: Kind, row: &Delivery) -> String {
    match kind {
        Kind::Rule => format!("to {}", row.destination_name),
        _ => format!("by {}", row.rule_name),
    }
}

pub(super) fn write_message(into: &mut Document, model: &Model) {
    let message = &model.beside.message;
    match &message.value {
        Some(LivePreview::Messages(found)) => report::write_previews(into, found),
        Some(LivePreview::Request(found)) => {
            into.heading("Message, with a sample event");
            for warning in &found.warnings {
                into.text(Token::Warning, 0, &format!("! {warning}"));
            }
            if let Some(request) = &found.request {
                let words = format!("{} {}", request.method, request.url);
                into.text(Token::Dim, 0, words.trim());
                into.body(0, &request.body);
            }
        }
        _ => {}
    }
    if let Some(failure) = message.failure.as_ref().filter(|_| message.value.is_none()) {
        into.failure(failure);
    }
}
