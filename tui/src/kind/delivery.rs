//! The columns of deliveries.

use bellwether_proto::v1::Delivery;

use super::{Cell, Column, Key};
use crate::{
    data::{Word, millis},
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<Delivery>] = &[
    Column::new("Decided", 8, 0, 2, |around, it: &Delivery| {
        Cell::short_moment(around, millis(it.create_time.as_ref()))
    })
    .falling(|it| {
        let created = millis(it.create_time.as_ref()).unwrap_or_default();
        Key::Both(created, it.id.clone())
    }),
    Column::new("State", 9, 0, 0, |_, it: &Delivery| {
        Cell::new(it.state(), it.state().word())
    })
    .by(|it| Key::Text(it.state().word().to_owned())),
    Column::new("Destination", 16, 1, 0, |_, it: &Delivery| {
        Cell::new(Token::Text, &*it.destination_name)
    })
    .by(|it| Key::Text(it.destination_name.clone())),
    Column::new("Rule", 12, 1, 1, |_, it: &Delivery| {
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
    .by(|it| Key::Text(it.rule_name.clone())),
    Column::new("Tries", 5, 0, 4, |_, it: &Delivery| {
        Cell::figure(it.attempt_count.unwrap_or_default().into())
    })
    .figures()
    .falling(|it| Key::Number(it.attempt_count.unwrap_or_default().into())),
    Column::new("Next try", 8, 0, 5, |around, it: &Delivery| {
        let next = millis(it.next_attempt_time.as_ref());
        match next {
            // What is due waits for its turn; the reason is stored with it.
            Some(ms) if around.is_past(ms) => Cell::new(Token::Dim, "due"),
            next => Cell::short_moment(around, next),
        }
    })
    // What has no next try comes last.
    .by(|it| Key::Number(millis(it.next_attempt_time.as_ref()).unwrap_or(i64::MAX))),
    // What it waits for, else what the last failed attempt said.
    Column::new("Why", 14, 2, 3, |_, it: &Delivery| {
        if it.wait_reason.is_empty() {
            Cell::new(Token::Bad, &*it.last_error)
        } else {
            Cell::new(Token::Warning, &*it.wait_reason)
        }
    }),
];
