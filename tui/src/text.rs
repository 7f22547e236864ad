//! Makes external text safe to draw: removes control and hidden characters, and measures graphemes.

use std::{borrow::Cow, fmt::Write};

use bellwether_language::text::{Visibility, chars_with_visibility};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const TAB_STOP: usize = 4;

/// Whether the text is printable ASCII, so that each character is one cell wide.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Whether the text consists only of printable ASCII and our symbols, each one cell wide. Such text
/// is drawn without Unicode lookups.
pub(crate) fn is_single_width(text: &str) -> bool {
    let simple = |c: char| {
        let sign = matches!(c, '·' | '—' | '…' | '‹' | '›' | '✓' | '✗' | '←'..='⇿' | '─'..='◷');
        sign || matches!(c, ' '..='~')
    };
    text.chars().all(simple)
}

/// Returns the text on one line: tabs expanded; newlines, control, bidirectional and invisible
/// characters replaced by symbols; excess combining marks removed.
pub(crate) fn clean_text(text: &str) -> String {
    clean_lossless(text).into_owned()
}

fn clean_lossless(text: &str) -> Cow<'_, str> {
    if is_single_width(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = chars_with_visibility(text).peekable();
    while let Some((char, seen)) = chars.next() {
        match (char, seen) {
            ('\t', _) => {
                let column = cell_width(&out);
                out.extend(std::iter::repeat_n(' ', TAB_STOP - column % TAB_STOP));
            }
            ('\r', _) if chars.peek().is_some_and(|(next, _)| *next == '\n') => {}
            ('\n', _) => out.push('⏎'),
            ('\u{7f}', _) => out.push('␡'),
            ('\0'..='\u{1f}', _) => {
                out.push(char::from_u32(0x2400 + u32::from(char)).unwrap_or('␀'));
            }
            (_, Visibility::Hidden) => {
                let _infallible = write!(out, "‹{:04X}›", u32::from(char));
            }
            (_, Visibility::Surplus) => {}
            (_, Visibility::Plain) => out.push(char),
        }
    }
    Cow::Owned(out)
}

pub(crate) fn cell_width(text: &str) -> usize {
    if is_printable_ascii(text) {
        text.len()
    } else if is_single_width(text) {
        text.chars().count()
    } else {
        UnicodeWidthStr::width(text)
    }
}

/// Cleans the text and truncates it to `cells`, with an ellipsis.
pub(crate) fn fit_to_width(text: &str, cells: usize) -> Cow<'_, str> {
    // Does not scan the text beyond the cut, because each ASCII character is one cell wide.
    let end = text
        .bytes()
        .take(cells + 1)
        .position(|byte| !(b' '..=b'~').contains(&byte));
    if end.is_none() {
        return match cells {
            _ if text.len() <= cells => Cow::Borrowed(text),
            0 => Cow::Borrowed(""),
            _ => Cow::Owned(format!("{}…", &text[..cells - 1])),
        };
    }
    let text = clean_lossless(text);
    if cell_width(&text) <= cells {
        return text;
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = cell_width(grapheme);
        if used + wide > cells - 1 {
            break;
        }
        used += wide;
        out.push_str(grapheme);
    }
    out.push('…');
    Cow::Owned(out)
}

/// Cleans the text and wraps it to lines of at most `cells`, at spaces if possible. Preserves
/// newlines.
pub(crate) fn wrap_text(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(
            &clean_text(line.strip_suffix('\r').unwrap_or(line)),
            cells,
            &mut lines,
        );
    }
    while lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Cleans the text and splits it into rows of at most `cells`, between any two graphemes, so that
/// the rows of a prefix are the first rows of the whole text. Preserves newlines.
pub(crate) fn split_into_rows(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for grapheme in clean_text(line).graphemes(true) {
            let wide = cell_width(grapheme);
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
        let wide = cell_width(word);
        if used + wide > cells && used > 0 && wide <= cells {
            lines.push(current.trim_end().to_owned());
            current.clear();
            used = 0;
            if word.trim().is_empty() {
                continue;
            }
        }
        for grapheme in word.graphemes(true) {
            let wide = cell_width(grapheme);
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

/// Draws counts as `cells` bars, each the sum of several counts; empty if all are 0.
pub(crate) fn bar_chart(counts: &[i32], cells: usize) -> String {
    // Full cells of neighbouring rows would merge.
    const LEVELS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];
    let each = counts.len().div_ceil(cells.max(1)).max(1);
    let sums = counts.rchunks(each).rev();
    let sums: Vec<i64> = sums
        .map(|part| part.iter().copied().map(i64::from).sum())
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    if most <= 0 {
        return String::new();
    }
    let level = |sum: i64| usize::try_from((sum * 7 - 1) / most).unwrap_or(0);
    // Zero is drawn as a space.
    let bar = |sum: i64| if sum > 0 { LEVELS[level(sum)] } else { ' ' };
    sums.into_iter().map(bar).collect()
}

pub(crate) fn group_digits(number: i64) -> String {
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

/// Shortens an error for a column by removing common prefixes.
pub(crate) fn shorten_error(reason: &str) -> String {
    let breaker = "circuit breaker open: the destination has been ";
    let reason = reason.strip_prefix(breaker).unwrap_or(reason);
    let reason = reason.strip_prefix("the destination is ").unwrap_or(reason);
    reason.replacen("the receiver returned ", "", 1)
}

pub(crate) fn abbreviate(number: i64) -> String {
    let rounded = |unit: i64, suffix: &str| {
        let tenths = (number * 10 + unit / 2) / unit;
        match tenths {
            ..100 => format!("{}.{}{suffix}", tenths / 10, tenths % 10),
            _ => format!("{}{suffix}", (number + unit / 2) / unit),
        }
    };
    match number {
        ..1_000 => number.to_string(),
        1_000..999_500 => rounded(1_000, "k"),
        _ => rounded(1_000_000, "M"),
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
            assert_eq!(clean_text(text), shown, "{text:?}");
        }
    }

    #[test]
    fn bars_sum_their_counts_and_zero_is_a_space() {
        assert_eq!(bar_chart(&[0, 0, 0], 3), "");
        assert_eq!(bar_chart(&[0, 7, 14], 3), " ▄▇");
        assert_eq!(bar_chart(&[1, 1, 7, 7], 2), "▁▇");
        assert_eq!(bar_chart(&[1, 1_000], 2), "▁▇");
        // The first bar covers fewer counts.
        assert_eq!(bar_chart(&[5, 0, 0, 5, 5], 3), "▄ ▇");
    }

    #[test]
    fn abbreviated_counts_are_rounded() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (4_893, "4.9k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (26_310, "26k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (31_800_000, "32M"),
        ] {
            assert_eq!(abbreviate(number), expected);
        }
    }

    #[test]
    fn reasons_are_shortened() {
        for (reason, shown) in [
            ("the receiver returned 401 Unauthorized", "401 Unauthorized"),
            ("the destination is paused by ana", "paused by ana"),
            (
                "circuit breaker open: the destination has been failing for 3 min (the receiver returned 503)",
                "failing for 3 min (503)",
            ),
            ("connection refused", "connection refused"),
        ] {
            assert_eq!(shorten_error(reason), shown);
        }
    }

    #[test]
    fn combining_marks_are_limited() {
        for base in ["e", "👍", "👩\u{200d}🚒"] {
            let flood = format!("{base}{}", "\u{301}".repeat(200));
            let most = base.chars().count() + bellwether_language::text::MARKS_MAX;
            assert!(clean_text(&flood).chars().count() <= most, "{base}");
        }
    }

    #[test]
    fn simple_text_is_one_cell_per_char_and_unescaped() {
        for c in (0_u32..0x3000).filter_map(char::from_u32) {
            let text = c.to_string();
            if is_single_width(&text) {
                assert_eq!(UnicodeWidthStr::width(&*text), 1, "{c:?}");
                let seen: Vec<_> = chars_with_visibility(&text).collect();
                assert_eq!(seen, [(c, Visibility::Plain)], "{c:?}");
                let after = format!("a{c}");
                assert_eq!(after.graphemes(true).count(), 2, "{c:?}");
            }
        }
        assert!(is_single_width("▶ ● 12/34 › «"[..].trim_end_matches('«')));
    }

    #[test]
    fn text_is_truncated_by_cell_width() {
        assert_eq!(fit_to_width("数据库", 5), "数据…");
        assert_eq!(fit_to_width("数据库", 6), "数据库");
        assert_eq!(fit_to_width("abc", 0), "");
        assert_eq!(fit_to_width("abc", 1), "…");
    }

    proptest! {
        #[test]
        fn fitted_text_never_exceeds_its_cells(text in any::<String>(), cells in 0_usize..40) {
            prop_assert!(cell_width(&fit_to_width(&text, cells)) <= cells);
        }

        #[test]
        fn clean_text_has_no_control_characters(text in any::<String>()) {
            prop_assert!(!clean_text(&text).chars().any(char::is_control));
        }

        #[test]
        fn wrapped_lines_fit(text in "[a-z 数\n]{0,80}", cells in 2_usize..20) {
            for line in wrap_text(&text, cells) {
                prop_assert!(cell_width(&line) <= cells, "{:?}", line);
            }
        }
    }
}
