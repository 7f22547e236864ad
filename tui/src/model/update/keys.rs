//! Where a key or a paste goes: overlay, form, filter being typed, or the list of actions.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{act, forms, overlays, read};
use crate::{
    keymap::{self, Step},
    limits,
    model::{Model, field::TextField, filter, message::Effect, page::Route},
    theme::Token,
};

pub(super) fn press(model: &mut Model, key: KeyEvent, effects: &mut Vec<Effect>) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        drop_begun(model);
        return forms::quit(model);
    }
    model.notice = None;
    model.page.list.to_end = false;
    if model.overlay.is_some() {
        overlays::press(model, key, effects);
    } else if model.page.form().is_some() {
        forms::press(model, key, effects);
    } else if model.page.list.typing.is_some() {
        typing(model, key, effects);
    } else {
        step(model, key, effects);
    }
}

/// Looks a key up, after those that were begun. Says whether it means anything.
pub(super) fn step(model: &mut Model, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
    let mut keys = std::mem::take(&mut model.begun);
    model.begun_until_ms = None;
    if key.code == KeyCode::Esc && !keys.is_empty() {
        return true;
    }
    keys.push(keymap::normal(key));
    match model.keymap.step(&keys, &model.page.route.places()) {
        Step::Act(entry) => act::act(model, entry.action, effects),
        Step::Wait => {
            model.begun = keys;
            model.begun_until_ms = Some(model.now_ms.saturating_add(limits::SEQUENCE_MS));
        }
        Step::Nothing if keys.len() > 1 => {
            let keys = keymap::shown(&keys);
            model.say(Token::Info, format!("{keys} means nothing here"));
        }
        Step::Nothing => return false,
    }
    true
}

/// Forgets keys that were begun; says whether there were any.
pub(super) fn drop_begun(model: &mut Model) -> bool {
    model.begun_until_ms = None;
    !std::mem::take(&mut model.begun).is_empty()
}

/// Pasted text goes where text is typed, else it becomes a filter; it never runs as keys.
pub(super) fn paste(model: &mut Model, text: &str, effects: &mut Vec<Effect>) {
    model.notice = None;
    drop_begun(model);
    if model.overlay.is_some() {
        overlays::paste(model, text);
    } else if model.page.form().is_some() {
        forms::paste(model, text, effects);
    } else if let Some(field) = &mut model.page.list.typing {
        field.insert(text);
    } else if model.page.route.is_list() {
        let mut field = TextField::default();
        field.insert(text);
        model.page.list.typing = Some(field);
    } else {
        model.say(Token::Info, "there is nothing here to paste into");
    }
}

/// A key while a filter is typed.
fn typing(model: &mut Model, key: KeyEvent, effects: &mut Vec<Effect>) {
    let Some(field) = &mut model.page.list.typing else {
        return;
    };
    match key.code {
        KeyCode::Esc => model.page.list.typing = None,
        KeyCode::Enter => {
            let text = field.text().trim().to_owned();
            if let Err(message) = check(model, &text) {
                return model.say(Token::Bad, message);
            }
            model.page.list.typing = None;
            set_filter(model, text, effects);
        }
        _ => {
            field.press(key);
        }
    }
}

/// Puts a filter in force.
pub(super) fn set_filter(model: &mut Model, text: String, effects: &mut Vec<Effect>) {
    let text = match model.page.route {
        Route::Deliveries => filter::settled(&text, &model.clock()),
        _ => text,
    };
    let changed = model.page.list.filter != text;
    model.page.list.filter = text;
    if changed && matches!(model.page.route, Route::Events | Route::Deliveries) {
        model.page.list.marks.clear();
        read::refresh(model, effects);
    }
}

/// What is wrong with a filter of the screen.
pub(crate) fn check(model: &Model, text: &str) -> Result<(), String> {
    match model.page.route {
        Route::Events => filter::events(text).map(drop),
        Route::Deliveries => filter::deliveries(text, &model.clock()).map(drop),
        _ => Ok(()),
    }
}
