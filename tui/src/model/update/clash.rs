//! What was edited changed meanwhile: both versions, and what to make of them.

use serde_json::Value;

use super::{confirm, forms, read};
use crate::{
    data::{Draft, Kind},
    model::{
        Model,
        form::Form,
        message::Effect,
        overlay::{Clash, ClashChoice, Overlay},
    },
    theme::Token,
};

/// Keeps what could not be stored, and reads what is stored now.
pub(super) fn begin(model: &mut Model, mine: Draft, effects: &mut Vec<Effect>) {
    let kind = mine.kind();
    match kind {
        Kind::Trigger => model.store.triggers.waiting = None,
        Kind::Destination => model.store.destinations.waiting = None,
        Kind::Rule => model.store.rules.waiting = None,
    }
    model.clash = Some(Box::new(mine));
    read::resources(model, &[kind], effects);
}

/// Shows both versions when what is stored now was read.
pub(super) fn show_if_read(model: &mut Model, kind: Kind) {
    let Some(mine) = model.clash.take_if(|mine| mine.kind() == kind) else {
        return;
    };
    let mine = *mine;
    let Some((theirs, etag)) = stored(model, kind, mine.name()) else {
        let words = format!("{} {} was deleted meanwhile", kind.word(), mine.name());
        keep(model, &mine, None);
        return model.say(Token::Bad, words);
    };
    let base = model.page.form().map(Form::original).cloned();
    let mut lines = Vec::new();
    if let Some(base) = base.as_ref().and_then(|base| text(kind, base)) {
        lines.push((Token::Title, "What others changed:".to_owned()));
        lines.extend(confirm::difference(&base, &theirs.to_text()));
        lines.push((Token::Text, String::new()));
    }
    lines.push((
        Token::Title,
        "What yours would change in theirs:".to_owned(),
    ));
    lines.extend(confirm::difference(&theirs.to_text(), &mine.to_text()));
    model.overlay = Some(Overlay::Clash(Box::new(Clash {
        mine,
        theirs,
        etag,
        lines,
        choice: ClashChoice::Edit,
        top: 0,
    })));
}

/// A stored object as it is edited, and its version.
fn stored(model: &Model, kind: Kind, name: &str) -> Option<(Draft, String)> {
    let store = &model.store;
    Some(match kind {
        Kind::Trigger => {
            let row = store.trigger(name)?;
            (Draft::Trigger(row.spec.clone()), row.etag.clone())
        }
        Kind::Destination => {
            let row = store.destination(name)?;
            (Draft::Destination(row.spec.clone()), row.etag.clone())
        }
        Kind::Rule => {
            let row = store.rule(name)?;
            (Draft::Rule(row.spec.clone()), row.etag.clone())
        }
    })
}

/// A form's text in the same shape as that of a draft.
fn text(kind: Kind, json: &Value) -> Option<String> {
    let json = crate::editor::pretty(kind, json);
    let (_, draft) = crate::editor::read(kind, &json).ok()?;
    Some(draft.to_text())
}

/// What was chosen is done; what was typed is kept until it is stored or given up.
pub(super) fn resolve(model: &mut Model, clash: Clash) {
    let Clash {
        mine, theirs, etag, ..
    } = clash;
    let name = mine.name().to_owned();
    let stored = Some((name.clone(), etag));
    match clash.choice {
        ClashChoice::Edit => keep(model, &mine, stored),
        ClashChoice::Theirs => {
            let kind = theirs.kind();
            if let Some(form) = model.page.form_mut() {
                *form = Form::new(kind, stored, theirs.to_json());
            }
            model.say(Token::Info, format!("{name} as it is stored now"));
        }
        ClashChoice::Mine => {
            keep(model, &mine, stored.clone());
            confirm::save(model, mine, stored, &theirs.to_text(), None);
        }
    }
}

/// Leaves what was typed on the screen, as a change of what is stored now. Without a form, as after
/// `$EDITOR`, one is opened.
fn keep(model: &mut Model, mine: &Draft, stored: Option<(String, String)>) {
    let same = |form: &&mut Form| {
        form.stored
            .as_ref()
            .is_some_and(|(name, _)| name == mine.name())
    };
    match model.page.form_mut().filter(same) {
        Some(form) => form.stored = stored,
        None => forms::keep(model, mine.kind(), stored, mine.to_json()),
    }
}
