//! ASCII replacements for symbols and lines, for terminals limited to ASCII.

use ratatui::buffer::Buffer;

/// Terminals whose fonts lack the symbols, by `TERM`.
const PLAIN_TERMS: [&str; 6] = ["linux", "vt100", "vt102", "vt220", "ansi", "cons25"];

const COLOURLESS_TERMS: [&str; 3] = ["vt100", "vt102", "vt220"];

/// Whether a terminal supports ASCII only, by `TERM` and the locale from `LC_ALL`, `LC_CTYPE` or
/// `LANG`; `None` if unset.
#[must_use]
pub fn is_ascii_only(term: Option<&str>, locale: Option<&str>) -> bool {
    let is_plain = term.is_some_and(|term| PLAIN_TERMS.contains(&term));
    let locale = locale.map(str::to_lowercase);
    let is_other = locale.is_some_and(|it| !it.contains("utf-8") && !it.contains("utf8"));
    is_plain || is_other
}

#[must_use]
pub fn is_colourless(term: Option<&str>) -> bool {
    term.is_some_and(|term| COLOURLESS_TERMS.contains(&term))
}

pub(crate) fn to_ascii(buffer: &mut Buffer) {
    write_ellipses(buffer);
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let plain = ascii_replacement(cell.symbol());
            cell.set_symbol(plain);
        }
    }
}

/// Writes ellipses as dots where the cells after them are free.
fn write_ellipses(buffer: &mut Buffer) {
    const DOTS: usize = 3;
    let columns = usize::from(buffer.area.width);
    for row in buffer.content.chunks_mut(columns.max(1)) {
        for at in 0..row.len() {
            let after = &row[at..row.len().min(at + DOTS + 1)];
            let is_free = after.len() >= DOTS && after[1..].iter().all(|it| it.symbol() == " ");
            if row[at].symbol() == "…" && is_free {
                row[at..at + DOTS].iter_mut().for_each(|cell| {
                    cell.set_symbol(".");
                });
            }
        }
    }
}

fn ascii_replacement(symbol: &str) -> &'static str {
    match symbol {
        "▲" | "↑" => "^",
        "↓" | "▾" => "v",
        "●" | "◆" | "◼" | "■" => "*",
        "◐" | "◷" | "°" => "o",
        "○" | "•" | "▁" | "▂" | "░" => ".",
        // Text cut off at the end of its space.
        "…" => "~",
        "✗" => "x",
        "▶" | "▸" | "›" | "→" | "↳" => ">",
        "‹" | "←" => "<",
        "─" | "–" | "·" | "▃" | "▄" | "╸" => "-",
        "━" | "▅" | "▒" => "=",
        "▆" | "▇" | "█" | "▓" | "▀" => "#",
        "│" | "┃" | "‖" | "▏" | "▮" => "|",
        "✓" => "Y",
        "╭" | "╮" | "╰" | "╯" | "├" | "┤" | "┬" | "┴" | "┼" | "└" | "┘" | "┌" | "┐" => {
            "+"
        }
        "☾" => "z",
        "✎" | "«" | "»" => "\"",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn ascii_mode_follows_locale_and_terminal() {
        for (term, locale, expected) in [
            (Some("xterm-256color"), Some("en_US.UTF-8"), false),
            (Some("xterm-256color"), Some("C.utf8"), false),
            (Some("xterm-256color"), None, false),
            (Some("xterm-256color"), Some("C"), true),
            (Some("xterm"), Some("de_DE.ISO-8859-1"), true),
            (Some("linux"), Some("en_US.UTF-8"), true),
            (Some("vt100"), None, true),
            (None, None, false),
        ] {
            assert_eq!(is_ascii_only(term, locale), expected, "{term:?} {locale:?}");
        }
    }

    #[test]
    fn every_symbol_is_converted_to_ascii() {
        let mut buffer = Buffer::with_lines(["▲ critical │ ✓ über … ╭─╮", "数据 ▁▃█"]);
        to_ascii(&mut buffer);
        let area = *buffer.area();
        let row = |y| -> String {
            let cells = (0..area.width).map(|x| buffer[(x, y)].symbol());
            cells.collect()
        };
        assert!(
            row(0).starts_with("^ critical | Y ?ber ~ +-+"),
            "{}",
            row(0)
        );
        assert!(row(1).is_ascii(), "{}", row(1));
        let mut cut = Buffer::with_lines(["disk is f… db-1", "reading…       ", "to the edge is…"]);
        to_ascii(&mut cut);
        let expected = ["disk is f~ db-1", "reading...     ", "to the edge is~"];
        let cut: Vec<String> = cut
            .content
            .chunks(15)
            .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
            .collect();
        assert_eq!(cut, expected);
        assert_eq!(area, Rect::new(0, 0, area.width, 2));
    }
}
