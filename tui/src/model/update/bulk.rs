//! Bulk changes: counting, confirmation, execution and cancellation.

use std::collections::{BTreeMap, HashSet};

use bellwether_proto::v1;
use crossterm::event::{KeyCode, KeyEvent};

use super::{call, confirm, read};
use crate::{
    client::{
        Call, CallResult, DeliverySelection, EventFilter, StatusChange, Ticket, WriteOutcome,
        deliveries, events, message,
    },
    data::{BulkTally, Failure, Kind, Transition},
    limits,
    model::{
        Model,
        bulk::{Bulk, BulkStep, EventBulk, EventTransition, ReceiverCount, Stage, Updates, Work},
        filter,
        overlay::Overlay,
        undo::UndoAction,
    },
    theme::Token,
};

pub(super) fn matching(model: &mut Model, transition: Transition) {
    let words = model.page.list.filter.trim().to_owned();
    match filter::parse_delivery_filter(&words, &model.clock()) {
        Ok(filter) => {
            let chosen = DeliverySelection::Matching { filter, words };
            begin_bulk(model, Work::Deliveries(transition, chosen));
        }
        Err(error) => model.show_notice(Token::Bad, error.to_string()),
    }
}

/// Starts a change of the marked deliveries; for a single one, asks immediately.
pub(super) fn begin_for_deliveries(model: &mut Model, transition: Transition) {
    let marks = &model.page.list.marks;
    if marks.len() < 2 || !model.page.route.is_list() {
        return confirm::confirm_delivery_change(model, transition);
    }
    let ids = marks.iter().take(limits::BULK_ITEMS).cloned().collect();
    begin_bulk(
        model,
        Work::Deliveries(transition, DeliverySelection::Ids(ids)),
    );
}

pub(super) fn begin_for_events(model: &mut Model, transition: EventTransition) {
    let filter = model.store.events.filter.clone();
    let words = match model.page.list.filter.trim() {
        "" => String::new(),
        typed => format!("with {typed}"),
    };
    begin_bulk(
        model,
        Work::Events(EventBulk::new(transition, filter, words)),
    );
}

pub(super) fn begin_for_group(model: &mut Model, change: StatusChange) {
    let Some(group) = model.group() else { return };
    let filter = match filter::parse_event_filter(&group.group_filter(), &model.filter_reader()) {
        Ok(clause) => EventFilter {
            clause,
            open_only: true,
            ..EventFilter::default()
        },
        Err(error) => return model.show_notice(Token::Bad, error.to_string()),
    };
    let events = EventBulk::new(EventTransition::Set(change), filter, group.description());
    begin_bulk(model, Work::Events(events));
}

/// Requests the number of messages that a change sends; returns `false` if no request is needed.
fn count_updates(model: &mut Model, bulk: &mut Bulk) -> bool {
    let Work::Events(events) = &bulk.work else {
        return false;
    };
    let mut request = v1::ListObligationsRequest {
        page_size: limits::RESOURCE_PAGE,
        ..v1::ListObligationsRequest::default()
    };
    if events.updates() {
        let rules = model.store.resources(Kind::Rule).rows().iter();
        let updating = rules.filter(|rule| rule.flag("sendUpdates"));
        request.rule_names = updating.map(|rule| rule.name().to_owned()).collect();
        if request.rule_names.is_empty() {
            bulk.updates = Some(Ok(Updates::default()));
            return false;
        }
    } else if !events.closes() {
        return false;
    }
    let updating = ReceiverCount {
        request,
        counts: BTreeMap::new(),
        calls: 0,
    };
    request_receivers(model, bulk, Box::new(updating));
    true
}

fn send_step(model: &mut Model, call: Call, step: BulkStep) -> Ticket {
    self::call(model, call, |model, ticket, answer| {
        handle_response(model, ticket, step, answer)
    })
}

fn request_receivers(model: &mut Model, bulk: &mut Bulk, mut updating: Box<ReceiverCount>) {
    updating.calls += 1;
    let call = Call::from_request("DeliveryService", &updating.request).with_long_timeout();
    let step = BulkStep::Updates(updating);
    bulk.waiting = Some(send_step(model, call, step));
}

/// Counts the notified receivers of a page; after the last page, asks for confirmation.
fn handle_receivers(
    model: &mut Model,
    mut bulk: Box<Bulk>,
    mut updating: Box<ReceiverCount>,
    answer: CallResult,
) {
    let meant: HashSet<&str> = match &bulk.work {
        Work::Events(events) => events.ids().iter().map(String::as_str).collect(),
        Work::Deliveries(..) => HashSet::new(),
    };
    let page: Result<v1::ListObligationsResponse, Failure> = message(answer);
    bulk.updates = Some(match page {
        Ok(page) => {
            let rows = page.obligations.into_iter();
            for row in rows.filter(|row| meant.contains(row.occurrence_id.as_str())) {
                *updating.counts.entry(row.destination_name).or_default() += 1;
            }
            let more = !page.next_page_token.is_empty();
            if more && updating.calls < limits::UPDATE_CALLS {
                updating.request.page_token = page.next_page_token;
                request_receivers(model, &mut bulk, updating);
                model.overlay = Some(Overlay::Bulk(bulk));
                return;
            }
            Ok((updating.counts, more))
        }
        Err(failure) => Err(failure.message),
    });
    prompt_confirmation(model, bulk);
}

fn prompt_confirmation(model: &mut Model, mut bulk: Box<Bulk>) {
    bulk.is_counted = true;
    bulk.stage = Stage::Asking { yes: false };
    model.overlay = Some(Overlay::Bulk(bulk));
}

fn begin_bulk(model: &mut Model, work: Work) {
    model.overlay = Some(Overlay::Bulk(Box::new(Bulk::new(work))));
    continue_next(model);
}

fn continue_next(model: &mut Model) {
    let Some((call, step)) = model.bulk_mut().map(|bulk| bulk.call()) else {
        return;
    };
    let ticket = send_step(model, call, step);
    if let Some(bulk) = model.bulk_mut() {
        bulk.waiting = Some(ticket);
    }
}

/// Resumes after a reconnect, without repeating completed batches. If the outcome of the last batch
/// is unknown, the operator has to confirm.
pub(super) fn on_reconnect(model: &mut Model) {
    let waits = |bulk: &mut Bulk| {
        let waited = bulk.waiting.take().is_some();
        let is_sure = match &bulk.work {
            Work::Deliveries(..) => true,
            Work::Events(events) => !bulk.is_counted || events.is_repeatable(),
        };
        if waited && !is_sure {
            let text = "connection lost: the last part may already be saved; Enter continues";
            bulk.stage = Stage::Failed(text.to_owned());
        }
        waited && is_sure
    };
    if model.bulk_mut().is_some_and(waits) {
        continue_next(model);
    }
}

pub(super) fn handle_key(model: &mut Model, mut bulk: Box<Bulk>, key: KeyEvent) {
    let leaves = matches!(key.code, KeyCode::Esc | KeyCode::Char('n' | 'q'));
    let can_be_quiet = bulk.can_be_quiet();
    match &mut bulk.stage {
        Stage::Counting if leaves => return abandon_bulk(model, &bulk),
        Stage::Asking { .. } if leaves => return,
        Stage::Asking { yes } => match key.code {
            KeyCode::Char('y') => return run_bulk(model, bulk),
            KeyCode::Char('w') if can_be_quiet => {
                if let Work::Events(events) = &mut bulk.work {
                    events.is_quiet = true;
                }
                return run_bulk(model, bulk);
            }
            KeyCode::Enter if *yes => return run_bulk(model, bulk),
            KeyCode::Enter => return,
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => *yes = !*yes,
            _ => {}
        },
        Stage::Running if leaves => bulk.stage = Stage::Stopping,
        Stage::Failed(_) if leaves => return finish(model, &bulk),
        Stage::Failed(_) if key.code == KeyCode::Enter => return run_bulk(model, bulk),
        _ => {}
    }
    model.overlay = Some(Overlay::Bulk(bulk));
}

/// Starts or resumes the change. All other functions call this one to do so.
fn run_bulk(model: &mut Model, mut bulk: Box<Bulk>) {
    if model.is_connected() {
        bulk.stage = if bulk.is_counted {
            Stage::Running
        } else {
            Stage::Counting
        };
        model.overlay = Some(Overlay::Bulk(bulk));
        return continue_next(model);
    }
    bulk.stage = Stage::Failed("not connected; Enter tries again".to_owned());
    model.overlay = Some(Overlay::Bulk(bulk));
}

fn abandon_bulk(model: &mut Model, bulk: &Bulk) {
    if let Some(ticket) = bulk.waiting {
        model.abandon(ticket);
    }
}

fn take_waiting(model: &mut Model, ticket: Ticket) -> Option<Box<Bulk>> {
    let waits =
        |overlay: &mut Overlay| matches!(overlay, Overlay::Bulk(it) if it.waiting == Some(ticket));
    match model.overlay.take_if(waits)? {
        Overlay::Bulk(mut bulk) => {
            bulk.waiting = None;
            Some(bulk)
        }
        _ => None,
    }
}

/// Handles the response to a step, unless the change no longer waits for it.
fn handle_response(model: &mut Model, ticket: Ticket, step: BulkStep, answer: CallResult) -> bool {
    let Some(mut bulk) = take_waiting(model, ticket) else {
        return false;
    };
    let host_field = model.host_field.clone();
    let found = match (step, &mut bulk.work) {
        (BulkStep::Deliveries(transition), _) => deliveries::parse_batch(transition, answer),
        (BulkStep::Count, Work::Events(events)) => match message(answer) {
            Ok(v1::CountEventsResponse { count, .. }) => {
                events.found = count.map(i64::from);
                let (call, step) = events.page(String::new());
                bulk.waiting = Some(send_step(model, call, step));
                model.overlay = Some(Overlay::Bulk(bulk));
                return false;
            }
            Err(failure) => Err(failure),
        },
        (BulkStep::Gather, Work::Events(events)) => events::parse_page(answer).map(|page| {
            let (tally, is_full) = events.add_page(page.rows, &host_field);
            let next = if is_full { String::new() } else { page.next };
            (tally, next)
        }),
        (BulkStep::Part(read), Work::Events(events)) => read(answer).map(|outcome| {
            let (failed, first_error) = match outcome {
                WriteOutcome::AllBut {
                    failed,
                    first_error,
                } => (i64::try_from(failed).unwrap_or(i64::MAX), first_error),
                _ => (0, String::new()),
            };
            let (count, is_last) = events.apply_batch(failed, first_error);
            let tally = BulkTally {
                count,
                ..BulkTally::default()
            };
            let next = if is_last { "" } else { "more" };
            (tally, next.to_owned())
        }),
        (BulkStep::Updates(updating), _) => {
            handle_receivers(model, bulk, updating, answer);
            return true;
        }
        (_, Work::Deliveries(..)) => return false,
    };
    handle_result(model, bulk, found);
    true
}

fn handle_result(
    model: &mut Model,
    mut bulk: Box<Bulk>,
    found: Result<(BulkTally, String), Failure>,
) {
    let (tally, next) = match found {
        Ok(found) => found,
        Err(failure) => {
            bulk.stage = Stage::Failed(format!("{}; Enter continues", failure.sentence()));
            model.overlay = Some(Overlay::Bulk(bulk));
            return;
        }
    };
    let is_end = next.is_empty();
    bulk.token = next;
    if bulk.is_counted {
        bulk.done.add(tally);
        if is_end || bulk.stage == Stage::Stopping {
            return finish(model, &bulk);
        }
    } else {
        bulk.counted.add(tally);
        if is_end && bulk.counted.count == 0 {
            return model.show_notice(Token::Info, bulk.empty_message());
        }
        if is_end {
            if count_updates(model, &mut bulk) {
                model.overlay = Some(Overlay::Bulk(bulk));
                return;
            }
            return prompt_confirmation(model, bulk);
        }
    }
    model.overlay = Some(Overlay::Bulk(bulk));
    continue_next(model);
}

fn finish(model: &mut Model, bulk: &Bulk) {
    let (outcome, has_failed) = bulk.outcome();
    if let Some(done) = bulk.to_undo() {
        model.record_undo(outcome.clone(), UndoAction::Many(Box::new(done)));
    }
    if bulk.is_complete() && has_failed {
        model.show_notice(Token::Bad, format!("✗ {outcome}"));
    } else if bulk.is_complete() {
        if bulk.to_undo().is_none() {
            model.show_notice(Token::Good, format!("✓ {outcome}"));
        }
    } else if bulk.token.is_empty() && bulk.is_counted {
        let left = bulk.counted.count - bulk.done.count;
        let text = format!("✓ {outcome}; {left} already done");
        model.show_notice(Token::Good, text);
    } else {
        let text = format!("stopped: {outcome}, of {} counted", bulk.counted.count);
        model.show_notice(Token::Warning, text);
    }
    model.page.list.marks.clear();
    read::refresh_after_write(model);
}
