//! The panel of destinations with their health and throughput.

use bellwether_proto::v1::{DeliveryStatistics, DestinationOverview};
use ratatui::{
    layout::{Constraint, Rect},
    text::Line,
    widgets::{Row, Table},
};

use super::{WallView, draw_columns, fill_style, to_f64};
use crate::{
    data::{Kind, Sign, span_ms},
    document::{Link, format_duration},
    model::wall::{destination_health, health_word, problem_sort_key},
    text,
    theme::Token,
    view::{pen::Pen, plot::Series},
};

/// Columns above which attempts are drawn, so that their title fits.
const SPARK_FROM: u16 = 14;

impl WallView<'_> {
    pub(super) fn table_rows(&self, most: u16) -> u16 {
        let rows = self.overview.destinations.len().max(1);
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3);
        rows.min(most.max(4))
    }

    pub(super) fn draw_destinations(&self, pen: &mut Pen<'_>, area: Rect) {
        let inside = pen.panel(area, "Destinations, last 24 h");
        let mut all: Vec<&DestinationOverview> = self.overview.destinations.iter().collect();
        all.sort_by_key(|one| problem_sort_key(one, self.model.now_ms));
        if all.is_empty() {
            let words = "nothing sent in the last 24 h";
            pen.draw_text(inside.x, inside.y, inside.width.into(), Token::Dim, words);
            return;
        }
        let link =
            |one: &DestinationOverview| Link::object(Kind::Destination, &one.destination_name);
        let rows = usize::from(inside.height.saturating_sub(1));
        // The last row shows the number of remaining destinations.
        let shown = if all.len() > rows {
            rows.saturating_sub(1)
        } else {
            rows
        };
        let at = all.iter().position(|one| self.is_at_cursor(&link(one)));
        let top = (at.unwrap_or_default() + 1).saturating_sub(shown.max(1));
        let spark = inside.width.saturating_sub(84).min(48);
        let visible: Vec<_> = all.iter().skip(top).take(shown).collect();
        let columns = shown_columns(inside.width, spark);
        let marked = visible.iter().position(|one| self.is_at_cursor(&link(one)));
        if let Some(at) = marked {
            pen.select(inside.x, inside.y + 1 + u16::try_from(at).unwrap_or(0));
        }
        let rows = visible.iter().map(|one| {
            let row = destination_row(pen, one, &columns);
            if self.is_at_cursor(&link(one)) {
                row.style(pen.style(Token::Selected))
            } else {
                row
            }
        });
        let through = if spark > SPARK_FROM {
            format!("attempts, {}", self.period().label())
        } else {
            String::new()
        };
        let heads = std::iter::once("  Name").chain(columns.iter().map(|column| column.head));
        let heads = heads.chain(std::iter::once(through.as_str()));
        let heads = Row::new(heads.map(str::to_owned)).style(pen.style(Token::Heading));
        let own = columns.iter().map(|_| Constraint::Length(CELLS));
        let widths = std::iter::once(Constraint::Fill(1)).chain(own);
        let widths = widths.chain(std::iter::once(Constraint::Length(spark)));
        let table = Table::new(rows.collect::<Vec<_>>(), widths).header(heads);
        pen.widget(table, inside);
        let more = all.len().saturating_sub(top + visible.len());
        if more > 0 {
            let words = format!("  +{more} more");
            let space = usize::from(inside.width);
            pen.draw_text(inside.x, inside.bottom() - 1, space, Token::Dim, &words);
        }
        if spark > SPARK_FROM {
            self.draw_sparklines(pen, inside, spark, &visible);
        }
    }

    fn draw_sparklines(
        &self,
        pen: &mut Pen<'_>,
        inside: Rect,
        width: u16,
        visible: &[&&DestinationOverview],
    ) {
        for (y, one) in (inside.y + 1..).zip(visible) {
            let found = self
                .counted
                .and_then(|it| it.destination(&one.destination_name));
            let Some(counted) = found.and_then(|it| it.deliveries.as_ref()) else {
                continue;
            };
            let place = Rect {
                x: inside.right() - width,
                y,
                width,
                height: 1,
            };
            Self::draw_throughput(pen, place, counted);
        }
    }

    fn draw_throughput(pen: &mut Pen<'_>, place: Rect, stats: &DeliveryStatistics) {
        let (good, bad) = (to_f64(&stats.delivered), to_f64(&stats.failed_attempts));
        let sums = good.iter().zip(&bad).map(|(one, other)| one + other);
        let most = sums.fold(0.0, f64::max);
        let series = vec![
            Series {
                style: fill_style(pen, Token::Bad),
                shade: "▒",
                values: &bad,
                sign: None,
            },
            Series {
                style: fill_style(pen, Token::Good),
                shade: "█",
                values: &good,
                sign: None,
            },
        ];
        draw_columns(pen, series, most, place);
    }
}

struct ShownColumn {
    head: &'static str,
    cell: fn(&Pen<'_>, &DestinationOverview) -> Line<'static>,
    /// Columns with the highest rank are omitted first.
    rank: u8,
}

/// Width of a column, and minimum width of a name with its symbol.
const CELLS: u16 = 8;
const NAME: u16 = 18;

const SHOWN: [ShownColumn; 6] = [
    ShownColumn {
        head: "Health",
        cell: |pen, one| Line::from(pen.span(destination_health(one).into(), &health_word(one))),
        rank: 0,
    },
    ShownColumn {
        head: "     p50",
        cell: |pen, one| duration_cell(pen, one.health.as_ref().and_then(|it| it.p50.as_ref())),
        rank: 5,
    },
    ShownColumn {
        head: "     p95",
        cell: |pen, one| duration_cell(pen, one.health.as_ref().and_then(|it| it.p95.as_ref())),
        rank: 3,
    },
    ShownColumn {
        head: "    sent",
        cell: |pen, one| count_line(pen, one.delivered_count, Token::Good),
        rank: 4,
    },
    ShownColumn {
        head: " waiting",
        cell: |pen, one| count_line(pen, one.waiting_count, Token::Info),
        rank: 1,
    },
    ShownColumn {
        head: "    dead",
        cell: |pen, one| count_line(pen, one.dead_count, Token::Bad),
        rank: 2,
    },
];

fn shown_columns(width: u16, spark: u16) -> Vec<&'static ShownColumn> {
    let space = width.saturating_sub(NAME + spark);
    let most = usize::from(space / (CELLS + 1));
    let mut columns: Vec<&ShownColumn> = SHOWN.iter().collect();
    while columns.len() > most {
        let last = columns.iter().enumerate().max_by_key(|(_, it)| it.rank);
        let Some((at, _)) = last else { break };
        columns.remove(at);
    }
    columns
}

fn right_aligned_line(pen: &Pen<'_>, words: &str, token: Token) -> Line<'static> {
    let words = format!("{words:>8}");
    Line::from(pen.span(token, &words))
}

fn count_line(pen: &Pen<'_>, count: Option<i32>, token: Token) -> Line<'static> {
    let count = count.unwrap_or_default();
    let token = if count == 0 { Token::Dim } else { token };
    right_aligned_line(pen, &text::group_digits(count.into()), token)
}

fn duration_cell(pen: &Pen<'_>, span: Option<&prost_types::Duration>) -> Line<'static> {
    let words = span.map_or_else(|| "–".to_owned(), |it| format_duration(span_ms(it)));
    right_aligned_line(pen, &words, Token::Text)
}

fn destination_row(
    pen: &Pen<'_>,
    one: &DestinationOverview,
    columns: &[&ShownColumn],
) -> Row<'static> {
    let state = destination_health(one);
    let name = format!("{} {}", state.symbol(), one.destination_name);
    let name = Line::from(pen.span(state.into(), &name));
    let cells = columns.iter().map(|column| (column.cell)(pen, one));
    Row::new(std::iter::once(name).chain(cells))
}
