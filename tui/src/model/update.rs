//! Updates of the model: messages in, effects out. No waiting, no clock, no I/O.

mod attention;
mod bulk;
mod charts;
mod clash;
mod completion;
mod confirm;
mod copy;
mod events;
mod execute;
mod forms;
mod grouped;
mod heartbeats;
mod keys;
mod line_picks;
mod mouse;
mod navigate;
mod on_call;
mod outside;
mod overlays;
mod read;
mod report;
mod run;
mod screen;
mod selected;
mod server_update;
mod silencing;
mod step;
mod tested;
mod views;

pub(crate) use completion::completions;

use std::fmt;

use super::{
    Model, document,
    loaded::Loaded,
    message::{Effect, Msg},
    page::Content,
    reply::{Reply, ReplyHandler},
    write::Write,
};
use crate::{
    client::{Call, CallResult, Command, Ticket, parse_empty},
    data::Failure,
    limits,
    route::Route,
    theme::Token,
};

/// Handles a message. [`adjust_cursors`] must follow before the model is drawn.
pub(crate) fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    model.touched = true;
    let is_present = matches!(
        msg,
        Msg::Key(_) | Msg::Paste(_) | Msg::Resumed | Msg::Edited(..)
    );
    if is_present && !model.is_plain {
        attention::set_focus(model, true);
    }
    match msg {
        Msg::Act(action) => model.follow.push_back(action),
        Msg::Mouse(event) => mouse::handle_mouse(model, event),
        Msg::Find(target) => overlays::open_target(model, target),
        Msg::Choose(ids, mark) => navigate::choose_row(model, ids, mark),
        Msg::Line(at) => model.page.reading.cursor = at,
        Msg::Fill(index, text) => forms::fill_from_text(model, index, &text),
        Msg::Key(key) => keys::handle_key_press(model, key),
        Msg::Paste(text) => keys::handle_paste(model, &text),
        Msg::Resize(columns, rows) => model.size = (columns, rows),
        Msg::Server(item) => server_update::handle_server_update(model, item),
        Msg::Tick => handle_tick(model),
        Msg::Edited(edit, result) => forms::handle_edited(model, edit, result),
        Msg::Background(background) => model.background = Some(background),
        Msg::Focus(is_focused) => {
            model.touched = false;
            attention::set_focus(model, is_focused);
        }
        Msg::NotOpened(reason) => model.show_notice(Token::Bad, reason),
        Msg::ProgramEnded(output) => outside::show_output(model, &output),
        Msg::Resumed => {}
    }
    if let Some(at) = model.custom_command.take() {
        outside::run_command(model, at);
    }
    while let Some(action) = model.follow.pop_front() {
        run::run_action(model, action);
    }
    std::mem::take(&mut model.effects)
}

/// Merges received data and adjusts all cursors.
pub(crate) fn adjust_cursors(model: &mut Model) {
    model.store.events.merge_updates();
    let height = model.body_rows();
    if model.page.route.is_list() {
        let mut list = std::mem::take(&mut model.page.list);
        model.arrange_rows(&list);
        // The list does not follow new rows while a dialog is open or rows are marked.
        let is_busy = model.overlay.is_some() || !list.marks.is_empty();
        let follows = list.follows;
        list.follows &= !is_busy;
        let rows = model.rows_of_list(&list);
        list.restore_selection(&*rows, height.saturating_sub(1), model.now_ms);
        drop(rows);
        list.follows = follows;
        if model.page.route == Route::EVENTS {
            model.store.settle_coverage(list.top);
        }
        model.page.list = list;
    } else if matches!(model.page.content, Content::Form(_)) {
        // Forms are scrolled by the view, which knows their layout.
    } else {
        let lines = document::current_document(model).lines;
        let height = height.saturating_sub(model.head_rows());
        let is_link_page = model.is_link_page();
        let reading = &mut model.page.reading;
        if is_link_page {
            let mut rest = lines.iter().enumerate().skip(reading.cursor);
            let linked = rest.find(|(_, line)| line.link.is_some());
            reading.cursor = linked.map_or(reading.cursor, |(at, _)| at);
        }
        reading.clamp(lines.len(), height);
    }
    model.sync_row_details();
}

fn handle_tick(model: &mut Model) {
    // As time passes, a redraw is needed only for countdowns, elapsed times and ages.
    model.touched = model.counts_seconds() || model.shows_ages();
    model.touched |= model.is_response_overdue();
    model.touched |= model.page.form().is_some_and(|form| form.bench.count() > 0);
    if model.begun_until_ms.is_some_and(|at| at <= model.now_ms) {
        model.touched |= model.cancel_sequence();
    }
    let until = model.notice.as_ref().and_then(|notice| notice.until_ms);
    if until.is_some_and(|until| until <= model.now_ms) {
        model.notice = None;
        model.touched = true;
    }
    if model.is_connected() && model.refresh_at_ms().is_some_and(|at| at <= model.now_ms) {
        read::refresh_page(model);
    }
    if model.tabs_at_ms().is_some_and(|at| at <= model.now_ms) {
        read::read_tab_counts(model);
    }
    if model
        .next_shown_end_ms()
        .is_some_and(|at| at <= model.now_ms)
    {
        read::refresh_page(model);
    }
    if model.total_due_ms().is_some_and(|at| at <= model.now_ms) {
        read::count_events(model);
    }
    forms::check_if_due(model);
    forms::preview_if_due(model);
    read::count_if_due(model);
    read::read_row_details_if_due(model);
    read::read_coverage_if_due(model);
    attention::handle_tick(model);
    if model.cycle.is_some_and(|at| at <= model.now_ms) {
        model.cycle = Some(model.now_ms.saturating_add(limits::CYCLE_MS));
        screen::cycle_chart_period(model);
    }
}

/// Makes a read-only call, or the next call of a confirmed bulk change.
fn call(model: &mut Model, call: Call, handler: impl ReplyHandler) -> Ticket {
    debug_assert!(!call.is_write() || model.bulk_mut().is_some());
    send_call(model, call, Reply::Other(Box::new(handler)))
}

fn send_call(model: &mut Model, call: Call, reply: Reply) -> Ticket {
    let ticket = model.ticket();
    model.pending.insert(ticket, reply);
    model.send(Command::Call(ticket, call));
    ticket
}

/// Sends a write that the operator has confirmed or can undo.
fn send_write(model: &mut Model, call: Call, write: Box<Write>) {
    if !model.is_connected() {
        return model.show_notice(Token::Bad, "not connected; nothing was changed");
    }
    let parse = call.parse_outcome.unwrap_or(parse_empty);
    let ticket = send_call(model, call, Reply::Write(write, parse));
    if let Some(form) = model.page.form_mut() {
        form.waiting = Some(ticket);
    }
    model.page.list.marks.clear();
    model.show_notice(Token::Dim, "…");
}

/// Reads a value into a slot. The response is dropped if the slot waits for another one by then.
fn load<T: PartialEq + 'static>(
    model: &mut Model,
    call: Call,
    slot: fn(&mut Model) -> &mut Loaded<T>,
    parse: fn(CallResult) -> Result<T, Failure>,
) {
    let ticket = self::call(model, call, move |model, ticket, answer| {
        let now_ms = model.now_ms;
        let loaded = slot(model);
        loaded.waiting == Some(ticket) && loaded.record(parse(answer), now_ms)
    });
    let now_ms = model.now_ms;
    slot(model).request(ticket, now_ms);
}

/// Reads a value for the page on the screen, which may be in the history by the time of the
/// response.
fn load_for_page<T: PartialEq + 'static>(
    model: &mut Model,
    call: Call,
    parse: fn(CallResult) -> Result<T, Failure>,
    slot: fn(&mut Content) -> Option<&mut Loaded<T>>,
) {
    let ticket = self::call(model, call, move |model, ticket, answer| {
        let now_ms = model.now_ms;
        let loaded = model.waiting_slot(ticket, slot);
        loaded.is_some_and(|loaded| loaded.record(parse(answer), now_ms))
    });
    if let Some(loaded) = slot(&mut model.page.content) {
        loaded.request(ticket, model.now_ms);
    }
}

/// Reads the response that the page on the screen shows.
fn load_response<T: PartialEq + fmt::Debug + Send + 'static>(
    model: &mut Model,
    call: Call,
    parse: fn(CallResult) -> Result<T, Failure>,
) {
    let content = &mut model.page.content;
    if content.response::<T>().is_none() {
        *content = Content::Response(Box::new(Loaded::<T>::default()));
    }
    load_for_page(model, call, parse, Content::response_mut);
}

#[cfg(test)]
mod tests;
