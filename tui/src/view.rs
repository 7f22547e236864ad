//! Draws the model. All displayed values are in the model, so no decisions are made here.

mod bench;
mod dialog;
mod document;
mod form;
mod frame;
mod list;
mod palette;
mod pen;
mod plot;
mod tabs;
mod wall;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::Line,
};

use self::pen::Pen;
pub(crate) use self::{frame::breadcrumbs, list::labelled_cells};
use crate::{
    data::{Kind, Screen},
    document::Document,
    limits,
    model::{self, Model, form::Form, overlay::Overlay, page::Content},
    route::Route,
    theme::glyphs,
};

const SMALLEST: (u16, u16) = (40, 8);
/// Rows of a form with its preview below it, and the minimum rows of the preview.
const FORM_ROWS: u16 = 11;
const PREVIEW_ROWS: u16 = 6;
/// Minimum columns of a list on a wide screen, and of the pane beside it.
const LIST_COLUMNS: u16 = 60;
const PANE_COLUMNS: u16 = 52;
const NARROW_PANE_COLUMNS: u16 = 46;

pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let cursor = {
        let mut pen = Pen::new(frame.buffer_mut(), model.appearance(), model.is_ascii);
        draw_screen(model, &mut pen, area);
        if model.is_response_overdue() {
            pen.fade_area(area);
        }
        pen.cursor()
    };
    if model.is_ascii {
        glyphs::to_ascii(frame.buffer_mut());
    }
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

fn draw_screen(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        frame::draw_too_small(model, pen, area);
        return;
    }
    let body = frame::draw_frame(model, pen, area);
    match &model.page.content {
        Content::Form(form) => draw_form_and_result(model, form, pen, body),
        _ if model.page.route.is_list() => draw_split(model, pen, body),
        _ if model.shows_wall() => {
            if let Some(overview) = &model.store.overview.value {
                wall::draw(model, overview, pen, body);
            }
        }
        _ => document::draw(model, pen, body),
    }
    frame::draw_notice(model, pen, area);
    frame::draw_continuations(model, pen, area);
    match &model.overlay {
        Some(Overlay::Confirm(confirm)) => dialog::draw_confirm(confirm, pen, area),
        Some(Overlay::Clash(clash)) => dialog::draw_clash(clash, pen, area),
        Some(Overlay::Bulk(bulk)) => dialog::draw_bulk(bulk, pen, area),
        Some(Overlay::Prompt(prompt)) => dialog::draw_prompt(prompt, pen, area),
        Some(Overlay::Picker(pick)) => dialog::draw_pick(pick, pen, area),
        Some(Overlay::Menu(menu)) => dialog::draw_menu(menu, pen, area),
        Some(Overlay::Silence(choice)) => dialog::draw_silence(model, choice, pen, area),
        Some(Overlay::Key { name, key }) => dialog::draw_key(name, key, pen, area),
        Some(Overlay::Program(pane)) => dialog::draw_program(pane, pen, area),
        Some(Overlay::Palette(palette)) => palette::draw(model, palette, pen, area),
        None => {}
    }
}

fn draw_split(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let rows = list::VisibleRows::new(model, area.height);
    // On a wide screen, a list is only as wide as its content.
    let most = if model.shows_split() {
        area.width - pane_width(&model.page.route, area.width)
    } else {
        area.width
    };
    let width = if area.width < limits::SPLIT_COLUMNS || rows.is_empty() {
        area.width
    } else {
        rows.content_width(model).clamp(LIST_COLUMNS, most)
    };
    let right = Rect {
        x: area.x + width,
        width: area.width - width,
        ..area
    };
    let beside = model.shows_split().then(|| {
        let space = usize::from(right.width.saturating_sub(4));
        model::document::selected_item(model, space)
    });
    list::draw(model, &rows, width, pen, area);
    if let Some((title, shown)) = beside.flatten() {
        draw_panel(&title, &shown, pen, right);
    }
}

/// Returns the minimum width of the pane beside a list: less if its texts are short.
fn pane_width(route: &Route, width: u16) -> u16 {
    use Kind::{Destination, Policy, Rule, Schedule};
    match route {
        Route::List(Destination | Policy | Rule | Schedule)
        | Route::Screen(Screen::Events | Screen::Deliveries) => PANE_COLUMNS.max(width * 3 / 8),
        _ => NARROW_PANE_COLUMNS,
    }
}

fn draw_form_and_result(model: &Model, form: &Form, pen: &mut Pen<'_>, area: Rect) {
    if form.kind == Kind::Destination {
        return bench::draw(model, form, pen, area);
    }
    let is_wide = area.width >= limits::FORM_SPLIT_COLUMNS;
    // The forms of schedules and policies have few fields, so the preview is below the fields.
    let is_below = matches!(form.kind, Kind::Schedule | Kind::Policy);
    let parts = if is_wide {
        Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)])
    } else {
        Layout::vertical([Constraint::Length(FORM_ROWS), Constraint::Fill(1)])
    };
    let [fields, beside] = parts.areas(area);
    let space = usize::from(beside.width.saturating_sub(4));
    let made = model::document::form_result(model, form, space);
    let fits = is_wide || is_below && beside.height >= PREVIEW_ROWS;
    match made.filter(|_| fits) {
        Some((title, made)) => {
            form::draw(model, form, pen, fields);
            draw_panel(title, &made, pen, beside);
        }
        None => form::draw(model, form, pen, area),
    }
}

fn draw_panel(title: &str, shown: &Document, pen: &mut Pen<'_>, area: Rect) {
    let inside = pen.panel(area, title);
    for (line, y) in shown.lines.iter().zip(inside.top()..inside.bottom()) {
        let spans = line
            .spans
            .iter()
            .map(|span| pen.span(span.token, &span.text));
        let line = Line::from(spans.collect::<Vec<_>>());
        pen.widget(
            line,
            Rect {
                y,
                height: 1,
                ..inside
            },
        );
    }
}

#[cfg(test)]
mod tests;
