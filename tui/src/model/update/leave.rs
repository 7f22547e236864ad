//! The one place that a change leaves from.

use super::send;
use crate::{
    client::{Call, whole},
    model::{Model, message::Effect, then::Then, write::Write},
    theme::Token,
};

/// Sends a call that changes something.
pub(super) fn leave(model: &mut Model, call: Call, write: Box<Write>, effects: &mut Vec<Effect>) {
    if !model.is_up() {
        return model.say(Token::Bad, "not connected; nothing was changed");
    }
    let read = call.taken.unwrap_or(whole);
    let ticket = send(model, call, Then::Write(write, read), effects);
    if let Some(form) = model.page.form_mut() {
        form.waiting = Some(ticket);
    }
    model.page.list.marks.clear();
    model.say(Token::Dim, "…");
}
