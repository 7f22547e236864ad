//! Tabs on the line above a list: states of deliveries, and views of events.

use ratatui::layout::Rect;

use super::super::pen::Pen;
use crate::{
    model::{Model, filter},
    route::Route,
    text,
    theme::Token,
};

const EXACT_FROM: usize = 100;

/// Draws the tabs of a list from the second column on; returns the column after them.
pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) -> u16 {
    let (x, y) = (area.x + 1, area.y);
    match model.page.route {
        Route::DELIVERIES => draw_state_tabs(model, pen, (x, y)),
        // The second half of the line shows the state of the list.
        Route::EVENTS => draw_view_tabs(model, pen, (x, y), x.saturating_add(area.width / 2)),
        _ => draw_on_call_tabs(&model.page.route, pen, (x, y)),
    }
}

fn draw_tab(name: &str, is_own: bool, pen: &mut Pen<'_>, (x, y): (u16, u16)) -> u16 {
    let words = if is_own {
        format!("[{name}]")
    } else {
        format!(" {name} ")
    };
    let token = if is_own { Token::Title } else { Token::Dim };
    pen.draw_text(x, y, text::cell_width(&words), token, &words)
}

pub(in crate::view) fn draw_on_call_tabs(
    own: &Route,
    pen: &mut Pen<'_>,
    (mut x, y): (u16, u16),
) -> u16 {
    let tabs = Route::ON_CALL_TABS;
    if !tabs.iter().any(|(_, route)| route == own) {
        return x;
    }
    for (name, route) in &tabs {
        x = draw_tab(name, route == own, pen, (x, y));
    }
    x + 1
}

fn draw_view_tabs(model: &Model, pen: &mut Pen<'_>, (mut x, y): (u16, u16), end: u16) -> u16 {
    let views = model.views();
    let views = views.iter().filter(|view| view.group_by.is_empty());
    let names: Vec<&str> = views.map(|view| view.name.as_str()).collect();
    if names.is_empty() {
        return x;
    }
    let own = model.view().map(|view| view.name);
    let is_all = own.is_none() && model.page.list.filter.is_empty();
    for name in std::iter::once("").chain(names) {
        let is_own = if name.is_empty() {
            is_all
        } else {
            own.as_deref() == Some(name)
        };
        if x >= end {
            return pen.draw_text(x, y, 2, Token::Dim, "… ");
        }
        let name = if name.is_empty() { "all" } else { name };
        x = draw_tab(name, is_own, pen, (x, y));
    }
    x + 1
}

fn draw_state_tabs(model: &Model, pen: &mut Pen<'_>, (x, y): (u16, u16)) -> u16 {
    let own = filter::delivery_tab_index(&model.page.list.filter, &model.clock());
    let is_narrow = model.terminal_columns() < EXACT_FROM;
    let mut x = x;
    for (index, (name, _)) in filter::DELIVERY_TABS.into_iter().enumerate() {
        let is_own = own == Some(index);
        let count = model.delivery_count(index).map(|count| match count {
            count if is_narrow && !is_own => text::abbreviate(count),
            count => text::group_digits(count),
        });
        let count = count.map_or_else(String::new, |it| format!(" {it}"));
        x = draw_tab(&format!("{name}{count}"), is_own, pen, (x, y));
    }
    let counts = model.store.delivery_counts.value.as_ref();
    let tests = counts.and_then(|it| it.test_count).unwrap_or_default();
    if tests > 0 {
        let s = if tests == 1 { "" } else { "s" };
        let words = format!("+ {} test{s}", text::group_digits(tests.into()));
        x = pen.draw_text(x, y, text::cell_width(&words), Token::Dim, &words) + 1;
    }
    x + 1
}
