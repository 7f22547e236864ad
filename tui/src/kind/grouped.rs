//! The columns of events counted by a field.

use super::{Cell, Column, Key};
use crate::{
    data::{GroupRow, Severity},
    text,
    theme::Token,
};

pub(crate) const COLUMNS: &[Column<GroupRow>] = &[
    Column::new("Value", 18, 2, 0, |_, it: &GroupRow| {
        if it.has_field {
            Cell::new(Token::Text, &*it.value)
        } else {
            Cell::new(Token::Dim, &*it.value)
        }
    })
    .sort_by_key(|it| Key::Text(it.value.clone())),
    Column::new("Events", 8, 0, 0, |_, it: &GroupRow| Cell::number(it.count))
        .right_align()
        .sort_descending(|it| Key::Number(it.count)),
    Column::new("Share", 16, 1, 5, |_, it: &GroupRow| {
        Cell::new(it.worst(), share_bar(it.share))
    }),
    Column::new("Critical", 8, 0, 1, |_, it: &GroupRow| {
        count_cell(it, Severity::Critical)
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.count(Severity::Critical))),
    Column::new("Error", 7, 0, 2, |_, it: &GroupRow| {
        count_cell(it, Severity::Error)
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.count(Severity::Error))),
    Column::new("Warning", 7, 0, 3, |_, it: &GroupRow| {
        count_cell(it, Severity::Warning)
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.count(Severity::Warning))),
    Column::new("Info", 7, 0, 4, |_, it: &GroupRow| {
        count_cell(it, Severity::Info)
    })
    .right_align()
    .sort_descending(|it| Key::Number(it.count(Severity::Info))),
    Column::new("Last seen", 9, 0, 6, |around, it: &GroupRow| {
        Cell::short_time(around, it.last_seen_ms)
    })
    .sort_descending(|it| Key::Number(it.last_seen_ms.unwrap_or_default())),
];

fn count_cell(row: &GroupRow, severity: Severity) -> Cell {
    match row.count(severity) {
        0 => Cell::default(),
        count => Cell::new(severity, text::group_digits(count)),
    }
}

fn share_bar(share: i64) -> String {
    let halves = usize::try_from(share.clamp(0, 100) * 16 * 2 / 100).unwrap_or_default();
    // The bar of the smallest value is still visible.
    let halves = halves.max(1);
    "━".repeat(halves / 2) + if halves % 2 == 1 { "╸" } else { "" }
}
