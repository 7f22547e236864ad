//! The panels of open events and of the event rate.

use ratatui::layout::Rect;

use super::{FIGURES, Wall, draw_columns, fill, numbers, sum};
use crate::{
    data::{ChartPeriod, Named, Severity, Sign, WORST_FIRST},
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

impl Wall<'_> {
    pub(super) fn open(&self, pen: &mut Pen<'_>, area: Rect) {
        let total: i32 = self.overview.open_by_severity.values().sum();
        let title = format!("Open  {}", text::group_digits(total.into()));
        let inside = pen.panel(area, &title);
        let named = "+ opened in 1 h";
        let at = area
            .right()
            .saturating_sub(2 + u16::try_from(named.len() + 1).unwrap_or(0));
        if inside.height > 0 && usize::from(area.width) > title.len() + named.len() + 8 {
            pen.put(
                at,
                area.y,
                named.len() + 2,
                Token::Dim,
                &format!(" {named} "),
            );
        }
        let is_large = inside.height >= FIGURES - 3;
        let step = if is_large { FIGURE_ROWS + 1 } else { 1 };
        let rows = (inside.top()..inside.bottom()).step_by(usize::from(step));
        for (severity, y) in WORST_FIRST.into_iter().zip(rows) {
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
            self.severity(pen, row, severity, counts);
        }
        let acknowledged = self.overview.acknowledged_count.unwrap_or_default();
        let y = inside.top() + 5 * step - u16::from(is_large);
        if y < inside.bottom() && acknowledged > 0 {
            let words = format!("✓ {} acknowledged", text::group_digits(acknowledged.into()));
            pen.put(inside.x, y, inside.width.into(), Token::Good, &words);
            if self.is_marked(&Link::List(Route::Events, "acknowledged=true".to_owned())) {
                pen.row(inside, y, Token::Selected);
            }
        }
    }

    fn severity(
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
        let label = format!("{} {:<9}", severity.sign(), severity.label());
        let x = pen.put(row.x, y, row.width.into(), token, &label);
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
            let cells = text::width(words);
            let start = end.saturating_sub(u16::try_from(cells).unwrap_or(0));
            pen.put(start.max(x), y, cells, token, words);
        };
        at(&new, right, if opened > 0 { token } else { Token::Dim });
        if !is_large {
            at(&shown, right.saturating_sub(NEW), token);
        }
        if self.is_marked(&Link::severity(severity.label())) {
            for y in row.top()..row.bottom() {
                pen.row(row, y, Token::Selected);
            }
        }
    }

    pub(super) fn rate(&self, pen: &mut Pen<'_>, area: Rect) {
        let Some(counted) = self.counted else {
            let inside = pen.panel(area, "Events a minute, by severity");
            return self.draw_not_counted(pen, inside);
        };
        let step = counted.step_minutes();
        let all = counted.events();
        let columns: Vec<Rate> = all
            .iter()
            .map(|(severity, counts)| {
                let a_minute = numbers(counts).into_iter().map(|count| count / step);
                (*severity, a_minute.collect())
            })
            .collect();
        let count = columns.first().map_or(0, |(_, values)| values.len());
        let sums = (0..count).map(|at| columns.iter().map(|(_, values)| values[at]).sum::<f64>());
        let most = sums.fold(0.0, f64::max);
        let total: i64 = all.iter().map(|(_, counts)| sum(counts)).sum();
        let total = text::group_digits(total);
        let mut title = format!("Events a minute, by severity  {total} in all");
        if text::width(&title) + 6 > usize::from(area.width) {
            title = format!("Events a minute  {total} in all");
        }
        let inside = pen.panel(area, &title);
        self.spans(pen, area, &title);
        if inside.height < 2 || inside.width < 20 {
            return;
        }
        if most <= 0.0 {
            let words = format!("none in the last {}", counted.back.label());
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, &words);
            return;
        }
        plot_rate(pen, inside, (&columns, most), counted.back);
    }

    fn spans(&self, pen: &mut Pen<'_>, area: Rect, title: &str) {
        let words: usize = ChartPeriod::ALL.iter().map(|it| it.label().len() + 3).sum();
        if usize::from(area.width) < text::width(title) + words + 8 {
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
            x = pen.put(x, area.y, 8, token, &words) + 1;
        }
    }
}

type Rate = (Severity, Vec<f64>);

fn plot_rate(pen: &mut Pen<'_>, inside: Rect, (columns, most): (&[Rate], f64), back: ChartPeriod) {
    let peak = scale(most);
    let margin = u16::try_from(peak.len()).unwrap_or(0) + 1;
    let plot = Rect {
        x: inside.x + margin,
        width: inside.width.saturating_sub(margin),
        height: inside.height - 1,
        ..inside
    };
    pen.put(inside.x, plot.y, peak.len(), Token::Dim, &peak);
    if plot.height >= 6 {
        let half = format!("{:>1$}", scale(most / 2.0), peak.len());
        let y = plot.y + plot.height / 2;
        pen.put(inside.x, y, peak.len(), Token::Dim, &half);
    }
    // The worst severities are at the bottom, where they are easiest to compare.
    let series = columns.iter().map(|(severity, values)| Series {
        style: fill(pen, (*severity).into()),
        shade: shade(*severity),
        values,
        // Even a few severe events must be visible.
        sign: matches!(severity, Severity::Critical | Severity::Error)
            .then(|| (pen.style((*severity).into()), severity.sign())),
    });
    draw_columns(pen, series.collect(), most, plot);
    let y = plot.bottom();
    let start = format!("{} ago", back.label());
    pen.put(plot.x, y, plot.width.into(), Token::Dim, &start);
    let last = columns
        .iter()
        .filter_map(|(_, values)| values.last())
        .sum::<f64>();
    let now = format!("now {}", scale(last));
    let cells = u16::try_from(now.len()).unwrap_or(0);
    if plot.width > cells + 12 {
        pen.put(plot.right() - cells, y, now.len(), Token::Dim, &now);
    }
}

fn shade(severity: Severity) -> &'static str {
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

fn scale(number: f64) -> String {
    match number {
        ..10.0 if number.fract() != 0.0 => format!("{number:.1}"),
        ..10_000.0 => text::group_digits(round_to_integer(number)),
        ..1_000_000.0 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}
