//! Finds invisible characters in texts: characters that are not rendered or affect their
//! surroundings, and excess combining marks. Based on Unicode data.

use std::fmt::Write as _;

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{
        CanonicalCombiningClass, DefaultIgnorableCodePoint, Emoji, EmojiModifier,
        ExtendedPictographic, GeneralCategory, GeneralCategoryGroup,
    },
};

/// Maximum number of combining marks on one character; more would overlap the lines above and
/// below.
pub const MARKS_MAX: usize = 4;

/// Percent-encodes a text for a path segment or a query value. Only necessary characters are
/// encoded, since cron, for example, ends a line at a percent sign.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns the word for an enum value by its name, such as `critical` for `SEVERITY_CRITICAL`.
pub fn enum_word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase()
}

/// Formats a duration in its largest suitable unit, rounded to the nearest: `132 ms`, `4.3 s`,
/// `5 s`, `3 min`, `2 h`, `7 d`.
pub fn format_duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..9_950 if ms % 1_000 != 0 => {
            let tenths = (ms + 50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        ms => round_duration(ms),
    }
}

/// Rounds a duration to whole units, using the largest unit that it contains at least twice; minutes
/// are used from 90 s on.
fn round_duration(ms: i64) -> String {
    let units = [("s", 1_000, 90), ("min", 60_000, 120), ("h", 3_600_000, 48)];
    let rounded = |unit_ms: i64| ms.saturating_add(unit_ms / 2) / unit_ms;
    let fitting = units
        .into_iter()
        .map(|(unit, unit_ms, end)| (rounded(unit_ms), unit, end))
        .find(|(count, _, end)| count < end);
    let days = (rounded(86_400_000), "d");
    let (count, unit) = fitting.map_or(days, |(count, unit, _)| (count, unit));
    format!("{count} {unit}")
}

/// Visibility of a character in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Visible.
    Plain,
    /// Invisible, or visible only by its effect on others: a control character, a directional mark
    /// or an ignorable character.
    Hidden,
    /// A combining mark above [`MARKS_MAX`].
    Surplus,
}

/// Whether a character is invisible or affects its surroundings, in any position. Spaces are
/// visible.
pub fn is_hidden(c: char) -> bool {
    // Fast path for ASCII without table lookups.
    if c.is_ascii() {
        return c.is_control();
    }
    c.is_control()
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        // Line and paragraph separators, annotation marks, and two characters with empty glyphs.
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{2800}' | '\u{1d159}')
}

/// Returns the characters of a text, each with its visibility in that position: joiners and
/// variation selectors are visible where a script or an emoji needs them.
pub fn chars_with_visibility(text: &str) -> impl Iterator<Item = (char, Visibility)> {
    let mut chars = text.chars().peekable();
    let (mut before, mut marks) = (None, 0);
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let is_needed =
            joins_characters(before, c, chars.peek().copied()) || has_variation(before, c);
        let seen = if is_hidden(c) && !is_needed {
            Visibility::Hidden
        } else if is_needed || is_mark(c) {
            marks += 1;
            if marks > MARKS_MAX {
                Visibility::Surplus
            } else {
                Visibility::Plain
            }
        } else {
            marks = 0;
            Visibility::Plain
        };
        // Invisible characters do not count as neighbours.
        if seen == Visibility::Plain {
            before = Some(c);
        }
        Some((c, seen))
    })
}

fn is_mark(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    GeneralCategoryGroup::Mark.contains(category)
}

/// Whether a joiner is needed in that position: after a virama, as in Hindi, between letters that
/// join, as in Persian, or between the parts of an emoji.
pub fn joins_characters(before: Option<char>, joiner: char, after: Option<char>) -> bool {
    let arabic = |c: char| matches!(c, '\u{600}'..='\u{8ff}');
    match joiner {
        '\u{200c}' => {
            before.is_some_and(is_virama) || before.is_some_and(arabic) && after.is_some_and(arabic)
        }
        '\u{200d}' => {
            let ends = |c: char| is_emoji(c) || c == '\u{fe0f}';
            before.is_some_and(is_virama) || before.is_some_and(ends) && after.is_some_and(is_emoji)
        }
        _ => false,
    }
}

fn is_virama(c: char) -> bool {
    let class = CodePointMapData::<CanonicalCombiningClass>::new().get(c);
    class == CanonicalCombiningClass::Virama
}

fn is_emoji(c: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(c)
        || CodePointSetData::new::<EmojiModifier>().contains(c)
}

/// Whether a variation selector applies to the emoji before it.
fn has_variation(before: Option<char>, selector: char) -> bool {
    let is_picture = |c| CodePointSetData::new::<Emoji>().contains(c);
    matches!(selector, '\u{fe0e}' | '\u{fe0f}') && before.is_some_and(is_picture)
}

/// Makes a text safe to display: invisible characters and excess marks are escaped, such as
/// `\u{1b}`. Newlines and tabs are preserved if `is_block`.
pub fn escape_invisible(text: &str, is_block: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, seen) in chars_with_visibility(text) {
        match (c, seen) {
            ('\n' | '\t', _) if is_block => shown.push(c),
            ('\n' | '\t' | '\r', _) => shown.extend(c.escape_default()),
            (c, Visibility::Plain) => shown.push(c),
            (c, Visibility::Hidden | Visibility::Surplus) => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// Returns the longest prefix of a text that has at most `bytes_max` bytes and ends between
/// characters.
pub fn longest_prefix(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_to_the_nearest_unit() {
        const HOUR: i64 = 3_600_000;
        const DAY: i64 = 24 * HOUR;
        for (ms, shown) in [
            (0, "0 ms"),
            (132, "132 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (4_250, "4.3 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (65_000, "65 s"),
            (89_499, "89 s"),
            (89_500, "1 min"),
            (90_000, "2 min"),
            (180_000, "3 min"),
            (2 * HOUR - 30_001, "119 min"),
            (2 * HOUR - 30_000, "2 h"),
            (7_300_000, "2 h"),
            (2 * DAY - HOUR / 2, "2 d"),
            (5 * DAY, "5 d"),
            (7 * DAY - 1, "7 d"),
            (6 * DAY + 11 * HOUR, "6 d"),
        ] {
            assert_eq!(format_duration(ms), shown, "{ms}");
        }
    }

    #[test]
    fn only_reserved_url_characters_are_encoded() {
        let cases = [
            ("nightly-backup", "nightly-backup"),
            ("a.b_c~d:1", "a.b_c~d:1"),
            ("nightly backup", "nightly%20backup"),
            ("50%/day?&=#+", "50%25%2Fday%3F%26%3D%23%2B"),
            ("é\"'", "%C3%A9%22%27"),
            ("", ""),
        ];
        for (text, encoded) in cases {
            assert_eq!(percent_encode(text), encoded);
        }
    }

    /// Invisible characters: some that occur in names, and at least one of each kind.
    const HIDDEN: [char; 30] = [
        '\0',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{9b}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{180b}',
        '\u{180e}',
        '\u{180f}',
        '\u{200b}',
        '\u{200e}',
        '\u{202e}',
        '\u{2028}',
        '\u{2060}',
        '\u{2065}',
        '\u{2800}',
        '\u{3164}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fffb}',
        '\u{1bca0}',
        '\u{1d173}',
        '\u{e0001}',
        '\u{e01ef}',
    ];

    #[test]
    fn invisible_characters_are_hidden_in_any_position() {
        for c in HIDDEN {
            assert!(is_hidden(c), "{c:?}");
            for text in [
                format!("{c}"),
                format!("a{c}b"),
                format!("👩{c}🚒"),
                format!("क्{c}ष"),
            ] {
                let hidden = chars_with_visibility(&text).find(|(found, _)| *found == c);
                assert_eq!(hidden, Some((c, Visibility::Hidden)), "{text:?}");
                assert!(!escape_invisible(&text, false).contains(c), "{text:?}");
            }
        }
    }

    #[test]
    fn joiners_needed_by_scripts_and_emoji_are_retained() {
        for text in [
            "disk /var is 97 % full",
            "größe, naïve, e\u{301}",
            "हिन्दी क्\u{200d}ष श्री",
            "ภาษาไทย ที่นี่",
            "می\u{200c}خواهم",
            "数据库 データベース 데이터베이스",
            "👩\u{200d}🚒 👩🏽\u{200d}🚒 🏳\u{fe0f}\u{200d}🌈 👨\u{200d}👩\u{200d}👧\u{200d}👦 ❤\u{fe0f} 1\u{fe0f}\u{20e3} 🇩🇪 ☠\u{fe0f}",
            "שרת السيرفر",
        ] {
            assert!(
                chars_with_visibility(text).all(|(_, seen)| seen == Visibility::Plain),
                "{text}"
            );
            assert_eq!(escape_invisible(text, false), text);
        }
    }

    #[test]
    fn combining_marks_per_character_are_limited() {
        for base in ["e", "👍", "👩\u{200d}🚒", "あ"] {
            let text = format!("{base}{}z", "\u{301}".repeat(200));
            let surplus = chars_with_visibility(&text)
                .filter(|(_, seen)| *seen == Visibility::Surplus)
                .count();
            assert_eq!(surplus, 200 - MARKS_MAX, "{base}");
        }
        // Repeating a joiner or a selector does not bypass the limit.
        for text in [
            format!("👩{}🚒", "\u{200d}".repeat(200)),
            format!("☠{}", "\u{fe0f}".repeat(200)),
        ] {
            let plain = chars_with_visibility(&text)
                .filter(|(_, seen)| *seen == Visibility::Plain)
                .count();
            assert!(plain <= MARKS_MAX + 2, "{text:?}: {plain}");
        }
    }

    #[test]
    fn control_sequences_are_escaped() {
        let text = "a\u{1b}]52;c;eA==\u{7}\tb\r\nc\u{9b}31m";
        assert_eq!(
            escape_invisible(text, false),
            "a\\u{1b}]52;c;eA==\\u{7}\\tb\\r\\nc\\u{9b}31m"
        );
        assert_eq!(
            escape_invisible(text, true),
            "a\\u{1b}]52;c;eA==\\u{7}\tb\\r\nc\\u{9b}31m"
        );
    }
}
