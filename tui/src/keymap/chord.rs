//! Keys as people write them: `j`, `G`, `<Enter>`, `<C-s>`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key's name that means nothing.
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

/// Reads a row of keys such as `j/err<Enter>`; `<lt>` stands for `<`.
///
/// # Errors
/// A name between angle brackets that is not a key.
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

/// Whether a key that was pressed is the one written.
pub(crate) fn matches(written: &str, pressed: KeyEvent) -> bool {
    let meant = match written.len() {
        1 => KeyEvent::new(
            KeyCode::Char(char::from(written.as_bytes()[0])),
            KeyModifiers::NONE,
        ),
        _ => match parse(written) {
            Ok(keys) if keys.len() == 1 => keys[0],
            _ => return false,
        },
    };
    // Terminals differ in whether they report shift beside a capital letter.
    let shift = KeyModifiers::SHIFT;
    meant.code == pressed.code && meant.modifiers - shift == pressed.modifiers - shift
}

/// A key for hints: `<C-s>` as `^S`, `<Enter>` as `Enter`.
pub(crate) fn shown(written: &str) -> String {
    let inner = written
        .strip_prefix('<')
        .and_then(|tail| tail.strip_suffix('>'));
    match inner {
        None => written.to_owned(),
        Some(name) => match name.strip_prefix("C-") {
            Some(key) => format!("^{}", key.to_uppercase()),
            None => name.to_owned(),
        },
    }
}
