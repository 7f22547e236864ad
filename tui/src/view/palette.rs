//! Draws palette and help: what can be done, with its keys, greyed with the reason when not.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    model::{Model, overlay::Palette},
    text,
    theme::Token,
};

pub(super) fn draw(model: &Model, palette: &Palette, pen: &mut Pen<'_>, area: Rect) {
    let width = area.width.saturating_sub(4).min(90);
    let height = area.height.saturating_sub(2).min(26);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + 1,
        width,
        height,
    };
    let title = if palette.here {
        "What can be done here"
    } else {
        "Go to, or do"
    };
    let inside = pen.window(place, title);
    let room = usize::from(inside.width);
    pen.put(inside.x, inside.y, 2, Token::Key, ":");
    let field = Rect {
        x: inside.x + 2,
        width: inside.width.saturating_sub(2),
        height: 1,
        ..inside
    };
    pen.field(field, &palette.field, true, false);
    let items = palette.items(model);
    let rows = usize::from(inside.height.saturating_sub(1)).max(1);
    let top = (palette.cursor + 1).saturating_sub(rows);
    if items.is_empty() {
        pen.put(
            inside.x,
            inside.y + 1,
            room,
            Token::Dim,
            "nothing is called like that",
        );
    }
    let shown = items
        .iter()
        .enumerate()
        .skip(top)
        .zip(inside.y + 1..inside.bottom());
    for ((index, item), y) in shown {
        let token = if item.refusal.is_some() {
            Token::Dim
        } else {
            Token::Text
        };
        let keys = text::fit(&item.keys, 22);
        let keys_at = room.saturating_sub(text::width(&keys));
        let title = match &item.refusal {
            Some(reason) => format!("{} ({reason})", item.title),
            None => item.title.clone(),
        };
        pen.put(inside.x, y, keys_at.saturating_sub(1), token, &title);
        let x = inside.x + u16::try_from(keys_at).unwrap_or(0);
        pen.put(x, y, room - keys_at, Token::Key, &keys);
        if index == palette.cursor {
            pen.row(inside, y, Token::Selected);
        }
    }
}
