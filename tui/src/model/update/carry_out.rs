//! Does what was agreed to.

use super::{navigate, report, send};
use crate::{
    model::{Model, message::Effect, overlay::Consequence},
    theme::Token,
};

/// The one place that a write leaves from.
pub(super) fn carry_out(model: &mut Model, then: Consequence, effects: &mut Vec<Effect>) {
    match then {
        Consequence::LeaveForm => navigate::back(model, effects),
        Consequence::Quit => model.quit = true,
        Consequence::Test(Some(title), request) => report::open(model, title, *request, effects),
        Consequence::Test(None, _) => report::repeat(model, effects),
        Consequence::Write(request, write) => {
            if !model.is_up() {
                return model.say(Token::Bad, "not connected; nothing was changed");
            }
            let ticket = send(model, *request, Some(write), effects);
            if let Some(form) = model.page.form_mut() {
                form.waiting = Some(ticket);
            }
            model.page.list.marks.clear();
            model.say(Token::Dim, "…");
        }
    }
}
