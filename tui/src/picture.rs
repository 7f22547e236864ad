//! Frames as SVG images, which look the same everywhere.

use std::{collections::BTreeMap, fmt::Write as _};

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};

/// Size of a cell and width of the margin, in points.
const CELL: (usize, usize) = (9, 19);
const MARGIN: usize = 8;
/// Distance from the top of a cell to the baseline of its text.
const BASE: usize = 14;
const GROUND: &str = "#15161a";
const TEXT: &str = "#d6d8dd";
const OWN: [&str; 16] = [
    "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
    "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

/// The style of a cell; adjacent cells with the same style are drawn together.
#[derive(Clone, PartialEq, Eq)]
struct CellStyle {
    text: String,
    ground: String,
    bold: bool,
    dim: bool,
    underlined: bool,
}

pub(crate) fn render_svg(buffer: &Buffer) -> String {
    let mut out = svg_start(buffer);
    for y in 0..buffer.area.height {
        draw_row(&mut out, buffer, y);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws an endless animation of frames. A row that several frames share is drawn once.
pub(crate) fn animate_frames(frames: &[Buffer]) -> String {
    let Some(first) = frames.first() else {
        return String::new();
    };
    let mut out = svg_start(first);
    let mut spans: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for y in 0..first.area.height {
        let mut from = 0;
        while from < frames.len() {
            let shown = row_cells(&frames[from], y);
            let same = frames[from..].iter();
            let same = same.take_while(|frame| row_cells(frame, y) == shown);
            let to = from + same.count();
            draw_row(spans.entry((from, to)).or_default(), &frames[from], y);
            from = to;
        }
    }
    let share = 100.0 / to_f64(frames.len());
    let seconds = to_f64(frames.len()) * FRAME_SECONDS;
    for ((from, to), drawn) in spans {
        if (from, to) == (0, frames.len()) {
            out.push_str(&drawn);
            continue;
        }
        let [start, end] = [from, to].map(|at| to_f64(at) * share);
        let before = if from > 0 {
            "0%{visibility:hidden}"
        } else {
            ""
        };
        let after = if to < frames.len() {
            format!("{end:.3}%{{visibility:hidden}}")
        } else {
            String::new()
        };
        let _written = writeln!(
            out,
            "<style>@keyframes f{from}-{to}{{{before}{start:.3}%{{visibility:visible}}{after}}}\
             .f{from}-{to}{{animation:f{from}-{to} {seconds:.1}s step-end infinite}}</style>\
             <g class=\"f{from}-{to}\">\n{drawn}</g>"
        );
    }
    out.push_str("</svg>\n");
    out
}

const FRAME_SECONDS: f64 = 1.2;

#[expect(clippy::cast_precision_loss, reason = "a few frames")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

fn row_cells(buffer: &Buffer, y: u16) -> impl PartialEq + use<> {
    let area = buffer.area;
    let cells = (0..area.width).map(|x| buffer[(x, y)].clone());
    cells.collect::<Vec<Cell>>()
}

fn svg_start(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, rows * CELL.1 + 2 * MARGIN);
    let mut out = String::new();
    let _written = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"15\"><rect width=\"{width}\" height=\"{height}\" rx=\"6\" \
         fill=\"{GROUND}\"/>"
    );
    out
}

fn draw_row(out: &mut String, buffer: &Buffer, y: u16) {
    let mut x = 0;
    while x < buffer.area.width {
        let start = x;
        let style = cell_style(&buffer[(x, y)]);
        let mut text = String::new();
        while x < buffer.area.width && cell_style(&buffer[(x, y)]) == style {
            text.push_str(buffer[(x, y)].symbol());
            x += 1;
        }
        draw_run(out, (start, x, y), &style, &text);
    }
}

fn draw_run(out: &mut String, (start, end, y): (u16, u16, u16), style: &CellStyle, text: &str) {
    let (left, top) = (
        MARGIN + usize::from(start) * CELL.0,
        MARGIN + usize::from(y) * CELL.1,
    );
    let cells = usize::from(end - start);
    if style.ground != GROUND {
        draw_rect(out, (left, top), (cells * CELL.0, CELL.1), &style.ground);
    }
    let mut letters = String::new();
    for (at, char) in text.chars().enumerate() {
        let x = left + at * CELL.0;
        if let Some((from, size)) = block_shape(char) {
            draw_rect(out, (x, top + from), (CELL.0, size), &style.text);
            letters.push(' ');
        } else {
            letters.push(char);
        }
    }
    if letters.trim().is_empty() {
        return;
    }
    let trimmed = letters.trim_end();
    let before = trimmed.chars().take_while(|char| *char == ' ').count();
    let shown = trimmed.trim_start();
    let count = shown.chars().count();
    let escaped = shown
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let weight = if style.bold {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let dim = if style.dim { " opacity=\"0.6\"" } else { "" };
    let line = if style.underlined {
        " text-decoration=\"underline\""
    } else {
        ""
    };
    let _written = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{}\"{weight}{dim}{line}>{escaped}</text>",
        left + before * CELL.0,
        top + BASE,
        count * CELL.0,
        style.text,
    );
}

fn draw_rect(
    out: &mut String,
    (x, y): (usize, usize),
    (width, height): (usize, usize),
    fill: &str,
) {
    let _written = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\" \
         shape-rendering=\"crispEdges\"/>"
    );
}

fn block_shape(char: char) -> Option<(usize, usize)> {
    let eighths = |number: usize| {
        let size = (number * CELL.1).div_ceil(8);
        (CELL.1 - size, size)
    };
    Some(match char {
        '▁'..='█' => eighths(char as usize - '▁' as usize + 1),
        '▀' => (0, CELL.1.div_ceil(2)),
        _ => return None,
    })
}

fn cell_style(cell: &Cell) -> CellStyle {
    let has = |modifier| cell.modifier.contains(modifier);
    let (mut text, mut ground) = (color_name(cell.fg, TEXT), color_name(cell.bg, GROUND));
    if has(Modifier::REVERSED) {
        std::mem::swap(&mut text, &mut ground);
    }
    CellStyle {
        text,
        ground,
        bold: has(Modifier::BOLD),
        dim: has(Modifier::DIM),
        underlined: has(Modifier::UNDERLINED),
    }
}

fn color_name(color: Color, own: &str) -> String {
    let named = match color {
        Color::Reset => return own.to_owned(),
        Color::Rgb(red, green, blue) => return format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Indexed(index @ 232..) => {
            let grey = 8 + (index - 232) * 10;
            return format!("#{grey:02x}{grey:02x}{grey:02x}");
        }
        Color::Indexed(index @ 16..) => {
            let step = |at: u8| if at == 0 { 0 } else { 55 + at * 40 };
            let cell = index - 16;
            let (red, green, blue) = (step(cell / 36), step(cell / 6 % 6), step(cell % 6));
            return format!("#{red:02x}{green:02x}{blue:02x}");
        }
        Color::Indexed(index) => index,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    OWN[usize::from(named)].to_owned()
}

#[cfg(test)]
mod tests {
    use ratatui::{layout::Rect, style::Style};

    use super::*;

    #[test]
    fn svg_draws_letters_as_text_and_blocks_as_shapes() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, "a<b ", Style::new().fg(Color::Rgb(1, 2, 3)));
        buffer.set_string(4, 0, "▄█", Style::new().fg(Color::Red));
        let drawn = render_svg(&buffer);
        assert!(drawn.contains(">a&lt;b</text>"), "{drawn}");
        assert!(drawn.contains("fill=\"#010203\""), "{drawn}");
        let shapes = drawn.matches("fill=\"#cd3131\"").count();
        assert_eq!(shapes, 2, "{drawn}");
        assert!(drawn.ends_with("</svg>\n"));
    }

    #[test]
    fn recording_draws_static_cells_once_and_animates_changes() {
        let mut frames = vec![Buffer::empty(Rect::new(0, 0, 6, 2)); 3];
        for (at, frame) in frames.iter_mut().enumerate() {
            frame.set_string(0, 0, "stays", Style::new());
            frame.set_string(0, 1, ["one", "two", "two"][at], Style::new());
        }
        let drawn = animate_frames(&frames);
        assert_eq!(drawn.matches(">stays<").count(), 1, "{drawn}");
        assert_eq!(drawn.matches(">two<").count(), 1, "{drawn}");
        assert!(drawn.contains("@keyframes f0-1{0.000%{visibility:visible}33.333%"));
        assert!(
            drawn.contains("@keyframes f1-3{0%{visibility:hidden}33.333%{visibility:visible}}")
        );
    }
}
