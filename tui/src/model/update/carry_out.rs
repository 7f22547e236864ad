//! Does what was agreed to.

use super::{confirm, leave::leave, navigate, report};
use crate::model::{Model, message::Effect, overlay::Consequence};

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
        Consequence::Write(call, write) => leave(model, *call, write, effects),
    }
}
