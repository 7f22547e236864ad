//! Execution of confirmed actions.

use super::{navigate, report, send_call};
use crate::{
    client::parse_empty,
    model::{
        Model,
        message::Effect,
        overlay::{Consequence, Overlay, Program, ProgramPane},
        reply_purpose::ReplyPurpose,
        write::Write,
    },
    theme::Token,
};

/// Executes an action. All writes other than bulk changes are sent here.
pub(super) fn execute(model: &mut Model, then: Consequence, effects: &mut Vec<Effect>) {
    match then {
        Consequence::LeaveForm => navigate::go_back(model, effects),
        Consequence::Quit => model.quit = true,
        Consequence::Run(program) => run_program(model, *program, effects),
        Consequence::Undo => undo_last(model, false, effects),
        Consequence::Test(None, inquiry) if model.page.form().is_some() => {
            report::run_in_form(model, &inquiry, effects);
        }
        Consequence::Test(Some(title), inquiry) => {
            report::open_report(model, title, *inquiry, effects);
        }
        Consequence::Test(None, _) => report::repeat_report(model, effects),
        Consequence::Write(call, write) => {
            if !model.is_connected() {
                return model.show_notice(Token::Bad, "not connected; nothing was changed");
            }
            let read = call.parse_outcome.unwrap_or(parse_empty);
            let ticket = send_call(model, *call, ReplyPurpose::Write(write, read), effects);
            if let Some(form) = model.page.form_mut() {
                form.waiting = Some(ticket);
            }
            model.page.list.marks.clear();
            model.show_notice(Token::Dim, "…");
        }
    }
}

fn run_program(model: &mut Model, program: Program, effects: &mut Vec<Effect>) {
    model.confirmed_commands.insert(program.name);
    model.overlay = Some(Overlay::Program(ProgramPane {
        title: program.shown,
        lines: Vec::new(),
        end: None,
        top: 0,
    }));
    effects.push(Effect::Run(program.words));
}

pub(super) fn undo_last(model: &mut Model, at_once: bool, effects: &mut Vec<Effect>) {
    let Some((what, calls)) = model.take_undo() else {
        return model.show_notice(Token::Info, "nothing to undo");
    };
    if calls.is_empty() {
        return model.show_notice(Token::Info, format!("{what} can no longer be undone"));
    }
    for call in calls {
        let mut write = Box::new(Write::new(format!("undone: {what}")));
        write.at_once = at_once;
        execute(model, Consequence::Write(Box::new(call), write), effects);
    }
}
