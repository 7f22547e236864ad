//! Clicks and the wheel, by position. Every action has a key too.

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};

use super::{keys, navigate, screen};
use crate::{
    model::{CRUMB_GAP, HOME, Model, document, page::Tab, tabs},
    route::Route,
    text,
};

const WHEEL_ROWS: isize = 3;

pub(super) fn handle_mouse(model: &mut Model, event: MouseEvent) {
    model.page.list.to_end = false;
    let over = model.overlay.is_some() || model.page.form().is_some();
    if let Some(lines) = scroll_lines(event.kind)
        && model.overlay.is_none()
        && let Some(pane) = model.bench_pane_at(event.column, event.row)
    {
        model.scroll_bench(pane, lines);
        return;
    }
    match event.kind {
        MouseEventKind::ScrollDown if over => press_key(model, KeyCode::Down),
        MouseEventKind::ScrollUp if over => press_key(model, KeyCode::Up),
        MouseEventKind::ScrollDown => navigate::move_cursor(model, WHEEL_ROWS),
        MouseEventKind::ScrollUp => navigate::move_cursor(model, -WHEEL_ROWS),
        // Questions and forms accept keys only.
        MouseEventKind::Down(MouseButton::Left) if !over && model.page.list.typing.is_none() => {
            model.clear_notice();
            handle_click(model, usize::from(event.column), usize::from(event.row));
        }
        _ => {}
    }
}

fn scroll_lines(event: MouseEventKind) -> Option<isize> {
    match event {
        MouseEventKind::ScrollDown => Some(WHEEL_ROWS),
        MouseEventKind::ScrollUp => Some(-WHEEL_ROWS),
        _ => None,
    }
}

fn press_key(model: &mut Model, code: KeyCode) {
    keys::handle_key_press(model, KeyEvent::from(code));
}

fn handle_click(model: &mut Model, column: usize, row: usize) {
    if row == 0 {
        return click_header(model, column);
    }
    if row == 1 && tabs::has_tab_line(model) {
        if let Some(tab) = tabs::tab_at(model, column) {
            navigate::go_to_route(model, tab);
        }
        return;
    }
    let body = usize::from(model.head_height());
    if row < body || row + 1 >= usize::from(model.size.1) {
        return;
    }
    if model.shows_wall() {
        return;
    }
    if model.page.route.is_list() {
        // Skips the first line, which is the heading of the list.
        if let Some(below) = (row - body).checked_sub(1) {
            click_list_row(model, below);
        }
        return;
    }
    match (row - body).checked_sub(model.head_rows()) {
        None => click_tab(model, column),
        Some(below) => click_line(model, below),
    }
}

fn click_header(model: &mut Model, column: usize) {
    if (1..=HOME.len()).contains(&column) {
        return navigate::go_to_route(model, Route::OVERVIEW);
    }
    let parts = model.head_parts();
    let before: usize = parts.iter().map(|(_, words)| text::cell_width(words)).sum();
    let start = before + text::cell_width(CRUMB_GAP);
    let route = &model.page.route;
    if *route == Route::Report {
        let below = model
            .back
            .last()
            .map_or("", |page| page.route.screen_name());
        if (start..start + below.len()).contains(&column) {
            navigate::go_back(model);
        }
    } else if (start..start + route.screen_name().len()).contains(&column)
        && let Some(above) = route.parent()
    {
        navigate::go_to_route(model, above);
    }
}

/// Selects a row, or opens it if it is already selected.
fn click_list_row(model: &mut Model, below: usize) {
    let index = model.page.list.top + below;
    if index >= model.rows().len() {
        return;
    }
    let before = model.page.list.index;
    let by = isize::try_from(index).unwrap_or(0) - isize::try_from(before).unwrap_or(0);
    navigate::move_cursor(model, by);
    if before == index {
        navigate::open_row(model);
    }
}

/// Moves the cursor to a line, or follows its link if the cursor is already there.
fn click_line(model: &mut Model, below: usize) {
    let at = model.page.reading.top + below;
    let lines = document::current_document(model).lines;
    let Some(line) = lines.get(at) else { return };
    let linked = line.link.is_some();
    if model.page.reading.cursor == at && linked {
        navigate::follow_link(model);
    } else {
        model.page.reading.cursor = at;
    }
}

fn click_tab(model: &mut Model, column: usize) {
    let mut start = 1;
    let hit = Tab::ALL.into_iter().find(|tab| {
        let width = text::cell_width(tab.title()) + 2;
        let here = (start..start + width).contains(&column);
        start += width + 1;
        here
    });
    if let Some(tab) = hit {
        screen::show_tab(model, tab);
    }
}
