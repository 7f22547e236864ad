//! The panel of deliveries with their results.

use ratatui::layout::{Constraint, Layout, Rect};

use super::{WallView, draw_columns, fill_style, sum_counts, to_f64};
use crate::{
    data::to_millis,
    document::{Link, format_duration},
    route::Route,
    text,
    theme::Token,
    view::{pen::Pen, plot::Series},
};

impl WallView<'_> {
    pub(super) fn draw_deliveries(&self, pen: &mut Pen<'_>, area: Rect) {
        let age = self.model.counts_age_ms().map(format_duration);
        let age = age.map_or_else(String::new, |age| format!(" · {age} old"));
        let title = format!("Deliveries, {}{age}", self.period().label());
        let inside = pen.panel(area, &title);
        let Some(all) = self
            .counted
            .and_then(|it| it.statistics.deliveries.as_ref())
        else {
            return self.draw_not_counted(pen, inside);
        };
        let oldest = to_millis(self.overview.oldest_undelivered_time.as_ref());
        let read = self.model.store.overview.received_ms;
        let oldest = oldest
            .zip(read)
            .map(|(ms, now)| format_duration((now - ms).max(0)));
        // Uses the overview, as the headline and the tab do, because the statistics are older.
        let destinations = self.overview.destinations.iter();
        let waiting: i32 = destinations.filter_map(|it| it.waiting_count).sum();
        let backlog = match oldest {
            Some(age) => format!("{}, oldest {age}", text::group_digits(waiting.into())),
            None => text::group_digits(waiting.into()),
        };
        let total = |counts: &[i32]| text::group_digits(sum_counts(counts));
        let mut rows: Vec<(&str, Token, &[i32], String)> = vec![
            (
                "delivered",
                Token::Good,
                &all.delivered,
                total(&all.delivered),
            ),
            (
                "failed attempts",
                Token::Warning,
                &all.failed_attempts,
                total(&all.failed_attempts),
            ),
            ("waiting", Token::Info, &all.waiting, backlog),
        ];
        let dead = ("dead", Token::Bad, &all.dead[..], total(&all.dead));
        if inside.height >= 4 || sum_counts(&all.dead) > 0 {
            rows.insert(2, dead);
        }
        rows.truncate(inside.height.into());
        let is_high = usize::from(inside.height) >= 3 * rows.len();
        let each = if is_high {
            Constraint::Fill(1)
        } else {
            Constraint::Length(1)
        };
        let places = Layout::vertical(vec![each; rows.len()]).split(inside);
        let links = Link::Go(Route::DELIVERIES);
        let sums = rows.iter().map(|(.., words)| text::cell_width(words)).max();
        let sums = u16::try_from(sums.unwrap_or(0)).unwrap_or(0);
        for ((name, token, counts, words), place) in rows.into_iter().zip(places.iter()) {
            let token = if sum_counts(counts) == 0 {
                Token::Dim
            } else {
                token
            };
            draw_bar(pen, *place, (name, token, counts, &words), sums);
            if name == "waiting" && self.is_at_cursor(&links) {
                pen.row(*place, place.y, Token::Selected);
            }
        }
    }
}

fn draw_bar(
    pen: &mut Pen<'_>,
    area: Rect,
    (name, token, counts, words): (&str, Token, &[i32], &str),
    sums: u16,
) {
    if area.height == 0 {
        return;
    }
    let values = to_f64(counts);
    let most = values.iter().copied().fold(0.0, f64::max);
    let cells = u16::try_from(text::cell_width(words)).unwrap_or(0);
    pen.draw_text(area.x, area.y, area.width.into(), token, name);
    let end = area.right().saturating_sub(cells);
    pen.draw_text(end.max(area.x), area.y, cells.into(), token, words);
    let plot = if area.height >= 3 {
        Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        }
    } else {
        let x = area.x + 13;
        let plot = Rect {
            x,
            width: area.right().saturating_sub(x + sums + 1),
            height: 1,
            ..area
        };
        if plot.width < 4 {
            return;
        }
        plot
    };
    let series = vec![Series {
        style: fill_style(pen, token),
        shade: "█",
        values: &values,
        sign: None,
    }];
    draw_columns(pen, series, most, plot);
}
