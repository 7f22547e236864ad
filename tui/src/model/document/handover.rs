//! Handover: what the next shift needs to know about the last one.

use bellwether_proto::v1::{self, AuditEntry, Event, Occurrence, SearchEventsResponse};

use super::audit;
use crate::{
    data::{EventRow, Kind, Object, Status},
    document::{Document, Link, format_duration, span},
    kind::{EventCell, event_cell::pad_to_width, response},
    model::{
        Model,
        inquiry::{HOUR_MS, Handover},
        wall,
    },
    route::Route,
    text,
    theme::Token,
};

/// Maximum rows of each section.
const ROWS: usize = 20;

pub(super) fn describe_request(into: &mut Document, model: &Model, hours: i64) {
    let words = format!("The last {hours} h and the next {hours} h");
    into.text(Token::Text, 0, &words);
    let words = "‹longer_try› changes the time span, ‹copy› copies the page";
    into.text(Token::Dim, 0, &model.expand_keys(words));
}

pub(super) fn write(into: &mut Document, model: &Model, found: &Handover, hours: i64) {
    let since_ms = model.now_ms - hours * HOUR_MS;
    write_on_call(into, model);
    let (open, recent) = (found.open.as_ref(), found.recent.as_ref());
    write_opened(into, recent, since_ms);
    write_open(into, model, open);
    write_silences(into, model, model.now_ms + hours * HOUR_MS);
    write_failing(into, model);
    write_changes(into, model, found);
    write_notes(into, model, [open, recent], since_ms);
}

fn write_on_call(into: &mut Document, model: &Model) {
    into.heading("On call");
    let schedules = model.store.resources(Kind::Schedule).rows();
    if schedules.is_empty() {
        into.text(Token::Dim, 0, "No schedules yet.");
    }
    for one in schedules {
        super::on_call::write_schedule(into, model, one);
    }
}

fn write_opened(into: &mut Document, recent: Option<&SearchEventsResponse>, since_ms: i64) {
    let all = recent.into_iter().flat_map(|it| &it.results);
    let all = all.flat_map(|it| &it.occurrences);
    let opened: Vec<&Occurrence> = all.filter(|it| it.start_time >= since_ms).collect();
    let of = |status: Status| opened.iter().filter(|it| it.status() == status).count();
    let closed = of(Status::Closed);
    let is_all = recent.is_none_or(|it| {
        let info = it.page_info.as_ref();
        info.is_none_or(|info| info.has_next != Some(true))
    });
    let words = match opened.len() {
        0 => "none".to_owned(),
        count => {
            let more = if is_all { "" } else { "+" };
            format!(
                "{count}{more}, of which {closed} closed and {} still open",
                count - closed
            )
        }
    };
    into.heading("Opened");
    into.text(Token::Text, 0, &words);
}

/// Pairs the occurrences of a response with their rows; the rows have the order of the response.
fn occurrences(found: &SearchEventsResponse) -> impl Iterator<Item = (EventRow, &Occurrence)> {
    found.results.iter().flat_map(|event: &Event| {
        let rows = EventRow::from_event(event.clone());
        rows.into_iter().zip(&event.occurrences)
    })
}

fn write_open(into: &mut Document, model: &Model, open: Option<&SearchEventsResponse>) {
    let Some(open) = open else { return };
    let total = open.page_info.as_ref().and_then(|it| it.total_count);
    let rows: Vec<_> = occurrences(open).collect();
    let count = total.map_or(rows.len(), |it| usize::try_from(it).unwrap_or(0));
    into.heading(&format!("Still open  {count}"));
    let cells = into.columns.saturating_sub(OWNER + 3);
    if rows.is_empty() {
        into.text(Token::Good, 0, "nothing is open");
    } else {
        let titles = EventCell::column_titles(cells, &model.host_field);
        into.text(Token::Dim, 0, &format!("{titles} Owner"));
    }
    for (row, occurrence) in rows.iter().take(ROWS) {
        let owner = owner(model, row, occurrence);
        let mut line = EventCell::from_row(row, &model.host_field).spans(cells);
        let (token, words) = match owner {
            Some(name) => (Token::Info, name),
            None => (Token::Warning, "no one".to_owned()),
        };
        line.push(span(token, &format!(" {}", pad_to_width(&words, OWNER))));
        into.linked_line(line, Link::event(&*row.id));
    }
    if count > rows.len().min(ROWS) {
        let more = count - rows.len().min(ROWS);
        let link = Link::List(Route::EVENTS, String::new());
        into.linked_line(vec![span(Token::Link, &format!("and {more} more"))], link);
    }
}

const OWNER: usize = 16;

/// Returns the client that works on an event: the assignee, or else the one that acknowledged it.
fn owner(model: &Model, row: &EventRow, occurrence: &Occurrence) -> Option<String> {
    if !row.assignee.is_empty() {
        return Some(row.assignee.to_string());
    }
    let response = model.response_for_event(&row.id);
    let responds = response.filter(|it| it.text("state") == "ACKNOWLEDGED");
    let responder = responds.map(response::responder);
    let last = occurrence.history.iter().rev();
    let by = || {
        let mut acknowledgements = last.filter(|it| it.field == "acknowledged" && it.to == "true");
        acknowledgements.next().map(|it| it.author.clone())
    };
    let by = responder.or_else(|| row.acknowledged.then(by).flatten());
    by.filter(|name| !name.is_empty())
}

fn write_silences(into: &mut Document, model: &Model, until_ms: i64) {
    into.heading("Silences that end");
    let ends = |it: &Object| {
        let ms = it.timestamp_ms("endsTime")?;
        (ms > model.now_ms && ms <= until_ms).then_some(ms)
    };
    let rows = model.store.resources(Kind::Silence).rows().iter();
    let mut ending: Vec<_> = rows.filter_map(|it| Some((ends(it)?, it))).collect();
    ending.sort_by_key(|(ms, _)| *ms);
    if ending.is_empty() {
        into.text(Token::Dim, 0, "none");
    }
    for (ms, one) in ending {
        let line = vec![
            span(Token::Text, &pad_to_width(&model.format_time(ms), 17)),
            span(Token::Link, one.name()),
            span(Token::Dim, &format!("  {}", one.text("reason"))),
        ];
        let route = Route::Object(Kind::Silence, one.name().to_owned());
        into.linked_line(line, Link::Go(route));
    }
}

fn write_failing(into: &mut Document, model: &Model) {
    into.heading("Failing destinations");
    let Some(overview) = &model.store.overview.value else {
        return into.text(Token::Dim, 0, "not read yet");
    };
    let failing = wall::unhealthy_destinations(model, overview);
    if failing.is_empty() {
        into.text(Token::Dim, 0, "none");
    }
    for one in failing {
        into.text(one.token, 0, &format!("{}  {}", one.words, one.details));
    }
}

fn write_changes(into: &mut Document, model: &Model, found: &Handover) {
    into.heading("Changes");
    let entries = match &found.changes {
        Some(Ok(read)) => &read.entries,
        Some(Err(failure)) => return into.text(Token::Warning, 0, &failure.sentence()),
        None => return,
    };
    let is_change = |it: &&AuditEntry| {
        let is_operation = matches!(it.kind.as_str(), "occurrence" | "delivery");
        !is_operation && it.action() != v1::audit_entry::Action::Refused
    };
    let changes: Vec<_> = entries.iter().filter(is_change).collect();
    if changes.is_empty() {
        into.text(Token::Dim, 0, "none");
    }
    for row in changes.iter().take(ROWS) {
        audit::write_headline(into, model, row);
    }
    if changes.len() > ROWS {
        let words = format!("and {} more", changes.len() - ROWS);
        into.text(Token::Dim, 0, &words);
    }
}

fn write_notes(
    into: &mut Document,
    model: &Model,
    found: [Option<&SearchEventsResponse>; 2],
    since_ms: i64,
) {
    into.heading("Notes");
    let mut notes = Vec::new();
    for (row, occurrence) in found.into_iter().flatten().flat_map(occurrences) {
        let recent = occurrence.annotations.iter();
        for note in recent.filter(|it| it.create_time >= since_ms) {
            let is_known = |(_, known): &(EventRow, &v1::Annotation)| {
                known.annotation_id == note.annotation_id
            };
            if !notes.iter().any(is_known) {
                notes.push((row.clone(), note));
            }
        }
    }
    notes.sort_by_key(|(_, note)| std::cmp::Reverse(note.create_time));
    if notes.is_empty() {
        into.text(Token::Dim, 0, "none");
    }
    for (row, note) in notes.iter().take(ROWS) {
        let host = row.dimension(&model.host_field).unwrap_or_default();
        let about = format!("{} {host}", row.name);
        let line = vec![
            span(
                Token::Dim,
                &pad_to_width(&model.format_time(note.create_time), 17),
            ),
            span(Token::Title, &format!("{} ", note.author)),
            span(Token::Link, &text::clean_text(about.trim())),
        ];
        into.linked_line(line, Link::event(&*row.id));
        into.text(Token::Text, 2, &note.annotation);
    }
    if let Some((_, oldest)) = notes.get(ROWS) {
        let age = format_duration((model.now_ms - oldest.create_time).max(0));
        let words = format!("and {} more, the newest {age} old", notes.len() - ROWS);
        into.text(Token::Dim, 0, &words);
    }
}
