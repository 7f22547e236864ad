//! Unbuffered standard output of the commands.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Write},
};

use bellwether_language::text::{Visibility, chars_with_visibility};

use crate::failure::Failure;

/// Writes a text. A closed pipe, such as to `head`, is not a failure.
pub(crate) fn write_output(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "failed to write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Escapes characters that are valid in JSON but are invisible or affect the terminal or the
/// reading order: U+007F and C1 controls, bidirectional marks, invisible characters, and excess
/// combining marks.
pub(crate) fn escape_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for (character, seen) in chars_with_visibility(json) {
        match (character, seen) {
            ('\n' | '\t' | '\r', _) | (_, Visibility::Plain) => out.push(character),
            (_, Visibility::Hidden | Visibility::Surplus) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_json_escapes_control_characters_losslessly() {
        let text = "a\u{1b}[31m\u{7f}\u{85}\u{9b}31m\u{202e}\u{2067}b\u{e9}\u{1f600}";
        let json = escape_controls(&serde_json::json!({"summary": text}).to_string());
        let is_obeyed = |it: char| it.is_control() || ('\u{2028}'..='\u{2069}').contains(&it);
        assert!(!json.chars().any(is_obeyed), "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["summary"], text);
        assert!(json.contains("\u{e9}\u{1f600}"));
        let flood = format!("e{}\u{1bca0}", "\u{301}".repeat(200));
        let json = escape_controls(&serde_json::json!({"summary": flood}).to_string());
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["summary"], flood);
        assert!(
            json.contains("\\u0301") && json.contains("\\ud82f\\udca0"),
            "{json}"
        );
    }
}
