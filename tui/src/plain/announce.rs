//! Announcements of changes in the list: new, changed and removed rows.

use std::collections::HashMap;

use super::say;
use crate::{limits, model::Model};

#[derive(Debug, Default)]
pub(super) struct PrintedRows {
    rows: HashMap<String, String>,
    begun: bool,
}

impl PrintedRows {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn record(&mut self, model: &Model, numbered: &[String]) {
        self.rows = rows_as_text(model, numbered);
        self.begun = true;
    }

    pub(super) fn has_changes(&self, model: &Model, numbered: &[String]) -> bool {
        self.begun && rows_as_text(model, numbered) != self.rows
    }

    /// Returns the changes since the last record, and records the list again.
    pub(super) fn take_changes(&mut self, model: &Model, numbered: &[String]) -> Vec<String> {
        let now = rows_as_text(model, numbered);
        let before = std::mem::replace(&mut self.rows, now);
        if !std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        let rows = model.rows();
        let number = |id: &str| {
            let at = numbered.iter().position(|other| other == id);
            at.map_or_else(String::new, |at| format!("{}. ", at + 1))
        };
        let message = (0..rows.len().min(limits::PRINTED_ROWS)).map(|index| rows.id(index));
        let others = numbered.iter().map(String::as_str);
        let mut lines = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for id in message
            .chain(others)
            .filter(|id| seen.insert((*id).to_owned()))
        {
            match (before.get(id), self.rows.get(id)) {
                (None, Some(row)) => lines.push(format!("new: {row}")),
                (Some(old), Some(row)) if old != row => {
                    lines.push(format!("changed: {}{row}", number(id)));
                }
                (Some(old), None) => lines.push(format!("removed: {}{old}", number(id))),
                _ => {}
            }
        }
        if lines.len() > limits::PRINTED_CHANGES {
            let more = lines.len() - limits::PRINTED_CHANGES;
            lines.truncate(limits::PRINTED_CHANGES);
            lines.push(format!("and {more} more; the list has changed"));
        }
        lines
    }
}

/// Returns the first rows and the numbered rows as text. They are more rows than are announced, so
/// that a row that moves up is not announced as new.
fn rows_as_text(model: &Model, numbered: &[String]) -> HashMap<String, String> {
    let rows = model.rows();
    let count = rows.len().min(2 * limits::PRINTED_ROWS);
    let first = (0..count).map(|index| rows.id(index));
    let held = |id: &&str| rows.position(id).is_some();
    let others = numbered.iter().map(String::as_str).filter(held);
    let in_words = |id: &str| (id.to_owned(), say::say_row(model, id));
    first.chain(others).map(in_words).collect()
}
