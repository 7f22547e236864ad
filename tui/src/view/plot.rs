//! Plots drawn with block characters, which every font has: stacked columns and large figures.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    widgets::Widget,
};

/// Characters for a cell filled from below, in eighths.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

pub(super) struct Series<'a> {
    pub(super) style: Style,
    pub(super) shade: &'static str,
    pub(super) values: &'a [f64],
    /// The symbol for values too small to draw, for series that must not disappear.
    pub(super) sign: Option<(Style, &'static str)>,
}

pub(super) struct Stack<'a> {
    /// The lowest series first.
    pub(super) series: Vec<Series<'a>>,
    /// The value of a full column.
    pub(super) most: f64,
    pub(super) ground: Style,
    pub(super) is_mono: bool,
    /// Whether a cell can show a second series above the first, as its background.
    pub(super) has_halves: bool,
}

impl Stack<'_> {
    fn has_signs(&self) -> bool {
        self.series.iter().any(|it| it.sign.is_some())
    }

    fn values_in_column<T>(values: &[T], column: u16, columns: u16) -> &[T] {
        let (count, columns) = (values.len(), usize::from(columns.max(1)));
        let column = usize::from(column);
        let start = column * count / columns;
        let end = ((column + 1) * count / columns).clamp(start + 1, count.max(start + 1));
        values.get(start..end.min(count)).unwrap_or_default()
    }

    fn column_value(values: &[f64], column: u16, columns: u16) -> f64 {
        let part = Self::values_in_column(values, column, columns);
        if part.is_empty() {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "few columns")]
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        mean
    }

    fn draw_column(&self, x: u16, area: Rect, buffer: &mut Buffer) {
        let most = if self.most > 0.0 { self.most } else { 1.0 };
        // If any column has a sign, the lowest row is reserved for signs, so that all bars have the
        // same baseline.
        let rows = area.height - u16::from(area.height > 1 && self.has_signs());
        let eighths = f64::from(rows) * 8.0;
        let values = self.series.iter();
        let values: Vec<f64> = values
            .map(|series| Self::column_value(series.values, x - area.x, area.width))
            .collect();
        let high = |value: f64| value / most * eighths;
        let largest = values.iter().copied().fold(0.0, f64::max);
        // The largest value is always drawn. Any other value lower than a cell would be a mere
        // line, and is drawn as part of the next series.
        let is_drawn = |value: f64| value >= largest || high(value) >= 8.0;
        let (mut sum, mut drawn) = (0.0, 0.0_f64);
        let uppermost = values
            .iter()
            .rposition(|value| *value > 0.0 && is_drawn(*value));
        let hidden = self.series.iter().zip(&values);
        let mut hidden = hidden.filter(|(_, value)| **value > 0.0 && !is_drawn(**value));
        let hidden = hidden.find_map(|(series, _)| series.sign);
        // Upper end of each series, in eighths of a cell from the bottom.
        let mut ends = Vec::with_capacity(self.series.len());
        let whole: f64 = values.iter().sum();
        for (at, value) in values.into_iter().enumerate() {
            sum += value;
            if value > 0.0 && is_drawn(value) {
                let upto = if uppermost == Some(at) { whole } else { sum };
                drawn = high(upto).min(eighths).max(1.0);
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the height"
            )]
            ends.push(drawn.round() as u32);
        }
        for row in 0..rows {
            let y = area.top() + rows - 1 - row;
            let (bottom, top) = (u32::from(row) * 8, u32::from(row) * 8 + 8);
            let mut parts = ends.iter().enumerate().scan(0, |start, (index, end)| {
                let part = (index, (*start).max(bottom), (*end).min(top));
                *start = (*start).max(*end);
                Some(part)
            });
            let parts: Vec<_> = parts.by_ref().filter(|(_, from, to)| to > from).collect();
            let Some((first, _, to)) = parts.first().copied() else {
                continue;
            };
            let cell = &mut buffer[(x, y)];
            let series = &self.series[first];
            if self.is_mono {
                let filled = to - bottom;
                let symbol = if filled >= 8 || parts.len() > 1 {
                    series.shade
                } else {
                    EIGHTHS[filled.min(8) as usize]
                };
                cell.set_symbol(symbol).set_style(self.ground);
                continue;
            }
            let style = self.ground.patch(series.style);
            cell.set_symbol(EIGHTHS[(to - bottom).min(8) as usize]);
            cell.set_style(style);
            let above = parts.get(1).filter(|_| self.has_halves && to - bottom < 8);
            if let Some((above, _, _)) = above {
                let above = self.series[*above].style.fg.unwrap_or(Color::Reset);
                cell.set_bg(above);
            }
        }
        if let Some((style, sign)) = hidden {
            let cell = &mut buffer[(x, area.bottom() - 1)];
            cell.set_symbol(sign);
            cell.set_style(Style::reset().patch(self.ground).patch(style));
        }
    }
}

impl Widget for Stack<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for x in area.left()..area.right() {
            self.draw_column(x, area, buffer);
        }
    }
}

/// Size of a large figure: rows, columns per digit, and gap.
pub(super) const FIGURE_ROWS: u16 = 3;
const FIGURE_COLUMNS: u16 = 4;
const FIGURE_GAP: u16 = 1;

/// Each digit as five rows of three points.
const DIGITS: [[u8; 5]; 10] = [
    [0b111, 0b101, 0b101, 0b101, 0b111],
    [0b010, 0b110, 0b010, 0b010, 0b111],
    [0b111, 0b001, 0b111, 0b100, 0b111],
    [0b111, 0b001, 0b011, 0b001, 0b111],
    [0b101, 0b101, 0b111, 0b001, 0b001],
    [0b111, 0b100, 0b111, 0b001, 0b111],
    [0b111, 0b100, 0b111, 0b101, 0b111],
    [0b111, 0b001, 0b010, 0b010, 0b010],
    [0b111, 0b101, 0b111, 0b101, 0b111],
    [0b111, 0b101, 0b111, 0b001, 0b111],
];

pub(super) struct Figure {
    pub(super) text: String,
    pub(super) style: Style,
}

impl Figure {
    pub(super) fn width(&self) -> u16 {
        let width = |char: char| {
            if char.is_ascii_digit() {
                FIGURE_COLUMNS
            } else {
                2
            }
        };
        self.text.chars().map(width).sum::<u16>().saturating_sub(1)
    }
}

impl Widget for Figure {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut x = area.x;
        for char in self.text.chars() {
            // Thousands are separated by a gap.
            let Some(digit) = char.to_digit(10) else {
                x += FIGURE_GAP;
                continue;
            };
            let rows = DIGITS[digit as usize];
            for row in 0..FIGURE_ROWS.min(area.height) {
                let at = usize::from(row) * 2;
                let (upper, lower) = (rows[at], rows.get(at + 1).copied().unwrap_or(0));
                for column in 0..3_u16 {
                    let bit = 1 << (2 - column);
                    let symbol = match (upper & bit != 0, lower & bit != 0) {
                        (true, true) => "█",
                        (true, false) => "▀",
                        (false, true) => "▄",
                        (false, false) => continue,
                    };
                    if x + column < area.right() {
                        let cell = &mut buffer[(x + column, area.y + row)];
                        cell.set_symbol(symbol).set_style(self.style);
                    }
                }
            }
            x += FIGURE_COLUMNS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn_lines(widget: impl Widget, columns: u16, rows: u16) -> Vec<String> {
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        widget.render(area, &mut buffer);
        let row = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        (0..rows).map(row).collect()
    }

    #[test]
    fn column_height_is_proportional_to_its_value() {
        let stack = |values: &'static [f64], most| Stack {
            series: vec![Series {
                style: Style::new(),
                shade: "█",
                values,
                sign: None,
            }],
            most,
            ground: Style::new(),
            is_mono: false,
            has_halves: true,
        };
        assert_eq!(drawn_lines(stack(&[0.0, 4.0, 8.0], 8.0), 3, 1), [" ▄█"]);
        assert_eq!(drawn_lines(stack(&[8.0, 16.0], 16.0), 2, 2), [" █", "██"]);
        assert_eq!(drawn_lines(stack(&[2.0], 4.0), 4, 1), ["▄▄▄▄"], "stretched");
        assert_eq!(
            drawn_lines(stack(&[0.0, 8.0, 8.0, 8.0], 8.0), 2, 1),
            ["▄█"],
            "meant"
        );
        assert_eq!(
            drawn_lines(stack(&[1.0, 1e9], 1e9), 2, 1),
            ["▁█"],
            "existing points are shown"
        );
        assert_eq!(drawn_lines(stack(&[], 0.0), 2, 1), ["  "]);
    }

    #[test]
    fn stacked_series_uses_the_lower_colour_as_background() {
        let series = |style, values| Series {
            style,
            shade: "█",
            values,
            sign: None,
        };
        let stack = Stack {
            series: vec![
                series(Style::new().fg(Color::Red), &[4.0][..]),
                series(Style::new().fg(Color::Blue), &[4.0][..]),
            ],
            most: 8.0,
            ground: Style::new(),
            is_mono: false,
            has_halves: true,
        };
        let area = Rect::new(0, 0, 1, 1);
        let mut buffer = Buffer::empty(area);
        stack.render(area, &mut buffer);
        let cell = &buffer[(0, 0)];
        assert_eq!(
            (cell.symbol(), cell.fg, cell.bg),
            ("▄", Color::Red, Color::Blue)
        );
    }

    #[test]
    fn small_critical_counts_show_a_symbol_instead_of_a_bar() {
        let red = Style::new().fg(Color::Red);
        let stack = |worst: &'static [f64], sign: Option<&'static str>, is_mono| Stack {
            series: vec![
                Series {
                    style: red,
                    shade: "█",
                    values: worst,
                    sign: sign.map(|it| (red, it)),
                },
                Series {
                    style: Style::new().fg(Color::Blue),
                    shade: "▒",
                    values: &[100.0, 100.0, 100.0],
                    sign: None,
                },
            ],
            most: 200.0,
            ground: Style::new(),
            is_mono,
            has_halves: true,
        };
        let few = &[2.0, 12.0, 100.0][..];
        let sign = Some("▲");
        assert_eq!(drawn_lines(stack(few, None, false), 3, 2), [" ▁█", "███"]);
        assert_eq!(drawn_lines(stack(few, sign, false), 3, 2), ["▄▄▄", "▲▲ "]);
        assert_eq!(drawn_lines(stack(few, sign, true), 3, 2), ["▄▄█", "▲▲ "]);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 2));
        stack(few, sign, false).render(buffer.area, &mut buffer);
        let cell = &buffer[(0, 1)];
        assert_eq!((cell.fg, cell.bg), (Color::Red, Color::Reset));
    }

    #[test]
    fn figures_are_three_rows_high() {
        let figure = Figure {
            text: "10".to_owned(),
            style: Style::new(),
        };
        assert_eq!(figure.width(), 7);
        assert_eq!(drawn_lines(figure, 7, 3), ["▄█  █▀█", " █  █ █", "▀▀▀ ▀▀▀"]);
    }
}
