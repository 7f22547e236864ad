//! Draws a form: labels, fields, errors beside them, and one line of help for the focused one.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    data::Comparison,
    kind::{FieldKind, FieldSpec},
    model::{
        Model,
        form::{ClauseInput, Form, Input, Part},
        update::completions,
    },
    text,
    theme::Token,
};

const LABEL: u16 = 16;
/// Rows that a text with line ends takes at most.
const LINES: usize = 6;

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
    let heights: Vec<usize> = shown.iter().map(|index| height(form, *index)).collect();
    let room = usize::from(body.bottom().saturating_sub(y));
    let focus = shown
        .iter()
        .position(|index| *index == form.focus)
        .unwrap_or(0);
    let first = first_shown(&heights, focus, room);
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

/// The first field shown, so that the focused one is whole on the screen.
fn first_shown(heights: &[usize], focus: usize, room: usize) -> usize {
    let mut used = 0;
    for index in (0..=focus).rev() {
        used += heights[index];
        if used > room {
            return (index + 1).min(focus);
        }
    }
    0
}

/// Rows of a field, with its error.
fn height(form: &Form, index: usize) -> usize {
    let error = usize::from(form.errors.contains_key(form.specs[index].path));
    let rows = match &form.inputs[index] {
        Input::Clause(clause) => match &clause.json {
            Some(field) => field.text().split('\n').count().clamp(1, 2 * LINES),
            None => clause.rows.len() + 1,
        },
        Input::Text(field) if field.lines => field.text().split('\n').count().clamp(1, LINES),
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
    let star = if spec.required { "*" } else { "" };
    let label = format!("{}{star}", spec.label);
    let token = if focused { Token::Title } else { Token::Dim };
    pen.put(area.x + 2, area.y, usize::from(LABEL), token, &label);
    let error = form.errors.get(spec.path);
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
    if let Some(message) = error.filter(|_| area.height > 1) {
        let y = area.bottom() - 1;
        pen.put(
            x,
            y,
            usize::from(inside.width),
            Token::Bad,
            &format!("✗ {message}"),
        );
    }
}

fn input(form: &Form, index: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let spec = &form.specs[index];
    let room = usize::from(area.width);
    match &form.inputs[index] {
        Input::Text(field) if form.is_locked(index) => {
            pen.put(area.x, area.y, room, Token::Text, field.text());
        }
        Input::Text(field) => {
            let stored = field.text() == "********";
            let mask = spec.kind == FieldKind::Secret && !form.reveal && !stored;
            if field.text().is_empty() && !focused {
                pen.put(area.x, area.y, room, Token::Dim, "·");
            } else {
                pen.field(area, field, focused, mask);
            }
        }
        Input::Toggle(on) => {
            let words = if *on { "[x] yes" } else { "[ ] no" };
            pen.put(area.x, area.y, room, focus_token(focused), words);
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
            pen.put(area.x, area.y, room, focus_token(focused), &words);
        }
        Input::Clause(clause) => clauses(clause, focused.then_some(form.part), pen, area),
    }
}

fn focus_token(focused: bool) -> Token {
    if focused {
        Token::Selected
    } else {
        Token::Text
    }
}

fn choice(spec: &FieldSpec, at: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let words = spec.kind.words();
    let word = words.get(at).copied().unwrap_or_default();
    let mut x = pen.put(
        area.x,
        area.y,
        usize::from(area.width),
        focus_token(focused),
        &format!("‹ {word} ›"),
    );
    if !focused {
        return;
    }
    x += 2;
    for other in words.into_iter().filter(|other| *other != word) {
        let room = usize::from(area.right().saturating_sub(x));
        if text::width(other) > room {
            break;
        }
        x = pen.put(x, area.y, room, Token::Dim, other) + 1;
    }
}

/// The list of clauses, or the JSON.
fn clauses(clause: &ClauseInput, part: Option<usize>, pen: &mut Pen<'_>, area: Rect) {
    if let Some(field) = &clause.json {
        return pen.field(area, field, part.is_some(), false);
    }
    let focus = part.map(|part| clause.part(part));
    let words = if clause.any {
        "any of these"
    } else {
        "all of these"
    };
    pen.put(
        area.x,
        area.y,
        20,
        focus_token(focus == Some(Part::Any)),
        words,
    );
    let rest = area.width.saturating_sub(4 + 12 + 1);
    let field_room = (rest * 2 / 5).max(4);
    let value_room = rest.saturating_sub(field_room);
    for ((index, row), y) in clause
        .rows
        .iter()
        .enumerate()
        .zip(area.y + 1..area.bottom())
    {
        let negated = focus == Some(Part::Negated(index));
        let not = if row.negated { "not" } else { "···" };
        let token = match (negated, row.negated) {
            (true, _) => Token::Selected,
            (false, true) => Token::Warning,
            (false, false) => Token::Dim,
        };
        pen.put(area.x, y, 4, token, not);
        let field = Rect {
            x: area.x + 4,
            y,
            width: field_room,
            height: 1,
        };
        text_part(
            &row.field,
            focus == Some(Part::Field(index)),
            "field",
            pen,
            field,
        );
        let comparison = Comparison::ALL[row.comparison % Comparison::ALL.len()].word();
        let token = focus_token(focus == Some(Part::Comparison(index)));
        let x = field.right() + 1;
        pen.put(x, y, 11, token, &format!("{comparison:<11}"));
        let value = Rect {
            x: x + 12,
            y,
            width: value_room,
            height: 1,
        };
        text_part(
            &row.value,
            focus == Some(Part::Value(index)),
            "value",
            pen,
            value,
        );
    }
}

fn text_part(
    field: &crate::model::field::TextField,
    focused: bool,
    nothing: &str,
    pen: &mut Pen<'_>,
    area: Rect,
) {
    if field.text().is_empty() && !focused {
        pen.put(area.x, area.y, usize::from(area.width), Token::Dim, nothing);
    } else {
        pen.field(area, field, focused, false);
    }
}

/// Help for the focused field, and what the service thinks.
fn foot(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    let room = usize::from(area.width).saturating_sub(2);
    let completions = completions(model);
    let help = if completions.is_empty() {
        model.tell(form.spec().help)
    } else {
        format!("Right takes {}", completions.join("  "))
    };
    let (token, words) = if form.waiting.is_some() {
        (Token::Dim, "being saved…".to_owned())
    } else if !form.errors.is_empty() {
        let count = form.errors.len();
        let word = if count == 1 { "error" } else { "errors" };
        (Token::Bad, format!("{count} {word}"))
    } else if form.checked {
        (
            Token::Good,
            model.tell("✓ the service finds nothing wrong; ‹form_save› saves"),
        )
    } else if !model.is_up() {
        (
            Token::Warning,
            "not connected: go on, nothing typed is lost".to_owned(),
        )
    } else {
        (Token::Dim, String::new())
    };
    // The help has both lines while there is nothing else to say.
    let lines = text::wrap(&help, room);
    let (first, token, second) = if area.height > 1 && words.is_empty() && lines.len() > 1 {
        (lines[0].clone(), Token::Info, lines[1..].join(" "))
    } else {
        (help, token, words)
    };
    pen.put(area.x + 1, area.y, room, Token::Info, &first);
    if area.height > 1 {
        pen.put(area.x + 1, area.y + 1, room, token, &second);
    }
}
