//! Draws the overview as a wall of panels, laid out for the room that there is.

use bellwether_proto::v1::{
    DestinationHealth, DestinationOverview, GetOverviewResponse as Overview,
};
use ratatui::{
    layout::{Constraint, Layout, Rect},
    symbols,
    text::{Line, Span},
    widgets::{Axis, Chart, Dataset, GraphType, Paragraph, Row, Table},
};

use super::pen::Pen;
use crate::{
    data::{HealthState, Kind, Sign, WORST_FIRST, Word, millis, urgency},
    document::{Link, duration},
    model::Model,
    route::Route,
    text,
    theme::Token,
};

/// Columns from which three panels stand side by side.
const THREE: u16 = 120;
/// Rows of the panels that have a line for each severity.
const SEVERITIES: u16 = 8;

/// Draws the panels; the one thing under the cursor is marked.
pub(super) fn draw(model: &Model, overview: &Overview, pen: &mut Pen<'_>, area: Rect) {
    let wall = Wall {
        model,
        overview,
        cursor: model.linked(),
    };
    let destinations = overview.destinations.len();
    let rows = u16::try_from(destinations.max(1)).unwrap_or(u16::MAX);
    let foot = if area.height >= 17 { 4 } else { 0 };
    let middle = rows.saturating_add(3).max(5);
    let [top, middle, foot] = Layout::vertical([
        Constraint::Min(SEVERITIES),
        Constraint::Max(middle),
        Constraint::Length(foot),
    ])
    .areas(area);
    if area.width >= THREE {
        let columns = [
            Constraint::Length(36),
            Constraint::Fill(2),
            Constraint::Fill(1),
        ];
        let [open, rate, missed] = Layout::horizontal(columns).areas(top);
        wall.open(pen, open);
        wall.rate(pen, rate);
        wall.missed(pen, missed);
    } else {
        let columns = [Constraint::Length(32), Constraint::Fill(1)];
        let [open, rate] = Layout::horizontal(columns).areas(top);
        wall.open(pen, open);
        wall.rate(pen, rate);
    }
    wall.destinations(pen, middle);
    wall.service(pen, foot);
}

struct Wall<'a> {
    model: &'a Model,
    overview: &'a Overview,
    /// Where Enter leads.
    cursor: Option<Link>,
}

impl Wall<'_> {
    fn is_marked(&self, link: &Link) -> bool {
        self.cursor.as_ref() == Some(link)
    }

    /// Open events by severity, each with its share.
    fn open(&self, pen: &mut Pen<'_>, area: Rect) {
        let total: i32 = self.overview.open_by_severity.values().sum();
        let title = format!("Open events  {}", text::grouped(total.into()));
        let inside = pen.panel(area, &title);
        let count = |name: &str| self.overview.open_by_severity.get(name).copied();
        let counts = WORST_FIRST.map(|it| (it, count(it.as_str_name()).unwrap_or_default()));
        let most = counts.iter().map(|(_, count)| *count).max();
        let most = f64::from(most.unwrap_or_default().max(1));
        for ((severity, count), y) in counts.into_iter().zip(inside.top()..inside.bottom()) {
            let row = Rect {
                y,
                height: 1,
                ..inside
            };
            let token = if count == 0 {
                Token::Dim
            } else {
                severity.into()
            };
            let words = format!(
                "{} {:<9}{:>8} ",
                severity.sign(),
                severity.word(),
                text::grouped(count.into())
            );
            let x = pen.put(row.x, y, row.width.into(), token, &words);
            let room = row.right().saturating_sub(x);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the cells that there are"
            )]
            let cells = (f64::from(room) * f64::from(count) / most).ceil() as usize;
            pen.put(x, y, room.into(), token, &"▇".repeat(cells));
            let link = Link::severity(severity.word());
            if self.is_marked(&link) {
                let width = x.saturating_sub(row.x);
                pen.row(Rect { width, ..row }, y, Token::Selected);
            }
        }
        let acknowledged = self.overview.acknowledged_count.unwrap_or_default();
        let y = inside.top() + 5;
        if y < inside.bottom() && acknowledged > 0 {
            let words = format!("✓ {acknowledged} acknowledged");
            pen.put(inside.x, y, inside.width.into(), Token::Good, &words);
            if self.is_marked(&Link::List(Route::Events, "acknowledged=true".to_owned())) {
                pen.row(inside, y, Token::Selected);
            }
        }
    }

    /// Events a minute over the last hour.
    fn rate(&self, pen: &mut Pen<'_>, area: Rect) {
        let minutes = &self.overview.events_per_minute;
        let most = minutes.iter().copied().max().unwrap_or_default();
        let now = minutes.last().copied().unwrap_or_default();
        let title = format!("Events per minute, last hour  now {now}, peak {most}");
        let inside = pen.panel(area, &title);
        if most == 0 {
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, "none");
            return;
        }
        let points: Vec<(f64, f64)> = (0..60_u32)
            .zip(minutes)
            .map(|(at, count)| (at.into(), f64::from(*count)))
            .collect();
        let (dim, line) = (pen.style(Token::Dim), pen.style(Token::Info));
        let data = Dataset::default()
            .marker(symbols::Marker::Braille)
            .graph_type(GraphType::Line)
            .style(line)
            .data(&points);
        let labels = |words: [String; 3]| words.map(Span::from).to_vec();
        let across = ["60 min ago", "30 min ago", "now"].map(str::to_owned);
        let up = ["0".to_owned(), (most / 2).to_string(), most.to_string()];
        let across = Axis::default()
            .style(dim)
            .bounds([0.0, 59.0])
            .labels(labels(across));
        let up = Axis::default()
            .style(dim)
            .bounds([0.0, f64::from(most)])
            .labels(labels(up));
        let chart = Chart::new(vec![data]).style(pen.ground());
        pen.widget(chart.x_axis(across).y_axis(up), inside);
    }

    /// Who is not reached, and since when.
    fn missed(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Not reached");
        let mut lines: Vec<(Token, String)> = Vec::new();
        for one in self.overview.destinations.iter().filter(|one| is_ill(one)) {
            let health = one.health.clone().unwrap_or_default();
            let since = millis(health.since.as_ref());
            let since = since.map_or_else(String::new, |ms| {
                format!(" since {}", self.model.moment(ms))
            });
            let name = &one.destination_name;
            lines.push((
                health.state().into(),
                format!("✗ {name}  {}{since}", health.state().word()),
            ));
            let waiting = one.waiting_count.unwrap_or_default();
            lines.push((
                Token::Dim,
                format!("  {waiting} waiting  {}", health.last_error),
            ));
        }
        if lines.is_empty() {
            lines.push((Token::Good, "✓ every destination answers".to_owned()));
        }
        if let Some(oldest) = self.oldest() {
            let is_marked = self.is_marked(&Link::Go(Route::Deliveries));
            let token = if is_marked {
                Token::Selected
            } else {
                Token::Warning
            };
            lines.push((token, oldest));
        }
        for ((token, line), y) in lines.iter().zip(inside.top()..inside.bottom()) {
            pen.put(inside.x, y, inside.width.into(), *token, line);
        }
    }

    /// How long the delivery that has waited longest has.
    fn oldest(&self) -> Option<String> {
        let oldest = millis(self.overview.oldest_undelivered_time.as_ref())?;
        let read = self.model.store.overview.received_ms.unwrap_or(oldest);
        let age = duration((read - oldest).max(0));
        Some(format!("oldest waiting {age}"))
    }

    /// Every destination with what went through it in 24 h.
    fn destinations(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Deliveries, last 24 h");
        let mut all: Vec<&DestinationOverview> = self.overview.destinations.iter().collect();
        all.sort_by_key(|one| (urgency(health(one)), std::cmp::Reverse(one.dead_count)));
        if all.is_empty() {
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, "none");
            return;
        }
        let link = |one: &DestinationOverview| {
            Link::Go(Route::Object(
                Kind::Destination,
                one.destination_name.clone(),
            ))
        };
        let shown = usize::from(inside.height.saturating_sub(1));
        let at = all.iter().position(|one| self.is_marked(&link(one)));
        let top = (at.unwrap_or_default() + 1).saturating_sub(shown.max(1));
        let rows = all.iter().skip(top).take(shown).map(|one| {
            let state = health(one);
            let count = |count: Option<i32>, token: Token| {
                let count = count.unwrap_or_default();
                let token = if count == 0 { Token::Dim } else { token };
                let words = format!("{:>10}", text::grouped(count.into()));
                Line::from(pen.span(token, &words))
            };
            let name = format!("{} {}", sign(state), one.destination_name);
            let error = one.health.as_ref().map_or("", |health| &health.last_error);
            let row = Row::new([
                Line::from(pen.span(state.into(), &name)),
                Line::from(pen.span(state.into(), state.word())),
                count(one.delivered_count, Token::Good),
                count(one.waiting_count, Token::Info),
                count(one.dead_count, Token::Bad),
                Line::from(pen.span(Token::Bad, error)),
            ]);
            if self.is_marked(&link(one)) {
                row.style(pen.style(Token::Selected))
            } else {
                row
            }
        });
        let heads = [
            "Destination",
            "Health",
            " delivered",
            "   waiting",
            "      dead",
            "Last error",
        ];
        let widths = [
            Constraint::Fill(2),
            Constraint::Length(8),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Fill(2),
        ];
        let heads = Row::new(heads).style(pen.style(Token::Heading));
        let table = Table::new(rows.collect::<Vec<_>>(), widths).header(heads);
        pen.widget(table, inside);
    }

    /// The service itself.
    fn service(&self, pen: &mut Pen<'_>, area: Rect) {
        if area.height == 0 {
            return;
        }
        let overview = self.overview;
        let inside = pen.panel(area, "Service");
        let start = millis(overview.start_time.as_ref());
        let up = start.map_or_else(String::new, |ms| duration((self.model.now_ms - ms).max(0)));
        let number = |count: Option<i32>| count.unwrap_or_default();
        let first = format!(
            "{}  ·  version {}  ·  up {up}",
            self.model.service, overview.version
        );
        let rules = format!(
            "{} rules, {} enabled",
            number(overview.rule_count),
            number(overview.enabled_rule_count)
        );
        let counted = |kind, count, word| {
            let words = format!("{} {word}", number(count));
            (Route::List(kind), words)
        };
        let mut parts = vec![
            counted(Kind::Trigger, overview.trigger_count, "triggers"),
            counted(
                Kind::Destination,
                overview.destination_count,
                "destinations",
            ),
            (Route::List(Kind::Rule), rules),
        ];
        // With less room it has no panel of its own.
        let oldest = self.oldest().filter(|_| area.width < THREE);
        parts.extend(oldest.map(|words| (Route::Deliveries, words)));
        let mut second = Vec::new();
        for (route, words) in parts {
            if !second.is_empty() {
                second.push(pen.span(Token::Dim, "  ·  "));
            }
            let is_marked = self.is_marked(&Link::Go(route));
            let token = if is_marked {
                Token::Selected
            } else {
                Token::Dim
            };
            second.push(pen.span(token, &words));
        }
        let lines = vec![
            Line::from(pen.span(Token::Text, &first)),
            Line::from(second),
        ];
        pen.widget(Paragraph::new(lines), inside);
    }
}

fn health(one: &DestinationOverview) -> HealthState {
    one.health
        .as_ref()
        .map(DestinationHealth::state)
        .unwrap_or_default()
}

fn is_ill(one: &DestinationOverview) -> bool {
    matches!(health(one), HealthState::Failing | HealthState::Paused)
}

fn sign(state: HealthState) -> &'static str {
    match state {
        HealthState::Failing => "✗",
        HealthState::Paused => "‖",
        HealthState::Healthy => "✓",
        HealthState::Slow | HealthState::Behind => "◐",
        HealthState::Untried | HealthState::Unspecified => "·",
    }
}
