//! Does what was agreed to.

use super::{confirm, navigate, report, send};
use crate::{
    client::whole,
    model::{Model, message::Effect, overlay::Consequence, then::Then},
    theme::Token,
};

/// The one place that a write leaves from.
pub(super) fn carry_out(model: &mut Model, then: Consequence, effects: &mut Vec<Effect>) {
    match then {
        Consequence::LeaveForm => navigate::back(model, effects),
        Consequence::Quit => model.quit = true,
        Consequence::Undo => confirm::take_back(model, false, effects),
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
            let ticket = send(model, *call, Then::Write(write, read), effects);
            if let Some(form) = model.page.form_mut() {
                form.waiting = Some(ticket);
            }
            model.page.list.marks.clear();
            model.say(Token::Dim, "…");
        }
    }
}
