//! Draws a text page: its visible lines, cursor and tabs.

use ratatui::layout::Rect;

use super::{list, pen::Pen};
use crate::{
    model::{
        Model, document,
        page::{Content, Tab},
    },
    route::Route,
    theme::Token,
};

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let mut area = area;
    if let Content::Event { tab, .. } = &model.page.content {
        draw_tabs(*tab, pen, area);
        area.y += 1;
        area.height = area.height.saturating_sub(1);
    }
    if model.page.route == Route::ON_CALL {
        list::tabs::draw_on_call_tabs(&model.page.route, pen, (area.x + 1, area.y));
        area.y += 1;
        area.height = area.height.saturating_sub(1);
    }
    let lines = document::current_document(model).lines;
    let reading = model.page.reading;
    let shown = lines
        .iter()
        .enumerate()
        .skip(reading.top)
        .take(usize::from(area.height));
    for ((index, line), y) in shown.zip(area.top()..area.bottom()) {
        let mut x = area.x + 1;
        for span in &line.spans {
            let space = usize::from(area.right().saturating_sub(x));
            x = pen.draw_text(x, y, space, span.token, &span.text);
        }
        if index == reading.cursor {
            let mark = if line.link.is_some() { "▶" } else { "▏" };
            pen.draw_text(area.x, y, 1, Token::Key, mark);
            pen.select(area.x, y);
            if line.link.is_some() {
                let row = Rect {
                    x: area.x + 1,
                    width: area.width.saturating_sub(1),
                    ..area
                };
                pen.row(row, y, Token::Selected);
            }
        }
    }
    let below = lines
        .len()
        .saturating_sub(reading.top + usize::from(area.height));
    if below > 0 && area.width > 20 && area.height > 0 {
        let words = format!(" ↓ {below} more ");
        let cells = crate::text::cell_width(&words);
        let x = area.right() - u16::try_from(cells).unwrap_or(area.width);
        pen.draw_text(x, area.bottom() - 1, cells, Token::Dim, &words);
    }
}

fn draw_tabs(current: Tab, pen: &mut Pen<'_>, area: Rect) {
    let mut x = area.x + 1;
    for tab in Tab::ALL {
        let (token, words) = if tab == current {
            (Token::Title, format!("[{}]", tab.title()))
        } else {
            (Token::Dim, format!(" {} ", tab.title()))
        };
        x = pen.draw_text(
            x,
            area.y,
            usize::from(area.right().saturating_sub(x)),
            token,
            &words,
        ) + 1;
    }
}
