//! The document of the tour: screens as text, with varying parts masked.

use std::fmt::Write;

use bellwether_tests::tree;
use regex::{Captures, Regex};

const PATH: &str = "docs/console/tour.md";
/// If set, the test writes the document instead of comparing it.
const UPDATE: &str = "BELLWETHER_UPDATE_TOUR";

const HEAD: &str = "# A tour of the console

From an empty service to a delivered closing message, without leaving the console. The screens are real, at 80×24 and,
folded, at 100×30; times, ids and ports are normalized. `just tour` runs the steps and writes this file; a test compares
every screen.
";

/// Replacements for parts that vary, of the same length.
const TIME: &str = "09:41:00";
const DATE: &str = "2031-05-06";
const ULID: &str = "01K4QZ8J6N5T3V7W9X2Y1ABCDE";
const DATE_HEADER: &str = "Tue, 06 May 2031 09:41:00 GMT";
const SECONDS: &str = "1935999660";

pub(super) struct Page {
    title: &'static str,
    words: &'static str,
    screen: String,
}

impl Page {
    /// Creates a page from a screen, with the addresses of `parties` replaced.
    pub(super) fn new(
        title: &'static str,
        words: &'static str,
        screen: &str,
        parties: &[(String, &str)],
    ) -> Self {
        let mut screen = screen.to_owned();
        for (address, shown) in parties {
            screen = screen.replace(address, shown);
        }
        let screen = screen.lines().map(|line| mask_line(line) + "\n").collect();
        Self {
            title,
            words,
            screen,
        }
    }

    pub(super) fn shows(&self, screen: &str) -> bool {
        steady(&self.screen) == steady(screen)
    }
}

/// Returns a page of the document at this size; `None` while the document is being rewritten.
pub(super) fn stored(number: usize, (columns, _): (u16, u16)) -> Option<String> {
    if std::env::var_os(UPDATE).is_some() {
        return None;
    }
    let text = std::fs::read_to_string(tree::root().join(PATH)).unwrap();
    let at = 2 * number + usize::from(columns > 80);
    let screen = text.split("```\n").skip(1).step_by(2).nth(at);
    Some(screen.unwrap_or_default().to_owned())
}

/// Writes the document, or compares it with the pages.
///
/// # Panics
/// Panics if the document differs.
pub(super) fn document(small: &[Page], large: &[Page]) {
    let mut text = HEAD.to_owned();
    for (number, (small, large)) in small.iter().zip(large).enumerate() {
        let (title, words) = (small.title, wrap_text(small.words));
        let (small, large) = (&small.screen, &large.screen);
        write!(
            text,
            "\n## {}. {title}\n\n{words}\n```\n{small}```\n\n<details><summary>at 100×30</summary>\n\n\
             ```\n{large}```\n\n</details>\n",
            number + 1
        )
        .unwrap();
    }
    let path = tree::root().join(PATH);
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let (stored, text) = (
        steady(&std::fs::read_to_string(path).unwrap()),
        steady(&text),
    );
    let differs = stored.lines().zip(text.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or(stored.lines().count().min(text.lines().count()));
    let around = |text: &str| {
        let lines = text.lines().skip(at.saturating_sub(12)).take(25);
        lines.collect::<Vec<_>>().join("\n")
    };
    assert!(
        stored == text,
        "{PATH} has in line {}\n{}\n\nand the console draws\n{}\n\n`just tour` rewrites it",
        at + 1,
        around(&stored),
        around(&text)
    );
}

fn wrap_text(words: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in words.split_whitespace() {
        let long = word.chars().count();
        if width > 0 && width + 1 + long > 100 {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += long;
    }
    lines + "\n"
}

/// Removes the lines that vary: that of the tabs, whose counts may be outdated, and that of the
/// phases of a request.
fn steady(text: &str) -> String {
    let is_steady = |line: &&str| !line.starts_with(" 1 Over") && !line.contains(" · connect ");
    let lines = text.lines().filter(is_steady);
    lines.map(|line| line.to_owned() + "\n").collect()
}

fn mask_line(line: &str) -> String {
    let line = line.trim_end();
    if let Some((before, _)) = line.split_once("date: ") {
        return format!("{before}date: {DATE_HEADER}");
    }
    // The chart depends on the position within the hour.
    if line.trim_start().starts_with("now ") && line.contains(", peak ") {
        return " now 0, peak 1".to_owned();
    }
    let line = shaped(line, "dddd-dd-dd", DATE);
    let line = shaped(&line, "dd:dd:dd", TIME);
    let line = shaped(&line, "dddddddddd", SECONDS);
    let line = fractions(&ids(&line));
    // A frame whose title has a duration keeps its width.
    let title = Regex::new(r" in (\d+) ms (─+)╮").expect("it is an expression");
    let line = title.replace(&line, |found: &Captures<'_>| {
        let filled = found[1].len() - 1 + found[2].chars().count();
        format!(" in 1 ms {}╮", "─".repeat(filled))
    });
    let line = replace_number(&line, " in ", " ms", "1");
    // Replace the percentiles of attempts, each of which is in a column.
    let columns = Regex::new(r"  \d+ ms").expect("it is an expression");
    let line = columns.replace_all(&line, |found: &Captures<'_>| {
        format!("{:>width$}", "1 ms", width = found[0].len())
    });
    let line = replace_number(&line, ", store ", " MB", "9");
    let line = line.replace(" TB free", " GB free");
    // The column may be too narrow for the port.
    let line = replace_number(&line, "127.0.0.1:", "…", "4");
    let line = replace_number(&line, ", disk ", " GB free", "64.0");
    let line = replace_number(&line, ", memory ", " MB", "64");
    replace_number(&line, "size             ", " bytes", "970")
}

/// Replaces each separate text of this shape, in which `d` stands for a digit.
fn shaped(line: &str, shape: &str, shown: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let shape: Vec<char> = shape.chars().collect();
    let fits = |char: char, shape: char| match shape {
        'd' => char.is_ascii_digit(),
        other => char == other,
    };
    let is_part = |at: Option<usize>| {
        let neighbour = at.and_then(|at| chars.get(at));
        neighbour.is_some_and(char::is_ascii_digit)
    };
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let end = at + shape.len();
        let here = chars.get(at..end).is_some_and(|here| {
            here.iter()
                .zip(&shape)
                .all(|(char, shape)| fits(*char, *shape))
        });
        if here && !is_part(at.checked_sub(1)) && !is_part(Some(end)) {
            out += shown;
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

fn ids(line: &str) -> String {
    let is_part = |char: char| char.is_ascii_digit() || char.is_ascii_uppercase();
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        let run = rest[start..].find(|char| !is_part(char));
        let (head, tail) = rest.split_at(start + run.unwrap_or(rest.len() - start));
        let (before, run) = head.split_at(start);
        let is_id = run.len() == ULID.len() || (run.starts_with("01") && tail.starts_with('…'));
        out += before;
        out += if is_id {
            &ULID[..run.len().min(ULID.len())]
        } else {
            run
        };
        rest = tail;
    }
    out + rest
}

/// Removes fractions of a second, whose number of digits varies.
fn fractions(line: &str) -> String {
    let Some((before, after)) = line.split_once(&format!("T{TIME}.")) else {
        return line.to_owned();
    };
    let rest = after.trim_start_matches(|char: char| char.is_ascii_digit());
    format!("{before}T{TIME}{}", fractions(rest))
}

fn replace_number(line: &str, before: &str, after: &str, shown: &str) -> String {
    let found = line.split_once(before).and_then(|(head, tail)| {
        let rest = tail.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        (rest.len() < tail.len() && rest.starts_with(after)).then_some((head, rest))
    });
    match found {
        Some((head, rest)) => format!("{head}{before}{shown}{rest}"),
        None => line.to_owned(),
    }
}
