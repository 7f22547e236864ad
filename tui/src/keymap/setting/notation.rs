//! Notation of keys in configuration files: `x`, `ctrl-s`, `g g`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Keys, chord};
use crate::limits;

/// Names of keys other than single characters. If a key has several names, the first is displayed.
const NAMED: [(&str, KeyCode); 22] = [
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("del", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdn", KeyCode::PageDown),
    ("minus", KeyCode::Char('-')),
];

const MODIFIERS: [(&str, KeyModifiers); 3] = [
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
];

pub(super) fn parse_keys(written: &str) -> Result<Keys, String> {
    let keys: Keys = written
        .split_whitespace()
        .map(read_key)
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err("expected a key; use `[]` to unbind the action".to_owned());
    }
    if keys.len() > limits::KEYS_IN_SEQUENCE {
        let most = limits::KEYS_IN_SEQUENCE;
        return Err(format!("`{written}` has more than {most} keys in sequence"));
    }
    if keys[1..].iter().any(|key| key.code == KeyCode::Esc) {
        return Err(format!(
            "`{written}` contains `esc`, which cancels a key sequence"
        ));
    }
    Ok(keys)
}

fn read_key(written: &str) -> Result<KeyEvent, String> {
    let unknown = || {
        let shown: String = written.chars().take(40).collect();
        format!(
            "`{shown}` is not a key; expected one character, f1 to f12, enter, esc, tab, space, \
             backspace, delete, insert, up, down, left, right, home, end, pageup or pagedown, \
             with ctrl-, alt- or shift- before it"
        )
    };
    let mut modifiers = KeyModifiers::NONE;
    let mut name = written;
    while parse_key_code(name).is_none() {
        let lower = name.to_ascii_lowercase();
        let (prefix, modifier) = MODIFIERS
            .iter()
            .find(|(prefix, _)| lower.starts_with(prefix))
            .ok_or_else(unknown)?;
        modifiers |= *modifier;
        name = &name[prefix.len()..];
    }
    let code = parse_key_code(name).ok_or_else(unknown)?;
    let control = modifiers.contains(KeyModifiers::CONTROL);
    let code = match code {
        KeyCode::Char(char) if control => KeyCode::Char(char.to_ascii_lowercase()),
        KeyCode::Char(char) if modifiers.contains(KeyModifiers::SHIFT) => {
            KeyCode::Char(char.to_ascii_uppercase())
        }
        other => other,
    };
    let sent_as = match code {
        KeyCode::Char('i') if control => Some("tab"),
        KeyCode::Char('m' | 'j') if control => Some("enter"),
        KeyCode::Char('[') if control => Some("esc"),
        _ => None,
    };
    if let Some(other) = sent_as {
        return Err(format!(
            "terminals send `{written}` as `{other}`; use `{other}`"
        ));
    }
    Ok(chord::normalize(KeyEvent::new(code, modifiers)))
}

fn parse_key_code(name: &str) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return (!char.is_control()).then_some(KeyCode::Char(char));
    }
    let lower = name.to_ascii_lowercase();
    let number = lower.strip_prefix('f').and_then(|rest| rest.parse().ok());
    if let Some(number @ 1..=12) = number {
        return Some(KeyCode::F(number));
    }
    let named = NAMED.iter().find(|(known, _)| *known == lower);
    named.map(|(_, code)| *code)
}

pub(in crate::keymap) fn write_keys(keys: &[KeyEvent]) -> String {
    let each: Vec<String> = keys.iter().map(|key| write_key(*key)).collect();
    each.join(" ")
}

fn write_key(key: KeyEvent) -> String {
    let held = MODIFIERS
        .iter()
        .filter(|(_, modifier)| key.modifiers.contains(*modifier));
    let held: String = held.map(|(prefix, _)| *prefix).collect();
    match key.code {
        KeyCode::F(number) => format!("{held}f{number}"),
        KeyCode::Char(char) if char != ' ' => format!("{held}{char}"),
        code => {
            let named = NAMED.iter().find(|(_, known)| *known == code);
            format!("{held}{}", named.map_or("?", |(name, _)| name))
        }
    }
}
