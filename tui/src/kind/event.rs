//! The columns of events.

use super::{Cell, Column, Key};
use crate::{
    data::{EventRow, Sign, Status, Word},
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<EventRow>] = &[
    Column::new("Seen", 8, 0, 3, |around, it: &EventRow| {
        let cell = Cell::short_moment(around, Some(it.last_seen_ms));
        quiet(it, cell)
    })
    .falling(|it| Key::Number(it.last_seen_ms)),
    Column::new("Severity", 10, 0, 0, |_, it: &EventRow| {
        let mut cell = Cell::new(it.severity, it.severity.word());
        cell.sign = it.severity.sign();
        quiet(it, cell)
    })
    .falling(|it| Key::Number(i32::from(it.severity).into())),
    Column::new("A", 1, 0, 2, |_, it: &EventRow| {
        Cell::new(Token::Good, if it.acknowledged { "✓" } else { "" })
    }),
    Column::new("Status", 6, 1, 4, |_, it: &EventRow| {
        let held = if it.is_held { " z" } else { "" };
        Cell::new(it.status, format!("{}{held}", it.status.word()))
    }),
    Column::new("Summary", 20, 3, 0, |_, it: &EventRow| {
        quiet(it, Cell::new(Token::Text, &*it.summary))
    }),
    Column::new("What", 18, 3, 1, |_, it: &EventRow| {
        Cell::new(Token::Dim, format!("{} {}", it.name, it.entity))
    }),
    Column::new("Count", 6, 0, 5, |_, it: &EventRow| Cell::figure(it.count)).figures(),
    Column::new("Since", 8, 0, 6, |around, it: &EventRow| {
        let cell = Cell::short_moment(around, Some(it.start_ms));
        quiet(it, cell)
    })
    .falling(|it| Key::Number(it.start_ms)),
    Column::new("Assignee", 8, 0, 7, |_, it: &EventRow| {
        quiet(it, Cell::new(Token::Info, &*it.assignee))
    })
    .rare(),
];

/// What is over is not looked at first.
fn quiet(row: &EventRow, cell: Cell) -> Cell {
    if row.status == Status::Closed {
        Cell {
            token: Token::Dim,
            ..cell
        }
    } else {
        cell
    }
}
