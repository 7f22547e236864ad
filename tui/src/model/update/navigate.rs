//! Navigation between pages, back and forward, and within the list on the screen.

use std::collections::BTreeSet;

use bellwether_language::filter::print_condition;

use super::{grouped, read};
use crate::{
    data::Screen,
    document::Link,
    limits,
    model::{
        Model, document,
        filter::{self, local::LocalFilter},
        inquiry::LastingEffect,
        list::List,
        page::{Content, DocumentCursor, Page},
    },
    route::Route,
    theme::Token,
};

pub(super) fn go_to_route(model: &mut Model, route: Route) {
    if model.page.route == route && !matches!(route, Route::Form | Route::Report) {
        return;
    }
    push_page(model, Page::new(route));
    read::refresh_page(model);
}

/// Opens a screen as it was left, with its filter, order and cursor.
pub(super) fn open_screen(model: &mut Model, route: Route) {
    if model.page.route == route {
        return;
    }
    let mut page = Page::new(route);
    let visited = model.back.iter().rev().chain(model.forward.iter().rev());
    let mut same = visited.filter(|it| it.route == page.route && it.list.given.is_empty());
    if let Some(left) = same.next() {
        page.list = List {
            typing: None,
            marks: BTreeSet::new(),
            ..left.list.clone()
        };
        page.reading = left.reading;
    }
    push_page(model, page);
    read::refresh_page(model);
}

pub(super) fn switch_tab(model: &mut Model, route: Route) {
    model.page = Page::new(route);
    read::refresh_page(model);
}

pub(super) fn open_filtered(model: &mut Model, route: Route, filter: String) {
    let mut page = Page::new(route);
    page.list.given.clone_from(&filter);
    page.list.filter = filter;
    push_page(model, page);
    read::refresh_page(model);
}

pub(super) fn open_dead_letters(model: &mut Model) {
    if let Some(name) = model.resource_name() {
        let filter = format!("{} {}", filter::DEAD, print_condition("destination", &name));
        open_filtered(model, Route::DELIVERIES, filter);
    }
}

pub(super) fn push_page(model: &mut Model, page: Page) {
    let before = std::mem::replace(&mut model.page, page);
    model.back.push(before);
    if model.back.len() > limits::HISTORY_PAGES {
        model.back.remove(0);
    }
    model.forward.clear();
}

pub(super) fn go_back(model: &mut Model) {
    if let Some(page) = model.back.pop() {
        let left = std::mem::replace(&mut model.page, page);
        // Discards a form that is left, so that its draft does not reappear unexpectedly.
        match &left.content {
            Content::Form(_) => {}
            Content::Report(report) => {
                // A test that creates an event is not cancelled, so that the event is closed
                // afterwards.
                let waiting = report.found.waiting;
                let effect = model.lasting_effect(&report.inquiry);
                let creates = matches!(effect, Some((_, LastingEffect::Event(_))));
                if let Some(ticket) = waiting.filter(|_| !creates) {
                    model.abandon(ticket);
                }
            }
            _ => model.forward.push(left),
        }
        refresh_returned(model);
    }
}

pub(super) fn go_forward(model: &mut Model) {
    if let Some(page) = model.forward.pop() {
        let left = std::mem::replace(&mut model.page, page);
        model.back.push(left);
        refresh_returned(model);
    }
}

/// Closes a finished form and opens the page of its resource, or returns to the page from which it
/// was opened.
pub(super) fn leave_form(model: &mut Model, then: Option<Route>) {
    go_back(model);
    let Some(route) = then else { return };
    if model.page.route.is_list() {
        if model.page.route.screen_name() == route.screen_name() {
            model.page.list.wanted = Some(route.object_name().to_owned());
        }
        return;
    }
    if model.page.route != route {
        let page = Page::new(route);
        push_page(model, page);
        read::refresh_page(model);
    }
}

/// Refreshes the data of a page that is shown again; preserves typed text.
fn refresh_returned(model: &mut Model) {
    if !matches!(model.page.route, Route::Form | Route::Report) {
        read::refresh_page(model);
    }
}

pub(super) fn follow_link(model: &mut Model) {
    let Some(link) = model.link_at_cursor() else {
        return next_link(model);
    };
    match link {
        Link::Go(route) => go_to_route(model, route),
        Link::List(route, filter) => open_filtered(model, route, filter),
        Link::Line(route, line) => {
            go_to_route(model, route);
            model.page.reading = DocumentCursor {
                cursor: line,
                top: line,
            };
        }
        Link::Heading(route, heading) => {
            go_to_route(model, route);
            let lines = document::current_document(model).lines;
            let line = lines.iter().position(|line| line.text() == heading);
            let line = line.unwrap_or_default();
            model.page.reading = DocumentCursor {
                cursor: line,
                top: line,
            };
        }
        Link::Act(route, action) => {
            go_to_route(model, route);
            model.follow.push_back(action);
        }
        // The page that contains the link opens the prompt.
        Link::Restore(_) | Link::Shift(..) => {}
    }
}

pub(super) fn next_link(model: &mut Model) {
    let lines = document::current_document(model).lines;
    let linked = |index: &usize| lines.get(*index).is_some_and(|line| line.link.is_some());
    let mut cursor = model.page.reading.cursor;
    if model.is_link_page() {
        // On these pages the cursor stops only at links.
        cursor = (cursor..lines.len()).find(linked).unwrap_or(cursor);
    }
    let after = (cursor + 1..lines.len()).chain(0..=cursor.min(lines.len().saturating_sub(1)));
    if let Some(index) = { after }.find(linked) {
        model.page.reading.cursor = index;
    }
}

/// Searches for words. The reference shows the matching lines. On other pages, the cursor moves to
/// the next match, wrapping around.
pub(super) fn search(model: &mut Model, words: String) {
    let needle = words.to_lowercase();
    model.page.list.filter = words;
    if model.page.route == Route::REFERENCE {
        model.page.reading = DocumentCursor::default();
        return;
    }
    // The words are not a filter, so Esc goes back instead of clearing them.
    model.page.list.given.clone_from(&model.page.list.filter);
    if needle.is_empty() {
        return;
    }
    next_match(model, true);
}

pub(super) fn next_match(model: &mut Model, forward: bool) {
    let needle = model.page.list.filter.to_lowercase();
    if needle.is_empty() {
        let answer = model.expand_keys("no search yet; ‹search› starts one");
        return model.show_notice(Token::Info, answer);
    }
    let lines = document::current_document(model).lines;
    let cursor = model.page.reading.cursor.min(lines.len());
    let holds = |at: &usize| lines[*at].text().to_lowercase().contains(&needle);
    let after = (cursor + 1).min(lines.len());
    let found = if forward {
        (after..lines.len()).chain(0..after).find(holds)
    } else {
        let before = (0..cursor).rev();
        before.chain((cursor..lines.len()).rev()).find(holds)
    };
    match found {
        Some(at) => model.page.reading.cursor = at,
        None => model.show_notice(Token::Info, format!("nothing here contains `{needle}`")),
    }
}

pub(super) fn open_row(model: &mut Model) {
    if matches!(model.page.route, Route::EventGroups { .. }) {
        if let Some(filter) = grouped::group_filter(model) {
            open_filtered(model, Route::EVENTS, filter);
        }
        return;
    }
    let Some(id) = model.selected_id() else {
        return;
    };
    let route = match model.page.route {
        Route::EVENTS => Route::Event(id),
        Route::List(kind) if kind.has_page() => Route::Object(kind, id),
        Route::DELIVERIES => Route::Delivery(id),
        _ => return,
    };
    go_to_route(model, route);
}

pub(super) fn choose_row(model: &mut Model, ids: Vec<String>, mark: bool) {
    let count = ids.len().min(limits::BULK_ITEMS);
    let list = &mut model.page.list;
    if mark {
        list.marks.extend(ids.into_iter().take(count));
        let answer = format!("{} marked; actions apply to all of them", list.marks.len());
        return model.show_notice(Token::Info, answer);
    }
    list.marks.clear();
    list.selected = ids.first().cloned();
    list.follows = false;
    if count > 1 {
        list.marks = ids.into_iter().take(count).collect();
    }
}

/// Moves to the end of the list. Events are read page by page until there are no more or a key is
/// pressed.
pub(super) fn go_to_end(model: &mut Model) {
    move_cursor(model, isize::MAX / 2);
    let reading = model.store.events.waiting.is_some();
    model.page.list.to_end = model.page.route == Route::EVENTS && reading;
}

pub(super) fn move_cursor(model: &mut Model, by: isize) {
    if model.is_link_page() {
        return move_by_links(model, by);
    }
    let height = model.body_rows();
    if model.page.route.is_list() {
        let mut list = std::mem::take(&mut model.page.list);
        let rows = model.rows_of_list(&list);
        let index = list.index.saturating_add_signed(by);
        let at_end = index.saturating_add(height) >= rows.len();
        list.select(&*rows, height.saturating_sub(1), index);
        drop(rows);
        model.page.list = list;
        if at_end && by > 0 {
            read::read_more(model);
        }
    } else {
        let count = document::current_document(model).lines.len();
        let reading = &mut model.page.reading;
        reading.cursor = reading
            .cursor
            .saturating_add_signed(by)
            .min(count.saturating_sub(1));
    }
}

pub(super) fn set_filter(model: &mut Model, text: String) {
    let text = match model.page.route {
        Route::DELIVERIES => filter::with_absolute_times(&text, &model.clock()),
        _ => text,
    };
    let changed = model.page.list.filter != text;
    model.page.list.filter = text;
    if changed && matches!(model.page.route, Route::EVENTS | Route::DELIVERIES) {
        model.page.list.marks.clear();
        // The rows of the new filter do not replace those of the old filter one by one.
        (model.page.list.follows, model.page.list.count) = (false, 0);
        read::refresh_page(model);
    }
}

pub(super) fn check_filter(model: &Model, text: &str) -> Result<(), String> {
    validate_filter_text(model, &model.page.route, text)
}

pub(super) fn validate_filter_text(model: &Model, route: &Route, text: &str) -> Result<(), String> {
    match route {
        Route::Screen(Screen::Events) => {
            filter::parse_event_filter(text, &model.filter_reader()).map(drop)
        }
        Route::Screen(Screen::Deliveries) => {
            filter::parse_delivery_filter(text, &model.clock()).map(drop)
        }
        Route::List(_) | Route::EventGroups { .. } => {
            let known = model
                .store
                .table_for_route(route)
                .map_or_else(Vec::new, |table| table.fields());
            LocalFilter::read(text, &known, &model.clock()).map(drop)
        }
        _ => Ok(()),
    }
    .map_err(|error| error.to_string())
}

fn move_by_links(model: &mut Model, by: isize) {
    let lines = document::current_document(model)
        .lines
        .into_iter()
        .enumerate();
    let linked: Vec<usize> = lines
        .filter_map(|(at, line)| line.link.map(|_| at))
        .collect();
    let cursor = model.page.reading.cursor;
    let at = linked.iter().position(|at| *at >= cursor);
    let at = at.unwrap_or(linked.len().saturating_sub(1));
    let next = at.saturating_add_signed(by.clamp(-1_000, 1_000));
    if let Some(line) = linked.get(next.min(linked.len().saturating_sub(1))) {
        model.page.reading.cursor = *line;
    }
}

impl Model {
    /// Returns the number of open events if the list shows all of them; it is newer than the
    /// overview's.
    pub(crate) fn open_event_count(&self) -> Option<i64> {
        let (events, list) = (&self.store.events, &self.page.list);
        let shows_all = events.filter.open_only && list.filter.is_empty();
        if self.page.route != Route::EVENTS || !shows_all || list.count == 0 {
            return None;
        }
        if self.has_more() {
            return events.total.value.map(i64::from);
        }
        i64::try_from(list.count).ok()
    }

    pub(crate) fn has_more(&self) -> bool {
        match self.page.route {
            Route::EVENTS => !self.store.events.next.is_empty(),
            Route::DELIVERIES => !self.store.deliveries_next.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn selected_id(&self) -> Option<String> {
        self.page.list.selected_id(&*self.rows())
    }

    /// Returns the rows above a page: the tabs of an event, or of the on-call screens.
    pub(crate) fn head_rows(&self) -> usize {
        usize::from(matches!(self.page.route, Route::Event(_) | Route::ON_CALL))
    }
}

pub(super) fn open_grouped(model: &mut Model, field: &str) {
    let field = field.trim().to_owned();
    if field.is_empty() {
        return model.show_notice(Token::Info, "expected a field, such as `group host`");
    }
    let filter = match &model.page.route {
        Route::Screen(Screen::Events) => model.page.list.filter.clone(),
        Route::EventGroups { filter, .. } => filter.clone(),
        _ => String::new(),
    };
    let dimension = field.trim_start_matches("dimensions.");
    if !filter::FIELDS.contains(&dimension) && !dimension.contains('.') {
        dimension.clone_into(&mut model.host_field);
    }
    go_to_route(model, Route::EventGroups { field, filter });
}
