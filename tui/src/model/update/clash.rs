//! Edit conflicts: shows both versions, and resolves the conflict.

use super::{confirm, execute::execute, forms, read};
use crate::{
    data::{Kind, Object},
    kind,
    model::{
        Model,
        form::{Form, describe_changes},
        overlay::{Clash, ClashChoice, Overlay},
    },
    theme::Token,
};

pub(super) fn begin_clash(model: &mut Model, mine: Object) {
    let kind = mine.kind;
    model.store.resources_mut(kind).waiting = None;
    model.clash = Some(Box::new(mine));
    read::read_resources(model, &[kind]);
}

pub(super) fn show_if_read(model: &mut Model, kind: Kind) {
    let Some(mine) = model.clash.take_if(|mine| mine.kind == kind) else {
        return;
    };
    let mine = *mine;
    let theirs = model.store.object(kind, mine.name());
    let theirs = theirs.map(|it| (kind::editable_part(it), it.etag().to_owned()));
    let Some((theirs, etag)) = theirs else {
        let words = format!(
            "{} {} was deleted concurrently",
            kind.singular(),
            mine.name()
        );
        keep_draft(model, &mine, None);
        return model.show_notice(Token::Bad, words);
    };
    let base = model.page.form().map(Form::original_json).cloned();
    let mut lines = Vec::new();
    if let Some(json) = base {
        let base = Object { kind, json };
        lines.push((Token::Title, "What others changed:".to_owned()));
        lines.extend(describe_changes(Some(&base), &theirs));
        lines.push((Token::Text, String::new()));
    }
    lines.push((
        Token::Title,
        "Your changes to the stored version:".to_owned(),
    ));
    lines.extend(describe_changes(Some(&theirs), &mine));
    model.overlay = Some(Overlay::Clash(Box::new(Clash {
        mine,
        theirs,
        etag,
        lines,
        choice: ClashChoice::Edit,
        top: 0,
    })));
}

/// Applies the operator's choice. The draft is preserved until it is stored or discarded.
pub(super) fn resolve_clash(model: &mut Model, clash: Clash) {
    let Clash {
        mine, theirs, etag, ..
    } = clash;
    let name = mine.name().to_owned();
    let stored = Some((name.clone(), etag));
    match clash.choice {
        ClashChoice::Edit => keep_draft(model, &mine, stored),
        ClashChoice::TakeTheirs => {
            if let Some(form) = model.page.form_mut() {
                *form = Form::new(theirs.kind, stored, theirs.json);
            }
            model.show_notice(Token::Info, format!("{name} as stored now"));
        }
        ClashChoice::Overwrite => {
            keep_draft(model, &mine, stored.clone());
            // No confirmation is needed, because the operator chose after seeing both versions.
            let then = confirm::store_write(model, mine, stored.as_ref(), None);
            execute(model, then);
        }
    }
}

/// Turns the draft into changes to the stored version, in the current form or in a new one.
fn keep_draft(model: &mut Model, mine: &Object, stored: Option<(String, String)>) {
    let same = |form: &&mut Form| {
        form.stored
            .as_ref()
            .is_some_and(|(name, _)| name == mine.name())
    };
    match model.page.form_mut().filter(same) {
        Some(form) => form.stored = stored,
        None => forms::open_draft(model, mine.kind, stored, mine.json.clone()),
    }
}
