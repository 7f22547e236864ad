//! Draws the overview as a wall of panels, laid out for the room that there is.

use bellwether_proto::v1::{
    DeliveryStatistics, DestinationOverview, GetOverviewResponse as Overview,
};
use ratatui::{
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::{Row, Table},
};

use super::{
    pen::Pen,
    plot::{FIGURE_ROWS, Figure, Series, Stack},
};
use crate::{
    data::{Back, Counted, Kind, Severity, Sign, WORST_FIRST, Word, millis, span_ms, urgency},
    document::{Link, duration},
    model::{
        Model,
        wall::{self, health, sign},
    },
    route::Route,
    text,
    theme::Token,
};

/// Columns from which panels stand in two, and in three columns.
const TWO: u16 = 100;
const THREE: u16 = 150;
/// Rows of the panel with a line for each severity, and with a large figure for each.
const SEVERITIES: u16 = 8;
/// Columns of how many are new.
const NEW: u16 = 8;
/// Columns from which what went through is drawn beside a destination.
const SPARK_FROM: u16 = 8;
const FIGURES: u16 = 5 * (FIGURE_ROWS + 1) + 2;

/// Draws the panels; the one thing under the cursor is marked.
pub(super) fn draw(model: &Model, overview: &Overview, pen: &mut Pen<'_>, area: Rect) {
    let wall = Wall {
        model,
        overview,
        counted: model.store.wall.value.as_ref(),
        cursor: model.linked().filter(|_| model.cycle.is_none()),
    };
    let [area, foot] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(area);
    if area.width >= THREE {
        wall.in_three(pen, area);
    } else if area.width >= TWO {
        wall.in_two(pen, area);
    } else {
        wall.narrow(pen, area);
    }
    wall.service(pen, foot);
}

struct Wall<'a> {
    model: &'a Model,
    overview: &'a Overview,
    counted: Option<&'a Counted>,
    /// Where Enter leads.
    cursor: Option<Link>,
}

/// Numbers as a plot takes them.
fn numbers(counts: &[i32]) -> Vec<f64> {
    counts.iter().copied().map(f64::from).collect()
}

fn sum(counts: &[i32]) -> i64 {
    counts.iter().copied().map(i64::from).sum()
}

impl Wall<'_> {
    fn in_three(&self, pen: &mut Pen<'_>, area: Rect) {
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
        let [open, deliveries] = stacked(left, Constraint::Length(open), Constraint::Fill(1));
        let below = self.table_rows(area.height / 2);
        let [rate, table] = stacked(middle, Constraint::Fill(1), Constraint::Length(below));
        let missed = self.missed_rows().clamp(3, (area.height / 3).max(3));
        let [missed, loudest] = stacked(right, Constraint::Length(missed), Constraint::Fill(1));
        self.open(pen, open);
        self.deliveries(pen, deliveries);
        self.rate(pen, rate);
        self.destinations(pen, table);
        self.missed(pen, missed);
        self.loudest(pen, loudest);
    }

    fn in_two(&self, pen: &mut Pen<'_>, area: Rect) {
        let below = (area.height / 3).clamp(5, 16);
        let [area, below] = stacked(area, Constraint::Fill(1), Constraint::Length(below));
        let [left, right] =
            Layout::horizontal([Constraint::Length(36), Constraint::Fill(1)]).areas(area);
        let [open, deliveries] = stacked(left, Constraint::Length(SEVERITIES), Constraint::Fill(1));
        let table = self.table_rows(area.height / 2);
        let [rate, table] = stacked(right, Constraint::Fill(1), Constraint::Length(table));
        let [missed, loudest] =
            Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(below);
        self.open(pen, open);
        self.deliveries(pen, deliveries);
        self.rate(pen, rate);
        self.destinations(pen, table);
        self.missed(pen, missed);
        self.loudest(pen, loudest);
    }

    fn narrow(&self, pen: &mut Pen<'_>, area: Rect) {
        let table = self.table_rows(area.height.saturating_sub(SEVERITIES) / 2);
        let rows = [
            Constraint::Length(SEVERITIES - 1),
            Constraint::Length(table),
            Constraint::Fill(1),
        ];
        let [top, table, below] = Layout::vertical(rows).areas(area);
        let halves = [Constraint::Length(34), Constraint::Fill(1)];
        let [open, rate] = Layout::horizontal(halves).areas(top);
        let [deliveries, right] = Layout::horizontal(halves).areas(below);
        self.open(pen, open);
        self.rate(pen, rate);
        self.destinations(pen, table);
        self.deliveries(pen, deliveries);
        if area.height >= 32 {
            let missed = self.missed_rows().clamp(3, (right.height / 2).max(3));
            let [missed, loudest] = stacked(right, Constraint::Length(missed), Constraint::Fill(1));
            self.missed(pen, missed);
            self.loudest(pen, loudest);
        } else {
            self.loudest(pen, right);
        }
    }

    /// Rows that the table of destinations takes, with its frame and heading.
    fn table_rows(&self, most: u16) -> u16 {
        let rows = self.overview.destinations.len().max(1);
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3);
        rows.min(most.max(4))
    }

    fn missed_rows(&self) -> u16 {
        let rows = 2 * wall::missed(self.model, self.overview).len() + 4;
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    fn is_marked(&self, link: &Link) -> bool {
        self.cursor.as_ref() == Some(link)
    }

    fn back(&self) -> Back {
        self.counted.map_or(self.model.back_to, |it| it.back)
    }

    /// Open events by severity, and how many of them are new.
    fn open(&self, pen: &mut Pen<'_>, area: Rect) {
        let total: i32 = self.overview.open_by_severity.values().sum();
        let title = format!("Open  {}", text::grouped(total.into()));
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
            let words = format!("✓ {} acknowledged", text::grouped(acknowledged.into()));
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
        let shown = text::grouped(count.into());
        let new = if opened > 0 {
            format!("+{}", text::grouped(opened.into()))
        } else {
            "·".to_owned()
        };
        let y = row.y;
        let label = format!("{} {:<9}", severity.sign(), severity.word());
        let x = pen.put(row.x, y, row.width.into(), token, &label);
        let right = row.right();
        let style = pen.ground().patch(pen.style(token));
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
        if self.is_marked(&Link::severity(severity.word())) {
            for y in row.top()..row.bottom() {
                pen.row(row, y, Token::Selected);
            }
        }
    }

    /// Events a minute, stacked by severity.
    fn rate(&self, pen: &mut Pen<'_>, area: Rect) {
        let Some(counted) = self.counted else {
            let inside = pen.panel(area, "Events a minute, by severity");
            let words = match &self.model.store.wall.failure {
                Some(failure) => format!("✗ {}", failure.headline()),
                None => "reading…".to_owned(),
            };
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, &words);
            return;
        };
        let step = counted.step_minutes();
        let all = counted.events();
        let columns: Vec<(Severity, Vec<f64>)> = all
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
        let title = format!(
            "Events a minute, by severity  {} in all",
            text::grouped(total)
        );
        let inside = pen.panel(area, &title);
        self.spans(pen, area, &title);
        if inside.height < 2 || inside.width < 20 {
            return;
        }
        if total == 0 {
            let words = format!("none in the last {}", counted.back.words());
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, &words);
            return;
        }
        plot_rate(pen, inside, (&columns, most), counted.back);
    }

    /// The spans of time, with the one in force marked, at the right of a title.
    fn spans(&self, pen: &mut Pen<'_>, area: Rect, title: &str) {
        let words: usize = Back::ALL.iter().map(|it| it.words().len() + 3).sum();
        if usize::from(area.width) < text::width(title) + words + 8 {
            return;
        }
        let mut x = area.right() - 2 - u16::try_from(words).unwrap_or(0);
        for back in Back::ALL {
            let is_own = back == self.back();
            let token = if is_own { Token::Heading } else { Token::Dim };
            let words = if is_own {
                format!("[{}]", back.words())
            } else {
                format!(" {} ", back.words())
            };
            x = pen.put(x, area.y, 8, token, &words) + 1;
        }
    }

    /// How all deliveries fared.
    fn deliveries(&self, pen: &mut Pen<'_>, area: Rect) {
        let title = format!("Deliveries, {}", self.back().words());
        let inside = pen.panel(area, &title);
        let Some(all) = self
            .counted
            .and_then(|it| it.statistics.deliveries.as_ref())
        else {
            return;
        };
        let oldest = millis(self.overview.oldest_undelivered_time.as_ref());
        let read = self.model.store.overview.received_ms;
        let oldest = oldest
            .zip(read)
            .map(|(ms, now)| duration((now - ms).max(0)));
        let waiting = all.waiting_count.unwrap_or_default();
        let backlog = match oldest {
            Some(age) => format!("{}  {age}", text::grouped(waiting.into())),
            None => text::grouped(waiting.into()),
        };
        let total = |counts: &[i32]| text::grouped(sum(counts));
        let mut rows: Vec<(&str, Token, &[i32], String)> = vec![
            (
                "delivered",
                Token::Good,
                &all.delivered,
                total(&all.delivered),
            ),
            (
                "failed tries",
                Token::Warning,
                &all.failed_attempts,
                total(&all.failed_attempts),
            ),
            ("waiting", Token::Info, &all.waiting, backlog),
        ];
        let dead = ("dead", Token::Bad, &all.dead[..], total(&all.dead));
        if inside.height >= 4 || sum(&all.dead) > 0 {
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
        let links = Link::Go(Route::Deliveries);
        let sums = rows.iter().map(|(.., words)| text::width(words)).max();
        let sums = u16::try_from(sums.unwrap_or(0)).unwrap_or(0);
        for ((name, token, counts, words), place) in rows.into_iter().zip(places.iter()) {
            let token = if sum(counts) == 0 { Token::Dim } else { token };
            bar(pen, *place, (name, token, counts, &words), sums);
            if name == "waiting" && self.is_marked(&links) {
                pen.row(*place, place.y, Token::Selected);
            }
        }
    }

    /// Every destination: how it stands, how long it takes, what went through.
    fn destinations(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Destinations, last 24 h");
        let mut all: Vec<&DestinationOverview> = self.overview.destinations.iter().collect();
        all.sort_by_key(|one| (urgency(health(one)), std::cmp::Reverse(one.dead_count)));
        if all.is_empty() {
            let words = "nothing was sent in the last 24 h";
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, words);
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
        let spark = inside.width.saturating_sub(84).min(48);
        let visible: Vec<_> = all.iter().skip(top).take(shown).collect();
        let rows = visible.iter().map(|one| {
            let row = destination_row(pen, one);
            if self.is_marked(&link(one)) {
                row.style(pen.style(Token::Selected))
            } else {
                row
            }
        });
        let through = if spark > SPARK_FROM {
            format!("through, {}", self.back().words())
        } else {
            String::new()
        };
        let heads = [
            "  Name", "Health", "     p50", "     p95", "    sent", " waiting", "    dead",
            &through,
        ];
        let heads = Row::new(heads.map(str::to_owned)).style(pen.style(Token::Heading));
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(spark),
        ];
        let table = Table::new(rows.collect::<Vec<_>>(), widths).header(heads);
        pen.widget(table, inside);
        let places = (inside.y + 1..).zip(&visible);
        for (y, one) in places.filter(|_| spark > SPARK_FROM) {
            let found = self
                .counted
                .and_then(|it| it.destination(&one.destination_name));
            let Some(fared) = found.and_then(|it| it.deliveries.as_ref()) else {
                continue;
            };
            let place = Rect {
                x: inside.right() - spark,
                y,
                width: spark,
                height: 1,
            };
            Self::through(pen, place, fared);
        }
    }

    /// What was delivered, and below it what failed.
    fn through(pen: &mut Pen<'_>, place: Rect, fared: &DeliveryStatistics) {
        let (good, bad) = (numbers(&fared.delivered), numbers(&fared.failed_attempts));
        let sums = good.iter().zip(&bad).map(|(one, other)| one + other);
        let most = sums.fold(0.0, f64::max);
        let series = vec![
            Series {
                style: fill(pen, Token::Bad),
                shade: "▒",
                values: &bad,
            },
            Series {
                style: fill(pen, Token::Good),
                shade: "█",
                values: &good,
            },
        ];
        let (ground, is_mono) = (pen.ground(), pen.is_mono());
        pen.widget(
            Stack {
                series,
                most,
                ground,
                is_mono,
            },
            place,
        );
    }

    /// Who is not reached, or late.
    fn missed(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Not reached, or late");
        let mut lines: Vec<(Token, String)> = Vec::new();
        for one in wall::missed(self.model, self.overview) {
            lines.push((one.token, one.words));
            lines.push((Token::Dim, format!("  {}", one.details)));
        }
        if lines.is_empty() {
            lines.push((
                Token::Good,
                "✓ every destination answers in time".to_owned(),
            ));
        }
        let dead: i32 = self
            .overview
            .destinations
            .iter()
            .filter_map(|one| one.dead_count)
            .sum();
        if dead > 0 {
            let words = format!("✗ {} dead in 24 h", text::grouped(dead.into()));
            lines.push((Token::Bad, words));
        }
        if let Some(quiet) = wall::quiet(self.model) {
            lines.push((Token::Warning, format!("☾ {quiet}")));
        }
        for ((token, line), y) in lines.iter().zip(inside.top()..inside.bottom()) {
            pen.put(inside.x, y, inside.width.into(), *token, line);
        }
    }

    /// What there is most of.
    fn loudest(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Loudest");
        let rows = wall::loudest(self.model);
        if rows.is_empty() {
            let words = "nothing is open, and nobody was told";
            pen.put(inside.x, inside.y, inside.width.into(), Token::Dim, words);
            return;
        }
        let marked = rows.iter().position(|row| {
            let link = row.link.as_ref();
            link.is_some_and(|link| self.is_marked(link))
        });
        let height = usize::from(inside.height);
        let top = marked.map_or(0, |at| (at + 1).saturating_sub(height));
        let bar = inside.width / 5;
        for (row, y) in rows.iter().skip(top).zip(inside.top()..inside.bottom()) {
            let count = match (row.link.is_some(), row.or_more) {
                (false, _) => String::new(),
                (true, true) => format!("{}+", text::grouped(row.count)),
                (true, false) => text::grouped(row.count),
            };
            let cells = u16::try_from(count.len()).unwrap_or(0);
            let end = inside.right().saturating_sub(bar + 1);
            let room = usize::from(end.saturating_sub(inside.x + cells + 1));
            let token = if row.link.is_some() {
                Token::Text
            } else {
                row.token
            };
            pen.put(inside.x, y, room, token, &row.name);
            pen.put(
                end.saturating_sub(cells),
                y,
                cells.into(),
                Token::Text,
                &count,
            );
            #[expect(clippy::cast_precision_loss, reason = "a share of few cells")]
            let share = row.count as f64 / row.most.max(1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the cells that there are"
            )]
            let filled = (share * f64::from(bar)).ceil().clamp(0.0, f64::from(bar)) as usize;
            pen.put(end + 1, y, bar.into(), row.token, &"▇".repeat(filled));
            if row.link.as_ref().is_some_and(|link| self.is_marked(link)) {
                pen.row(inside, y, Token::Selected);
            }
        }
    }

    /// The service itself, in a line without a frame.
    fn service(&self, pen: &mut Pen<'_>, area: Rect) {
        let number = |count: Option<i32>| count.unwrap_or_default();
        let overview = self.overview;
        let several = |count, word: &str| {
            let s = if count == 1 { "" } else { "s" };
            format!("{count} {word}{s}")
        };
        let rules = format!(
            "{}, {} on",
            several(number(overview.rule_count), "rule"),
            number(overview.enabled_rule_count)
        );
        let counted = |kind: Kind, count| {
            let words = several(number(count), kind.word());
            (Some(Route::List(kind)), words)
        };
        let mut parts = vec![
            counted(Kind::Trigger, overview.trigger_count),
            counted(Kind::Destination, overview.destination_count),
            (Some(Route::List(Kind::Rule)), rules),
        ];
        parts.extend(
            wall::service(self.model, overview)
                .into_iter()
                .map(|it| (None, it)),
        );
        let mut spans = vec![Span::raw(" ")];
        let mut room = usize::from(area.width).saturating_sub(1);
        for (route, words) in parts {
            let cells = text::width(&words) + 3;
            if cells > room {
                continue;
            }
            room -= cells;
            if spans.len() > 1 {
                spans.push(pen.span(Token::Dim, " · "));
            }
            let is_marked = route.is_some_and(|route| self.is_marked(&Link::Go(route)));
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

/// One row of bars with its name before it and its sum behind it, or above it where it is high.
fn bar(
    pen: &mut Pen<'_>,
    area: Rect,
    (name, token, counts, words): (&str, Token, &[i32], &str),
    sums: u16,
) {
    if area.height == 0 {
        return;
    }
    let values = numbers(counts);
    let most = values.iter().copied().fold(0.0, f64::max);
    let cells = u16::try_from(text::width(words)).unwrap_or(0);
    pen.put(area.x, area.y, area.width.into(), token, name);
    let end = area.right().saturating_sub(cells);
    pen.put(end.max(area.x), area.y, cells.into(), token, words);
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
        style: fill(pen, token),
        shade: "█",
        values: &values,
    }];
    let (ground, is_mono) = (pen.ground(), pen.is_mono());
    pen.widget(
        Stack {
            series,
            most,
            ground,
            is_mono,
        },
        plot,
    );
}

/// Columns of events a minute with their axis, the severities upon each other.
fn plot_rate(
    pen: &mut Pen<'_>,
    inside: Rect,
    (columns, most): (&[(Severity, Vec<f64>)], f64),
    back: Back,
) {
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
    // The worst stand at the bottom, where they are compared best.
    let series = columns.iter().map(|(severity, values)| Series {
        style: fill(pen, (*severity).into()),
        shade: shade(*severity),
        values,
    });
    pen.widget(
        Stack {
            series: series.collect(),
            most,
            ground: pen.ground(),
            is_mono: pen.is_mono(),
        },
        plot,
    );
    let y = plot.bottom();
    let start = format!("{} ago", back.words());
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

/// How a destination stands, how long it takes, and what went to it.
fn destination_row(pen: &Pen<'_>, one: &DestinationOverview) -> Row<'static> {
    let state = health(one);
    let right = |words: &str, token: Token| {
        let words = format!("{words:>8}");
        Line::from(pen.span(token, &words))
    };
    let count = |count: Option<i32>, token: Token| {
        let count = count.unwrap_or_default();
        let token = if count == 0 { Token::Dim } else { token };
        right(&text::grouped(count.into()), token)
    };
    let told = one.health.as_ref();
    let took = |span: Option<&prost_types::Duration>| {
        let words = span.map_or_else(|| "–".to_owned(), |it| duration(span_ms(it)));
        right(&words, Token::Text)
    };
    let name = format!("{} {}", sign(state), one.destination_name);
    Row::new([
        Line::from(pen.span(state.into(), &name)),
        Line::from(pen.span(state.into(), state.word())),
        took(told.and_then(|it| it.p50.as_ref())),
        took(told.and_then(|it| it.p95.as_ref())),
        count(one.delivered_count, Token::Good),
        count(one.waiting_count, Token::Info),
        count(one.dead_count, Token::Bad),
        Line::default(),
    ])
}

fn stacked(area: Rect, above: Constraint, below: Constraint) -> [Rect; 2] {
    Layout::vertical([above, below]).areas(area)
}

/// How bars of that meaning are filled: with its colour alone.
fn fill(pen: &Pen<'_>, token: Token) -> ratatui::style::Style {
    let style = pen.style(token);
    ratatui::style::Style {
        add_modifier: ratatui::style::Modifier::empty(),
        ..style
    }
}

/// What tells severities apart without colour.
fn shade(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "█",
        Severity::Error => "▓",
        Severity::Warning => "▒",
        Severity::Info => "░",
        Severity::Debug | Severity::Default => "·",
    }
}

/// A number at an axis.
fn scale(number: f64) -> String {
    match number {
        ..10.0 if number.fract() != 0.0 => format!("{number:.1}"),
        ..10_000.0 => format!("{number:.0}"),
        ..1_000_000.0 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}
