//! Mapping of Cyrillic and Greek layouts to the Latin one by position: outside text fields, the key
//! labelled `ф` is the key `a`.

use crossterm::event::{KeyCode, KeyEvent};

/// Lower-case letters of a layout, and the Latin letters on the same keys.
const LAYOUTS: [(&str, &str); 3] = [
    // ЙЦУКЕН, and the Ukrainian and Belarusian letters on the same keys.
    (
        "йцукенгшщзхъфывапролджэячсмитьбюё",
        "qwertyuiop[]asdfghjkl;'zxcvbnm,.`",
    ),
    ("іїєґў", "s]'\\o"),
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
];
const SHIFTED: (&str, &str) = ("[]\\;',.`", "{}|:\"<>~");

/// Returns the key at the same position in the Latin layout; unknown keys are unchanged.
pub(crate) fn to_latin_position(key: KeyEvent) -> KeyEvent {
    let KeyCode::Char(char) = key.code else {
        return key;
    };
    to_latin(char).map_or(key, |latin| KeyEvent {
        code: KeyCode::Char(latin),
        ..key
    })
}

fn to_latin(char: char) -> Option<char> {
    if char.is_ascii() {
        return None;
    }
    let lower = char.to_lowercase().next().filter(|lower| *lower != char);
    let wanted = lower.unwrap_or(char);
    let found = LAYOUTS
        .iter()
        .find_map(|layout| counterpart(*layout, wanted))?;
    match lower {
        None => Some(found),
        Some(_) if found.is_ascii_alphabetic() => Some(found.to_ascii_uppercase()),
        Some(_) => counterpart(SHIFTED, found),
    }
}

fn counterpart((from, to): (&str, &str), char: char) -> Option<char> {
    let at = from.chars().position(|it| it == char)?;
    to.chars().nth(at)
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    #[test]
    fn non_latin_keys_map_to_their_latin_position() {
        for (typed, latin) in [
            ('ф', 'a'),
            ('Ф', 'A'),
            ('г', 'u'),
            ('Г', 'U'),
            ('я', 'z'),
            ('х', '['),
            ('Х', '{'),
            ('Ж', ':'),
            ('і', 's'),
            ('α', 'a'),
            ('Υ', 'Y'),
            ('ψ', 'c'),
            ('a', 'a'),
            ('日', '日'),
        ] {
            let key = KeyEvent::new(KeyCode::Char(typed), KeyModifiers::CONTROL);
            let found = to_latin_position(key);
            assert_eq!(found.code, KeyCode::Char(latin), "{typed}");
            assert_eq!(found.modifiers, KeyModifiers::CONTROL);
        }
        for (from, to) in LAYOUTS.into_iter().chain([SHIFTED]) {
            assert_eq!(from.chars().count(), to.chars().count(), "{from}");
        }
    }
}
