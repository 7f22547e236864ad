//! A deed to many deliveries: the count, the question, the work, and how it is stopped.

use crossterm::event::{KeyCode, KeyEvent};

use super::{call, news};
use crate::{
    client::{Answer, Chosen, Command, Ticket},
    data::{Deed, Failure},
    limits,
    model::{
        Model,
        bulk::{Bulk, Stage},
        filter,
        message::{Effect, Purpose},
        overlay::Overlay,
    },
    theme::Token,
};

/// Begins with all deliveries that the list's filter leaves.
pub(super) fn matching(model: &mut Model, deed: Deed, effects: &mut Vec<Effect>) {
    let words = model.page.list.filter.trim().to_owned();
    match filter::deliveries(&words, &model.clock()) {
        Ok(filter) => begin(model, deed, Chosen::Matching { filter, words }, effects),
        Err(message) => model.say(Token::Bad, message),
    }
}

/// Begins with the marked deliveries; answers whether there are any.
pub(super) fn marked(model: &mut Model, deed: Deed, effects: &mut Vec<Effect>) -> bool {
    let marks = &model.page.list.marks;
    if marks.len() < 2 || !model.page.route.is_list() {
        return false;
    }
    let ids = marks.iter().take(limits::BULK_ITEMS).cloned().collect();
    begin(model, deed, Chosen::Ids(ids), effects);
    true
}

fn begin(model: &mut Model, deed: Deed, chosen: Chosen, effects: &mut Vec<Effect>) {
    model.overlay = Some(Overlay::Bulk(Box::new(Bulk::new(deed, chosen))));
    go_on(model, effects);
}

/// Asks the service for the next part.
fn go_on(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(request) = model.bulk_mut().map(|bulk| bulk.request()) else {
        return;
    };
    let ticket = call(model, request, Purpose::Bulk, effects);
    if let Some(bulk) = model.bulk_mut() {
        bulk.waiting = Some(ticket);
    }
}

/// Goes on after the link was away: what was done before is not done again.
pub(super) fn link_is_up(model: &mut Model, effects: &mut Vec<Effect>) {
    let waits = |bulk: &mut Bulk| bulk.waiting.take().is_some();
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

/// The one place that the work begins from, and goes on from after a failure.
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

/// Takes in an answer of the service.
pub(super) fn heard(
    model: &mut Model,
    ticket: Ticket,
    result: Result<Answer, Failure>,
    effects: &mut Vec<Effect>,
) {
    let Some(Overlay::Bulk(mut bulk)) = model
        .overlay
        .take_if(|overlay| matches!(overlay, Overlay::Bulk(bulk) if bulk.waiting == Some(ticket)))
    else {
        return;
    };
    bulk.waiting = None;
    let (tally, next) = match result {
        Ok(Answer::Bulk { tally, next }) => (tally, next),
        Ok(_) => {
            bulk.stage = Stage::Failed(news::mixed_up().sentence());
            model.overlay = Some(Overlay::Bulk(bulk));
            return;
        }
        Err(failure) => {
            bulk.stage = Stage::Failed(format!("{}; Enter goes on", failure.sentence()));
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
            return nothing(model, &bulk);
        }
        if is_end {
            bulk.is_counted = true;
            bulk.stage = Stage::Asking { yes: false };
            model.overlay = Some(Overlay::Bulk(bulk));
            return;
        }
    }
    model.overlay = Some(Overlay::Bulk(bulk));
    go_on(model, effects);
}

fn nothing(model: &mut Model, bulk: &Bulk) {
    let why: Vec<_> = bulk
        .counted
        .skipped
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    let verb = match bulk.deed {
        Deed::SendAgain => "send again",
        Deed::Cancel => "cancel",
    };
    let told = if why.is_empty() {
        format!("there is no delivery to {verb}")
    } else {
        format!("there is no delivery to {verb}: {}", why.join(", "))
    };
    model.say(Token::Info, told);
}

fn end(model: &mut Model, bulk: &Bulk, effects: &mut Vec<Effect>) {
    let outcome = bulk.outcome();
    if bulk.done.count >= bulk.counted.count && bulk.is_counted {
        model.say(Token::Good, format!("✓ {outcome}"));
    } else if bulk.token.is_empty() && bulk.is_counted {
        let left = bulk.counted.count - bulk.done.count;
        let told = format!("✓ {outcome}; {left} did not need it any more");
        model.say(Token::Good, told);
    } else {
        let told = format!("stopped: {outcome}, of {} counted", bulk.counted.count);
        model.say(Token::Warning, told);
    }
    model.page.list.marks.clear();
    news::after_write(model, effects);
}
