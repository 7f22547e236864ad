//! The dialog for a silence: the service counts what each scope covers, and one key sets the
//! length.

use bellwether_proto::v1;
use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use serde_json::json;

use super::{call, confirm};
use crate::{
    client::{Call, CallResult, EventFilter, Ticket, message, resources},
    limits,
    model::{
        Model,
        field::TextField,
        overlay::Overlay,
        silencing::{LENGTHS, SilenceChoice, SilencePart, SilenceScope},
    },
};

pub(super) fn choose_silence(model: &mut Model) {
    let Some(choice) = SilenceChoice::new(model.silence_scopes()) else {
        return;
    };
    model.overlay = Some(Overlay::Silence(Box::new(choice)));
    count_scope(model);
}

/// Opens the dialog for the events that match a filter, with an end, both as typed.
pub(super) fn silence_typed(model: &mut Model, filter: &str, end: &str) {
    let scope = SilenceScope::from_filter('f', filter.to_owned(), filter);
    if let Some(mut choice) = SilenceChoice::new(vec![scope]) {
        choice.typing = Some((SilencePart::End, TextField::new(end)));
        model.overlay = Some(Overlay::Silence(Box::new(choice)));
        count_scope(model);
    }
}

fn choice_mut(model: &mut Model) -> Option<&mut SilenceChoice> {
    match &mut model.overlay {
        Some(Overlay::Silence(choice)) => Some(choice),
        _ => None,
    }
}

fn count_scope(model: &mut Model) {
    let Some(choice) = choice_mut(model) else {
        return;
    };
    let Some(at) = choice.next_scope_to_count() else {
        return;
    };
    let mut fields = choice.scopes[at].fields.clone();
    // A preview requires an end; the result does not depend on it.
    fields["span"] = json!({"endTime": end_text(model.now_ms.saturating_add(7_200_000))});
    let body = json!({"silence": fields});
    let preview = Call::new("SilenceService", "PreviewSilence", body).with_long_timeout();
    let ticket = call(model, preview, handle_count);
    if let Some(choice) = choice_mut(model) {
        choice.waiting.push((ticket, at));
    }
}

/// Repeats requests that were lost with the connection.
pub(super) fn on_reconnect(model: &mut Model) {
    if let Some(choice) = choice_mut(model) {
        choice.waiting.clear();
        choice.comparing = None;
        count_scope(model);
    }
}

fn handle_count(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let found: Result<v1::PreviewSilenceResponse, _> = message(answer);
    let Some(choice) = choice_mut(model) else {
        return false;
    };
    let mut waiting = choice.waiting.iter();
    let Some(place) = waiting.position(|(it, _)| *it == ticket) else {
        return false;
    };
    let (_, at) = choice.waiting.swap_remove(place);
    choice.scopes[at].found = Some(found.map_err(|failure| failure.message));
    if let Some((field, _)) = choice.scopes[at].missing_value() {
        // The silence is not created yet: the operator first sees that nothing is in scope.
        choice.chosen = None;
        let open = EventFilter {
            open_only: true,
            ..EventFilter::default()
        };
        let group = open.group(&field, limits::EVENT_GROUPS);
        let ticket = call(model, group, handle_values);
        if let Some(choice) = choice_mut(model) {
            choice.comparing = Some((ticket, at));
        }
        count_scope(model);
        return true;
    }
    if let Some(end) = choice.chosen
        && choice.cursor == at
    {
        submit_silence(model, end);
    }
    count_scope(model);
    true
}

/// Explains why no event is in scope, with values that open events have.
fn handle_values(model: &mut Model, ticket: Ticket, answer: CallResult) -> bool {
    let found: Result<v1::GroupEventsResponse, _> = message(answer);
    let Some(choice) = choice_mut(model) else {
        return false;
    };
    let comparing = choice.comparing.take_if(|(it, _)| *it == ticket);
    if let (Some((_, at)), Ok(found)) = (comparing, found) {
        choice.scopes[at].explain_missing(&found.into());
    }
    true
}

pub(super) fn handle_silence_key(model: &mut Model, mut choice: Box<SilenceChoice>, key: KeyEvent) {
    if choice.typing.is_some() {
        return handle_text_key(model, choice, key);
    }
    let last = choice.scopes.len() - 1;
    let mut end = None;
    match key.code {
        KeyCode::Esc | KeyCode::Char('q' | 'n') => return,
        KeyCode::Enter | KeyCode::Char('y') => end = Some(LENGTHS[choice.length].1),
        KeyCode::Down | KeyCode::Char('j') => choice.cursor = (choice.cursor + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => choice.cursor = choice.cursor.saturating_sub(1),
        KeyCode::Right | KeyCode::Tab => choice.length = (choice.length + 1) % LENGTHS.len(),
        KeyCode::Left | KeyCode::BackTab => {
            choice.length = (choice.length + LENGTHS.len() - 1) % LENGTHS.len();
        }
        KeyCode::Char('o') => choice.typing = Some((SilencePart::End, TextField::default())),
        KeyCode::Char('r') => {
            let field = TextField::new(choice.reason.clone());
            choice.typing = Some((SilencePart::Reason, field));
        }
        KeyCode::Char(typed) => {
            let scope = choice.scopes.iter().position(|scope| scope.key == typed);
            choice.cursor = scope.unwrap_or(choice.cursor);
            let length = LENGTHS.iter().position(|(key, _)| *key == typed);
            choice.length = length.unwrap_or(choice.length);
            end = length.map(|at| LENGTHS[at].1);
        }
        _ => {}
    }
    if end.is_none() {
        choice.chosen = None;
    }
    model.overlay = Some(Overlay::Silence(choice));
    match end {
        Some(end) => silence_until(model, end),
        None => count_scope(model),
    }
}

fn handle_text_key(model: &mut Model, mut choice: Box<SilenceChoice>, key: KeyEvent) {
    let mut end = None;
    choice.error = None;
    match (key.code, &mut choice.typing) {
        (KeyCode::Esc, typing) => *typing = None,
        (KeyCode::Enter, Some((SilencePart::End, field))) => end = Some(field.text().to_owned()),
        (KeyCode::Enter, Some((SilencePart::Reason, field))) => {
            field.text().trim().clone_into(&mut choice.reason);
            choice.typing = None;
        }
        (_, Some((_, field))) => drop(field.press(key)),
        (_, None) => {}
    }
    model.overlay = Some(Overlay::Silence(choice));
    if let Some(end) = end {
        silence_until(model, &end);
    }
}

fn silence_until(model: &mut Model, typed: &str) {
    let end = model.silence_end(typed);
    let Some(choice) = choice_mut(model) else {
        return;
    };
    match end {
        Ok(end) => {
            choice.chosen = Some(end);
            if choice.scope().found.is_some() {
                return submit_silence(model, end);
            }
            count_scope(model);
        }
        Err(error) => choice.error = Some(error),
    }
}

fn submit_silence(model: &mut Model, end: Timestamp) {
    let Some(Overlay::Silence(mut choice)) = model.overlay.take() else {
        return;
    };
    let scope = choice.scope().clone();
    if let Some(Err(message)) = &scope.found {
        choice.error = Some(message.clone());
        choice.chosen = None;
        model.overlay = Some(Overlay::Silence(choice));
        return;
    }
    let request = create_request(model, &choice, end);
    let until = model.format_silence_end(end);
    confirm::confirm_silence(model, &scope, &until, request);
}

fn create_request(model: &Model, choice: &SilenceChoice, end: Timestamp) -> Call {
    let scope = choice.scope();
    let mut fields = scope.fields.clone();
    fields["name"] = model.silence_name(scope).into();
    fields["reason"] = choice.reason().into();
    fields["span"] = json!({"endTime": end.to_string()});
    resources::silence(&fields, scope.is_too_broad())
}

fn end_text(ms: i64) -> String {
    let end = Timestamp::from_millisecond(ms).unwrap_or_default();
    end.to_string()
}
