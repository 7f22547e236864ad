//! Truncates strings to the limits of providers.

const MARK: char = '\u{2026}';

pub fn truncate_chars(text: &str, max: usize) -> String {
    truncate_to_cost(text, max, |_| 1)
}

pub fn truncate_bytes(text: &str, max: usize) -> String {
    truncate_to_cost(text, max, char::len_utf8)
}

/// Truncates a text to at most `max` bytes when written in a JSON document.
pub fn truncate_json(text: &str, max: usize) -> String {
    truncate_to_cost(text, max, |c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    })
}

/// Returns the text on one line, with control characters and line breaks replaced by spaces.
pub fn to_one_line(text: &str, characters_max: usize) -> String {
    let breaks = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<_> = text.split(breaks).filter(|word| !word.is_empty()).collect();
    truncate_chars(&words.join(" "), characters_max)
}

/// Truncates a text to a total cost of its characters, including the mark.
pub fn truncate_to_cost(text: &str, max: usize, cost: impl Fn(char) -> usize) -> String {
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
        assert_eq!(truncate_chars("abc", 3), "abc");
        assert_eq!(truncate_chars("abcd", 3), "ab\u{2026}");
        assert_eq!(truncate_bytes("abcd", 3), "\u{2026}");
        assert_eq!(truncate_bytes("abcd", 2), "");
        assert_eq!(to_one_line(" a\r\nb\u{0}c ", 9), "a b c");
    }

    proptest! {
        #[test]
        fn truncated_text_fits_the_limit(text in any::<String>(), max in 0..60_usize) {
            prop_assert!(truncate_chars(&text, max).chars().count() <= max);
            prop_assert!(truncate_bytes(&text, max).len() <= max);
            let written = serde_json::Value::from(truncate_json(&text, max)).to_string();
            prop_assert!(written.len() <= max + 2);
        }
    }
}
