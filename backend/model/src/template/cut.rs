//! Truncates texts to the limits of providers.

const MARK: char = '\u{2026}';

/// Truncates a text to at most `max` characters.
pub fn characters(text: &str, max: usize) -> String {
    cut(text, max, |_| 1)
}

/// Truncates a text to at most `max` bytes.
pub fn bytes(text: &str, max: usize) -> String {
    cut(text, max, char::len_utf8)
}

/// Truncates a text to at most `max` bytes when written in a JSON document.
pub fn json_bytes(text: &str, max: usize) -> String {
    cut(text, max, |c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    })
}

/// Returns the text on one line, with control characters and line breaks replaced by spaces.
pub fn one_line(text: &str, characters_max: usize) -> String {
    let breaks = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<_> = text.split(breaks).filter(|word| !word.is_empty()).collect();
    characters(&words.join(" "), characters_max)
}

/// Truncates a text to a total cost of its characters, including the mark.
pub fn cut(text: &str, max: usize, cost: impl Fn(char) -> usize) -> String {
    let mut spent = 0;
    // The length up to which the mark still fits.
    let mut fits = 0;
    for (at, c) in text.char_indices() {
        if spent + cost(MARK) <= max {
            fits = at;
        }
        spent += cost(c);
        if spent > max {
            let mut start = text[..fits].to_owned();
            if cost(MARK) <= max {
                start.push(MARK);
            }
            return start;
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(characters("abc", 3), "abc");
        assert_eq!(characters("abcd", 3), "ab\u{2026}");
        assert_eq!(bytes("abcd", 3), "\u{2026}");
        assert_eq!(bytes("abcd", 2), "");
        assert_eq!(one_line(" a\r\nb\u{0}c ", 9), "a b c");
    }

    proptest! {
        #[test]
        fn truncated_text_fits_the_limit(text in any::<String>(), max in 0..60_usize) {
            prop_assert!(characters(&text, max).chars().count() <= max);
            prop_assert!(bytes(&text, max).len() <= max);
            let written = serde_json::Value::from(json_bytes(&text, max)).to_string();
            prop_assert!(written.len() <= max + 2);
        }
    }
}
