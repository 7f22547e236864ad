//! Draws palette and help: actions with their keys; disabled ones dimmed with the reason.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    model::{
        Model,
        overlay::{Item, Palette},
    },
    text,
    theme::Token,
};

const TWO_COLUMNS_WIDTH: u16 = 100;
const GAP: u16 = 3;

pub(super) fn draw(model: &Model, palette: &Palette, pen: &mut Pen<'_>, area: Rect) {
    let items = palette.items(model);
    let lines = Line::of(&items);
    let is_wide = palette.here && area.width >= TWO_COLUMNS_WIDTH;
    let widest = if is_wide { 150 } else { 90 };
    let width = area.width.saturating_sub(4).min(widest);
    let highest = if is_wide {
        // The text field, the frame, and the lines.
        u16::try_from(lines.len().div_ceil(2).max(12) + 4).unwrap_or(u16::MAX)
    } else {
        26
    };
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
    let inside = pen.window(place, title);
    pen.put(inside.x, inside.y, 2, Token::Key, ":");
    let field = Rect {
        x: inside.x + 2,
        width: inside.width.saturating_sub(2),
        height: 1,
        ..inside
    };
    pen.field(field, &palette.field, true, false);
    let below = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1).max(1),
        ..inside
    };
    if items.is_empty() {
        let nothing = "nothing found";
        let space = usize::from(below.width);
        pen.put(below.x, below.y, space, Token::Dim, nothing);
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
    put(&items, &lines, palette.cursor, pen, &columns);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Blank,
    Heading(&'static str),
    Item(usize),
}

impl Line {
    fn of(items: &[Item]) -> Vec<Self> {
        let mut lines = Vec::new();
        let mut section = None;
        for (index, item) in items.iter().enumerate() {
            if let Some(heading) = item.section.filter(|_| item.section != section) {
                if section.is_some() {
                    lines.push(Self::Blank);
                }
                lines.push(Self::Heading(heading));
            }
            section = item.section;
            lines.push(Self::Item(index));
        }
        lines
    }
}

fn put(items: &[Item], lines: &[Line], chosen: usize, pen: &mut Pen<'_>, columns: &[Rect]) {
    let rows = columns.first().map_or(1, |it| usize::from(it.height));
    let at = lines.iter().position(|line| *line == Line::Item(chosen));
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
            let others = rest.clone().filter(|line| matches!(line, Line::Item(_)));
            let left = others.count();
            if is_last && y + 1 == column.bottom() && left > 1 {
                let words = format!("↓ {left} more");
                pen.put(column.x, y, usize::from(column.width), Token::Dim, &words);
                return;
            }
            match rest.next() {
                None => return,
                Some(Line::Blank) => {}
                Some(Line::Heading(heading)) => {
                    let space = usize::from(column.width);
                    pen.put(column.x, y, space, Token::Heading, heading);
                }
                Some(Line::Item(index)) => {
                    let line = Rect {
                        y,
                        height: 1,
                        ..*column
                    };
                    put_item(&items[*index], *index == chosen, pen, line);
                }
            }
        }
        // No column begins with a blank line.
        while rest.next_if_eq(&&Line::Blank).is_some() {}
    }
}

fn put_item(item: &Item, is_chosen: bool, pen: &mut Pen<'_>, line: Rect) {
    let token = if item.refusal.is_some() {
        Token::Dim
    } else {
        Token::Text
    };
    let space = usize::from(line.width);
    // Keys are never truncated; the title gets the remaining width.
    let keys = text::fit(&item.keys, space);
    let keys_at = space.saturating_sub(text::width(&keys));
    let title = match &item.refusal {
        Some(reason) => format!("{} ({reason})", item.title),
        None => item.title.clone(),
    };
    pen.put(line.x, line.y, keys_at.saturating_sub(1), token, &title);
    let x = line.x + u16::try_from(keys_at).unwrap_or(0);
    pen.put(x, line.y, space - keys_at, Token::Key, &keys);
    if is_chosen {
        pen.row(line, line.y, Token::Selected);
    }
}
