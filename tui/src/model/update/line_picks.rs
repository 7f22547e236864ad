//! Pickers for the lines of a form: layers of a schedule, steps of a policy, methods of a contact.

use jiff::{ToSpan as _, civil::Weekday};

use crate::{
    data::Kind,
    kind::{FieldKind, line_format::LineFormat},
    model::{
        Model,
        field::TextField,
        form::Input,
        overlay::{Overlay, Picker, PickerPurpose},
    },
    theme::Token,
};

/// Waits offered between two steps; another one can be typed.
const WAITS: [&str; 6] = ["5m", "10m", "15m", "30m", "1h", "0s"];
const HAND_OFFS: [(&str, &str); 4] = [
    ("weekly, on Monday at 08:00", " weekly"),
    ("daily, at 08:00", " daily"),
    ("monthly, on that day at 08:00", " monthly"),
    ("never", ""),
];

/// Returns the format of the focused field, if the cursor is on an empty line of it.
fn empty_line(model: &Model) -> Option<LineFormat> {
    let form = model.page.form()?;
    let (FieldKind::LineFormat(format), Input::Text(field)) = (&form.spec().kind, form.input())
    else {
        return None;
    };
    let (before, after) = field.split_at_cursor();
    let starts = before.is_empty() || before.ends_with('\n');
    let ends = after.is_empty() || after.starts_with('\n');
    (starts && ends).then_some(*format)
}

/// Opens the picker for a new line. Returns `false` unless the cursor is on an empty line.
pub(super) fn open_line_picker(model: &mut Model) -> bool {
    let Some(format) = empty_line(model) else {
        return false;
    };
    let named = |kind: Kind| model.store.names(kind).into_iter();
    let prefixed = |word: &'static str, kind| named(kind).map(move |it| format!("{word} {it}"));
    let (title, items): (_, Vec<String>) = match format {
        LineFormat::Layers => (
            "Who takes turns, in which order?",
            named(Kind::Contact).collect(),
        ),
        LineFormat::Steps => (
            "Who is paged in this step?",
            prefixed("schedule", Kind::Schedule)
                .chain(prefixed("contact", Kind::Contact))
                .chain(named(Kind::Destination))
                .collect(),
        ),
        LineFormat::Methods => (
            "Which destinations reach the contact?",
            named(Kind::Destination).collect(),
        ),
    };
    show_picker(model, title, items, None, PickerPurpose::Line(format));
    true
}

fn show_picker(
    model: &mut Model,
    title: &str,
    items: Vec<String>,
    values: Option<Vec<String>>,
    purpose: PickerPurpose,
) {
    model.overlay = Some(Overlay::Picker(Picker {
        title: title.to_owned(),
        items,
        chosen: Vec::new(),
        values,
        purpose,
        needle: TextField::default(),
        cursor: 0,
    }));
}

/// Continues with the choice for a line: asks for the wait or the hand-offs, or writes it.
pub(super) fn handle_choice(model: &mut Model, format: LineFormat, names: &[String]) {
    if names.is_empty() {
        return model.show_notice(Token::Info, "nothing selected: Space selects");
    }
    let words = names.join(", ");
    match format {
        LineFormat::Methods => insert_line(model, &names.join("\n")),
        LineFormat::Steps => {
            let waits = WAITS.map(str::to_owned).to_vec();
            let title = "How long until the next step?";
            let items = waits.clone();
            show_picker(model, title, items, Some(waits), PickerPurpose::Wait(words));
        }
        LineFormat::Layers => {
            let start = first_hand_off(model);
            let items = HAND_OFFS.map(|(item, _)| item.to_owned()).to_vec();
            let rules = HAND_OFFS.map(|(_, rule)| format!("{start}{rule}"));
            let title = "When do they hand over?";
            let purpose = PickerPurpose::HandOff(words);
            show_picker(model, title, items, Some(rules.to_vec()), purpose);
        }
    }
}

pub(super) fn write_step(model: &mut Model, targets: &str, wait: &str) {
    insert_line(model, &format!("{targets} wait {wait}"));
}

pub(super) fn write_layer(model: &mut Model, names: &str, hand_offs: &str) {
    insert_line(model, &format!("{names} from {hand_offs}"));
}

/// Returns Monday of this week at 08:00, so that someone is on call immediately.
fn first_hand_off(model: &Model) -> String {
    let now = model.to_zoned(model.now_ms).map(|now| now.date());
    let monday = now.and_then(|today| {
        let since = today.weekday().since(Weekday::Monday);
        today.checked_sub(i64::from(since).days()).ok()
    });
    monday.map_or_else(String::new, |day| format!("{day}T08:00:00"))
}

fn insert_line(model: &mut Model, line: &str) {
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return;
    };
    if let Input::Text(field) = form.input_mut() {
        field.insert(line);
        form.record_change(now_ms);
    }
}
