//! Names of fields that a clause being typed may become.

use crate::model::{
    Model,
    field::TextField,
    filter,
    form::{Input, Part},
};

/// Fields that a clause can name, for completion: the fixed ones and the dimensions seen.
fn known_fields(model: &Model) -> Vec<String> {
    let fixed = filter::FIELDS.into_iter().map(str::to_owned);
    let seen = model.seen_dimensions().into_iter();
    fixed
        .chain(seen.map(|key| format!("dimensions.{key}")))
        .collect()
}

/// The known fields that what stands in the focused part of a query may become.
pub(crate) fn completions(model: &Model) -> Vec<String> {
    let Some(form) = model.page.form() else {
        return Vec::new();
    };
    let Input::Clause(clause) = form.input() else {
        return Vec::new();
    };
    let Part::Field(row) = clause.part(form.part) else {
        return Vec::new();
    };
    let typed = clause.rows[row].field.text();
    let fields = known_fields(model).into_iter();
    fields
        .filter(|field| field.contains(typed) && field != typed)
        .take(8)
        .collect()
}

/// Takes the first completion when the cursor is at the end of what was typed.
pub(super) fn complete(model: &mut Model) -> bool {
    let Some(field) = completions(model).into_iter().next() else {
        return false;
    };
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return false;
    };
    let part = form.part;
    let Input::Clause(clause) = form.input_mut() else {
        return false;
    };
    match clause.text_mut(part) {
        Some(text) if text.split().1.is_empty() => *text = TextField::new(field),
        _ => return false,
    }
    form.changed(now_ms);
    true
}
