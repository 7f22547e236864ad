//! Notation of keys: `j`, `G`, `<Enter>`, `<C-s>`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`<{0}>` is not a key")]
pub struct Unknown(String);

const NAMED: [(&str, KeyCode); 17] = [
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("S-Tab", KeyCode::BackTab),
    ("Space", KeyCode::Char(' ')),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("PageUp", KeyCode::PageUp),
    ("PageDown", KeyCode::PageDown),
    ("lt", KeyCode::Char('<')),
    ("F1", KeyCode::F(1)),
];

/// Parses a sequence of keys such as `j/err<Enter>`; `<lt>` stands for `<`.
pub(crate) fn parse(text: &str) -> Result<Vec<KeyEvent>, Unknown> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|tail| tail.split_once('>'));
        if let Some((name, tail)) = named.filter(|(name, _)| !name.is_empty()) {
            keys.push(named_key(name)?);
            rest = tail;
        } else {
            keys.push(KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE));
            rest = &rest[char.len_utf8()..];
        }
    }
    Ok(keys)
}

fn named_key(name: &str) -> Result<KeyEvent, Unknown> {
    if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Ok(KeyEvent::new(*code, KeyModifiers::NONE));
    }
    let unknown = || Unknown(name.to_owned());
    let (modifier, key) = match name.split_once('-').ok_or_else(unknown)? {
        ("C", key) => (KeyModifiers::CONTROL, key),
        ("A", key) => (KeyModifiers::ALT, key),
        _ => return Err(unknown()),
    };
    let mut chars = key.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        Ok(KeyEvent::new(KeyCode::Char(char), modifier))
    } else {
        let (_, code) = NAMED
            .iter()
            .find(|(known, _)| *known == key)
            .ok_or_else(unknown)?;
        Ok(KeyEvent::new(*code, modifier))
    }
}

/// Normalizes a key for comparison: terminals differ in whether they report shift with a capital
/// letter.
pub(crate) fn normalize(key: KeyEvent) -> KeyEvent {
    let is_shift_reported = matches!(key.code, KeyCode::Char(_) | KeyCode::BackTab);
    let modifiers = if is_shift_reported {
        key.modifiers - KeyModifiers::SHIFT
    } else {
        key.modifiers
    };
    KeyEvent::new(key.code, modifiers)
}

/// Whether a key types or edits text and so cannot be bound in text fields.
pub(crate) fn is_text_input(key: KeyEvent) -> bool {
    let plain = !key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let held = matches!(
        key.code,
        KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab | KeyCode::F(_)
    );
    plain && !held && !matches!(key.code, KeyCode::PageUp | KeyCode::PageDown)
}

/// Formats keys for hints: `^S` for ctrl and s, several separated by spaces.
pub(crate) fn format_keys(keys: &[KeyEvent]) -> String {
    let each: Vec<String> = keys.iter().map(|key| format_key(*key)).collect();
    each.join(" ")
}

fn format_key(key: KeyEvent) -> String {
    let name = match key.code {
        KeyCode::F(number) => format!("F{number}"),
        code => match NAMED.iter().find(|(_, known)| *known == code) {
            Some(("lt", _)) => "<".to_owned(),
            Some(("S-Tab", _)) => "Shift-Tab".to_owned(),
            Some((name, _)) => (*name).to_owned(),
            None => code.to_string(),
        },
    };
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        format!("^{}", name.to_uppercase())
    } else if key.modifiers.contains(KeyModifiers::ALT) {
        format!("Alt-{name}")
    } else if key.modifiers.contains(KeyModifiers::SHIFT) {
        format!("Shift-{name}")
    } else {
        name
    }
}
