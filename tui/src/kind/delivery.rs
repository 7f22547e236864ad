//! The columns of deliveries.

use bellwether_proto::v1::{Delivery, delivery::State};

use super::{Cell, Column, EventCell, Key, RenderContext};
use crate::{
    data::{Label, Sign, to_millis},
    text,
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<Delivery>] = &[
    Column::new("Decided", 8, 0, 3, |around, it: &Delivery| {
        Cell::short_time(around, to_millis(it.create_time.as_ref()))
    })
    .sort_descending(|it| {
        let created = to_millis(it.create_time.as_ref()).unwrap_or_default();
        Key::Both(created, it.id.clone())
    }),
    Column::new("State", 9, 0, 0, |_, it: &Delivery| {
        if it.retried_as.is_empty() {
            return Cell::new(it.state(), it.state().label());
        }
        Cell::new(Token::Dim, "resent")
    })
    .sort_by_key(|it| Key::Text(it.state().label().to_owned())),
    Column::new("Event", 16, 2, 2, event_cell).sort_by_key(|it| Key::Text(it.event_name.clone())),
    Column::new("Destination", 16, 3, 0, |_, it: &Delivery| {
        Cell::new(Token::Text, &*it.destination_name)
    })
    .sort_by_key(|it| Key::Text(it.destination_name.clone())),
    Column::new("Rule", 12, 1, 4, |_, it: &Delivery| {
        let (test, clear) = (it.test.unwrap_or_default(), it.clear.unwrap_or_default());
        if it.is_digest == Some(true) {
            return Cell::new(Token::Text, format!("(digest of {})", it.folded_count));
        }
        match (test, clear) {
            (true, _) => Cell::new(Token::Dim, "(test)"),
            (false, true) => Cell::new(Token::Text, format!("{} (update)", it.rule_name)),
            (false, false) => Cell::new(Token::Text, &*it.rule_name),
        }
    })
    .sort_by_key(|it| Key::Text(it.rule_name.clone())),
    Column::new("Tries", 5, 0, 6, |_, it: &Delivery| {
        Cell::number(it.attempt_count.unwrap_or_default().into())
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.attempt_count.unwrap_or_default().into())),
    Column::new("Next try", 8, 0, 5, |around, it: &Delivery| {
        let next = to_millis(it.next_attempt_time.as_ref());
        match next {
            // A time in the past needs a reason, which the service returns with the time.
            Some(ms) if around.is_past(ms) => Cell::new(Token::Dim, "due"),
            next => Cell::short_time(around, next),
        }
    })
    // Deliveries without a next attempt come last.
    .sort_by_key(|it| Key::Number(to_millis(it.next_attempt_time.as_ref()).unwrap_or(i64::MAX))),
    Column::new("Why", 14, 3, 1, reason_cell),
];

fn event_cell(around: &dyn RenderContext, it: &Delivery) -> Cell {
    if it.event_name.is_empty() {
        let words = match (it.test, it.is_digest) {
            (Some(true), _) => "(test)".to_owned(),
            (_, Some(true)) => format!("(digest of {})", it.folded_count),
            _ => String::new(),
        };
        return Cell::new(Token::Dim, words);
    }
    let shown = EventCell::from_delivery(it, around.host_field());
    let mut cell = Cell::new(it.severity(), shown.title());
    cell.sign = it.severity().symbol();
    cell
}

/// Formats the time of resending, else the reason for the wait, else the error of the last attempt.
fn reason_cell(around: &dyn RenderContext, it: &Delivery) -> Cell {
    if let Some(ms) = to_millis(it.retry_time.as_ref()) {
        let words = format!(
            "resent {} · {}",
            around.format_time(ms),
            text::shorten_error(&it.last_error)
        );
        return Cell::new(Token::Dim, words.trim_end_matches(" · "));
    }
    match (it.wait_reason.as_str(), it.last_error.as_str()) {
        ("", "") if it.clear == Some(true) => Cell::new(Token::Dim, "update"),
        // The delivery succeeded, so its earlier error is only informative.
        ("", error) if it.state() == State::Delivered && !error.is_empty() => {
            Cell::new(Token::Dim, format!("first {}", text::shorten_error(error)))
        }
        ("", error) => Cell::new(Token::Bad, text::shorten_error(error)),
        (reason, _) => Cell::new(Token::Warning, text::shorten_error(reason)),
    }
}
