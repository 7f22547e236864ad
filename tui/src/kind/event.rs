//! The columns of events.

use super::{Cell, Column, Key};
use crate::{
    data::{EventRow, HoldReason, Label, Sign, Status},
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<EventRow>] = &[
    Column::new("Severity", 10, 0, 0, |_, it: &EventRow| {
        let mut cell = Cell::new(it.severity, it.severity.label());
        cell.sign = it.severity.symbol();
        dim_if_closed(it, cell)
    })
    .sort_descending(|it| Key::Number(i32::from(it.severity).into())),
    Column::new("A", 1, 0, 2, |_, it: &EventRow| {
        Cell::new(Token::Good, if it.acknowledged { "✓" } else { "" })
    }),
    Column::new("Name", 14, 1, 0, |_, it: &EventRow| {
        dim_if_closed(it, Cell::new(Token::Text, &*it.name))
    }),
    // This column shows the field by which the operator last counted events, or the host.
    Column::new(super::HOST, 10, 1, 1, |around, it: &EventRow| {
        match it.dimension(around.host_field()) {
            Some(host) => dim_if_closed(it, Cell::new(Token::Text, host)),
            None => Cell::new(Token::Dim, &*it.entity),
        }
    }),
    Column::new("Summary", 16, 7, 0, |_, it: &EventRow| {
        dim_if_closed(it, Cell::new(Token::Text, &*it.summary))
    }),
    // Empty for open events.
    Column::new("Status", 9, 0, 4, |around, it: &EventRow| {
        let held = match it.held {
            HoldReason::Nothing if around.is_silenced(it) => HoldReason::Silence,
            held => held,
        };
        match it.status {
            Status::Open => Cell::new(Token::Held, held.label()),
            other => Cell::new(Token::from(other), other.label()),
        }
    })
    .hide_if_empty(),
    Column::new("Age", 6, 0, 3, |around, it: &EventRow| {
        dim_if_closed(it, Cell::new(Token::Dim, around.format_since(it.start_ms)))
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.start_ms)),
    Column::new("Count", 6, 0, 5, |_, it: &EventRow| {
        Cell::number(it.count.into())
    })
    .right_align(),
    Column::new("Seen", 8, 0, 6, |around, it: &EventRow| {
        let cell = Cell::short_time(around, Some(it.last_seen_ms));
        dim_if_closed(it, cell)
    })
    .sort_descending(|it| Key::Number(it.last_seen_ms)),
    Column::new("Assignee", 8, 0, 7, |_, it: &EventRow| {
        dim_if_closed(it, Cell::new(Token::Info, &*it.assignee))
    })
    .hide_if_empty(),
    Column::new("On call", 14, 1, 7, |around, it: &EventRow| {
        around.responder(&it.id).unwrap_or_default()
    })
    .hide_if_empty(),
    Column::new("What", 18, 3, 1, |_, it: &EventRow| {
        Cell::new(Token::Dim, &*it.entity)
    })
    .hide_by_default(),
];

fn dim_if_closed(row: &EventRow, cell: Cell) -> Cell {
    if row.status == Status::Closed {
        Cell {
            token: Token::Dim,
            ..cell
        }
    } else {
        cell
    }
}
