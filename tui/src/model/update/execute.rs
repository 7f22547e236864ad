//! Execution of confirmed actions.

use super::{navigate, report, send_write};
use crate::{
    model::{
        Model,
        message::Effect,
        overlay::{Consequence, Overlay, Program, ProgramPane},
        write::Write,
    },
    theme::Token,
};

/// Executes an action.
pub(super) fn execute(model: &mut Model, then: Consequence) {
    match then {
        Consequence::LeaveForm => navigate::go_back(model),
        Consequence::Quit => model.quit = true,
        Consequence::Run(program) => run_program(model, *program),
        Consequence::Undo => undo_last(model, false),
        Consequence::Test(None, inquiry) if model.page.form().is_some() => {
            report::run_in_form(model, &inquiry);
        }
        Consequence::Test(Some(title), inquiry) => report::open_report(model, title, *inquiry),
        Consequence::Test(None, _) => report::repeat_report(model),
        Consequence::Write(call, write) => send_write(model, *call, write),
    }
}

fn run_program(model: &mut Model, program: Program) {
    model.confirmed_commands.insert(program.name);
    model.overlay = Some(Overlay::Program(ProgramPane {
        title: program.shown,
        lines: Vec::new(),
        end: None,
        top: 0,
    }));
    model.effects.push(Effect::Run(program.words));
}

pub(super) fn undo_last(model: &mut Model, at_once: bool) {
    let Some((what, calls)) = model.take_undo() else {
        return model.show_notice(Token::Info, "nothing to undo");
    };
    if calls.is_empty() {
        return model.show_notice(Token::Info, format!("{what} can no longer be undone"));
    }
    for call in calls {
        let mut write = Box::new(Write::new(format!("undone: {what}")));
        write.at_once = at_once;
        execute(model, Consequence::Write(Box::new(call), write));
    }
}
