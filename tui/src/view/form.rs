//! Draws a form: labels, fields, their errors, and one line of help for the focused field.

use ratatui::layout::Rect;
use serde_json::Value;

use super::pen::Pen;
use crate::{
    data::get,
    kind::{FieldKind, FieldSpec},
    limits,
    model::{
        Model,
        field::TextField,
        form::{ClauseInput, Form, Input, LivePreview},
        update::completions,
    },
    text,
    theme::Token,
};

const LABEL: u16 = 16;
/// Rows of multi-line text: the maximum, and the range for the focused field.
const LINES: usize = 6;
const LINES_TYPED: (usize, usize) = (4, 14);

pub(super) fn draw(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    let foot_rows = if area.height > 10 { 2 } else { 1 };
    let body = Rect {
        height: area.height.saturating_sub(foot_rows),
        ..area
    };
    foot(
        model,
        form,
        pen,
        Rect {
            y: body.bottom(),
            height: foot_rows,
            ..area
        },
    );
    let mut y = body.y;
    if let Some(message) = form.errors.get("") {
        for line in text::wrap(message, usize::from(area.width).saturating_sub(4))
            .iter()
            .take(3)
        {
            pen.put(
                area.x + 1,
                y,
                usize::from(area.width) - 2,
                Token::Bad,
                &format!("✗ {line}"),
            );
            y += 1;
        }
    }
    let shown: Vec<usize> = (0..form.specs.len())
        .filter(|index| form.is_shown(*index))
        .collect();
    let cells = usize::from(area.width.saturating_sub(3 + LABEL)).max(1);
    let heights = shown.iter().map(|index| height(form, *index, cells));
    let heights: Vec<usize> = heights.collect();
    let space = usize::from(body.bottom().saturating_sub(y));
    let focus = shown
        .iter()
        .position(|index| *index == form.focus)
        .unwrap_or(0);
    let first = first_shown(&heights, focus, space);
    for (index, height) in shown.iter().zip(&heights).skip(first) {
        let left = body.bottom().saturating_sub(y);
        if left == 0 {
            break;
        }
        let height = u16::try_from(*height).unwrap_or(1);
        let place = Rect {
            y,
            height: height.min(left),
            ..area
        };
        field(form, *index, pen, place);
        y += height.min(left);
    }
}

/// Returns the first visible field, chosen so that the focused one is fully visible.
fn first_shown(heights: &[usize], focus: usize, space: usize) -> usize {
    let mut used = 0;
    for index in (0..=focus).rev() {
        used += heights[index];
        if used > space {
            return (index + 1).min(focus);
        }
    }
    0
}

fn height(form: &Form, index: usize, cells: usize) -> usize {
    let error = form.error(index).is_some() || form.warning(index).is_some();
    let error = usize::from(error);
    let rows = match &form.inputs[index] {
        Input::Text(field) if field.lines => {
            let lines = text::rows(field.text(), cells).len();
            if form.focus == index && form.specs[index].kind == FieldKind::Lines {
                lines.clamp(LINES_TYPED.0, LINES_TYPED.1)
            } else {
                lines.clamp(1, LINES)
            }
        }
        _ => 1,
    };
    rows + error
}

fn field(form: &Form, index: usize, pen: &mut Pen<'_>, area: Rect) {
    let spec = &form.specs[index];
    let focused = form.focus == index;
    let locked = form.is_locked(index);
    let mark = if focused { "▶" } else { " " };
    pen.put(area.x, area.y, 1, Token::Key, mark);
    if let Input::Section(is_open) = form.inputs[index] {
        return section(form, index, is_open, pen, area);
    }
    let star = if spec.required { "*" } else { "" };
    let label = format!("{}{star}", spec.label);
    let token = if focused { Token::Title } else { Token::Dim };
    pen.put(area.x + 2, area.y, usize::from(LABEL), token, &label);
    let error = form.error(index).map(|it| (Token::Bad, format!("✗ {it}")));
    let warning = || Some((Token::Warning, format!("! {}", form.warning(index)?)));
    let error = error.or_else(warning);
    let x = area.x + 2 + LABEL;
    let inside = Rect {
        x,
        y: area.y,
        width: area.right().saturating_sub(x + 1),
        height: area
            .height
            .saturating_sub(u16::from(error.is_some()))
            .max(1),
    };
    input(form, index, focused && !locked, pen, inside);
    if let Some((token, message)) = error.filter(|_| area.height > 1) {
        let y = area.bottom() - 1;
        pen.put(x, y, usize::from(inside.width), token, &message);
    }
}

fn section(form: &Form, index: usize, is_open: bool, pen: &mut Pen<'_>, area: Rect) {
    let sign = if is_open { "▾" } else { "▸" };
    let words = format!("{sign} {}", form.specs[index].label);
    let token = if form.focus == index {
        Token::Selected
    } else {
        Token::Heading
    };
    let x = area.x + 2;
    let end = pen.put(x, area.y, usize::from(area.width) - 2, token, &words);
    let filled = form.filled_labels(index);
    if !is_open && !filled.is_empty() {
        let space = usize::from(area.right().saturating_sub(end + 2));
        pen.put(end + 2, area.y, space, Token::Text, &filled.join(", "));
    }
}

fn input(form: &Form, index: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let spec = &form.specs[index];
    let space = usize::from(area.width);
    match &form.inputs[index] {
        Input::Text(field) if form.is_locked(index) => {
            pen.put(area.x, area.y, space, Token::Text, field.text());
        }
        Input::Text(field) => {
            let stored = field.text() == "********";
            let mask = spec.kind == FieldKind::Secret && !form.reveal && !stored;
            if field.text().is_empty() && !focused {
                pen.put(area.x, area.y, space, Token::Dim, "·");
            } else if let Some(words) = form.parsed_time_text(index) {
                draw_time_field(field, focused, &words, pen, area);
            } else if spec.path == HEADERS && !focused && !form.reveal {
                let masked = TextField::new(mask_secrets(form, field.text())).with_lines();
                pen.field(area, &masked, false, false);
            } else {
                pen.field(area, field, focused, mask);
                let is_picked = matches!(spec.kind, FieldKind::LineFormat(_));
                if is_picked && field.text().is_empty() {
                    let space = space.saturating_sub(2);
                    pen.put(area.x + 2, area.y, space, Token::Dim, "Enter chooses");
                }
            }
        }
        Input::Toggle(on) => {
            let words = if *on { "[x] yes" } else { "[ ] no" };
            pen.put(area.x, area.y, space, focus_token(focused), words);
        }
        Input::Choice(at) => choice(spec, *at, focused, pen, area),
        Input::Names(names) => {
            let words = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            let words = if focused {
                format!("{words}  (Enter chooses)")
            } else {
                words
            };
            pen.put(area.x, area.y, space, focus_token(focused), &words);
        }
        Input::Clause(clause) => condition(clause, focused, pen, area),
        Input::Section(_) => {}
    }
}

/// Headers are secret values unless listed as plain.
const HEADERS: &str = "type.webhook.headers";

fn mask_secrets(form: &Form, text: &str) -> String {
    let plain = get(form.original(), "type.webhook.plainHeaders").and_then(Value::as_array);
    let plain: Vec<&str> = plain
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let line = |line: &str| match line.split_once(':') {
        Some((name, _)) if is_plain(name, &plain) => line.to_owned(),
        Some((name, value)) if !value.trim().is_empty() => format!("{name}: ********"),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

fn is_plain(name: &str, plain: &[&str]) -> bool {
    let name = name.trim();
    let mut known = plain.iter().chain(&["content-type"]);
    known.any(|it| it.eq_ignore_ascii_case(name))
}

fn draw_time_field(field: &TextField, focused: bool, words: &str, pen: &mut Pen<'_>, area: Rect) {
    let typed = u16::try_from(text::width(field.text()) + 2).unwrap_or(u16::MAX);
    let width = typed.max(22).min(area.width);
    pen.field(Rect { width, ..area }, field, focused, false);
    let x = area.x + width + 1;
    let space = usize::from(area.right().saturating_sub(x));
    pen.put(x, area.y, space, Token::Dim, &format!("→ {words}"));
}

fn focus_token(focused: bool) -> Token {
    if focused {
        Token::Selected
    } else {
        Token::Text
    }
}

fn choice(spec: &FieldSpec, at: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let words = spec.kind.choices();
    let shown = |index: usize, word: &str| {
        if index == at {
            format!("‹ {word} ›")
        } else {
            word.to_owned()
        }
    };
    let all: Vec<String> = { words.iter().enumerate() }
        .map(|(index, word)| shown(index, word))
        .collect();
    if !focused {
        let word = all.get(at).map_or("", String::as_str);
        pen.put(area.x, area.y, usize::from(area.width), Token::Text, word);
        return;
    }
    // All in order; without enough room, starting a few before the selected one.
    let cells = |from: usize| {
        all[from..=at]
            .iter()
            .map(|it| text::width(it) + 1)
            .sum::<usize>()
    };
    let first = (0..=at).find(|from| cells(*from) <= usize::from(area.width));
    let mut x = area.x;
    for (index, word) in all.iter().enumerate().skip(first.unwrap_or(at)) {
        let space = usize::from(area.right().saturating_sub(x));
        if text::width(word) > space {
            break;
        }
        let token = if index == at {
            Token::Selected
        } else {
            Token::Dim
        };
        x = pen.put(x, area.y, space, token, word) + 1;
    }
}

fn condition(clause: &ClauseInput, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let words = if clause.is_unknown() {
        "a condition unknown to this console; it stays unchanged"
    } else {
        "·"
    };
    if clause.line.text().is_empty() && !focused {
        pen.put(area.x, area.y, usize::from(area.width), Token::Dim, words);
    } else {
        pen.field(area, &clause.line, focused, false);
    }
}

fn foot(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    let space = usize::from(area.width).saturating_sub(2);
    let completions = completions(model);
    let help = if completions.is_empty() {
        model.expand_keys(form.spec().help)
    } else {
        format!("Right takes {}", completions.join("  "))
    };
    let (token, words) = if form.waiting.is_some() {
        (Token::Dim, "being saved…".to_owned())
    } else if form.error_count() > 0 {
        let count = form.error_count();
        let word = if count == 1 { "error" } else { "errors" };
        (Token::Bad, format!("{count} {word}"))
    } else if form.checked {
        (Token::Good, model.expand_keys("✓ Valid; ‹form_save› saves"))
    } else if !model.is_connected() {
        (
            Token::Warning,
            "not connected: keep typing, nothing is lost".to_owned(),
        )
    } else {
        (Token::Dim, String::new())
    };
    let tested = form.test_summary(model.now_ms).map(|(_, words)| words);
    let lead = form.likely_cause().map(|lead| lead.words);
    let is_wide = model.columns() >= usize::from(limits::BENCH_COLUMNS);
    let tested = tested.filter(|_| !is_wide).unwrap_or_default();
    let lead = lead.filter(|_| !is_wide).unwrap_or_default();
    let words = [words, matching(model, form), tested, lead];
    let words: Vec<_> = words.into_iter().filter(|it| !it.is_empty()).collect();
    let words = words.join("  ·  ");
    // Without a result, the help may use both lines.
    let lines = text::wrap(&help, space);
    let (first, token, second) = if area.height > 1 && words.is_empty() && lines.len() > 1 {
        (lines[0].clone(), Token::Info, lines[1..].join(" "))
    } else {
        (help, token, words)
    };
    pen.put(area.x + 1, area.y, space, Token::Info, &first);
    if area.height > 1 {
        pen.put(area.x + 1, area.y + 1, space, token, &second);
    }
}

fn matching(model: &Model, form: &Form) -> String {
    match &form.live.made {
        Some(Ok(LivePreview::Matching(None))) => {
            model.expand_keys("open events not counted: too many; ‹form_test› counts")
        }
        Some(Ok(LivePreview::Matching(Some(1)))) => "1 open event matches".to_owned(),
        Some(Ok(LivePreview::Matching(Some(count)))) => {
            let count = text::group_digits((*count).into());
            format!("{count} open events match")
        }
        _ => String::new(),
    }
}
