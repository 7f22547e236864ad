//! Draws the overview as a wall display of panels, laid out for the available size.

use bellwether_proto::v1::GetOverviewResponse as Overview;
use ratatui::{
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::{
    pen::Pen,
    plot::{FIGURE_ROWS, Series, Stack},
};
use crate::{
    data::{ChartData, ChartPeriod, Kind},
    document::Link,
    kind::EventCell,
    model::{Model, document::UNANSWERED, wall},
    route::Route,
    text,
    theme::Token,
};

mod deliveries;
mod destinations;
mod events;
mod lists;

/// Minimum columns for two and for three columns of panels.
const TWO: u16 = 100;
const THREE: u16 = 150;
/// Rows of the severity panel: with one line per severity, and with large figures for the two worst
/// severities.
const SEVERITIES: u16 = 8;
const FIGURES: u16 = 2 * (FIGURE_ROWS + 1) + 3 + 2;

/// Rows of the deliveries, and minimum rows of the chart of events.
const DELIVERIES: u16 = 6;
const RATE: u16 = 8;
/// Minimum rows of the destinations with the worst three, and of the panels below them.
const DESTINATIONS: u16 = 7;
const BELOW: u16 = 6;

pub(super) fn draw(model: &Model, overview: &Overview, pen: &mut Pen<'_>, area: Rect) {
    let wall = WallView {
        model,
        overview,
        counted: model.store.wall.value.as_ref(),
        cursor: model.link_at_cursor().filter(|_| model.cycle.is_none()),
    };
    let headline = wall::wall_headline(model, overview);
    let rows = [
        Constraint::Length(u16::from(headline.is_some())),
        Constraint::Length(wall.unanswered_rows()),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [first, top, area, foot] = Layout::vertical(rows).areas(area);
    if let Some(words) = headline {
        pen.draw_text(first.x + 1, first.y, first.width.into(), Token::Bad, &words);
    }
    wall.draw_unanswered(pen, top);
    if area.width >= THREE {
        wall.draw_three_columns(pen, area);
    } else if area.width >= TWO {
        wall.draw_two_columns(pen, area);
    } else {
        wall.draw_one_column(pen, area);
    }
    wall.draw_service(pen, foot);
}

struct WallView<'a> {
    model: &'a Model,
    overview: &'a Overview,
    counted: Option<&'a ChartData>,
    cursor: Option<Link>,
}

fn to_f64(counts: &[i32]) -> Vec<f64> {
    counts.iter().copied().map(f64::from).collect()
}

fn sum_counts(counts: &[i32]) -> i64 {
    counts.iter().copied().map(i64::from).sum()
}

impl WallView<'_> {
    fn draw_three_columns(&self, pen: &mut Pen<'_>, area: Rect) {
        let right = (area.width / 4).clamp(36, 60);
        let columns = [
            Constraint::Length(42),
            Constraint::Fill(1),
            Constraint::Length(right),
        ];
        let [left, middle, right] = Layout::horizontal(columns).areas(area);
        let open = if area.height >= FIGURES + 12 {
            FIGURES
        } else {
            SEVERITIES
        };
        let [open, deliveries] = split_rows(left, Constraint::Length(open), Constraint::Fill(1));
        let below = self.table_rows(area.height / 2);
        let [rate, table] = split_rows(middle, Constraint::Fill(1), Constraint::Length(below));
        let missed = self.missed_rows(right.width, area.height / 2);
        let [missed, loudest] = split_rows(right, Constraint::Length(missed), Constraint::Fill(1));
        self.draw_open_events(pen, open);
        self.draw_deliveries(pen, deliveries);
        self.draw_rate(pen, rate);
        self.draw_destinations(pen, table);
        self.draw_undelivered_or_late(pen, missed);
        self.draw_noisiest(pen, loudest);
    }

    fn draw_two_columns(&self, pen: &mut Pen<'_>, area: Rect) {
        let [left, right] =
            Layout::horizontal([Constraint::Length(36), Constraint::Fill(1)]).areas(area);
        let loudest = self.noisiest_rows(area.height.saturating_sub(SEVERITIES + DELIVERIES));
        let rows = [
            Constraint::Length(SEVERITIES),
            Constraint::Fill(1),
            Constraint::Length(loudest),
        ];
        let [open, deliveries, loudest] = Layout::vertical(rows).areas(left);
        let missed = self.missed_rows(right.width, (area.height / 4).max(6));
        let table = self.table_rows(area.height.saturating_sub(missed + RATE));
        let rows = [
            Constraint::Fill(1),
            Constraint::Length(table),
            Constraint::Length(missed),
        ];
        let [rate, table, missed] = Layout::vertical(rows).areas(right);
        self.draw_open_events(pen, open);
        self.draw_deliveries(pen, deliveries);
        self.draw_rate(pen, rate);
        self.draw_destinations(pen, table);
        self.draw_undelivered_or_late(pen, missed);
        self.draw_noisiest(pen, loudest);
    }

    fn draw_one_column(&self, pen: &mut Pen<'_>, area: Rect) {
        let rest = area.height.saturating_sub(SEVERITIES - 1);
        let table = self.table_rows((rest / 2).max(DESTINATIONS));
        let is_shown = rest.saturating_sub(table) >= BELOW;
        let rows = if is_shown {
            [
                Constraint::Length(SEVERITIES - 1),
                Constraint::Length(table),
                Constraint::Fill(1),
            ]
        } else {
            let table = Constraint::Length(self.table_rows(rest));
            [Constraint::Fill(1), table, Constraint::Length(0)]
        };
        let [top, table, below] = Layout::vertical(rows).areas(area);
        let halves = [Constraint::Length(34), Constraint::Fill(1)];
        let [open, rate] = Layout::horizontal(halves).areas(top);
        let [deliveries, right] = Layout::horizontal(halves).areas(below);
        self.draw_open_events(pen, open);
        self.draw_rate(pen, rate);
        self.draw_destinations(pen, table);
        if !is_shown {
            return;
        }
        self.draw_deliveries(pen, deliveries);
        if area.height >= 32 {
            let missed = self.missed_rows(right.width, right.height / 2);
            let [missed, loudest] =
                split_rows(right, Constraint::Length(missed), Constraint::Fill(1));
            self.draw_undelivered_or_late(pen, missed);
            self.draw_noisiest(pen, loudest);
        } else {
            self.draw_noisiest(pen, right);
        }
    }

    fn draw_not_counted(&self, pen: &mut Pen<'_>, inside: Rect) {
        let words = match &self.model.store.wall.failure {
            Some(failure) => format!("✗ {}", failure.headline()),
            None => "reading…".to_owned(),
        };
        pen.draw_text(inside.x, inside.y, inside.width.into(), Token::Dim, &words);
    }

    fn unanswered_rows(&self) -> u16 {
        let count = self.model.store.unanswered;
        let rows = count.min(UNANSWERED) + usize::from(count > UNANSWERED);
        u16::try_from(rows).unwrap_or(0)
    }

    fn draw_unanswered(&self, pen: &mut Pen<'_>, area: Rect) {
        let waiting = self.model.unanswered_responses();
        let more = self.model.store.unanswered.saturating_sub(UNANSWERED);
        let space = usize::from(area.width).saturating_sub(2);
        let shown = self.model.unanswered_responses().take(UNANSWERED);
        let statuses = shown.map(|one| text::cell_width(&self.model.response_status(one).1));
        let status = statuses.max().unwrap_or(0).min(space / 2);
        for (one, y) in waiting.zip(area.top()..area.bottom()) {
            let line = Rect {
                y,
                height: 1,
                ..area
            };
            let link = if usize::from(y - area.y) < UNANSWERED {
                let (token, words) = self.model.response_status(one);
                let event = EventCell::from_object(self.model, one);
                let event = event.spans(space.saturating_sub(status + 2));
                let mut spans = vec![Span::raw(" ")];
                spans.extend(event.iter().map(|it| pen.span(it.token, &it.text)));
                let words = text::fit_to_width(&words, status);
                spans.push(pen.span(token, &format!("  {words}")));
                pen.widget(Line::from(spans), line);
                Link::object(Kind::Response, one.name())
            } else {
                let count = text::group_digits(i64::try_from(more).unwrap_or(i64::MAX));
                let words = format!("   and {count} more awaiting a response");
                pen.draw_text(area.x, y, area.width.into(), Token::Dim, &words);
                Link::Go(Route::ON_CALL)
            };
            if self.is_at_cursor(&link) {
                pen.row(line, y, Token::Selected);
            }
        }
    }

    fn is_at_cursor(&self, link: &Link) -> bool {
        self.cursor.as_ref() == Some(link)
    }

    fn period(&self) -> ChartPeriod {
        self.counted.map_or(self.model.chart_period, |it| it.back)
    }

    fn draw_service(&self, pen: &mut Pen<'_>, area: Rect) {
        let number = |count: Option<i32>| count.unwrap_or_default();
        let overview = self.overview;
        let several = |count: i32, word: &str| {
            let s = if count == 1 { "" } else { "s" };
            format!("{} {word}{s}", text::group_digits(count.into()))
        };
        let rules = self.model.store.resources(Kind::Rule).rows().iter();
        let shadows = rules.filter(|it| it.flag("enabled") && it.flag("shadow"));
        let shadows = i32::try_from(shadows.count()).unwrap_or(i32::MAX);
        let enabled = number(overview.enabled_rule_count).saturating_sub(shadows);
        let rules = format!(
            "{}, {} on{}",
            several(number(overview.rule_count), "rule"),
            text::group_digits(enabled.into()),
            match shadows {
                0 => String::new(),
                count => format!(", {count} shadow"),
            }
        );
        let counted = |kind: Kind, count| {
            let words = several(number(count), kind.singular());
            (Some(Route::List(kind)), words)
        };
        let mut parts = vec![
            counted(Kind::Trigger, overview.trigger_count),
            counted(Kind::Destination, overview.destination_count),
            (Some(Route::List(Kind::Rule)), rules),
        ];
        parts.extend(
            wall::service_lines(self.model, overview)
                .into_iter()
                .map(|it| (None, it)),
        );
        let mut spans = vec![Span::raw(" ")];
        let mut space = usize::from(area.width).saturating_sub(1);
        for (route, words) in parts {
            let cells = text::cell_width(&words) + 3;
            if cells > space {
                continue;
            }
            space -= cells;
            if spans.len() > 1 {
                spans.push(pen.span(Token::Dim, " · "));
            }
            let is_marked = route.is_some_and(|route| self.is_at_cursor(&Link::Go(route)));
            let token = if is_marked {
                Token::Selected
            } else {
                Token::Dim
            };
            spans.push(pen.span(token, &words));
        }
        pen.widget(Line::from(spans), area);
    }
}

fn split_rows(area: Rect, above: Constraint, below: Constraint) -> [Rect; 2] {
    Layout::vertical([above, below]).areas(area)
}

/// Draws a stacked plot, the first series lowest; `most` is the value of a full column.
fn draw_columns(pen: &mut Pen<'_>, series: Vec<Series<'_>>, most: f64, place: Rect) {
    let stack = Stack {
        series,
        most,
        ground: pen.base_style(),
        is_mono: pen.is_mono(),
        has_halves: !pen.is_ascii(),
    };
    pen.widget(stack, place);
}

fn fill_style(pen: &Pen<'_>, token: Token) -> Style {
    let style = pen.style(token);
    Style {
        // A bar without a colour would be a gap where it is drawn as the background.
        fg: style.fg.or(Some(Color::DarkGray)),
        add_modifier: Modifier::empty(),
        ..style
    }
}
