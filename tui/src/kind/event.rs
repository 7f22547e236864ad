//! The columns of events.

use super::{Cell, Column, Key};
use crate::{
    data::{EventRow, Status, Word},
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<EventRow>] = &[
    Column::new("Seen", 8, 0, 3, |around, it: &EventRow| {
        let cell = Cell::short_moment(around, Some(it.last_seen_ms));
        quiet(it, cell)
    })
    .falling(|it| Key::Number(it.last_seen_ms)),
    Column::new("Severity", 8, 0, 0, |_, it: &EventRow| {
        quiet(it, Cell::new(it.severity, it.severity.word()))
    }),
    Column::new("A", 1, 0, 2, |_, it: &EventRow| {
        Cell::new(Token::Good, if it.acknowledged { "✓" } else { "" })
    }),
    Column::new("Status", 10, 0, 4, |_, it: &EventRow| {
        Cell::new(it.status, it.status.word())
    }),
    Column::new("Summary", 20, 3, 0, |_, it: &EventRow| {
        quiet(it, Cell::new(Token::Text, &*it.summary))
    }),
    Column::new("What", 17, 3, 1, |_, it: &EventRow| {
        Cell::new(Token::Dim, format!("{} {}", it.name, it.entity))
    }),
    Column::new("Count", 6, 0, 5, |_, it: &EventRow| Cell::figure(it.count)).figures(),
];

/// What is over is not looked at first.
fn quiet(row: &EventRow, cell: Cell) -> Cell {
    if row.status == Status::Closed {
        Cell::new(Token::Dim, cell.text)
    } else {
        cell
    }
}
