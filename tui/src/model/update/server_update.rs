//! Handling of news from the connection: its state, responses, and changed occurrences.

use std::collections::HashSet;

use bellwether_proto::v1;

use super::{
    attention, bulk, charts, clash, copy, forms, keys, navigate, outside, read, report, silencing,
    tested,
};
use crate::{
    client::{
        self, CallResult, LinkState, Page, ServerUpdate, Ticket, WriteOutcome, deliveries, message,
        resources,
    },
    data::{EventRow, Failure, FailureKind, GroupedEvents, Kind, Object},
    editor,
    model::{
        Connection, Model,
        beside::RowDetails,
        inquiry::Outcome,
        loaded::Loaded,
        message::Effect,
        overlay::Overlay,
        page::Content,
        reply_purpose::{PendingInquiry, PendingSave, ReplyPurpose},
        undo::UndoAction,
        write::{TextEdit, Write},
    },
    route::Route,
    theme::Token,
};

pub(super) fn handle_server_update(
    model: &mut Model,
    server_update: ServerUpdate,
    effects: &mut Vec<Effect>,
) {
    let is_from_service = match &server_update {
        ServerUpdate::Link(_) => false,
        ServerUpdate::CallResult(_, Err(failure)) | ServerUpdate::WatchRejected { failure, .. } => {
            !matches!(
                failure.kind,
                FailureKind::Unreachable | FailureKind::TimedOut
            )
        }
        _ => true,
    };
    apply(model, server_update, effects);
    if is_from_service {
        model.last_received_ms = Some(model.now_ms);
    }
}

fn apply(model: &mut Model, server_update: ServerUpdate, effects: &mut Vec<Effect>) {
    match server_update {
        ServerUpdate::Link(state) => handle_link_state(model, state, effects),
        ServerUpdate::CallResult(ticket, found) => handle_response(model, ticket, found, effects),
        ServerUpdate::Progress(ticket, progress) => {
            model.touched = false;
            if let Content::Report(report) = &mut model.page.content
                && report.found.waiting == Some(ticket)
            {
                report.progress = Some(progress);
                model.touched = true;
            }
        }
        ServerUpdate::Watched {
            generation,
            rows,
            left,
            token,
            gap,
        } => {
            model.store.changed_ms = Some(model.now_ms);
            let joined = model.store.events.joined;
            model.touched = !(rows.is_empty() && left.is_empty() && !gap && joined);
            if generation != model.store.events.generation {
                return;
            }
            model.store.events.resume_token = token;
            if gap {
                model.store.events.clear();
                model.show_notice(Token::Warning, "some changes were missed; reloaded");
            }
            let is_of_page = affects_page(model, &rows, &left);
            if !(rows.is_empty() && left.is_empty()) {
                read::refresh_soon(model);
            }
            let is_beside = |row: &EventRow| model.beside.is_about_row(&Route::Events, &row.id);
            if rows.iter().any(is_beside) {
                model.beside.refresh_soon(model.now_ms);
            }
            model.store.events.queue_updates(rows, left);
            if is_of_page {
                read::refresh_page(model, effects);
            }
            if !model.store.events.joined {
                // A page is read after the stream has begun, so that no change is missed.
                model.store.events.joined = true;
                read::read_first_page(model, effects);
            }
        }
        ServerUpdate::WatchRejected {
            generation,
            failure,
        } => {
            if generation == model.store.events.generation {
                model.store.events.stream_failure = Some(failure);
            }
        }
    }
}

fn affects_page(model: &Model, rows: &[EventRow], left: &[String]) -> bool {
    let Route::Event(page) = &model.page.route else {
        return false;
    };
    // The page may have been opened with an event id, without an occurrence.
    let is_page = |id: &str| {
        let rest = id.strip_prefix(page.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    rows.iter().any(|row| is_page(&row.id)) || left.iter().any(|id| is_page(id))
}

fn handle_link_state(model: &mut Model, state: LinkState, effects: &mut Vec<Effect>) {
    match state {
        LinkState::Connecting => {
            // The reason for the disconnection stays on the screen.
            if let Connection::Down { retry_at_ms, .. } = &mut model.link {
                *retry_at_ms = model.now_ms;
            }
        }
        LinkState::Up(caller) => {
            model.caller = Some(caller);
            model.link = Connection::Up;
            model.pending.clear();
            clear_waiting(model);
            attention::on_reconnect(model);
            // Events, and the resources that links and forms use, are read at the start.
            read::read_events_from_start(model, effects);
            if model.page.route != Route::Events {
                read::refresh_page(model, effects);
            }
            read::read_resources(model, &read::JOINED, effects);
            if let Some(form) = model.page.form_mut() {
                form.check_at_ms = Some(0);
                form.live.due_ms = Some(0);
            }
            bulk::on_reconnect(model, effects);
            silencing::on_reconnect(model, effects);
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

fn clear_waiting(model: &mut Model) {
    model.store.reconnect();
    *model.beside = RowDetails::default();
    if let Some(form) = model.page.form_mut() {
        form.waiting = None;
        form.bench.waiting = None;
        form.saving = None;
        form.ahead.clear();
    }
    if let Content::Report(report) = &mut model.page.content
        && report.found.waiting.take().is_some()
    {
        let broke = "the connection was lost before it finished";
        report.found.failure = Some(Failure::new(FailureKind::Unreachable, broke));
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each kind of response")]
fn handle_response(
    model: &mut Model,
    ticket: Ticket,
    answer: CallResult,
    effects: &mut Vec<Effect>,
) {
    let Some(then) = model.pending.remove(&ticket) else {
        return;
    };
    let now = model.now_ms;
    let store = &mut model.store;
    model.touched = match then {
        ReplyPurpose::Overview => read::handle_overview(model, answer),
        ReplyPurpose::Statistics(back) => {
            charts::handle_statistics(model, ticket, back, answer, effects)
        }
        ReplyPurpose::Noisiest(counted, by) => {
            charts::handle_noise_response(model, ticket, counted, by, answer, effects)
        }
        ReplyPurpose::List(kind, before) => handle_list(model, kind, before, answer, effects),
        ReplyPurpose::One(kind) => store.replace(kind, resources::parse_object(kind, answer), now),
        // The deliveries were requested again with another filter in the meantime.
        ReplyPurpose::Deliveries { .. } if store.deliveries.waiting != Some(ticket) => false,
        ReplyPurpose::Deliveries { more } => {
            handle_deliveries(model, more, message(answer), effects)
        }
        ReplyPurpose::DeliveryCounts { of_all } => record_counts(model, ticket, of_all, answer),
        ReplyPurpose::LastHour => store.last_hour.record(message(answer), now),
        ReplyPurpose::Events { .. } if store.events.waiting != Some(ticket) => false,
        ReplyPurpose::Events { more } => {
            handle_events(model, more, client::events::parse_page(answer), effects);
            true
        }
        ReplyPurpose::EventTotal => record_event_total(model, ticket, answer),
        ReplyPurpose::Matching => {
            let found = client::events::parse_estimate(answer);
            model.page.list.matching.record(ticket, found)
        }
        ReplyPurpose::GroupedEvents => record_groups(model, ticket, message(answer)),
        ReplyPurpose::Copy => copy::handle_event(model, ticket, decode_event(answer), effects),
        ReplyPurpose::Attention => {
            attention::handle_open_events(model, ticket, answer);
            false
        }
        ReplyPurpose::Outside(task) => {
            outside::handle_event(model, ticket, task, decode_event(answer), effects)
        }
        ReplyPurpose::Event => {
            fill_slot(
                model,
                ticket,
                decode_event(answer),
                |content| match content {
                    Content::Event { detail, .. } => Some(&mut **detail),
                    _ => None,
                },
            )
        }
        ReplyPurpose::Explanation => {
            fill_slot(model, ticket, message(answer), |content| match content {
                Content::Event { explanation, .. } => Some(explanation),
                _ => None,
            })
        }
        ReplyPurpose::Coverage => model.store.coverage.record(ticket, message(answer), now),
        ReplyPurpose::RowDetails(part) => model.beside.record(ticket, part, answer, now),
        ReplyPurpose::Delivery => {
            let found: Result<v1::GetDeliveryResponse, _> = message(answer);
            let found = found.map(|it| it.delivery.unwrap_or_default());
            fill_slot(model, ticket, found, |content| match content {
                Content::Delivery(delivery) => Some(&mut **delivery),
                _ => None,
            })
        }
        ReplyPurpose::Shifts => {
            fill_slot(model, ticket, message(answer), |content| match content {
                Content::Shifts(shifts) => Some(shifts),
                _ => None,
            })
        }
        ReplyPurpose::Report(inquired) => handle_report(model, ticket, *inquired, answer, effects),
        ReplyPurpose::FormTest => handle_form_test(model, ticket, message(answer), effects),
        ReplyPurpose::TestQuestion(question) => {
            report::confirm_test(model, *question, message(answer));
            true
        }
        ReplyPurpose::Silence => silencing::handle_count(model, ticket, message(answer), effects),
        ReplyPurpose::SilenceValues => silencing::handle_values(model, ticket, message(answer)),
        ReplyPurpose::Check => record_check(model, ticket, answer),
        ReplyPurpose::Save(saving) => handle_validation(model, ticket, *saving, answer, effects),
        ReplyPurpose::Live => match model.page.form_mut() {
            Some(form) => form.record_live_response(ticket, answer),
            None => false,
        },
        ReplyPurpose::Bulk(step) => bulk::handle_response(model, ticket, step, answer, effects),
        ReplyPurpose::Write(write, read) => {
            handle_write_result(model, *write, read(answer), effects);
            true
        }
    };
}

/// Records the numbers of deliveries, unless another filter was requested in the meantime.
fn record_counts(model: &mut Model, ticket: Ticket, of_all: bool, answer: CallResult) -> bool {
    let counts = if of_all {
        &mut model.store.all_deliveries
    } else {
        &mut model.store.delivery_counts
    };
    let is_awaited = counts.waiting == Some(ticket);
    is_awaited && counts.record(deliveries::parse_counts(answer), model.now_ms)
}

/// Records events counted by a field, unless another field was requested in the meantime.
fn record_groups(
    model: &mut Model,
    ticket: Ticket,
    found: Result<v1::GroupEventsResponse, Failure>,
) -> bool {
    let groups = &mut model.store.event_groups;
    groups.waiting == Some(ticket) && groups.record(found.map(GroupedEvents::from), model.now_ms)
}

/// Asks whether to save the form, and passes on the keys pressed in the meantime.
fn handle_validation(
    model: &mut Model,
    ticket: Ticket,
    saving: PendingSave,
    answer: CallResult,
    effects: &mut Vec<Effect>,
) -> bool {
    let ahead = forms::handle_validation(model, ticket, saving, answer);
    let is_awaited = ahead.is_some();
    for key in ahead.into_iter().flatten() {
        keys::handle_key_press(model, key, effects);
    }
    is_awaited
}

fn handle_form_test(
    model: &mut Model,
    ticket: Ticket,
    found: Result<v1::TestDestinationResponse, Failure>,
    effects: &mut Vec<Effect>,
) -> bool {
    if let Ok(test) = &found {
        tested::close_created(model, test, effects);
    }
    report::record_form_test(model, ticket, found)
}

fn handle_report(
    model: &mut Model,
    ticket: Ticket,
    mut inquired: PendingInquiry,
    answer: CallResult,
    effects: &mut Vec<Effect>,
) -> bool {
    let found = inquired.inquiry.read(inquired.before.take(), answer);
    if let Ok(Outcome::Test(test)) = &found {
        tested::close_created(model, test, effects);
    }
    report::handle_response(model, ticket, inquired, found, effects)
}

fn decode_event(answer: CallResult) -> Result<v1::Event, Failure> {
    let found: v1::GetEventResponse = message(answer)?;
    Ok(found.result.unwrap_or_default())
}

fn fill_slot<T: PartialEq>(
    model: &mut Model,
    ticket: Ticket,
    found: Result<T, Failure>,
    slot: fn(&mut Content) -> Option<&mut Loaded<T>>,
) -> bool {
    let now = model.now_ms;
    let waits = model.waiting_slot(ticket, slot);
    waits.is_some_and(|loaded| loaded.record(found, now))
}

fn handle_list(
    model: &mut Model,
    kind: Kind,
    before: Vec<Object>,
    answer: CallResult,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(touched) = read::handle_page(model, kind, before, answer, effects) else {
        return false;
    };
    clash::show_if_read(model, kind);
    touched
}

fn handle_deliveries(
    model: &mut Model,
    more: bool,
    page: Result<v1::ListDeliveriesResponse, Failure>,
    effects: &mut Vec<Effect>,
) -> bool {
    let now = model.now_ms;
    let store = &mut model.store;
    let page = match page {
        Ok(page) => page,
        Err(failure) => return store.deliveries.record(Err(failure), now),
    };
    let error = unknown_field(&page.warnings, page.deliveries.is_empty() && !more);
    if !more {
        store.filter_warnings = page.warnings;
    }
    if let Some(error) = error {
        return store.deliveries.record(Err(error), now);
    }
    let next = page.next_page_token;
    let mut rows = page.deliveries;
    let fresh: HashSet<String> = rows.iter().map(|row| row.id.clone()).collect();
    let held = store.deliveries.value.clone().unwrap_or_default();
    let known = held.len();
    let retained = held.into_iter().filter(|row| !fresh.contains(&row.id));
    let retained: Vec<_> = retained.collect();
    let meets = known == 0 || retained.len() < known;
    let oldest = rows.last().map(|row| row.id.clone()).unwrap_or_default();
    let is_last = retained.last().is_none_or(|row| row.id > oldest);
    if more && store.deliveries_between.is_empty() || is_last || next.is_empty() {
        // The next page begins after the last loaded row.
        store.deliveries_next.clone_from(&next);
    }
    // A gap between the newest page and the loaded rows is read page by page.
    let between = !is_last && !meets && !next.is_empty();
    store.deliveries_between = if between { next.clone() } else { String::new() };
    // A loaded row that is newer than the end of the newest page, but not on it, no longer matches
    // the filter.
    let is_whole = next.is_empty() && (!more || !is_last);
    let is_there = |row: &v1::Delivery| {
        if more {
            !is_whole || row.id > oldest
        } else {
            !is_whole && row.id < oldest
        }
    };
    rows.extend(retained.into_iter().filter(is_there));
    // Sorts by id: newer deliveries have larger ids.
    rows.sort_by(|one, other| other.id.cmp(&one.id));
    let touched = store.deliveries.record(Ok(rows), now);
    if between {
        read::read_gap_page(model, effects);
    }
    touched
}

/// Returns an error for a filter without results if it names a field that no event has.
fn unknown_field(warnings: &[String], is_empty: bool) -> Option<Failure> {
    let warning = warnings.first().filter(|_| is_empty)?;
    Some(Failure::new(FailureKind::Invalid, warning.clone()))
}

fn handle_events(
    model: &mut Model,
    more: bool,
    page: Result<Page<EventRow>, Failure>,
    effects: &mut Vec<Effect>,
) {
    let is_uncounted = !more && matches!(&page, Ok(page) if page.total.is_none());
    let events = &mut model.store.events;
    events.waiting = None;
    match page {
        Ok(page) => {
            if more || !events.loaded {
                events.next = page.next;
            }
            let error = unknown_field(&page.warnings, page.rows.is_empty() && !more);
            if !more {
                model.store.filter_warnings = page.warnings;
            }
            if let Some(total) = page.total {
                events.total.record(Ok(total), model.now_ms);
            }
            events.add_page(page.rows);
            events.loaded = true;
            events.failure = error;
        }
        Err(failure) => events.failure = Some(failure),
    }
    if model.page.list.to_end && events.failure.is_none() {
        navigate::go_to_end(model, effects);
    }
    if is_uncounted && !model.store.events.next.is_empty() {
        read::count_events(model, effects);
    }
}

/// Records the total of a query, unless the list has another query by now.
fn record_event_total(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let counted: Result<v1::CountEventsResponse, Failure> = message(answer);
    let counted = counted.map(|it| it.count.unwrap_or_default());
    let total = &mut model.store.events.total;
    total.waiting == Some(ticket) && total.record(counted, model.now_ms)
}

fn record_check(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let Some(form) = model.page.form_mut() else {
        return false;
    };
    if form.checking != Some((ticket, form.version)) {
        return false;
    }
    match answer {
        Ok(_) => form.checked = true,
        Err(failure) if failure.kind == FailureKind::Invalid => {
            // A validation during a pause in typing must not move the focus.
            let focus = form.focus;
            form.show_failure(&failure);
            form.focus = focus;
        }
        // Any other error is reported when the form is saved.
        Err(_) => {}
    }
    true
}

fn handle_write_result(
    model: &mut Model,
    write: Write,
    result: Result<WriteOutcome, Failure>,
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
        back,
        at_once,
        draft,
        replaces,
    } = write;
    match result {
        Ok(outcome) => {
            match outcome {
                WriteOutcome::All => match back {
                    Some(back) => model.record_undo(done, back),
                    None => model.show_notice(Token::Good, format!("✓ {done}")),
                },
                WriteOutcome::Silence(name) => model.record_undo(done, UndoAction::Silence(name)),
                WriteOutcome::Notes(notes) if at_once => {
                    model.record_undo(done, UndoAction::Notes(notes));
                }
                WriteOutcome::Notes(_) => model.show_notice(Token::Good, format!("✓ {done}")),
                WriteOutcome::AllBut {
                    failed,
                    first_error,
                } => {
                    if let Some(back) = back {
                        model.record_undo(done, back);
                    }
                    model.show_notice(Token::Bad, format!("✗ {failed} failed: {first_error}"));
                }
                WriteOutcome::Key { name, key } => {
                    model.notice = None;
                    model.overlay = Some(Overlay::Key { name, key });
                }
            }
            if closes_form && model.page.form().is_some() {
                navigate::leave_form(model, then, effects);
                if let Some(draft) = &draft {
                    model.show_next_step(draft);
                }
            }
            read::refresh_after_write(model, effects);
        }
        Err(failure) => match draft.filter(|_| replaces && failure.kind == FailureKind::Conflict) {
            Some(mine) => {
                model.show_notice(
                    Token::Warning,
                    "changed concurrently; loading the stored version…",
                );
                clash::begin_clash(model, *mine, effects);
            }
            None => handle_rejection(model, &failure, text, effects),
        },
    }
}

fn handle_rejection(
    model: &mut Model,
    failure: &Failure,
    text: Option<TextEdit>,
    effects: &mut Vec<Effect>,
) {
    if let Some(form) = model.page.form_mut() {
        form.show_failure(failure);
    }
    let typed = text.filter(|_| model.page.form().is_none());
    if failure.kind == FailureKind::Invalid
        && let Some(edit) = typed
    {
        reopen_editor(edit, failure, effects);
    } else {
        model.show_notice(Token::Bad, format!("✗ {}", failure.sentence()));
        if let Some(edit) = typed {
            keep_text(model, edit);
        }
    }
    if failure.kind == FailureKind::Conflict {
        read::read_resources(model, &read::JOINED, effects);
    }
}

fn reopen_editor(edit: TextEdit, failure: &Failure, effects: &mut Vec<Effect>) {
    let problems = editor::field_problems(failure);
    let text = editor::annotate_text(&edit.text, &problems);
    effects.push(Effect::Edit(TextEdit { text, ..edit }));
}

fn keep_text(model: &mut Model, edit: TextEdit) {
    if let Ok(draft) = editor::parse_text(edit.kind, &edit.text) {
        forms::open_draft(model, draft.kind, edit.stored, draft.json);
    }
}
