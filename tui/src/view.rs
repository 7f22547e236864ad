//! Draws the model. Decides nothing: everything shown stands in the model already.

mod dialog;
mod document;
mod form;
mod frame;
mod list;
mod map;
mod palette;
mod pen;

use ratatui::{Frame, layout::Rect};

use self::pen::Pen;
pub(crate) use self::{frame::crumbs, list::cells};
use crate::model::{Model, overlay::Overlay, page::Content};

/// The smallest screen that a console can be used on.
const SMALLEST: (u16, u16) = (40, 8);

/// Draws one frame.
pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let cursor = {
        let mut pen = Pen::new(frame.buffer_mut(), model.look());
        screen(model, &mut pen, area);
        pen.cursor()
    };
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

fn screen(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        frame::too_small(model, pen, area);
        return;
    }
    let body = frame::around(model, pen, area);
    match &model.page.content {
        Content::Form(form) => form::draw(model, form, pen, body),
        _ if model.page.route.is_list() => list::draw(model, pen, body),
        _ => document::draw(model, pen, body),
    }
    frame::notice(model, pen, area);
    match &model.overlay {
        Some(Overlay::Confirm(confirm)) => dialog::confirm(confirm, pen, area),
        Some(Overlay::Clash(clash)) => dialog::clash(clash, pen, area),
        Some(Overlay::Bulk(bulk)) => dialog::bulk(bulk, pen, area),
        Some(Overlay::Prompt(prompt)) => dialog::prompt(prompt, pen, area),
        Some(Overlay::Pick(pick)) => dialog::pick(pick, pen, area),
        Some(Overlay::Key { name, key }) => dialog::key(name, key, pen, area),
        Some(Overlay::Palette(palette)) => palette::draw(model, palette, pen, area),
        None => {}
    }
}

#[cfg(test)]
mod tests;
