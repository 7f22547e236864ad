//! Draws palette and help: actions with their keys; disabled ones dimmed with the reason.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    keymap::Group,
    model::{
        Model,
        overlay::{Item, Palette},
    },
    text,
    theme::Token,
};

const TWO_COLUMNS_WIDTH: u16 = 160;
const GAP: u16 = 3;
/// Maximum number of keys beside an action; the line below shows all of its keys.
const KEYS: usize = 2;
/// Minimum rows of the help with the sentence of the selected action below it.
const EXPLAINED_ROWS: u16 = 8;

pub(super) fn draw(model: &Model, palette: &Palette, pen: &mut Pen<'_>, area: Rect) {
    let items = palette.items(model);
    let is_grouped = palette.here && palette.field.text().trim().is_empty();
    let lines = PaletteLine::from_items(&items, is_grouped);
    let is_wide = palette.here && area.width >= TWO_COLUMNS_WIDTH;
    let widest = if is_wide { 150 } else { 90 };
    let width = area.width.min(widest);
    // The text field, the frame, the lines, and the sentence below those of the help.
    let highest = match (is_wide, palette.here) {
        (true, _) => lines.len().div_ceil(2).max(12) + 6,
        (false, true) => 26,
        (false, false) => (lines.len() + 4).min(26),
    };
    let highest = u16::try_from(highest).unwrap_or(u16::MAX);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + 1,
        width,
        height: area.height.saturating_sub(2).min(highest),
    };
    let title = if palette.here {
        "Available actions"
    } else {
        "Go to, or do"
    };
    let inside = pen.draw_window(place, title);
    pen.draw_text(inside.x, inside.y, 2, Token::Key, ":");
    let field = Rect {
        x: inside.x + 2,
        width: inside.width.saturating_sub(2),
        height: 1,
        ..inside
    };
    pen.field(field, &palette.field, true, false);
    let mut below = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1).max(1),
        ..inside
    };
    if items.is_empty() {
        let nothing = "nothing found";
        let space = usize::from(below.width);
        pen.draw_text(below.x, below.y, space, Token::Dim, nothing);
    }
    if palette.here && below.height > EXPLAINED_ROWS {
        below.height -= 2;
        draw_explanation(items.get(palette.cursor), pen, inside);
    }
    let columns = if is_wide {
        let width = (below.width - GAP) / 2;
        let left = Rect { width, ..below };
        let right = Rect {
            x: below.x + width + GAP,
            ..left
        };
        vec![left, right]
    } else {
        vec![below]
    };
    draw_items(&items, &lines, palette, pen, &columns);
}

fn draw_explanation(item: Option<&Item>, pen: &mut Pen<'_>, inside: Rect) {
    let Some(item) = item else { return };
    let y = inside.bottom() - 1;
    let rule = "─".repeat(inside.width.into());
    pen.draw_text(inside.x, y - 1, inside.width.into(), Token::Border, &rule);
    let right = |x: u16| usize::from(inside.right().saturating_sub(x));
    let sentence = format!("{}.", with_refusal(item));
    let x = pen.draw_text(inside.x, y, right(inside.x), Token::Title, &sentence);
    pen.draw_text(x + 2, y, right(x + 2), Token::Key, &item.keys);
}

/// Returns the title, with the reason if the action is not available.
fn with_refusal(item: &Item) -> Cow<'_, str> {
    match &item.refusal {
        Some(reason) => format!("{} ({reason})", item.title).into(),
        None => Cow::Borrowed(&item.title),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaletteLine {
    Blank,
    Heading(Group),
    Item(usize),
}

impl PaletteLine {
    fn from_items(items: &[Item], is_grouped: bool) -> Vec<Self> {
        let mut lines = Vec::new();
        let mut group = None;
        for (index, item) in items.iter().enumerate() {
            let is_next = is_grouped && item.group != group;
            if let Some(heading) = item.group.filter(|_| is_next) {
                if group.is_some() {
                    lines.push(Self::Blank);
                }
                lines.push(Self::Heading(heading));
            }
            group = item.group;
            lines.push(Self::Item(index));
        }
        lines
    }
}

fn draw_items(
    items: &[Item],
    lines: &[PaletteLine],
    palette: &Palette,
    pen: &mut Pen<'_>,
    columns: &[Rect],
) {
    let chosen = palette.cursor;
    let keys = items.iter().map(|item| text::cell_width(&first_keys(item)));
    let keys = keys.max().filter(|_| palette.here);
    let rows = columns.first().map_or(1, |it| usize::from(it.height));
    let at = lines
        .iter()
        .position(|line| *line == PaletteLine::Item(chosen));
    // The last line shows the number of remaining lines.
    let most = (rows * columns.len()).saturating_sub(1).max(1);
    let over = (at.unwrap_or(0) + 1).saturating_sub(most);
    // Scrolls by whole columns, so that lines do not jump.
    let first = over.div_ceil(rows) * rows;
    let first = if columns.len() == 1 { over } else { first };
    let mut rest = lines.get(first..).unwrap_or_default().iter().peekable();
    for (index, column) in columns.iter().enumerate() {
        let is_last = index + 1 == columns.len();
        for y in column.y..column.bottom() {
            let others = rest
                .clone()
                .filter(|line| matches!(line, PaletteLine::Item(_)));
            let left = others.count();
            if is_last && y + 1 == column.bottom() && left > 1 {
                let words = format!("↓ {left} more");
                pen.draw_text(column.x, y, usize::from(column.width), Token::Dim, &words);
                return;
            }
            match rest.next() {
                None => return,
                Some(PaletteLine::Blank) => {}
                Some(PaletteLine::Heading(heading)) => {
                    let space = usize::from(column.width);
                    pen.draw_text(column.x, y, space, Token::Heading, heading.title());
                }
                Some(PaletteLine::Item(index)) => {
                    let line = Rect {
                        y,
                        height: 1,
                        ..*column
                    };
                    let item = &items[*index];
                    match keys {
                        Some(keys) => draw_action(item, keys, pen, line),
                        None => draw_item(item, pen, line),
                    }
                    if *index == chosen {
                        pen.row(line, y, Token::Selected);
                    }
                }
            }
        }
        // No column begins with a blank line.
        while rest.next_if_eq(&&PaletteLine::Blank).is_some() {}
    }
}

fn item_token(item: &Item, token: Token) -> Token {
    if item.refusal.is_some() {
        Token::Dim
    } else {
        token
    }
}

fn first_keys(item: &Item) -> String {
    item.keys
        .split("  ")
        .take(KEYS)
        .collect::<Vec<_>>()
        .join(" / ")
}

/// Draws an action of the help after its keys.
fn draw_action(item: &Item, keys: usize, pen: &mut Pen<'_>, line: Rect) {
    let shown = first_keys(item);
    let right = |x: u16| usize::from(line.right().saturating_sub(x));
    pen.draw_text(line.x, line.y, keys, item_token(item, Token::Key), &shown);
    let x = line.x + u16::try_from(keys + 2).unwrap_or(0);
    pen.draw_text(
        x,
        line.y,
        right(x),
        item_token(item, Token::Text),
        &with_refusal(item),
    );
}

fn draw_item(item: &Item, pen: &mut Pen<'_>, line: Rect) {
    let space = usize::from(line.width);
    // Keys are never truncated; the title gets the remaining width.
    let keys = text::fit_to_width(&item.keys, space);
    let keys_at = space.saturating_sub(text::cell_width(&keys));
    let (words, title) = (item_token(item, Token::Text), with_refusal(item));
    pen.draw_text(line.x, line.y, keys_at.saturating_sub(1), words, &title);
    let x = line.x + u16::try_from(keys_at).unwrap_or(0);
    pen.draw_text(x, line.y, space - keys_at, Token::Key, &keys);
}
