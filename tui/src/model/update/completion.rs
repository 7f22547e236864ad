//! What the word that ends a condition being typed may become.

use crate::model::{
    Model,
    field::TextField,
    filter::completion::{Completion, of_events},
    form::Input,
};

/// The text under the cursor of a condition in a form, when the cursor is at its end.
fn typed(model: &Model) -> Option<&TextField> {
    let form = model.page.form()?;
    let Input::Clause(clause) = form.input() else {
        return None;
    };
    let field = clause.text(form.part)?;
    field.split().1.is_empty().then_some(field)
}

fn completion(model: &Model) -> Option<Completion<'_>> {
    let rows: Vec<_> = model.seen_events().collect();
    of_events(typed(model)?.text(), &rows)
}

/// The fields and values that the word at the end of the condition may become.
pub(crate) fn completions(model: &Model) -> Vec<String> {
    completion(model).map_or_else(Vec::new, |it| it.words)
}

/// Takes the first completion when the cursor is at the end of what was typed.
pub(super) fn complete(model: &mut Model) -> bool {
    let completed = completion(model).and_then(|it| {
        let text = typed(model)?.text();
        let kept = &text[..text.len() - it.typed.len()];
        Some(format!("{kept}{}", it.words.first()?))
    });
    let Some(completed) = completed else {
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
    let Some(field) = clause.text_mut(part) else {
        return false;
    };
    *field = TextField::new(completed);
    clause.follow(part);
    form.changed(now_ms);
    true
}
