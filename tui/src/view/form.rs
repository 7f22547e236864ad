//! Draws a form: labels, fields, their errors, and one line of help for the focused field.

use std::ops::Range;

use super::pen::Pen;
use crate::{
    kind::{FieldKind, FieldSpec, secret},
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
use ratatui::layout::Rect;

const LABEL: u16 = 16;
/// Rows of multi-line text: the maximum, and the range for the focused field.
const LINES: usize = 6;
const LINES_TYPED: (usize, usize) = (4, 14);
/// Maximum rows of an error or warning.
const REMARK_LINES: usize = 3;

pub(super) fn draw(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    let most = if area.height > 24 { 3 } else { 2 };
    let lines = footer_lines(model, form, usize::from(area.width).saturating_sub(2), most);
    let foot_rows = if area.height > 10 {
        most.min(lines.len().max(2))
    } else {
        1
    };
    let foot_rows = u16::try_from(foot_rows).unwrap_or(1);
    let body = Rect {
        height: area.height.saturating_sub(foot_rows),
        ..area
    };
    for ((token, line), y) in lines.iter().zip(body.bottom()..area.bottom()) {
        pen.draw_text(area.x + 1, y, usize::from(area.width) - 2, *token, line);
    }
    let mut y = body.y;
    if let Some(message) = form.errors.get("") {
        for line in text::wrap_text(message, usize::from(area.width).saturating_sub(4))
            .iter()
            .take(3)
        {
            pen.draw_text(
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
    let heights = shown.iter().map(|index| field_height(form, *index, cells));
    let heights: Vec<usize> = heights.collect();
    let space = usize::from(body.bottom().saturating_sub(y));
    let focus = shown
        .iter()
        .position(|index| *index == form.focus)
        .unwrap_or(0);
    let first = first_visible_field(&heights, focus, space);
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
        draw_field(form, *index, pen, place);
        y += height.min(left);
    }
}

/// Returns the first visible field, chosen so that the focused one is fully visible.
fn first_visible_field(heights: &[usize], focus: usize, space: usize) -> usize {
    let mut used = 0;
    for index in (0..=focus).rev() {
        used += heights[index];
        if used > space {
            return (index + 1).min(focus);
        }
    }
    0
}

fn field_height(form: &Form, index: usize, cells: usize) -> usize {
    let field_message_lines = field_message_lines(form, index, cells).len();
    let rows = match &form.inputs[index] {
        Input::Text(field) if field.lines => {
            let lines = text::split_into_rows(field.text(), cells).len();
            if form.focus == index && form.specs[index].kind == FieldKind::Lines {
                lines.clamp(LINES_TYPED.0, LINES_TYPED.1)
            } else {
                lines.clamp(1, LINES)
            }
        }
        Input::Choice(at) if form.focus == index => {
            choice_lines(&form.specs[index].kind.choice_names(), *at, cells).len()
        }
        _ => 1,
    };
    rows + field_message_lines
}

fn draw_field(form: &Form, index: usize, pen: &mut Pen<'_>, area: Rect) {
    let spec = &form.specs[index];
    let focused = form.focus == index;
    let locked = form.is_locked(index);
    let mark = if focused { "▶" } else { " " };
    pen.draw_text(area.x, area.y, 1, Token::Key, mark);
    if focused {
        pen.select(area.x, area.y);
    }
    if let Input::Section(is_open) = form.inputs[index] {
        return draw_section(form, index, is_open, pen, area);
    }
    let star = if spec.required { "*" } else { "" };
    let label = format!("{}{star}", spec.label);
    let token = if focused { Token::Title } else { Token::Dim };
    let indent = u16::from(form.is_in_section(index));
    let space = usize::from(LABEL - indent);
    pen.draw_text(area.x + 2 + indent, area.y, space, token, &label);
    let x = area.x + 2 + LABEL;
    let width = area.right().saturating_sub(x + 1);
    let field_message_lines = field_message_lines(form, index, usize::from(width).max(1));
    let below = u16::try_from(field_message_lines.len()).unwrap_or(0);
    let inside = Rect {
        x,
        y: area.y,
        width,
        height: area.height.saturating_sub(below).max(1),
    };
    draw_input(form, index, focused && !locked, pen, inside);
    for ((token, line), y) in field_message_lines
        .iter()
        .zip(inside.bottom()..area.bottom())
    {
        pen.draw_text(x, y, usize::from(width), *token, line);
    }
}

fn field_message_lines(form: &Form, index: usize, cells: usize) -> Vec<(Token, String)> {
    let error = form.error(index).map(|it| (Token::Bad, format!("✗ {it}")));
    let warning = || Some((Token::Warning, format!("! {}", form.field_warning(index)?)));
    let Some((token, message)) = error.or_else(warning) else {
        return Vec::new();
    };
    let mut lines = text::wrap_text(&message, cells);
    if lines.len() > REMARK_LINES {
        let rest = lines.split_off(REMARK_LINES - 1).join(" ");
        lines.push(text::fit_to_width(&rest, cells).into_owned());
    }
    lines.into_iter().map(|line| (token, line)).collect()
}

fn draw_section(form: &Form, index: usize, is_open: bool, pen: &mut Pen<'_>, area: Rect) {
    let sign = if is_open { "▾" } else { "▸" };
    let words = format!("{sign} {}", form.specs[index].label);
    let token = if form.focus == index {
        Token::Selected
    } else {
        Token::Heading
    };
    let x = area.x + 2;
    let end = pen.draw_text(x, area.y, usize::from(area.width) - 2, token, &words);
    let filled = form.filled_labels(index);
    if !is_open && !filled.is_empty() {
        let space = usize::from(area.right().saturating_sub(end + 2));
        pen.draw_text(end + 2, area.y, space, Token::Text, &filled.join(", "));
    }
}

fn draw_input(form: &Form, index: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let spec = &form.specs[index];
    let space = usize::from(area.width);
    match &form.inputs[index] {
        Input::Text(field) if form.is_locked(index) => {
            pen.draw_text(area.x, area.y, space, Token::Text, field.text());
        }
        Input::Text(field) => {
            let stored = field.text() == secret::STORED;
            let mask = spec.kind == FieldKind::Secret && !form.reveal && !stored;
            if field.text().is_empty() && !focused {
                pen.draw_text(area.x, area.y, space, Token::Dim, "·");
            } else if let Some(words) = form.parsed_time_text(index) {
                draw_time_field(field, focused, &words, pen, area);
            } else if spec.path == secret::HEADERS && !form.reveal {
                pen.field(area, &masked_headers(form, field, focused), focused, false);
            } else {
                pen.field(area, field, focused, mask);
                let is_picked = matches!(spec.kind, FieldKind::LineFormat(_));
                if is_picked && field.text().is_empty() {
                    let space = space.saturating_sub(2);
                    pen.draw_text(area.x + 2, area.y, space, Token::Dim, "Enter chooses");
                }
            }
        }
        Input::Toggle(on) => {
            let words = if *on { "[x] yes" } else { "[ ] no" };
            pen.draw_text(area.x, area.y, space, focus_token(focused), words);
        }
        Input::Choice(at) => draw_choice(spec, *at, focused, pen, area),
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
            pen.draw_text(area.x, area.y, space, focus_token(focused), &words);
        }
        Input::Clause(clause) => draw_condition(clause, focused, pen, area),
        Input::Section(_) => {}
    }
}

fn masked_headers(form: &Form, field: &TextField, focused: bool) -> TextField {
    let destination = form.base_json();
    if focused {
        field.to_masked(|line| secret::visible_bytes(destination, line))
    } else {
        TextField::new(secret::mask_header_lines(destination, field.text())).with_lines()
    }
}

fn draw_time_field(field: &TextField, focused: bool, words: &str, pen: &mut Pen<'_>, area: Rect) {
    let typed = u16::try_from(text::cell_width(field.text()) + 2).unwrap_or(u16::MAX);
    let width = typed.max(22).min(area.width);
    pen.field(Rect { width, ..area }, field, focused, false);
    let x = area.x + width + 1;
    let space = usize::from(area.right().saturating_sub(x));
    pen.draw_text(x, area.y, space, Token::Dim, &format!("→ {words}"));
}

fn focus_token(focused: bool) -> Token {
    if focused {
        Token::Selected
    } else {
        Token::Text
    }
}

/// Returns the lines of a focused field with all of its choices, each a run of indices.
fn choice_lines(words: &[&str], at: usize, cells: usize) -> Vec<Range<usize>> {
    let (mut lines, mut start, mut used) = (Vec::new(), 0, 0);
    for (index, word) in words.iter().enumerate() {
        let frame = if index == at { 5 } else { 1 };
        let width = text::cell_width(word) + frame;
        // The line may end before the space that follows its last word.
        if used + width > cells + 1 && index > start {
            lines.push(start..index);
            (start, used) = (index, 0);
        }
        used += width;
    }
    lines.push(start..words.len());
    lines
}

fn draw_choice(spec: &FieldSpec, at: usize, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let words = spec.kind.choice_names();
    let space = |x: u16| usize::from(area.right().saturating_sub(x));
    let shown = |index: usize| format!("‹ {} ›", words[index]);
    if !focused {
        let x = pen.draw_text(area.x, area.y, space(area.x), Token::Text, &shown(at));
        let others = words.len() - 1;
        if others > 1 {
            pen.draw_text(
                x + 1,
                area.y,
                space(x + 1),
                Token::Dim,
                &format!("+{others}"),
            );
        }
        return;
    }
    let lines = choice_lines(&words, at, usize::from(area.width));
    // If not all lines fit, shows the lines around the selected choice.
    let chosen = lines
        .iter()
        .position(|line| line.contains(&at))
        .unwrap_or(0);
    let height = usize::from(area.height);
    let first = (chosen + 1).saturating_sub(height);
    for (line, y) in lines.into_iter().skip(first).zip(area.top()..area.bottom()) {
        let mut x = area.x;
        for index in line {
            let (token, word) = if index == at {
                (Token::Selected, shown(index))
            } else {
                (Token::Dim, words[index].to_owned())
            };
            x = pen.draw_text(x, y, space(x), token, &word) + 1;
        }
    }
}

fn draw_condition(clause: &ClauseInput, focused: bool, pen: &mut Pen<'_>, area: Rect) {
    let words = if clause.is_unknown() {
        "a condition unknown to this console; left unchanged"
    } else {
        "·"
    };
    if clause.line.text().is_empty() && !focused {
        pen.draw_text(area.x, area.y, usize::from(area.width), Token::Dim, words);
    } else {
        pen.field(area, &clause.line, focused, false);
    }
}

/// Returns the lines below a form: the help for the focused field, then the state of the form. The
/// help is cut if both need more than `most` lines.
fn footer_lines(model: &Model, form: &Form, cells: usize, most: usize) -> Vec<(Token, String)> {
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
            "not connected. Keep typing: nothing is lost".to_owned(),
        )
    } else {
        (Token::Dim, String::new())
    };
    // The summary of the test is shorter if the pane beside the form shows the test.
    let has_pane = model.terminal_columns() >= usize::from(limits::BENCH_COLUMNS);
    let tested = form
        .test_summary(model.now_ms, has_pane)
        .unwrap_or_default();
    let lead = form.likely_cause().filter(|_| !has_pane);
    let lead = lead.map(|lead| lead.words).unwrap_or_default();
    let pane = match form.bench.count() {
        _ if has_pane || !form.has_bench() => String::new(),
        0 => model.expand_keys("‹form_bench› request"),
        _ => model.expand_keys("‹form_bench› response"),
    };
    // The cause of a failure comes before everything that can be cut.
    let words = if lead.is_empty() {
        words
    } else {
        String::new()
    };
    let words = [tested, pane, lead, words, describe_matches(model, form)];
    let words: Vec<_> = words.into_iter().filter(|it| !it.is_empty()).collect();
    let words = words.join("  ·  ");
    let space = if words.is_empty() { most } else { most - 1 };
    let mut lines = text::wrap_text(&help, cells);
    if lines.len() > space {
        let rest = lines.split_off(space - 1).join(" ");
        lines.push(rest);
    }
    let help = lines.into_iter().map(|line| (Token::Info, line));
    help.chain((!words.is_empty()).then_some((token, words)))
        .collect()
}

fn describe_matches(model: &Model, form: &Form) -> String {
    match &form.live.made {
        Some(Ok(LivePreview::Matching(None))) => {
            model.expand_keys("too many open events to count; ‹form_test› counts")
        }
        Some(Ok(LivePreview::Matching(Some(1)))) => "1 open event matches".to_owned(),
        Some(Ok(LivePreview::Matching(Some(count)))) => {
            let count = text::group_digits((*count).into());
            format!("{count} open events match")
        }
        _ => String::new(),
    }
}
