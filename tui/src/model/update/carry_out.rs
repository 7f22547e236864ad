//! Execution of confirmed actions.

use super::{navigate, report, send};
use crate::{
    client::whole,
    model::{
        Model, message::Effect, overlay::Consequence, reply_purpose::ReplyPurpose, write::Write,
    },
    theme::Token,
};

/// Executes an action. Apart from bulk changes, all writes are sent here.
pub(super) fn carry_out(model: &mut Model, then: Consequence, effects: &mut Vec<Effect>) {
    match then {
        Consequence::LeaveForm => navigate::back(model, effects),
        Consequence::Quit => model.quit = true,
        Consequence::Undo => take_back(model, false, effects),
        Consequence::Test(None, inquiry) if model.page.form().is_some() => {
            report::run_in_form(model, &inquiry, effects);
        }
        Consequence::Test(Some(title), inquiry) => report::open(model, title, *inquiry, effects),
        Consequence::Test(None, _) => report::repeat(model, effects),
        Consequence::Write(call, write) => {
            if !model.is_up() {
                return model.say(Token::Bad, "not connected; nothing was changed");
            }
            let read = call.taken.unwrap_or(whole);
            let ticket = send(model, *call, ReplyPurpose::Write(write, read), effects);
            if let Some(form) = model.page.form_mut() {
                form.waiting = Some(ticket);
            }
            model.page.list.marks.clear();
            model.say(Token::Dim, "…");
        }
    }
}

pub(super) fn take_back(model: &mut Model, at_once: bool, effects: &mut Vec<Effect>) {
    let Some((what, calls)) = model.take_undo() else {
        return model.say(Token::Info, "there is nothing to undo");
    };
    if calls.is_empty() {
        return model.say(Token::Info, format!("{what} can no longer be undone"));
    }
    for call in calls {
        let mut write = Box::new(Write::new(format!("undone: {what}")));
        write.at_once = at_once;
        carry_out(model, Consequence::Write(Box::new(call), write), effects);
    }
}
