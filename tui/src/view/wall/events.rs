//! The panels of open events and of the event rate.

use ratatui::layout::Rect;

use super::{FIGURES, WallView, draw_columns, fill_style, sum_counts, to_f64};
use crate::{
    data::{ChartPeriod, Label, Severity, Sign, WORST_FIRST, to_millis},
    document::Link,
    route::Route,
    text,
    theme::Token,
    view::{
        pen::Pen,
        plot::{FIGURE_ROWS, Figure, Series},
    },
};

const NEW: u16 = 8;

impl WallView<'_> {
    pub(super) fn draw_open_events(&self, pen: &mut Pen<'_>, area: Rect) {
        let total: i32 = self.overview.open_by_severity.values().sum();
        let title = format!("Open  {}", text::group_digits(total.into()));
        let inside = pen.panel(area, &title);
        let named = "+ opened in 1 h";
        let at = area
            .right()
            .saturating_sub(2 + u16::try_from(named.len() + 1).unwrap_or(0));
        if inside.height > 0 && usize::from(area.width) > title.len() + named.len() + 8 {
            pen.draw_text(
                at,
                area.y,
                named.len() + 2,
                Token::Dim,
                &format!(" {named} "),
            );
        }
        let is_large = inside.height >= FIGURES - 2;
        let mut y = inside.top();
        for severity in WORST_FIRST {
            if y >= inside.bottom() {
                break;
            }
            let is_urgent = matches!(severity, Severity::Critical | Severity::Error);
            let is_large = is_large && is_urgent;
            let name = severity.as_str_name();
            let count = self.overview.open_by_severity.get(name);
            let opened = self.overview.opened_by_severity.get(name);
            let counts = (count.copied().unwrap_or(0), opened.copied().unwrap_or(0));
            let height = if is_large { FIGURE_ROWS } else { 1 };
            let row = Rect {
                y,
                height,
                ..inside
            };
            self.draw_severity(pen, row, severity, counts);
            y += if is_large { FIGURE_ROWS + 1 } else { 1 };
        }
        let acknowledged = self.overview.acknowledged_count.unwrap_or_default();
        if y < inside.bottom() && acknowledged > 0 {
            let words = format!("✓ {} acknowledged", text::group_digits(acknowledged.into()));
            pen.draw_text(inside.x, y, inside.width.into(), Token::Good, &words);
            if self.is_at_cursor(&Link::List(Route::EVENTS, "acknowledged=true".to_owned())) {
                pen.row(inside, y, Token::Selected);
            }
        }
    }

    fn draw_severity(
        &self,
        pen: &mut Pen<'_>,
        row: Rect,
        severity: Severity,
        (count, opened): (i32, i32),
    ) {
        let token = if count == 0 {
            Token::Dim
        } else {
            severity.into()
        };
        let shown = text::group_digits(count.into());
        let new = if opened > 0 {
            format!("+{}", text::group_digits(opened.into()))
        } else {
            "·".to_owned()
        };
        let y = row.y;
        let label = format!("{} {:<9}", severity.symbol(), severity.label());
        let x = pen.draw_text(row.x, y, row.width.into(), token, &label);
        let right = row.right();
        let style = pen.base_style().patch(pen.style(token));
        let figure = Figure {
            text: shown.clone(),
            style,
        };
        let fits = x + figure.width() + NEW <= right;
        let is_large = row.height >= FIGURE_ROWS && fits;
        if is_large {
            let start = right.saturating_sub(NEW + figure.width());
            let place = Rect {
                x: start,
                width: right.saturating_sub(start),
                ..row
            };
            pen.widget(figure, place);
        }
        let mut at = |words: &str, end: u16, token| {
            let cells = text::cell_width(words);
            let start = end.saturating_sub(u16::try_from(cells).unwrap_or(0));
            pen.draw_text(start.max(x), y, cells, token, words);
        };
        at(&new, right, if opened > 0 { token } else { Token::Dim });
        if !is_large {
            at(&shown, right.saturating_sub(NEW), token);
        }
        if self.is_at_cursor(&Link::severity(severity.label())) {
            for y in row.top()..row.bottom() {
                pen.row(row, y, Token::Selected);
            }
        }
    }

    pub(super) fn draw_rate(&self, pen: &mut Pen<'_>, area: Rect) {
        let Some(counted) = self.counted else {
            let inside = pen.panel(area, "Events a minute, by severity");
            return self.draw_not_counted(pen, inside);
        };
        let step = counted.step_minutes();
        let all = counted.events();
        let columns: Vec<Rate> = all
            .iter()
            .map(|(severity, counts)| {
                let a_minute = to_f64(counts).into_iter().map(|count| count / step);
                (*severity, a_minute.collect())
            })
            .collect();
        let count = columns.first().map_or(0, |(_, values)| values.len());
        let sums = (0..count).map(|at| columns.iter().map(|(_, values)| values[at]).sum::<f64>());
        let sums: Vec<f64> = sums.collect();
        let (at, most) = sums
            .iter()
            .copied()
            .enumerate()
            .fold(
                (0, 0.0),
                |most, column| {
                    if column.1 > most.1 { column } else { most }
                },
            );
        let total: i64 = all.iter().map(|(_, counts)| sum_counts(counts)).sum();
        let total = text::group_digits(total);
        let mut title = format!("Events a minute, by severity  {total} in all");
        if text::cell_width(&title) + 6 > usize::from(area.width) {
            title = format!("Events a minute  {total} in all");
        }
        let inside = pen.panel(area, &title);
        self.spans(pen, area, &title);
        if inside.height < 2 || inside.width < 20 {
            return;
        }
        if most <= 0.0 {
            let words = format!("none in the last {}", counted.back.label());
            pen.draw_text(inside.x, inside.y, inside.width.into(), Token::Dim, &words);
            return;
        }
        let limit = full_column_value(sums);
        let start_ms = to_millis(counted.statistics.start_time.as_ref());
        let mut plot = inside;
        let mut full = most;
        if let Some(start_ms) = start_ms.filter(|_| limit < most && inside.height > 2) {
            // The line above the chart names the clipped peak.
            plot.y += 1;
            plot.height -= 1;
            full = limit;
            #[expect(clippy::cast_possible_truncation, reason = "a few hours at most")]
            let step_ms = (step * 60_000.0) as i64;
            let at = i64::try_from(at).unwrap_or(0);
            let time = self
                .model
                .format_time(start_ms.saturating_add(at * step_ms));
            let words = format!("▲ {} at {time}", format_scale(most));
            let cells = u16::try_from(text::cell_width(&words)).unwrap_or(0);
            let x = inside.right().saturating_sub(cells);
            pen.draw_text(
                x.max(inside.x),
                inside.y,
                cells.into(),
                Token::Warning,
                &words,
            );
        }
        plot_rate(pen, plot, (&columns, full), counted.back);
    }

    fn spans(&self, pen: &mut Pen<'_>, area: Rect, title: &str) {
        let words: usize = ChartPeriod::ALL.iter().map(|it| it.label().len() + 3).sum();
        if usize::from(area.width) < text::cell_width(title) + words + 8 {
            return;
        }
        let mut x = area.right() - 2 - u16::try_from(words).unwrap_or(0);
        for back in ChartPeriod::ALL {
            let is_own = back == self.period();
            let token = if is_own { Token::Heading } else { Token::Dim };
            let words = if is_own {
                format!("[{}]", back.label())
            } else {
                format!(" {} ", back.label())
            };
            x = pen.draw_text(x, area.y, 8, token, &words) + 1;
        }
    }
}

type Rate = (Severity, Vec<f64>);

/// Share of the non-empty columns above which a column is clipped, if it is much higher than the
/// rest.
const CLIPPED_FROM: f64 = 0.95;
const CLIPPED_FACTOR: f64 = 2.0;
/// Minimum number of non-empty columns for clipping.
const CLIPPED_COLUMNS: usize = 10;

/// Returns the value of a full column, so that a single peak does not flatten the rest.
fn full_column_value(mut sums: Vec<f64>) -> f64 {
    sums.retain(|sum| *sum > 0.0);
    sums.sort_by(f64::total_cmp);
    let most = sums.last().copied().unwrap_or_default();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index of few columns"
    )]
    let at = ((sums.len() as f64 - 1.0) * CLIPPED_FROM).max(0.0) as usize;
    let usual = sums.get(at).copied().unwrap_or_default();
    if sums.len() >= CLIPPED_COLUMNS && most > usual * CLIPPED_FACTOR {
        usual
    } else {
        most
    }
}

fn plot_rate(pen: &mut Pen<'_>, inside: Rect, (columns, most): (&[Rate], f64), back: ChartPeriod) {
    let (peak, half) = (format_scale(most), format_scale(most / 2.0));
    let cells = peak.len().max(half.len());
    let margin = u16::try_from(cells).unwrap_or(0) + 1;
    let plot = Rect {
        x: inside.x + margin,
        width: inside.width.saturating_sub(margin),
        height: inside.height - 1,
        ..inside
    };
    pen.draw_text(
        inside.x,
        plot.y,
        cells,
        Token::Dim,
        &format!("{peak:>cells$}"),
    );
    if plot.height >= 6 {
        let y = plot.y + plot.height / 2;
        pen.draw_text(inside.x, y, cells, Token::Dim, &format!("{half:>cells$}"));
    }
    // The worst severities are at the bottom, where they are easiest to compare.
    let series = columns.iter().map(|(severity, values)| Series {
        style: fill_style(pen, (*severity).into()),
        shade: severity_shade(*severity),
        values,
        // Even a few severe events must be visible.
        sign: matches!(severity, Severity::Critical | Severity::Error)
            .then(|| (pen.style((*severity).into()), severity.symbol())),
    });
    draw_columns(pen, series.collect(), most, plot);
    let y = plot.bottom();
    let start = format!("{} ago", back.label());
    pen.draw_text(plot.x, y, plot.width.into(), Token::Dim, &start);
    let last = columns
        .iter()
        .filter_map(|(_, values)| values.last())
        .sum::<f64>();
    let now = format!("now {}", format_scale(last));
    let cells = u16::try_from(now.len()).unwrap_or(0);
    if plot.width > cells + 12 {
        pen.draw_text(plot.right() - cells, y, now.len(), Token::Dim, &now);
    }
}

fn severity_shade(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "█",
        Severity::Error => "▓",
        Severity::Warning => "▒",
        Severity::Info => "░",
        Severity::Debug | Severity::Default => "·",
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand")]
fn round_to_integer(number: f64) -> i64 {
    number.round() as i64
}

fn format_scale(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        ..0.01 => "<0.01".to_owned(),
        ..0.1 => format!("{number:.2}"),
        ..10.0 if number.fract() != 0.0 => format!("{number:.1}"),
        ..10_000.0 => text::group_digits(round_to_integer(number)),
        _ => text::abbreviate(round_to_integer(number)),
    }
}
