//! Handling of news from the connection: its state, responses, and changed occurrences.

use super::{attention, bulk, clash, forms, keys, navigate, read, silencing};
use crate::{
    client::{CallResult, LinkState, ServerUpdate, Ticket, WriteOutcome, events},
    data::{EventRow, Failure, FailureKind},
    editor,
    model::{
        Connection, Model,
        beside::RowDetails,
        message::Effect,
        overlay::Overlay,
        page::Content,
        reply::Reply,
        undo::UndoAction,
        write::{TextEdit, Write},
    },
    route::Route,
    theme::Token,
};

pub(super) fn handle_server_update(model: &mut Model, server_update: ServerUpdate) {
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
    apply(model, server_update);
    if is_from_service {
        model.last_received_ms = Some(model.now_ms);
    }
}

fn apply(model: &mut Model, server_update: ServerUpdate) {
    match server_update {
        ServerUpdate::Link(state) => handle_link_state(model, state),
        ServerUpdate::CallResult(ticket, found) => handle_response(model, ticket, found),
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
            let is_beside = |row: &EventRow| model.beside.is_about_row(&Route::EVENTS, &row.id);
            if rows.iter().any(is_beside) {
                model.beside.refresh_soon(model.now_ms);
            }
            model.store.events.queue_updates(rows, left);
            if is_of_page {
                read::refresh_page(model);
            }
            if !model.store.events.joined {
                // A page is read after the stream has begun, so that no change is missed.
                model.store.events.joined = true;
                read::read_first_page(model);
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

fn handle_link_state(model: &mut Model, state: LinkState) {
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
            read::read_events_from_start(model);
            if model.page.route != Route::EVENTS {
                read::refresh_page(model);
            }
            read::read_resources(model, &read::JOINED);
            if let Some(form) = model.page.form_mut() {
                form.check_at_ms = Some(0);
                form.live.due_ms = Some(0);
            }
            bulk::on_reconnect(model);
            silencing::on_reconnect(model);
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

fn handle_response(model: &mut Model, ticket: Ticket, answer: CallResult) {
    let Some(reply) = model.pending.remove(&ticket) else {
        return;
    };
    model.touched = match reply {
        Reply::Events { more } => handle_events(model, ticket, more, answer),
        Reply::List(kind, before) => {
            let changed = read::handle_page(model, kind, before, answer);
            if changed.is_some() {
                clash::show_if_read(model, kind);
            }
            changed.unwrap_or_default()
        }
        Reply::Write(write, parse) => {
            handle_write_result(model, *write, parse(answer));
            true
        }
        Reply::Other(handler) => handler(model, ticket, answer),
    };
    for key in std::mem::take(&mut model.keys_ahead) {
        keys::handle_key_press(model, key);
    }
}

fn handle_events(model: &mut Model, ticket: Ticket, more: bool, answer: CallResult) -> bool {
    if model.store.events.waiting != Some(ticket) {
        return false;
    }
    let page = events::parse_page(answer);
    let is_uncounted = !more && matches!(&page, Ok(page) if page.total.is_none());
    let events = &mut model.store.events;
    events.waiting = None;
    match page {
        Ok(page) => {
            if more || !events.loaded {
                events.next = page.next;
            }
            let error = read::unknown_field(&page.warnings, page.rows.is_empty() && !more);
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
        navigate::go_to_end(model);
    }
    if is_uncounted && !model.store.events.next.is_empty() {
        read::count_events(model);
    }
    true
}

fn handle_write_result(model: &mut Model, write: Write, result: Result<WriteOutcome, Failure>) {
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
                navigate::leave_form(model, then);
                if let Some(draft) = &draft {
                    model.show_next_step(draft);
                }
            }
            read::refresh_after_write(model);
        }
        Err(failure) => match draft.filter(|_| replaces && failure.kind == FailureKind::Conflict) {
            Some(mine) => {
                model.show_notice(
                    Token::Warning,
                    "changed concurrently; loading the stored version…",
                );
                clash::begin_clash(model, *mine);
            }
            None => handle_rejection(model, &failure, text),
        },
    }
}

fn handle_rejection(model: &mut Model, failure: &Failure, text: Option<TextEdit>) {
    if let Some(form) = model.page.form_mut() {
        form.show_failure(failure);
    }
    let typed = text.filter(|_| model.page.form().is_none());
    if failure.kind == FailureKind::Invalid
        && let Some(edit) = typed
    {
        reopen_editor(model, edit, failure);
    } else {
        model.show_notice(Token::Bad, format!("✗ {}", failure.sentence()));
        if let Some(edit) = typed {
            keep_text(model, edit);
        }
    }
    if failure.kind == FailureKind::Conflict {
        read::read_resources(model, &read::JOINED);
    }
}

fn reopen_editor(model: &mut Model, edit: TextEdit, failure: &Failure) {
    let problems = editor::field_problems(failure);
    let text = editor::annotate_text(&edit.text, &problems);
    model.effects.push(Effect::Edit(TextEdit { text, ..edit }));
}

fn keep_text(model: &mut Model, edit: TextEdit) {
    if let Ok(draft) = editor::parse_text(edit.kind, &edit.text) {
        forms::open_draft(model, draft.kind, edit.stored, draft.json);
    }
}
