//! Filling in a form with lines such as `Name = disk-full`.

use crate::model::form::Form;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Fill(usize, String),
    Ask(usize),
}

/// Parses a line; `None` if it names no field.
///
/// # Errors
/// Returns a message if several fields match.
pub(super) fn read(form: &Form, line: &str) -> Result<Option<Line>, String> {
    let (label, value) = match line.split_once('=') {
        Some((label, value)) => (label.trim(), Some(value.trim())),
        None => (line.trim(), None),
    };
    let label = label.to_lowercase();
    if label.is_empty() {
        return Ok(None);
    }
    let shown = (0..form.specs.len()).filter(|index| form.is_fillable(*index));
    let name = |index: usize| form.specs[index].label.to_lowercase();
    let shown: Vec<usize> = shown.collect();
    let exact = shown.iter().find(|index| name(**index) == label);
    let mut begin = shown
        .iter()
        .filter(|index| name(**index).starts_with(&label));
    let index = match (exact, begin.next(), begin.next()) {
        (Some(index), _, _) => *index,
        (None, Some(first), Some(second)) if value.is_some() => {
            let (first, second) = (form.specs[*first].label, form.specs[*second].label);
            return Err(format!("`{label}` is ambiguous: {first} or {second}"));
        }
        (None, Some(index), None) if value.is_some() => *index,
        _ => return Ok(None),
    };
    Ok(Some(match value {
        Some(value) => Line::Fill(index, value.to_owned()),
        None => Line::Ask(index),
    }))
}
