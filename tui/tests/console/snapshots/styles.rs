//! Styles as letters: each meaning has a letter, in upper case on the selected row.

use std::collections::HashSet;

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier, Style},
};

use super::{world::MEASURED, *};

const NONE: Modifier = Modifier::empty();
const HEADING: Modifier = Modifier::BOLD.union(Modifier::DIM);
const BAR: Modifier = Modifier::BOLD.union(Modifier::UNDERLINED);

/// Whether a cell is part of a chart or bar. The colours of such a cell combine two meanings, which
/// shades distinguish without colours.
fn is_plot(symbol: &str) -> bool {
    "▁▂▃▄▅▆▇█▀░▒▓".contains(symbol) && symbol.trim() != ""
}

/// Returns the letter of a style in the terminal theme, in which all styles differ.
fn letter(cell: &Cell) -> char {
    if is_plot(cell.symbol()) {
        return 'p';
    }
    let selected = cell.modifier.contains(Modifier::REVERSED);
    let letter = match (cell.fg, cell.bg, cell.modifier - Modifier::REVERSED) {
        (Color::Reset, Color::Reset, Modifier::DIM) => 'd',
        (Color::Reset, Color::Reset, Modifier::BOLD) => 't',
        (Color::Reset, Color::Reset, Modifier::UNDERLINED) => '_',
        (Color::Reset, Color::Reset, NONE) if selected => return '#',
        (Color::Reset, Color::Reset, NONE) => '.',
        (Color::Cyan, Color::Reset, Modifier::BOLD) if selected => return 'v',
        (Color::Reset, Color::Reset, HEADING) => 'h',
        (Color::Cyan, Color::Reset, Modifier::UNDERLINED) => 'l',
        (Color::Cyan, Color::Reset, NONE) => 'k',
        (Color::DarkGray, Color::Reset, NONE) => 'e',
        (Color::Green, Color::Reset, NONE) => 'g',
        (Color::Blue, Color::Reset, NONE) => 'i',
        (Color::Yellow, Color::Reset, NONE) => 'w',
        (Color::Yellow, Color::Reset, Modifier::BOLD) => 'o',
        (Color::Red, Color::Reset, NONE) => 'b',
        (Color::Magenta, Color::Reset, Modifier::BOLD) => 'c',
        (Color::Black, Color::Yellow, Modifier::BOLD) => 'r',
        (Color::Reset, Color::Reset, style) if style == BAR => '=',
        _ => '?',
    };
    if selected {
        letter.to_ascii_uppercase()
    } else {
        letter
    }
}

fn meaning(letter: char) -> &'static str {
    match letter.to_ascii_lowercase() {
        '.' | '#' => "text",
        'd' => "dim",
        't' => "title",
        '_' => "field",
        'h' => "heading",
        'e' => "border",
        'l' => "link",
        'k' => "key",
        'g' => "good",
        'i' => "info",
        'w' => "warning",
        'o' => "held",
        'b' => "bad",
        'c' => "critical",
        '=' => "bar",
        'p' => "plot",
        'r' => "read-only",
        'v' => "tab",
        _ => "no meaning of the console",
    }
}

/// Returns the letters of a screen, one line per row, without plain cells at the ends.
pub(super) fn grid(buffer: &Buffer) -> String {
    let mut out = String::new();
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let cells = (area.left()..area.right()).map(|x| &buffer[(x, y)]);
        let cells = cells.map(|cell| (cell.symbol(), letter(cell))).collect();
        let row: String = steady(cells)
            .into_iter()
            .map(|(_, letter)| letter)
            .collect();
        out += row.trim_end_matches('.');
        out.push('\n');
    }
    out
}

/// Reduces each measured figure to one cell, whatever its number of digits, as in the text of a
/// snapshot.
fn steady(mut cells: Vec<(&str, char)>) -> Vec<(&str, char)> {
    for unit in MEASURED {
        for at in (1..cells.len().saturating_sub(unit.len())).rev() {
            let text = cells[at..at + unit.len()].iter().map(|(text, _)| *text);
            if text.collect::<String>() != unit {
                continue;
            }
            let is_figure =
                |(text, _): &&(&str, char)| !text.is_empty() && "0123456789.".contains(text);
            let digits = cells[..at].iter().rev().take_while(is_figure).count();
            let (start, end) = (at - digits, at.saturating_sub(1));
            if digits > 0 && start >= 2 && cells[start - 2..start].iter().all(|it| it.0 == " ") {
                cells[start..end].fill((" ", '.'));
            } else if digits > 0 {
                cells.drain(start..end);
            }
        }
    }
    cells
}

/// Returns the ASCII form of a line-drawing character; `None` for other text.
fn in_signs(line: &str) -> Option<&'static str> {
    Some(match line {
        "─" => "-",
        "┬" | "┤" | "├" => "+",
        "└" => "`",
        "▶" => ">",
        _ => return None,
    })
}

/// The styles of each letter in every theme, collected from all scenes.
#[derive(Default)]
pub(super) struct Letters {
    styles: BTreeMap<char, BTreeMap<&'static str, String>>,
    seen: HashSet<(char, &'static str, Style)>,
}

impl Letters {
    /// Redraws the screen in every theme, and checks that the text is the same and each letter has
    /// one style.
    pub(super) fn compare(&mut self, console: &mut Headless) {
        let own = console.draw_in_theme(Theme::Terminal).clone();
        for theme in Theme::ALL {
            let other = console.draw_in_theme(theme).clone();
            for (position, (one, other)) in own
                .area
                .positions()
                .zip(own.content.iter().zip(&other.content))
            {
                let (shown, here) = (one.symbol(), other.symbol());
                let plain =
                    theme == Theme::Mono && (Some(here) == in_signs(shown) || is_plot(shown));
                assert!(
                    shown == here || plain,
                    "{theme:?} at {position}: {shown} {here}"
                );
                let letter = letter(one);
                assert_ne!(letter, '?', "{one:?} at {position}");
                if letter == 'p' {
                    continue;
                }
                if !self.seen.insert((letter, theme.as_str(), other.style())) {
                    continue;
                }
                let drawn = message(other.style());
                let known = self.styles.entry(letter).or_default();
                let before = known.entry(theme.as_str()).or_insert_with(|| drawn.clone());
                // Skip selected rows: they have a single style only in themes that reverse them.
                if letter == '#' {
                    continue;
                }
                assert_eq!(*before, drawn, "{letter} in {theme:?} at {position}");
            }
        }
        console.draw_in_theme(Theme::Terminal);
    }

    pub(super) fn legend(&self) -> String {
        let mut out = String::new();
        for (letter, styles) in &self.styles {
            let selected = if letter.is_ascii_uppercase() || *letter == '#' {
                ", selected"
            } else {
                ""
            };
            writeln!(out, "{letter}  {}{selected}", meaning(*letter)).unwrap();
            for (theme, style) in styles {
                writeln!(out, "   {theme:9} {style}").unwrap();
            }
        }
        out
    }
}

fn message(style: Style) -> String {
    let color = |color: Option<Color>| match color {
        None | Some(Color::Reset) => "own".to_owned(),
        Some(color) => color.to_string().to_lowercase(),
    };
    let names = style
        .add_modifier
        .iter_names()
        .map(|(name, _)| name.to_lowercase());
    let modifiers: Vec<String> = names.collect();
    let (fg, bg) = (color(style.fg), color(style.bg));
    format!("{fg} on {bg} {}", modifiers.join(" "))
        .trim_end()
        .to_owned()
}
