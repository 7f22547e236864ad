//! What the command writes to standard output at once.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Write},
};

use crate::failure::Failure;

/// Writes a text. A reader that has had enough of it, as `head`, is no failure.
///
/// # Errors
/// It cannot be written for another reason.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// JSON in which nothing is left that a terminal obeys or that turns what is read around: what JSON
/// allows as it is (U+007F, the controls above it, marks of direction) is escaped.
pub(crate) fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                // Each of them has one number of 16 bits; writing to memory does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_holds_nothing_that_it_obeys_and_says_the_same() {
        let text = "a\u{1b}[31m\u{7f}\u{85}\u{9b}31m\u{202e}\u{2067}b\u{e9}\u{1f600}";
        let json = escaped(&serde_json::json!({"summary": text}).to_string());
        let is_obeyed = |it: char| it.is_control() || ('\u{2028}'..='\u{2069}').contains(&it);
        assert!(!json.chars().any(is_obeyed), "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["summary"], text);
        assert!(json.contains("\u{e9}\u{1f600}"));
    }
}
