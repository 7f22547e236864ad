//! The current on-call contacts of each schedule, and the active responses.

use std::collections::HashMap;

use bellwether_language::filter;

use crate::{
    data::{Kind, Object},
    document::{Document, Link, format_duration, span},
    kind::{
        EventCell,
        event_cell::{self, pad_to_width},
        response,
    },
    model::{Model, loaded::Slot},
    route::Route,
    text,
    theme::Token,
};

const NAME: usize = 20;
const WHO: usize = 22;
const UNTIL: usize = 24;
const OPEN: usize = 8;
/// Minimum width of the columns of who is notified now and next.
const LEAST: usize = 10;
/// Maximum number of responses listed individually; more are grouped by host.
const ROWS: usize = 20;

pub(super) fn write(into: &mut Document, model: &Model) {
    into.heading("On call now");
    let schedules = model.store.resources(Kind::Schedule);
    if schedules.value.is_none() {
        into.loading_or_failure(schedules.pending_ticket().is_some(), schedules.failure());
    } else if schedules.rows().is_empty() {
        let words = "No schedules yet. ‹go_schedules› shows where to create one.";
        into.text(Token::Dim, 0, &model.expand_keys(words));
    }
    for one in schedules.rows() {
        write_schedule(into, model, one);
    }
    into.heading(&responses_title(model));
    let responses = model.store.resources(Kind::Response);
    if responses.value.is_none() {
        into.loading_or_failure(responses.pending_ticket().is_some(), responses.failure());
    } else if responses.rows().is_empty() {
        into.text(Token::Dim, 0, "No one is paged.");
    }
    let rows = build_rows(model);
    if !rows.is_empty() {
        write_rows(into, model, &rows);
    }
}

/// A row of the table: a response, or all responses about one host.
struct Row {
    event: EventCell,
    open: String,
    now: (Token, String),
    next: String,
    link: Link,
}

fn responses_title(model: &Model) -> String {
    let rows = model.store.resources(Kind::Response).rows();
    let states = ["unanswered", "paging", "held", "responded"];
    let counts = states.map(|state| {
        let in_state = rows.iter().filter(|it| response::state(it).1 == state);
        (in_state.count(), state)
    });
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = counts
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    format!("Responses  {}", words.join(", "))
        .trim_end()
        .to_owned()
}

fn build_rows(model: &Model) -> Vec<Row> {
    let all: Vec<&Object> = model.store.responses_by_urgency().collect();
    if all.len() <= ROWS {
        return all.iter().map(|one| response_row(model, one)).collect();
    }
    let mut hosts: Vec<(String, Vec<&Object>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for one in all {
        let host = model.store.host(one, &model.host_field);
        let place = *places.entry(host.clone()).or_insert_with(|| {
            hosts.push((host, Vec::new()));
            hosts.len() - 1
        });
        hosts[place].1.push(one);
    }
    hosts
        .iter()
        .map(|(host, of_host)| host_row(model, host, of_host))
        .collect()
}

fn response_row(model: &Model, response: &Object) -> Row {
    Row {
        event: EventCell::from_object(model, response),
        open: format_open_duration(model, response.timestamp_ms("beginTime")),
        now: model.describe_current_step(response),
        next: model.describe_next_step(response),
        link: Link::object(Kind::Response, response.name()),
    }
}

/// Returns the row of a host: its most urgent response, with the worst severity and the longest
/// time of all.
fn host_row(model: &Model, host: &str, responses: &[&Object]) -> Row {
    let first = response_row(model, responses[0]);
    if responses.len() == 1 {
        return first;
    }
    let severities = responses.iter().map(|it| event_cell::severity(it));
    let begun = responses
        .iter()
        .filter_map(|it| it.timestamp_ms("beginTime"));
    let list = Route::List(Kind::Response);
    // The column of hosts shows another dimension if the operator counted by it.
    let is_host = model.host_field == "host" && !host.is_empty();
    let link = if is_host {
        Link::List(list, filter::print_condition("host", host))
    } else {
        Link::Go(list)
    };
    Row {
        event: EventCell {
            severity: severities.max().unwrap_or(first.event.severity),
            name: format!("{} events", responses.len()),
            ..first.event
        },
        open: format_open_duration(model, begun.min()),
        link,
        ..first
    }
}

fn format_open_duration(model: &Model, since: Option<i64>) -> String {
    let length = since.map(|ms| (model.now_ms - ms).max(0));
    // Shows whole minutes, so that the column does not change every second.
    length.map_or_else(String::new, |ms| match ms {
        ..60_000 => "<1 min".to_owned(),
        60_000..7_200_000 => format!("{} min", ms / 60_000),
        ms => format_duration(ms),
    })
}

fn write_rows(into: &mut Document, model: &Model, rows: &[Row]) {
    let space = into.columns.saturating_sub(1);
    let widest = |width: fn(&Row) -> usize, most: usize| {
        let widest = rows.iter().map(width).max().unwrap_or(0);
        widest.clamp(LEAST, most.max(LEAST))
    };
    let now = widest(|row| text::cell_width(&row.now.1), space / 4);
    let next = widest(|row| text::cell_width(&row.next), space * 3 / 10);
    let event = space.saturating_sub(OPEN + now + next + 4);
    let titles = format!(
        "{}  {} {} {}",
        EventCell::column_titles(event, &model.host_field),
        pad_to_width("Open for", OPEN),
        pad_to_width("Now", now),
        pad_to_width("Next", next)
    );
    into.line(vec![span(Token::Dim, titles.trim_end())]);
    for row in rows {
        let mut spans = row.event.spans(event);
        spans.push(span(
            Token::Dim,
            &format!("  {} ", pad_to_width(&row.open, OPEN)),
        ));
        spans.push(span(
            row.now.0,
            &format!("{} ", pad_to_width(&row.now.1, now)),
        ));
        spans.push(span(Token::Text, &pad_to_width(&row.next, next)));
        into.linked_line(spans, row.link.clone());
    }
}

pub(super) fn write_schedule(into: &mut Document, model: &Model, schedule: &Object) {
    let names = |field: &str| {
        let names: Vec<_> = schedule.texts(field).collect();
        match names.as_slice() {
            [] => "no one".to_owned(),
            names => names.join(", "),
        }
    };
    let is_gap = schedule.texts("onCallNames").next().is_none();
    let is_meant = schedule.flag("gapsAllowed");
    let token = match (is_gap, is_meant) {
        (true, false) => Token::Bad,
        (true, true) => Token::Dim,
        (false, _) => Token::Text,
    };
    let (until, next) = match schedule.timestamp_ms("nextChangeTime") {
        Some(ms) => (
            format!("until {}", model.format_time(ms)),
            format!("then {}", names("nextNames")),
        ),
        None => ("no change ahead".to_owned(), String::new()),
    };
    let name = schedule.name();
    let shown = pad_to_width(name, NAME);
    let gap = NAME + 1 - text::cell_width(shown.trim_end());
    into.linked_line(
        vec![
            span(Token::Link, shown.trim_end()),
            span(Token::Text, &" ".repeat(gap)),
            span(
                token,
                &format!("{} ", pad_to_width(&names("onCallNames"), WHO)),
            ),
            span(Token::Dim, &format!("{} ", pad_to_width(&until, UNTIL))),
            span(Token::Dim, &next),
        ],
        Link::object(Kind::Schedule, name),
    );
}
