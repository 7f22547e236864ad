//! Makes text from outside safe to draw: nothing hidden, nothing acted on, widths by grapheme.

use std::fmt::Write;

use bellwether_proto::text::{Seen, seen};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const TAB_STOP: usize = 4;

/// The text on one line: tabs expanded, line ends, control, bidi and invisible characters shown as marks,
/// combining marks beyond what one character bears left out.
pub(crate) fn clean(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = seen(text).peekable();
    while let Some((char, seen)) = chars.next() {
        match (char, seen) {
            ('\t', _) => {
                let column = width(&out);
                out.extend(std::iter::repeat_n(' ', TAB_STOP - column % TAB_STOP));
            }
            ('\r', _) if chars.peek().is_some_and(|(next, _)| *next == '\n') => {}
            ('\n', _) => out.push('⏎'),
            ('\u{7f}', _) => out.push('␡'),
            ('\0'..='\u{1f}', _) => {
                out.push(char::from_u32(0x2400 + u32::from(char)).unwrap_or('␀'));
            }
            (_, Seen::Hidden) => {
                let _infallible = write!(out, "‹{:04X}›", u32::from(char));
            }
            (_, Seen::Surplus) => {}
            (_, Seen::Plain) => out.push(char),
        }
    }
    out
}

/// The text as a part of the path of an address.
pub(crate) fn percent_encoded(text: &str) -> String {
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

/// Cells that cleaned text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The cleaned text cut to `cells`, with an ellipsis when something is missing.
pub(crate) fn fit(text: &str, cells: usize) -> String {
    let text = clean(text);
    if width(&text) <= cells {
        return text;
    }
    if cells == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        if used + wide > cells - 1 {
            break;
        }
        used += wide;
        out.push_str(grapheme);
    }
    out.push('…');
    out
}

/// The cleaned text in lines of at most `cells`, broken at spaces where possible; line ends kept.
pub(crate) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(
            &clean(line.strip_suffix('\r').unwrap_or(line)),
            cells,
            &mut lines,
        );
    }
    while lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The cleaned text in rows of at most `cells`, broken anywhere, so that rows of its beginning are the first
/// of its rows; line ends kept.
pub(crate) fn rows(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for grapheme in clean(line).graphemes(true) {
            let wide = width(grapheme);
            if used + wide > cells && used > 0 {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(grapheme);
            used += wide;
        }
        rows.push(row);
    }
    rows
}

fn wrap_line(line: &str, cells: usize, lines: &mut Vec<String>) {
    let mut current = String::new();
    let mut used = 0;
    for word in words_and_gaps(line) {
        let wide = width(word);
        if used + wide > cells && used > 0 && wide <= cells {
            lines.push(current.trim_end().to_owned());
            current.clear();
            used = 0;
            if word.trim().is_empty() {
                continue;
            }
        }
        for grapheme in word.graphemes(true) {
            let wide = width(grapheme);
            if used + wide > cells && used > 0 {
                lines.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push_str(grapheme);
            used += wide;
        }
    }
    lines.push(current);
}

/// The line in runs of spaces and runs of anything else.
fn words_and_gaps(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let gap = rest.starts_with(' ');
        let end = rest.find(|char| (char == ' ') != gap).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

/// Counts as bars in so many cells, each the sum of its share of them; nothing where all are 0.
pub(crate) fn bars(counts: &[i32], cells: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = counts.len().div_ceil(cells.max(1)).max(1);
    let sums = counts.rchunks(each).rev();
    let sums: Vec<i64> = sums
        .map(|part| part.iter().copied().map(i64::from).sum())
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    if most <= 0 {
        return String::new();
    }
    let level = |sum: i64| {
        usize::try_from((sum * 7 + most - 1) / most)
            .unwrap_or(0)
            .min(7)
    };
    // Nothing is no line.
    let bar = |sum: i64| if sum > 0 { LEVELS[level(sum)] } else { ' ' };
    sums.into_iter().map(bar).collect()
}

/// A number with its thousands parted.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number in few cells: `940`, `94k`, `2M`.
pub(crate) fn rough(number: i64) -> String {
    match number {
        ..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        let cases = [
            ("a\tb", "a   b"),
            ("a\nb", "a⏎b"),
            ("a\r\nb", "a⏎b"),
            ("\u{1b}[2J", "␛[2J"),
            ("\u{9b}2J", "‹009B›2J"),
            ("a\u{202e}b", "a‹202E›b"),
            ("a\u{200b}b", "a‹200B›b"),
            ("a\u{200d}b", "a‹200D›b"),
            ("👩\u{200d}🚒", "👩\u{200d}🚒"),
            ("über", "über"),
            ("数据库", "数据库"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("a\u{3164}b", "a‹3164›b"),
            ("a\u{34f}b", "a‹034F›b"),
            ("a\u{180b}b", "a‹180B›b"),
            ("a\u{1bca0}b", "a‹1BCA0›b"),
            ("a\u{1d173}b", "a‹1D173›b"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn bars_are_sums_of_their_share_and_nothing_is_no_line() {
        assert_eq!(bars(&[0, 0, 0], 3), "");
        assert_eq!(bars(&[0, 7, 14], 3), " ▅█");
        assert_eq!(bars(&[1, 1, 7, 7], 2), "▂█");
        assert_eq!(bars(&[1, 1_000], 2), "▂█");
        // What is left over is at the beginning.
        assert_eq!(bars(&[5, 0, 0, 5, 5], 3), "▅ █");
    }

    #[test]
    fn combining_marks_are_bounded() {
        for base in ["e", "👍", "👩\u{200d}🚒"] {
            let flood = format!("{base}{}", "\u{301}".repeat(200));
            let most = base.chars().count() + bellwether_proto::text::MARKS_MAX;
            assert!(clean(&flood).chars().count() <= most, "{base}");
        }
    }

    #[test]
    fn text_is_cut_by_cells() {
        assert_eq!(fit("数据库", 5), "数据…");
        assert_eq!(fit("数据库", 6), "数据库");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("abc", 1), "…");
    }

    proptest! {
        #[test]
        fn fitted_text_never_exceeds_its_cells(text in any::<String>(), cells in 0_usize..40) {
            prop_assert!(width(&fit(&text, cells)) <= cells);
        }

        #[test]
        fn clean_text_has_no_control_characters(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(char::is_control));
        }

        #[test]
        fn wrapped_lines_fit(text in "[a-z 数\n]{0,80}", cells in 2_usize..20) {
            for line in wrap(&text, cells) {
                prop_assert!(width(&line) <= cells, "{:?}", line);
            }
        }
    }
}
