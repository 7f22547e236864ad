//! Something done to many: the count, the question, the work, and how it is stopped.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent};

use super::{call, confirm, read};
use crate::{
    client::{Chosen, Command, EventFilter, Page, StatusChange, Taken, Ticket},
    data::{BulkTally, EventRow, Failure, Kind, Transition},
    limits,
    model::{
        Model,
        bulk::{Bulk, EventBulk, EventTransition, Stage, Work},
        filter,
        message::Effect,
        overlay::Overlay,
    },
    theme::Token,
};

/// Begins with all deliveries that the list's filter leaves.
pub(super) fn matching(model: &mut Model, transition: Transition, effects: &mut Vec<Effect>) {
    let words = model.page.list.filter.trim().to_owned();
    match filter::deliveries(&words, &model.clock()) {
        Ok(filter) => {
            let chosen = Chosen::Matching { filter, words };
            begin(model, Work::Deliveries(transition, chosen), effects);
        }
        Err(fault) => model.say(Token::Bad, fault.to_string()),
    }
}

/// Begins with the marked deliveries; of one alone, asks immediately.
pub(super) fn deliveries(model: &mut Model, transition: Transition, effects: &mut Vec<Effect>) {
    let marks = &model.page.list.marks;
    if marks.len() < 2 || !model.page.route.is_list() {
        return confirm::delivery(model, transition);
    }
    let ids = marks.iter().take(limits::BULK_ITEMS).cloned().collect();
    begin(
        model,
        Work::Deliveries(transition, Chosen::Ids(ids)),
        effects,
    );
}

/// Begins with all events that the list's filter leaves.
pub(super) fn events(model: &mut Model, transition: EventTransition, effects: &mut Vec<Effect>) {
    let filter = model.store.events.filter.clone();
    let words = match model.page.list.filter.trim() {
        "" => String::new(),
        typed => format!("with {typed}"),
    };
    begin(
        model,
        Work::Events(EventBulk::new(transition, filter, words)),
        effects,
    );
}

/// Begins with all open events of the group under the cursor.
pub(super) fn group(model: &mut Model, change: StatusChange, effects: &mut Vec<Effect>) {
    let Some(group) = model.group() else { return };
    let filter = match filter::events(&group.whole(), &model.reader()) {
        Ok(clause) => EventFilter {
            clause,
            open_only: true,
            ..EventFilter::default()
        },
        Err(fault) => return model.say(Token::Bad, fault.to_string()),
    };
    let events = EventBulk::new(EventTransition::Set(change), filter, group.words());
    begin(model, Work::Events(events), effects);
}

/// Asks for the number of messages that a change sends; `false` where it sends none.
fn count_updates(model: &mut Model, bulk: &mut Bulk, effects: &mut Vec<Effect>) -> bool {
    let Work::Events(events) = &bulk.work else {
        return false;
    };
    let rules = model.store.of(Kind::Rule).rows().iter();
    let updating = rules.filter(|rule| rule.flag("sendUpdates"));
    let updating = updating.map(|rule| rule.name().to_owned()).collect();
    let Some(request) = events.count_updates(updating) else {
        return false;
    };
    bulk.waiting = Some(call(model, request, effects));
    true
}

/// Processes the number of messages that a change sends, and asks for a Yes.
pub(super) fn updates(
    model: &mut Model,
    ticket: Ticket,
    found: Result<(BTreeMap<String, i64>, bool), Failure>,
) -> bool {
    let Some(mut bulk) = waiting(model, ticket) else {
        return false;
    };
    bulk.updates = Some(found.map_err(|failure| failure.message));
    agree(model, bulk);
    true
}

/// Asks for a Yes to what was counted.
fn agree(model: &mut Model, mut bulk: Box<Bulk>) {
    bulk.is_counted = true;
    bulk.stage = Stage::Asking { yes: false };
    model.overlay = Some(Overlay::Bulk(bulk));
}

fn begin(model: &mut Model, work: Work, effects: &mut Vec<Effect>) {
    model.overlay = Some(Overlay::Bulk(Box::new(Bulk::new(work))));
    go_on(model, effects);
}

/// Asks the service for the next part.
fn go_on(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(request) = model.bulk_mut().map(|bulk| bulk.request()) else {
        return;
    };
    let ticket = call(model, request, effects);
    if let Some(bulk) = model.bulk_mut() {
        bulk.waiting = Some(ticket);
    }
}

/// Continues after the link was away: what was done before is not done again. If that is unclear,
/// the user has to confirm it.
pub(super) fn link_is_up(model: &mut Model, effects: &mut Vec<Effect>) {
    let waits = |bulk: &mut Bulk| {
        let waited = bulk.waiting.take().is_some();
        let is_sure = match &bulk.work {
            Work::Deliveries(..) => true,
            Work::Events(events) => !bulk.is_counted || events.is_repeatable(),
        };
        if waited && !is_sure {
            let text =
                "the connection broke: the last part may be written already; Enter continues";
            bulk.stage = Stage::Failed(text.to_owned());
        }
        waited && is_sure
    };
    if model.bulk_mut().is_some_and(waits) {
        go_on(model, effects);
    }
}

pub(super) fn press(
    model: &mut Model,
    mut bulk: Box<Bulk>,
    key: KeyEvent,
    effects: &mut Vec<Effect>,
) {
    let leaves = matches!(key.code, KeyCode::Esc | KeyCode::Char('n' | 'q'));
    match &mut bulk.stage {
        Stage::Counting if leaves => return abandon(model, &bulk, effects),
        Stage::Asking { .. } if leaves => return,
        Stage::Asking { yes } => match key.code {
            KeyCode::Char('y') => return run(model, bulk, effects),
            KeyCode::Enter if *yes => return run(model, bulk, effects),
            KeyCode::Enter => return,
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => *yes = !*yes,
            _ => {}
        },
        Stage::Running if leaves => bulk.stage = Stage::Stopping,
        Stage::Failed(_) if leaves => return end(model, &bulk, effects),
        Stage::Failed(_) if key.code == KeyCode::Enter => return run(model, bulk, effects),
        _ => {}
    }
    model.overlay = Some(Overlay::Bulk(bulk));
}

/// The one place that the work begins from, and continues from after a failure.
fn run(model: &mut Model, mut bulk: Box<Bulk>, effects: &mut Vec<Effect>) {
    if model.is_up() {
        bulk.stage = if bulk.is_counted {
            Stage::Running
        } else {
            Stage::Counting
        };
        model.overlay = Some(Overlay::Bulk(bulk));
        return go_on(model, effects);
    }
    bulk.stage = Stage::Failed("not connected; Enter tries again".to_owned());
    model.overlay = Some(Overlay::Bulk(bulk));
}

fn abandon(model: &mut Model, bulk: &Bulk, effects: &mut Vec<Effect>) {
    if let Some(ticket) = bulk.waiting {
        model.pending.remove(&ticket);
        effects.push(Effect::Send(Command::Abandon(ticket)));
    }
}

/// The work that waits for this answer, taken out of the way.
fn waiting(model: &mut Model, ticket: Ticket) -> Option<Box<Bulk>> {
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

/// Processes a page of the events that are meant.
pub(super) fn gathered(
    model: &mut Model,
    ticket: Ticket,
    found: Result<(Page<EventRow>, Option<i64>), Failure>,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(mut bulk) = waiting(model, ticket) else {
        return false;
    };
    let found = found.map(|(page, count)| match &mut bulk.work {
        Work::Events(events) => {
            let (tally, is_full) = events.take(page.rows, count);
            let next = if is_full { String::new() } else { page.next };
            (tally, next)
        }
        Work::Deliveries(..) => (BulkTally::default(), String::new()),
    });
    go_on_with(model, bulk, found, effects);
    true
}

/// Processes the outcome of a part of the events.
pub(super) fn written(
    model: &mut Model,
    ticket: Ticket,
    result: Result<Taken, Failure>,
    effects: &mut Vec<Effect>,
) {
    let Some(mut bulk) = waiting(model, ticket) else {
        return;
    };
    let found = result.map(|taken| {
        let (failed, first_error) = match taken {
            Taken::AllBut {
                failed,
                first_error,
            } => (i64::try_from(failed).unwrap_or(i64::MAX), first_error),
            Taken::All | Taken::Notes(_) | Taken::Silence(_) | Taken::Key { .. } => {
                (0, String::new())
            }
        };
        let (count, is_last) = match &mut bulk.work {
            Work::Events(events) => events.done(failed, first_error),
            Work::Deliveries(..) => (0, true),
        };
        let tally = BulkTally {
            count,
            ..BulkTally::default()
        };
        let next = if is_last { "" } else { "more" };
        (tally, next.to_owned())
    });
    go_on_with(model, bulk, found, effects);
}

/// Processes what was done to deliveries, or would be.
pub(super) fn heard(
    model: &mut Model,
    ticket: Ticket,
    found: Result<(BulkTally, String), Failure>,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(bulk) = waiting(model, ticket) else {
        return false;
    };
    go_on_with(model, bulk, found, effects);
    true
}

/// Counts what came, and asks for more, for a Yes, or for nothing any more.
fn go_on_with(
    model: &mut Model,
    mut bulk: Box<Bulk>,
    found: Result<(BulkTally, String), Failure>,
    effects: &mut Vec<Effect>,
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
            return end(model, &bulk, effects);
        }
    } else {
        bulk.counted.add(tally);
        if is_end && bulk.counted.count == 0 {
            return model.say(Token::Info, bulk.nothing());
        }
        if is_end {
            if count_updates(model, &mut bulk, effects) {
                model.overlay = Some(Overlay::Bulk(bulk));
                return;
            }
            return agree(model, bulk);
        }
    }
    model.overlay = Some(Overlay::Bulk(bulk));
    go_on(model, effects);
}

fn end(model: &mut Model, bulk: &Bulk, effects: &mut Vec<Effect>) {
    let (outcome, has_failed) = bulk.outcome();
    if bulk.is_through() && has_failed {
        model.say(Token::Bad, format!("✗ {outcome}"));
    } else if bulk.is_through() {
        model.say(Token::Good, format!("✓ {outcome}"));
    } else if bulk.token.is_empty() && bulk.is_counted {
        let left = bulk.counted.count - bulk.done.count;
        let text = format!("✓ {outcome}; {left} did not need it any more");
        model.say(Token::Good, text);
    } else {
        let text = format!("stopped: {outcome}, of {} counted", bulk.counted.count);
        model.say(Token::Warning, text);
    }
    model.page.list.marks.clear();
    read::after_write(model, effects);
}
