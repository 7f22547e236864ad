//! What the connection tells: the link, answers, and occurrences as they change.

use super::{bulk, clash, forms, navigate, read};
use crate::{
    client::{Answer, LinkState, News, Ticket},
    data::{EventRow, Failure, FailureKind, Kind},
    editor,
    model::{
        Connection, Model,
        message::{Effect, Purpose, TextEdit, Write},
        overlay::Overlay,
        page::{Content, Found, Route},
    },
    theme::Token,
};

pub(super) fn hear(model: &mut Model, news: News, effects: &mut Vec<Effect>) {
    match news {
        News::Link(state) => link(model, state, effects),
        News::Answer(ticket, result) => answer(model, ticket, result, effects),
        News::Progress(ticket, progress) => {
            model.touched = false;
            if let Content::Report(report) = &mut model.page.content
                && report.found.waiting == Some(ticket)
            {
                report.progress = Some(progress);
                model.touched = true;
            }
        }
        News::Watched {
            generation,
            rows,
            left,
            token,
            gap,
        } => {
            let joined = model.store.events.joined;
            model.touched = !(rows.is_empty() && left.is_empty() && !gap && joined);
            if generation != model.store.events.generation {
                return;
            }
            model.store.events.resume_token = token;
            if gap {
                model.store.events.clear();
                model.say(
                    Token::Warning,
                    "some changes were missed while away; read afresh",
                );
            }
            let is_of_page = concerns_page(model, &rows, &left);
            if model.page.route == Route::Overview && !(rows.is_empty() && left.is_empty()) {
                read::soon(model);
            }
            model.store.events.stream(rows, left);
            if is_of_page {
                read::refresh(model, effects);
            }
            if !model.store.events.joined {
                // A page read after the stream began leaves nothing between the two.
                model.store.events.joined = true;
                read::first_page(model, effects);
            }
        }
        News::WatchRefused {
            generation,
            failure,
        } => {
            if generation == model.store.events.generation {
                model.store.events.stream_failure = Some(failure);
            }
        }
    }
}

/// Whether the event on the page is among those that changed.
fn concerns_page(model: &Model, rows: &[EventRow], left: &[String]) -> bool {
    let Route::Event(page) = &model.page.route else {
        return false;
    };
    // A page of an event's id alone shows its newest occurrence.
    let is_page = |id: &str| {
        let rest = id.strip_prefix(page.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    rows.iter().any(|row| is_page(&row.id)) || left.iter().any(|id| is_page(id))
}

fn link(model: &mut Model, state: LinkState, effects: &mut Vec<Effect>) {
    match state {
        LinkState::Connecting => {
            // While it is down the reason stays on the screen.
            if let Connection::Down { retry_at_ms, .. } = &mut model.link {
                *retry_at_ms = model.now_ms;
            }
        }
        LinkState::Up(caller) => {
            model.caller = Some(caller);
            model.link = Connection::Up;
            model.pending.clear();
            forget_waits(model);
            // The events, and what links and forms refer to, are there from the start.
            read::events_from_the_start(model, effects);
            if model.page.route != Route::Events {
                read::refresh(model, effects);
            }
            let kinds = [Kind::Trigger, Kind::Destination, Kind::Rule];
            read::resources(model, &kinds, effects);
            if let Some(form) = model.page.form_mut() {
                form.check_at_ms = Some(0);
            }
            bulk::link_is_up(model, effects);
        }
        LinkState::Down {
            failure,
            retry_in_ms,
        } => {
            let last_up_ms = match &model.link {
                Connection::Up => Some(model.now_ms),
                Connection::Down { last_up_ms, .. } => *last_up_ms,
                Connection::Connecting => None,
            };
            let wait = i64::try_from(retry_in_ms).unwrap_or(i64::MAX);
            let retry_at_ms = model.now_ms.saturating_add(wait);
            model.link = Connection::Down {
                failure,
                retry_at_ms,
                last_up_ms,
            };
        }
    }
}

/// Nothing asked over the link before will be answered over this one.
fn forget_waits(model: &mut Model) {
    let store = &mut model.store;
    store.overview.waiting = None;
    store.triggers.waiting = None;
    store.destinations.waiting = None;
    store.rules.waiting = None;
    store.deliveries.waiting = None;
    store.clients.waiting = None;
    store.events.waiting = None;
    if let Some(form) = model.page.form_mut() {
        form.waiting = None;
    }
    if let Content::Report(report) = &mut model.page.content
        && report.found.waiting.take().is_some()
    {
        let broke = "the connection broke before it was done";
        report.found.failure = Some(Failure::new(FailureKind::Unreachable, broke));
    }
}

fn answer(
    model: &mut Model,
    ticket: Ticket,
    result: Result<Answer, Failure>,
    effects: &mut Vec<Effect>,
) {
    let Some(purpose) = model.pending.remove(&ticket) else {
        return;
    };
    let now = model.now_ms;
    let read = match purpose {
        Purpose::Triggers => Some(Kind::Trigger),
        Purpose::Destinations => Some(Kind::Destination),
        Purpose::Rules => Some(Kind::Rule),
        _ => None,
    };
    let store = &mut model.store;
    let touched = match purpose {
        Purpose::Overview => store.overview.set(result.and_then(expect_overview), now),
        Purpose::Triggers => store.triggers.set(
            result.and_then(|answer| match answer {
                Answer::Triggers(rows) => Ok(rows),
                _ => Err(mixed_up()),
            }),
            now,
        ),
        Purpose::Destinations => store.destinations.set(
            result.and_then(|answer| match answer {
                Answer::Destinations(rows) => Ok(rows),
                _ => Err(mixed_up()),
            }),
            now,
        ),
        Purpose::Rules => store.rules.set(
            result.and_then(|answer| match answer {
                Answer::Rules(rows) => Ok(rows),
                _ => Err(mixed_up()),
            }),
            now,
        ),
        Purpose::Clients => store.clients.set(
            result.and_then(|answer| match answer {
                Answer::Clients(rows) => Ok(rows),
                _ => Err(mixed_up()),
            }),
            now,
        ),
        // With another filter they were asked for again meanwhile.
        Purpose::Deliveries { .. } if store.deliveries.waiting != Some(ticket) => false,
        Purpose::Deliveries { append } => deliveries(model, result, append),
        Purpose::Events { generation, append } => {
            events(model, (generation, append), result, effects);
            true
        }
        Purpose::Page => page(model, ticket, result),
        Purpose::Check { version } => {
            checked(model, version, result);
            true
        }
        Purpose::Bulk => {
            bulk::heard(model, ticket, result, effects);
            true
        }
        Purpose::Write(write) => {
            written(model, *write, result, effects);
            true
        }
    };
    model.touched = touched;
    if let Some(kind) = read {
        clash::show_if_read(model, kind);
    }
}

pub(super) fn mixed_up() -> Failure {
    Failure::new(FailureKind::Internal, "the console mixed up two answers")
}

fn expect_overview(answer: Answer) -> Result<crate::data::Overview, Failure> {
    match answer {
        Answer::Overview(overview) => Ok(*overview),
        _ => Err(mixed_up()),
    }
}

fn deliveries(model: &mut Model, result: Result<Answer, Failure>, append: bool) -> bool {
    let now = model.now_ms;
    let store = &mut model.store;
    match result {
        Ok(Answer::Deliveries(page)) => {
            let mut rows = page.rows;
            let held = store.deliveries.value.clone().unwrap_or_default();
            let fresh: std::collections::HashSet<String> =
                rows.iter().map(|row| row.id.clone()).collect();
            let kept = held.into_iter().filter(|row| !fresh.contains(&row.id));
            if append {
                let mut all: Vec<_> = kept.collect();
                all.append(&mut rows);
                rows = all;
                store.deliveries_next = page.next;
            } else {
                // A first page read again keeps the pages that were read after it.
                let oldest = rows.last().map(|row| row.id.clone());
                let more = !page.next.is_empty();
                let later: Vec<_> = kept
                    .filter(|row| more && oldest.as_ref().is_some_and(|oldest| row.id < *oldest))
                    .collect();
                if later.is_empty() {
                    store.deliveries_next = page.next;
                }
                rows.extend(later);
            }
            store.deliveries.set(Ok(rows), now)
        }
        Ok(_) => store.deliveries.set(Err(mixed_up()), now),
        Err(failure) => store.deliveries.set(Err(failure), now),
    }
}

fn events(
    model: &mut Model,
    (generation, append): (Ticket, bool),
    result: Result<Answer, Failure>,
    effects: &mut Vec<Effect>,
) {
    let events = &mut model.store.events;
    if generation != events.generation {
        return;
    }
    events.waiting = None;
    match result {
        Ok(Answer::Events(page)) => {
            if append || !events.loaded {
                events.next = page.next;
            }
            if page.total.is_some() {
                events.total = page.total;
            }
            events.page(page.rows);
            events.loaded = true;
            events.failure = None;
        }
        Ok(_) => events.failure = Some(mixed_up()),
        Err(failure) => events.failure = Some(failure),
    }
    if model.page.list.to_end && events.failure.is_none() {
        navigate::to_end(model, effects);
    }
}

/// Content of one page of the stack, found by the ticket it waits for.
fn page(model: &mut Model, ticket: Ticket, result: Result<Answer, Failure>) -> bool {
    let now = model.now_ms;
    let pages = std::iter::once(&mut model.page)
        .chain(&mut model.back)
        .chain(&mut model.forward);
    for page in pages {
        let waits = Some(ticket);
        match &mut page.content {
            Content::Event { detail, .. } if detail.waiting == waits => {
                return detail.set(
                    result.and_then(|answer| match answer {
                        Answer::Event(event) => Ok(*event),
                        _ => Err(mixed_up()),
                    }),
                    now,
                );
            }
            Content::Event { explanation, .. } if explanation.waiting == waits => {
                return explanation.set(
                    result.and_then(|answer| match answer {
                        Answer::Explanation(found) => Ok(*found),
                        _ => Err(mixed_up()),
                    }),
                    now,
                );
            }
            Content::Delivery(delivery) if delivery.waiting == waits => {
                return delivery.set(
                    result.and_then(|answer| match answer {
                        Answer::Delivery(found) => Ok(*found),
                        _ => Err(mixed_up()),
                    }),
                    now,
                );
            }
            Content::Report(report) if report.found.waiting == waits => {
                let found = result.and_then(|answer| match answer {
                    Answer::TestReport(test) => Ok(Found::Test(*test)),
                    Answer::TriggerTest(test) => Ok(Found::Matches(*test)),
                    Answer::RulePreview { previews, warnings } => {
                        Ok(Found::Previews { previews, warnings })
                    }
                    Answer::Obligations { rows, more } => Ok(Found::Obligations { rows, more }),
                    _ => Err(mixed_up()),
                });
                return report.found.set(found, now);
            }
            _ => {}
        }
    }
    false
}

/// The service looked at the form.
fn checked(model: &mut Model, version: u64, result: Result<Answer, Failure>) {
    let Some(form) = model.page.form_mut().filter(|form| form.version == version) else {
        return;
    };
    match result {
        Ok(_) => form.checked = true,
        Err(failure) if failure.kind == FailureKind::Invalid => {
            // A check on a pause does not move the focus under somebody's hands.
            let focus = (form.focus, form.part);
            form.take_failure(&failure);
            (form.focus, form.part) = focus;
        }
        // Anything else is told when it is saved.
        Err(_) => {}
    }
}

fn written(
    model: &mut Model,
    write: Write,
    result: Result<Answer, Failure>,
    effects: &mut Vec<Effect>,
) {
    if let Some(form) = model.page.form_mut() {
        form.waiting = None;
    }
    let Write {
        done,
        closes_form,
        text,
        then,
        mine,
    } = write;
    match result {
        Ok(answer) => {
            match answer {
                Answer::Done { failed: 0, .. } => model.say(Token::Good, format!("✓ {done}")),
                Answer::Done {
                    failed,
                    first_error,
                } => {
                    model.say(Token::Bad, format!("✗ {failed} failed: {first_error}"));
                }
                Answer::Key { name, key } => {
                    model.notice = None;
                    model.overlay = Some(Overlay::Key { name, key });
                }
                _ => {}
            }
            if closes_form && model.page.form().is_some() {
                navigate::leave_form(model, then.clone(), effects);
                model.say_next_step(then.as_ref());
            }
            after_write(model, effects);
        }
        Err(failure) => match mine.filter(|_| failure.kind == FailureKind::Conflict) {
            Some(mine) => {
                model.say(
                    Token::Warning,
                    "it changed meanwhile; reading what is stored now…",
                );
                clash::begin(model, *mine, effects);
            }
            None => refused(model, &failure, text, effects),
        },
    }
}

/// What a write may have changed is read again.
pub(super) fn after_write(model: &mut Model, effects: &mut Vec<Effect>) {
    let kinds = [Kind::Trigger, Kind::Destination, Kind::Rule];
    read::resources(model, &kinds, effects);
    match model.page.route {
        Route::Overview
        | Route::Event(_)
        | Route::Deliveries
        | Route::Delivery(_)
        | Route::Clients => read::refresh(model, effects),
        Route::Events if model.store.events.stream_failure.is_some() => {
            read::refresh(model, effects);
        }
        _ => {}
    }
}

fn refused(
    model: &mut Model,
    failure: &Failure,
    text: Option<TextEdit>,
    effects: &mut Vec<Effect>,
) {
    if let Some(form) = model.page.form_mut() {
        form.take_failure(failure);
    }
    let typed = text.filter(|_| model.page.form().is_none());
    if failure.kind == FailureKind::Invalid
        && let Some(edit) = typed
    {
        reopen(edit, failure, effects);
    } else {
        model.say(Token::Bad, format!("✗ {}", failure.sentence()));
        if let Some(edit) = typed {
            keep_text(model, edit);
        }
    }
    if failure.kind == FailureKind::Conflict {
        let kinds = [Kind::Trigger, Kind::Destination, Kind::Rule];
        read::resources(model, &kinds, effects);
    }
}

/// Opens the editor again, with the errors at their lines.
fn reopen(edit: TextEdit, failure: &Failure, effects: &mut Vec<Effect>) {
    let fields = failure.fields.iter();
    let mut problems: Vec<editor::Problem> = fields
        .map(|field| editor::Problem::new(&field.path, &field.message))
        .collect();
    if problems.is_empty() {
        problems.push(editor::Problem::new("", &failure.message));
    }
    let text = editor::annotate(&edit.text, &problems);
    effects.push(Effect::Edit(TextEdit { text, ..edit }));
}

/// What was written in the editor and could not be stored stays on the screen, as a form.
fn keep_text(model: &mut Model, edit: TextEdit) {
    if let Ok((json, _)) = editor::read(edit.kind, &edit.text) {
        forms::keep(model, edit.kind, edit.stored, json);
    }
}
