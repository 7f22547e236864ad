//! Dispatch of keys and pastes: to an overlay, a form, a filter being typed, or the actions.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{forms, navigate, overlays};
use crate::{
    keymap::{self, KeyLookup},
    model::{Model, field::TextField, matching::Matching},
    theme::Token,
};

pub(super) fn handle_key_press(model: &mut Model, key: KeyEvent) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    let key = without_alt_gr(model, key);
    let placed = keymap::to_latin_position(key);
    if placed.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        model.cancel_sequence();
        return forms::quit_from_form(model);
    }
    model.clear_notice();
    model.page.list.to_end = false;
    if let Some(overlay) = &model.overlay {
        let key = if overlay.accepts_text() { key } else { placed };
        overlays::handle_overlay_key(model, key);
    } else if model.page.form().is_some() {
        forms::handle_form_key(model, key);
    } else if model.page.list.typing.is_some() {
        handle_text_key(model, key);
    } else if !model.continue_sequence(key) && matches!(key.code, KeyCode::Char(_) | KeyCode::F(_))
    {
        let key = keymap::format_keys(&[key]);
        let words = model.expand_keys(&format!("{key} does nothing here; ‹help› lists the keys"));
        model.show_notice(Token::Info, words);
    }
}

/// Returns the character of a key with `AltGr`, which some terminals report as Alt or Ctrl-Alt with
/// the character. Letters, digits and bound keys are not changed: they are keys with Alt.
fn without_alt_gr(model: &Model, key: KeyEvent) -> KeyEvent {
    let KeyCode::Char(char) = key.code else {
        return key;
    };
    let is_held = key.modifiers.contains(KeyModifiers::ALT);
    if !is_held || char.is_ascii_alphanumeric() || char == ' ' {
        return key;
    }
    let places = model.page.route.key_places();
    let meaning = model.keymap.look_up(&[keymap::normalize(key)], &places);
    match meaning {
        KeyLookup::Nothing => KeyEvent {
            modifiers: key.modifiers - KeyModifiers::ALT - KeyModifiers::CONTROL,
            ..key
        },
        KeyLookup::Act(_) | KeyLookup::Run(_) | KeyLookup::Wait => key,
    }
}

/// Pastes into the current text field, or else into the filter; pasted text is never interpreted as
/// keys.
pub(super) fn handle_paste(model: &mut Model, text: &str) {
    model.clear_notice();
    model.cancel_sequence();
    if model.overlay.is_some() {
        overlays::handle_overlay_paste(model, text);
    } else if model.page.form().is_some() {
        forms::paste_text(model, text);
    } else if let Some(field) = &mut model.page.list.typing {
        field.insert(text);
        model.page.list.matching = Matching::after_typing(model.now_ms);
    } else if model.page.route.is_list() {
        let mut field = TextField::default();
        field.insert(text);
        model.page.list.typing = Some(field);
        model.page.list.matching = Matching::after_typing(model.now_ms);
    } else {
        model.show_notice(Token::Info, "nothing can be pasted here");
    }
}

fn handle_text_key(model: &mut Model, key: KeyEvent) {
    let Some(field) = &mut model.page.list.typing else {
        return;
    };
    match key.code {
        KeyCode::Esc => model.page.list.typing = None,
        KeyCode::Enter => {
            let text = field.text().trim().to_owned();
            if let Err(message) = navigate::check_filter(model, &text) {
                return model.show_notice(Token::Bad, message);
            }
            model.page.list.typing = None;
            let route = model.page.route.clone();
            model.remember_filter(&route, &text);
            navigate::set_filter(model, text);
        }
        KeyCode::Tab => complete_text(model),
        KeyCode::Up => model.recall_filter(true),
        KeyCode::Down => model.recall_filter(false),
        _ => {
            field.press(key);
            model.page.list.recalled = None;
            model.page.list.matching = Matching::after_typing(model.now_ms);
        }
    }
}

fn complete_text(model: &mut Model) {
    let Some(found) = model.filter_completion() else {
        return;
    };
    let rest = found.words[0][found.typed.len()..].to_owned();
    if let Some(field) = &mut model.page.list.typing {
        field.unselect();
        field.insert(&rest);
        model.page.list.matching = Matching::after_typing(model.now_ms);
    }
}
