//! Draws dialogs over a page: questions, prompts and pickers.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    data::when::{MOMENTS, format_parsed},
    model::{
        Model,
        bulk::{Bulk, Stage},
        overlay::{Clash, ClashChoice, Confirm, Menu, Picker, PickerPurpose, ProgramPane, Prompt},
        silencing::{LENGTHS, SilenceChoice, SilencePart},
    },
    text,
    theme::Token,
};

fn centered_rect(area: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(area.width);
    let height = height.min(area.height);
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
}

fn dialog_rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn more_lines_hint(count: usize) -> String {
    let lines = if count == 1 { "line" } else { "lines" };
    format!("↓ {count} more {lines} (j)")
}

pub(super) fn draw_confirm(confirm: &Confirm, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(76);
    let space = usize::from(width.saturating_sub(4));
    let lines: Vec<(Token, String)> = confirm
        .lines
        .iter()
        .flat_map(|(token, line)| {
            text::wrap_text(line, space)
                .into_iter()
                .map(|part| (*token, part))
        })
        .collect();
    let height = dialog_rows(lines.len()).saturating_add(4).min(area.height);
    let inside = pen.draw_window(centered_rect(area, width, height), &confirm.title);
    let foot = inside.bottom().saturating_sub(1);
    let body = usize::from(foot.saturating_sub(inside.y + 1));
    let top = confirm.top.min(lines.len().saturating_sub(body));
    for ((token, line), y) in lines.iter().skip(top).zip(inside.y..foot.saturating_sub(1)) {
        pen.draw_text(inside.x, y, usize::from(inside.width), *token, line);
    }
    if lines.len() > body + top {
        let words = more_lines_hint(lines.len() - body - top);
        pen.draw_text(
            inside.x,
            foot.saturating_sub(1),
            usize::from(inside.width),
            Token::Dim,
            &words,
        );
    }
    draw_buttons(confirm.verb, confirm.yes, "", pen, inside);
}

fn draw_buttons(verb: &str, is_yes: bool, other: &str, pen: &mut Pen<'_>, inside: Rect) {
    let foot = inside.bottom().saturating_sub(1);
    let (no, yes) = if is_yes {
        ("  No  ".to_owned(), format!("[ {verb} ]"))
    } else {
        ("[ No ]".to_owned(), format!("  {verb}  "))
    };
    let (no_token, yes_token) = if is_yes {
        (Token::Text, Token::Selected)
    } else {
        (Token::Selected, Token::Text)
    };
    let x = pen.draw_text(inside.x, foot, 10, no_token, &no);
    pen.select(if is_yes { x + 2 } else { inside.x }, foot);
    let x = pen.draw_text(x + 2, foot, 24, yes_token, &yes);
    let rest = usize::from(inside.right().saturating_sub(x + 2));
    let keys = format!("y yes · {other}Esc no · Tab switches");
    pen.draw_text(x + 2, foot, rest, Token::Dim, &keys);
}

pub(super) fn draw_clash(clash: &Clash, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(76);
    let space = usize::from(width.saturating_sub(4));
    let wrapped = clash.lines.iter().flat_map(|(token, line)| {
        let parts = text::wrap_text(line, space).into_iter();
        parts.map(|part| (*token, part))
    });
    let lines: Vec<(Token, String)> = wrapped.collect();
    let height = dialog_rows(lines.len()).saturating_add(5).min(area.height);
    let (word, name) = (clash.mine.kind.singular(), clash.mine.name());
    let title = format!("The {word} {name} was changed concurrently");
    let inside = pen.draw_window(centered_rect(area, width, height), &title);
    let foot = inside.bottom().saturating_sub(1);
    let body = usize::from(foot.saturating_sub(inside.y + 1));
    let top = clash.top.min(lines.len().saturating_sub(body));
    for ((token, line), y) in lines.iter().skip(top).zip(inside.y..foot.saturating_sub(1)) {
        pen.draw_text(inside.x, y, space, *token, line);
    }
    if lines.len() > body + top {
        let words = more_lines_hint(lines.len() - body - top);
        pen.draw_text(inside.x, foot.saturating_sub(1), space, Token::Dim, &words);
    }
    let mut x = inside.x;
    for choice in ClashChoice::ALL {
        let (token, words) = if choice == clash.choice {
            (Token::Selected, format!("[ {} ]", choice.label()))
        } else {
            (Token::Text, format!("  {}  ", choice.label()))
        };
        let space = usize::from(inside.right().saturating_sub(x));
        x = pen.draw_text(x, foot, space, token, &words);
    }
}

pub(super) fn draw_bulk(bulk: &Bulk, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(76);
    let space = usize::from(width.saturating_sub(4));
    let wrapped = |(token, line): (Token, String)| {
        let parts = text::wrap_text(&line, space).into_iter();
        parts.map(move |part| (token, part)).collect::<Vec<_>>()
    };
    let lines: Vec<_> = bulk.lines().into_iter().flat_map(wrapped).collect();
    let height = dialog_rows(lines.len()).saturating_add(4).min(area.height);
    let inside = pen.draw_window(centered_rect(area, width, height), &bulk.title());
    let foot = inside.bottom().saturating_sub(1);
    for ((token, line), y) in lines.iter().zip(inside.y..foot.saturating_sub(1)) {
        pen.draw_text(inside.x, y, usize::from(inside.width), *token, line);
    }
    let words = match &bulk.stage {
        Stage::Asking { yes } => {
            let other = if bulk.can_be_quiet() {
                "w without updates · "
            } else {
                ""
            };
            return draw_buttons(bulk.verb(), *yes, other, pen, inside);
        }
        Stage::Counting => "… counting · Esc cancels; nothing was changed".to_owned(),
        Stage::Running => format!("… {} done · Esc stops", bulk.progress_text()),
        Stage::Stopping => format!("… {} done · stopping", bulk.progress_text()),
        Stage::Failed(_) => format!(
            "{} done · Enter continues · Esc stops",
            bulk.progress_text()
        ),
    };
    pen.draw_text(inside.x, foot, space, Token::Info, &words);
}

pub(super) fn draw_prompt(prompt: &Prompt, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(76);
    let help = text::wrap_text(prompt.help, usize::from(width.saturating_sub(4)));
    let height = dialog_rows(help.len()).saturating_add(4);
    let inside = pen.draw_window(centered_rect(area, width, height), &prompt.title);
    let line = Rect {
        height: 1,
        ..inside
    };
    pen.field(line, &prompt.field, true, false);
    let offered: Vec<&str> = prompt.suggestions().collect();
    pen.draw_text(
        inside.x,
        inside.y + 1,
        usize::from(inside.width),
        Token::Key,
        &offered.join("  "),
    );
    for (line, y) in help.iter().zip(inside.y.saturating_add(2)..inside.bottom()) {
        pen.draw_text(inside.x, y, usize::from(inside.width), Token::Dim, line);
    }
}

pub(super) fn draw_pick(pick: &Picker, pen: &mut Pen<'_>, area: Rect) {
    let items = pick.matching_items();
    let width = if pick.values.is_some() { 76 } else { 60 };
    let width = area.width.saturating_sub(4).min(width);
    let height = dialog_rows(pick.items.len().max(1))
        .saturating_add(5)
        .min(area.height.saturating_sub(2));
    let inside = pen.draw_window(centered_rect(area, width, height), &pick.title);
    let cells = usize::from(inside.width);
    pen.draw_text(inside.x, inside.y, 8, Token::Dim, "search: ");
    let field = Rect {
        x: inside.x + 8,
        width: inside.width.saturating_sub(8),
        height: 1,
        ..inside
    };
    pen.field(field, &pick.needle, true, false);
    let foot = inside.bottom().saturating_sub(1);
    let space = usize::from(foot.saturating_sub(inside.y + 1)).max(1);
    let top = (pick.cursor + 1).saturating_sub(space);
    if items.is_empty() {
        let words = if pick.items.is_empty() {
            "nothing stored yet"
        } else if pick.purpose == PickerPurpose::Event {
            "not listed; Enter uses it as an id"
        } else if pick.values.is_some() {
            "not listed; Enter uses the typed text"
        } else {
            "nothing found"
        };
        pen.draw_text(inside.x, inside.y + 1, cells, Token::Dim, words);
    }
    for ((index, name), y) in items.iter().enumerate().skip(top).zip(inside.y + 1..foot) {
        let mark = match pick.chosen.contains(name) {
            _ if !pick.has_marks() => "",
            true => "[x] ",
            false => "[ ] ",
        };
        pen.draw_text(inside.x, y, cells, Token::Text, &format!("{mark}{name}"));
        if index == pick.cursor {
            pen.row(inside, y, Token::Selected);
        }
    }
    let words = if pick.has_marks() {
        "Space selects · Enter accepts · Esc cancels"
    } else {
        "Enter accepts · Esc cancels"
    };
    pen.draw_text(inside.x, foot, cells, Token::Dim, words);
}

pub(super) fn draw_menu(menu: &Menu, pen: &mut Pen<'_>, area: Rect) {
    let is_wide = menu
        .items
        .iter()
        .any(|item| !item.what.preview().is_empty());
    let width = area
        .width
        .saturating_sub(4)
        .min(if is_wide { 96 } else { 56 });
    let height = dialog_rows(menu.items.len()).saturating_add(4);
    let inside = pen.draw_window(centered_rect(area, width, height), &menu.title);
    let right = |x: u16| usize::from(inside.right().saturating_sub(x));
    for ((index, item), y) in menu.items.iter().enumerate().zip(inside.y..inside.bottom()) {
        let x = pen.draw_text(inside.x, y, 2, Token::Key, &item.key.to_string()) + 2;
        pen.draw_text(x, y, right(x), Token::Text, &item.label);
        let x = x + 12;
        pen.draw_text(x, y, right(x), Token::Dim, &item.what.preview());
        if index == menu.cursor {
            pen.row(inside, y, Token::Selected);
        }
    }
    let foot = inside.bottom().saturating_sub(1);
    pen.draw_text(inside.x, foot, right(inside.x), Token::Dim, menu.help);
}

const SCOPE_CELLS: u16 = 32;

pub(super) fn draw_silence(model: &Model, choice: &SilenceChoice, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(92);
    let space = usize::from(width.saturating_sub(4));
    let mut lines: Vec<(Token, String)> = choice.scope().lines();
    let name = model.silence_name(choice.scope());
    let saved = format!("name {name} · reason: {}", choice.reason());
    lines.push((Token::Dim, saved));
    lines.extend(
        choice
            .error
            .iter()
            .map(|it| (Token::Bad, format!("✗ {it}"))),
    );
    let wrapped = lines.iter().flat_map(|(token, line)| {
        let parts = text::wrap_text(line, space).into_iter();
        parts.map(|part| (*token, part))
    });
    let lines: Vec<(Token, String)> = wrapped.take(7).collect();
    let height = dialog_rows(choice.scopes.len() + lines.len().max(2)).saturating_add(6);
    let inside = pen.draw_window(centered_rect(area, width, height), "Silence");
    let foot = inside.bottom().saturating_sub(1);
    for ((index, scope), y) in choice.scopes.iter().enumerate().zip(inside.y..foot) {
        let x = pen.draw_text(inside.x, y, 2, Token::Key, &scope.key.to_string()) + 2;
        let cells = SCOPE_CELLS.min(inside.width / 2);
        let label = text::fit_to_width(&scope.label, usize::from(cells).saturating_sub(2));
        pen.draw_text(x, y, usize::from(cells), Token::Text, &label);
        let (token, counts) = scope.format_scope_counts();
        let x = x + cells;
        let rest = usize::from(inside.right().saturating_sub(x));
        pen.draw_text(x, y, rest, token, &text::fit_to_width(&counts, rest));
        if index == choice.cursor {
            pen.row(inside, y, Token::Selected);
        }
    }
    let below = inside.y + dialog_rows(choice.scopes.len()) + 1;
    for ((token, line), y) in lines.iter().zip(below..foot.saturating_sub(2)) {
        pen.draw_text(inside.x, y, space, *token, line);
    }
    let at = Rect {
        y: foot.saturating_sub(1),
        height: 1,
        ..inside
    };
    draw_lengths(model, choice, pen, at);
    let typed = choice.typing.as_ref().map(|(part, _)| *part);
    let help = if typed == Some(SilencePart::Reason) {
        "Enter accepts the reason · Esc back"
    } else if typed.is_some() {
        "Enter silences · Esc back"
    } else if choice.chosen.is_some() {
        "… counting, then silencing · Esc cancels"
    } else {
        "letter: scope · digit: duration · r reason · Esc cancels"
    };
    pen.draw_text(inside.x, foot, space, Token::Dim, help);
}

fn draw_lengths(model: &Model, choice: &SilenceChoice, pen: &mut Pen<'_>, area: Rect) {
    let right = |x: u16| usize::from(area.right().saturating_sub(x));
    if let Some((SilencePart::Reason, field)) = &choice.typing {
        let x = pen.draw_text(area.x, area.y, 8, Token::Dim, "reason") + 1;
        let width = area.right().saturating_sub(x);
        return pen.field(Rect { x, width, ..area }, field, true, false);
    }
    if let Some((SilencePart::End, field)) = &choice.typing {
        let x = pen.draw_text(area.x, area.y, 8, Token::Dim, "until") + 2;
        let width = (area.width / 3).max(12);
        pen.field(Rect { x, width, ..area }, field, true, false);
        let words = match model.silence_end(field.text()) {
            _ if field.text().is_empty() => format!("as {MOMENTS}"),
            Ok(end) => format!("→ {}", format_parsed(end, model.now_ms, &model.zone)),
            Err(_) => String::new(),
        };
        let x = x + width + 2;
        pen.draw_text(x, area.y, right(x), Token::Dim, &words);
        return;
    }
    let mut x = area.x;
    for (index, (key, length)) in LENGTHS.iter().enumerate() {
        let words = if length.contains(':') {
            format!("until {length}")
        } else {
            (*length).to_owned()
        };
        let token = if index == choice.length {
            Token::Selected
        } else {
            Token::Text
        };
        x = pen.draw_text(x, area.y, right(x), Token::Key, &key.to_string()) + 1;
        x = pen.draw_text(x, area.y, right(x), token, &words) + 3;
    }
    x = pen.draw_text(x, area.y, right(x), Token::Key, "o") + 1;
    pen.draw_text(x, area.y, right(x), Token::Text, "other");
}

pub(super) fn draw_key(name: &str, key: &str, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(76);
    let space = usize::from(width.saturating_sub(4));
    let parts = text::wrap_text(key, space);
    let height = dialog_rows(parts.len()).saturating_add(6);
    let inside = pen.draw_window(
        centered_rect(area, width, height),
        &format!("The key of {name}"),
    );
    for (part, y) in parts.iter().zip(inside.y + 1..) {
        pen.draw_text(inside.x, y, space, Token::Title, part);
    }
    let y = inside.y + 2 + dialog_rows(parts.len());
    pen.draw_text(
        inside.x,
        y,
        space,
        Token::Warning,
        "It is shown only once. y copies it, Esc closes.",
    );
}

pub(super) fn draw_program(pane: &ProgramPane, pen: &mut Pen<'_>, area: Rect) {
    let (width, height) = (area.width.saturating_sub(4), area.height.saturating_sub(2));
    let inside = pen.draw_window(centered_rect(area, width, height), &pane.title);
    let space = usize::from(inside.width);
    let foot = inside.bottom().saturating_sub(1);
    for (line, y) in pane.lines.iter().skip(pane.top).zip(inside.y..foot) {
        pen.draw_text(inside.x, y, space, Token::Text, line);
    }
    let (token, words) = match &pane.end {
        None => (Token::Info, "… running · Esc stops it".to_owned()),
        Some(end) => (
            Token::Dim,
            format!("{end} · j k scroll · y copies · Esc closes"),
        ),
    };
    pen.draw_text(inside.x, foot, space, token, &words);
}
