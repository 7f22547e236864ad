//! The next 30 days of a schedule: a chart with a row per contact, and a list of shifts.

use bellwether_proto::v1::{ListShiftsResponse, PreviewScheduleResponse, Shift};
use jiff::{Timestamp, ToSpan as _, Unit, Zoned, ZonedRound};

use crate::{
    data::to_millis,
    document::{Document, Link, Span, format_duration, span},
    model::{Model, loaded::Loaded},
    text,
    theme::Token,
};

const DAYS: usize = 30;
const NAME: usize = 14;
const ROWS: usize = 12;

/// A continuous span with the same contacts on call.
struct OnCallSpan<'a> {
    start_ms: i64,
    end_ms: i64,
    names: &'a [String],
    source: &'a str,
}

pub(super) fn write(into: &mut Document, model: &Model, shifts: &Loaded<ListShiftsResponse>) {
    into.heading(&format!("Next 30 days, times in {}", model.zone_word()));
    let Some(found) = &shifts.value else {
        return into.loading_or_failure(shifts.waiting.is_some(), shifts.failure.as_ref());
    };
    let stretches: Vec<OnCallSpan<'_>> = found.shifts.iter().filter_map(on_call_span).collect();
    draw_shifts(into, model, &stretches);
    into.blank_line();
    if !model.page.route.is_list() {
        let words = "‹override› on a shift puts others on call";
        into.text(Token::Dim, 0, &model.expand_keys(words));
    }
    for one in &stretches {
        write_shift(into, model, one);
    }
    if found.stopped_early {
        let count = text::group_digits(i64::try_from(stretches.len()).unwrap_or(i64::MAX));
        let words = format!("only the first {count} shifts are shown");
        into.text(Token::Warning, 0, &words);
    }
}

/// Draws the shifts of a draft: the chart, the gaps, and the first shifts.
pub(super) fn write_preview(into: &mut Document, model: &Model, found: &PreviewScheduleResponse) {
    for warning in &found.warnings {
        into.text(Token::Warning, 0, &format!("! {warning}"));
    }
    let stretches: Vec<OnCallSpan<'_>> = found.shifts.iter().filter_map(on_call_span).collect();
    draw_shifts(into, model, &stretches);
    into.blank_line();
    for one in &stretches {
        write_shift(into, model, one);
    }
}

fn on_call_span(shift: &Shift) -> Option<OnCallSpan<'_>> {
    Some(OnCallSpan {
        start_ms: to_millis(shift.start_time.as_ref())?,
        end_ms: to_millis(shift.end_time.as_ref())?,
        names: &shift.contact_names,
        source: &shift.source,
    })
}

fn shift_appearance(one: &OnCallSpan<'_>) -> (Token, String) {
    match (one.names, one.source) {
        ([], _) => (Token::Bad, "no one".to_owned()),
        (names, "override") => (Token::Warning, names.join(", ")),
        (names, _) => (Token::Text, names.join(", ")),
    }
}

fn write_shift(into: &mut Document, model: &Model, one: &OnCallSpan<'_>) {
    let (token, names) = shift_appearance(one);
    let length = format_duration(one.end_ms - one.start_ms);
    let at = model.to_zoned(one.start_ms);
    let at = at.map_or_else(String::new, |at| {
        at.strftime("%a %Y-%m-%d %H:%M").to_string()
    });
    into.linked_line(
        vec![
            span(Token::Text, &format!("{at:<22}{length:>8}  ")),
            span(token, &names),
            span(Token::Dim, &format!("  {}", one.source)),
        ],
        Link::Shift(one.start_ms, one.end_ms),
    );
}

/// Draws a row per contact by local days: `█` if on call, `▒` if on call for part of the cell.
fn draw_shifts(into: &mut Document, model: &Model, stretches: &[OnCallSpan<'_>]) {
    let space = into.columns.saturating_sub(NAME + 2);
    let per_day = (space / DAYS).clamp(1, 3);
    let Some(cells) = cell_times(model, per_day) else {
        return;
    };
    draw_head(into, &cells, per_day);
    let mut names: Vec<&str> = Vec::new();
    for name in stretches.iter().flat_map(|it| it.names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names.iter().take(ROWS) {
        let has = |one: &OnCallSpan<'_>| one.names.iter().any(|it| it == name);
        draw_row(into, name, Token::Text, &cells, stretches, &has);
    }
    if names.len() > ROWS {
        let words = format!("and {} more", names.len() - ROWS);
        into.text(Token::Dim, 0, &words);
    }
    if stretches.iter().any(|it| it.names.is_empty()) {
        draw_row(into, "no one", Token::Bad, &cells, stretches, &|it| {
            it.names.is_empty()
        });
    }
}

fn cell_times(model: &Model, per_day: usize) -> Option<Vec<Zoned>> {
    let now = model.to_zoned(model.now_ms)?;
    let day = ZonedRound::new().smallest(Unit::Day);
    let start = now.round(day.mode(jiff::RoundMode::Floor)).ok()?;
    let hours = 24 / i64::try_from(per_day).ok()?;
    (0..=DAYS * per_day)
        .map(|at| {
            let at = i64::try_from(at).ok()?;
            let per_day = i64::try_from(per_day).ok()?;
            let day = start.checked_add((at / per_day).days()).ok()?;
            // A day with a clock change has 23 or 25 hours; its last cell is shorter or longer.
            day.checked_add((at % per_day * hours).hours()).ok()
        })
        .collect()
}

fn draw_head(into: &mut Document, cells: &[Zoned], per_day: usize) {
    let month = cells.first().map(|day| day.strftime("%b %Y").to_string());
    let mut line = month.unwrap_or_default();
    for (at, day) in cells.iter().step_by(per_day).take(DAYS).enumerate() {
        let is_monday = day.weekday() == jiff::civil::Weekday::Monday;
        let wanted = NAME + 1 + at * per_day;
        // The number of a day needs two cells and a gap.
        let fits = per_day > 2 || is_monday || at == 0;
        if fits && text::cell_width(&line) < wanted {
            line.push_str(&" ".repeat(wanted - text::cell_width(&line)));
            line.push_str(&day.strftime("%d").to_string());
        }
    }
    into.line(vec![span(Token::Dim, &line)]);
}

fn draw_row(
    into: &mut Document,
    name: &str,
    token: Token,
    cells: &[Zoned],
    stretches: &[OnCallSpan<'_>],
    has: &dyn Fn(&OnCallSpan<'_>) -> bool,
) {
    let shown = text::clean_text(name);
    let shown = text::fit_to_width(&shown, NAME);
    let pad = " ".repeat(NAME - text::cell_width(&shown) + 1);
    let mut spans: Vec<Span> = vec![span(token, &shown), span(Token::Text, &pad)];
    for cell in cells.windows(2) {
        let [start, end] = [0, 1].map(|at| to_ms(&cell[at]));
        let own = stretches.iter().filter(|it| has(it));
        let covered: i64 = own
            .clone()
            .map(|it| (it.end_ms.min(end) - it.start_ms.max(start)).max(0))
            .sum();
        let is_override = own
            .filter(|it| it.start_ms < end && start < it.end_ms)
            .any(|it| it.source == "override");
        let token = if is_override { Token::Warning } else { token };
        let sign = match covered {
            0 => "·",
            covered if covered >= end - start => "█",
            _ => "▒",
        };
        let token = if covered == 0 { Token::Dim } else { token };
        match spans.last_mut() {
            Some(last) if last.token == token => last.text.push_str(sign),
            _ => spans.push(span(token, sign)),
        }
    }
    into.line(spans);
}

fn to_ms(at: &Zoned) -> i64 {
    Timestamp::as_millisecond(at.timestamp())
}
