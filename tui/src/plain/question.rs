//! Questions as lines of text, and parsing of their answers.

use super::{
    command::{ENTER, ESC, TAB, YES},
    say,
};
use crate::{
    keymap,
    model::{
        Model,
        bulk::{Bulk, Stage},
        message::Msg,
        overlay::{Clash, ClashChoice, Confirm, Consequence, Overlay, PickerPurpose},
        page::Content,
        silencing::SilenceChoice,
    },
};

pub(super) fn prompt(model: &Model) -> &'static str {
    match &model.overlay {
        Some(Overlay::Confirm(_)) => "yes or no>",
        Some(Overlay::Bulk(bulk)) if matches!(bulk.stage, Stage::Asking { .. }) => "yes or no>",
        Some(Overlay::Prompt(_)) => "text>",
        _ if model.page.form().is_some() => "form>",
        _ => ">",
    }
}

pub(super) fn is_cancellable(model: &Model) -> bool {
    match (&model.overlay, &model.page.content) {
        (Some(Overlay::Bulk(bulk)), _) => {
            matches!(bulk.stage, Stage::Counting | Stage::Running)
        }
        (None, Content::Report(report)) => report.found.waiting.is_some(),
        _ => false,
    }
}

/// Whether the key of a new client was printed; it is printed only once.
pub(super) fn is_key_shown(model: &Model) -> bool {
    matches!(model.overlay, Some(Overlay::Key { .. }))
}

/// Returns the lines of a question, and its prompt, which is empty without a question.
pub(super) fn question_output(overlay: &Overlay) -> (Vec<String>, String) {
    match overlay {
        Overlay::Confirm(confirm) => question(confirm),
        Overlay::Bulk(bulk) => bulk_question(bulk),
        Overlay::Clash(clash) => clash_question(clash),
        Overlay::Prompt(prompt) => {
            let output = format!("{}: type a line ({})", prompt.title, prompt.help);
            (vec![], format!("{output}; an empty line cancels"))
        }
        Overlay::Key { name, key } => {
            let output = format!("The key of {name}: {key}");
            (vec![output], "It is shown only once.".to_owned())
        }
        Overlay::Picker(pick) if pick.purpose == PickerPurpose::Event => {
            let items = pick.items.iter().take(EVENTS);
            let mut lines = vec![pick.title.clone()];
            lines.extend(items.map(|item| say::say_symbols(&format!("  {item}"))));
            let output = "Type part of its name, or its id; an empty line cancels.";
            (lines, output.to_owned())
        }
        Overlay::Silence(choice) => silence_question(choice),
        Overlay::Picker(_) | Overlay::Palette(_) | Overlay::Menu(_) | Overlay::Program(_) => {
            (vec![], String::new())
        }
    }
}

const EVENTS: usize = 20;

/// Interprets a line as the answer to a question. Returns the messages for the model, and an error.
pub(super) fn interpret(overlay: &Overlay, line: &str) -> (Vec<Msg>, Option<&'static str>) {
    let is_yes = matches!(line.to_lowercase().as_str(), "y" | "yes");
    let key = |key| vec![Msg::Key(key)];
    match overlay {
        Overlay::Silence(choice) if is_yes && choice.typing.is_some() => (key(ENTER), None),
        Overlay::Confirm(_) | Overlay::Silence(_) if is_yes => (key(YES), None),
        Overlay::Confirm(confirm) => {
            let said = match confirm.then {
                Consequence::Write(..) | Consequence::Undo => "Cancelled. Nothing was changed.",
                Consequence::Test(..) => "Cancelled. Nothing was sent.",
                Consequence::Run(_) => "Cancelled. Nothing was run.",
                Consequence::LeaveForm | Consequence::Quit => "Cancelled. Nothing is lost.",
            };
            (key(ESC), Some(said))
        }
        Overlay::Bulk(bulk) => match (&bulk.stage, line) {
            (Stage::Asking { .. }, _) if is_yes => (key(YES), None),
            (Stage::Asking { .. }, _) => (key(ESC), Some("Cancelled. Nothing was changed.")),
            (Stage::Failed(_), "continue") => (key(ENTER), None),
            (Stage::Failed(_), _) | (_, "stop") => (key(ESC), None),
            _ => (
                vec![],
                Some("error: already in progress; `stop` cancels it"),
            ),
        },
        Overlay::Prompt(_) if line.is_empty() => (key(ESC), Some("Unchanged.")),
        Overlay::Prompt(_) => (reply_messages(line.to_owned()), None),
        Overlay::Picker(pick) if pick.purpose == PickerPurpose::Event && !line.is_empty() => {
            (reply_messages(line.to_owned()), None)
        }
        Overlay::Clash(clash) => (choose_messages(clash, line), None),
        Overlay::Silence(choice) => match parse_silence_choice(choice, line) {
            Some(msgs) => (msgs, None),
            None => (key(ESC), Some("Cancelled. Nothing was changed.")),
        },
        Overlay::Key { .. }
        | Overlay::Picker(_)
        | Overlay::Palette(_)
        | Overlay::Menu(_)
        | Overlay::Program(_) => (key(ESC), None),
    }
}

fn silence_question(choice: &SilenceChoice) -> (Vec<String>, String) {
    let mut lines = vec!["Silence:".to_owned()];
    lines.extend(choice.scopes.iter().map(|scope| {
        let (_, counts) = scope.format_scope_counts();
        format!("  {} {}: {counts}", scope.key, scope.label)
    }));
    lines.extend(choice.scope().hint.iter().map(|it| format!("  {it}")));
    lines.extend(choice.error.iter().map(|it| format!("  error: {it}")));
    let question_text = match &choice.typing {
        Some((_, end)) => format!(
            "Until {}: type yes to confirm; anything else cancels.",
            end.text()
        ),
        None => {
            "Type a scope and a duration, such as `h 2h` or `e until 08:00`; anything else cancels."
                .to_owned()
        }
    };
    (lines, question_text)
}

/// Returns the keys for `h 2h` or `h until 08:00`; `None` for other input.
fn parse_silence_choice(choice: &SilenceChoice, line: &str) -> Option<Vec<Msg>> {
    let (scope, end) = line.split_once(' ')?;
    let mut letters = scope.chars();
    let key = letters.next().filter(|_| letters.next().is_none())?;
    choice.scopes.iter().find(|it| it.key == key)?;
    let keys = [keymap::parse(&key.to_string()), keymap::parse("o")];
    let mut msgs: Vec<Msg> = keys.into_iter().flatten().flatten().map(Msg::Key).collect();
    msgs.extend(reply_messages(end.trim().to_owned()));
    Some(msgs)
}

pub(super) fn reply_messages(text: String) -> Vec<Msg> {
    let empty = keymap::parse("<C-u>").into_iter().flatten().map(Msg::Key);
    let mut msgs: Vec<Msg> = empty.collect();
    msgs.push(Msg::Paste(text));
    msgs.push(Msg::Key(ENTER));
    msgs
}

fn question(confirm: &Confirm) -> (Vec<String>, String) {
    let mut lines = vec![confirm.title.clone()];
    lines.extend(
        confirm
            .lines
            .iter()
            .map(|(_, line)| say::say_symbols(&format!("  {line}"))),
    );
    let output = format!(
        "{}: type yes to confirm; anything else cancels.",
        confirm.verb
    );
    (lines, output)
}

fn bulk_question(bulk: &Bulk) -> (Vec<String>, String) {
    let mut lines = vec![bulk.title()];
    lines.extend(
        bulk.lines()
            .into_iter()
            .map(|(_, line)| say::say_symbols(&format!("  {line}"))),
    );
    let output = match &bulk.stage {
        Stage::Asking { .. } => {
            format!(
                "{}: type yes to confirm; anything else cancels.",
                bulk.verb()
            )
        }
        Stage::Failed(_) => {
            let done = bulk.progress_text();
            format!("{done} done. `continue` tries again; anything else stops.")
        }
        Stage::Counting | Stage::Running | Stage::Stopping => String::new(),
    };
    (lines, output)
}

fn clash_question(clash: &Clash) -> (Vec<String>, String) {
    let (word, name) = (clash.mine.kind.singular(), clash.mine.name());
    let mut lines = vec![format!("The {word} {name} was changed concurrently.")];
    lines.extend(
        clash
            .lines
            .iter()
            .map(|(_, line)| say::say_symbols(&format!("  {line}"))),
    );
    let choices = ClashChoice::ALL.map(ClashChoice::label).join("`, `");
    (
        lines,
        format!("Type `{choices}`; anything else goes back to editing."),
    )
}

fn choose_messages(clash: &Clash, line: &str) -> Vec<Msg> {
    let all = ClashChoice::ALL;
    let wanted = all.iter().position(|choice| choice.label() == line);
    let now = all.iter().position(|choice| *choice == clash.choice);
    let (Some(wanted), Some(now)) = (wanted, now) else {
        return vec![Msg::Key(ESC)];
    };
    let steps = (wanted + all.len() - now) % all.len();
    let mut msgs: Vec<Msg> = (0..steps).map(|_| Msg::Key(TAB)).collect();
    msgs.push(Msg::Key(ENTER));
    msgs
}
