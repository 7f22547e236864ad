//! Actions that only affect the screen: tabs, marks, filters, sorting, the clipboard.

use super::{charts, confirm, grouped, navigate, read};
use crate::{
    client::Command,
    document::Link,
    keymap::Action,
    kind::{ColumnHead, Presence},
    limits,
    model::{
        Connection, Model,
        field::TextField,
        filter,
        matching::Matching,
        message::Effect,
        overlay::{Overlay, Palette, Picker, PickerPurpose, Prompt, PromptPurpose},
        page::{Content, DocumentCursor, Tab},
        sort::Sort,
    },
    route::Route,
    text,
    theme::Token,
};

pub(super) fn next_state(model: &mut Model) {
    let (typed, clock) = (&model.page.list.filter, model.clock());
    let next = filter::delivery_tab_index(typed, &clock).map_or(0, |tab| tab + 1);
    let text = filter::with_delivery_tab(typed, next % filter::DELIVERY_TABS.len(), &clock);
    navigate::set_filter(model, text);
}

pub(super) fn cycle_chart_period(model: &mut Model) {
    model.chart_period = model.chart_period.next();
    charts::read_statistics(model);
}

pub(super) fn open_search(model: &mut Model) {
    let everywhere = model.page.route == Route::REFERENCE;
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: "Search".to_owned(),
        help: if everywhere {
            "searches all topics; empty shows the topics"
        } else {
            "jumps to the next match; n and N repeat"
        },
        field: TextField::new(model.page.list.filter.clone()),
        offers: Vec::new(),
        then: PromptPurpose::Search,
    }));
}

pub(super) fn page_rows(model: &Model) -> isize {
    isize::try_from(model.body_rows().saturating_sub(2))
        .unwrap_or(1)
        .max(1)
}

pub(super) fn reconnect_now(model: &mut Model) {
    match model.link {
        Connection::Up if model.page.route == Route::EVENTS => read::read_events(model, true),
        Connection::Up => read::refresh_page(model),
        Connection::Connecting => {}
        Connection::Down { .. } => model.send(Command::RetryNow),
    }
}

/// Goes back: clears marks first, then restores the filter that the list was opened with.
pub(super) fn go_back(model: &mut Model) {
    let list = &mut model.page.list;
    if !list.marks.is_empty() {
        list.marks.clear();
    } else if list.filter != list.given {
        let given = list.given.clone();
        navigate::set_filter(model, given);
    } else {
        navigate::go_back(model);
    }
}

pub(super) fn next_tab(model: &mut Model) {
    if let Content::Event { tab, .. } = &model.page.content {
        let at = Tab::ALL.iter().position(|other| other == tab);
        let next = Tab::ALL[(at.unwrap_or_default() + 1) % Tab::ALL.len()];
        show_tab(model, next);
    }
}

pub(super) fn show_tab(model: &mut Model, wanted: Tab) {
    let Content::Event { tab, .. } = &mut model.page.content else {
        return;
    };
    *tab = wanted;
    model.page.reading = DocumentCursor::default();
    if wanted == Tab::Explain {
        read::refresh_page(model);
    }
}

pub(super) fn toggle_mark(model: &mut Model) {
    let Some(id) = model.selected_id() else {
        return;
    };
    let marks = &mut model.page.list.marks;
    if !marks.remove(&id) {
        marks.insert(id);
    }
    navigate::move_cursor(model, 1);
}

pub(super) fn toggle_all_marks(model: &mut Model) {
    if !model.page.list.marks.is_empty() {
        model.page.list.marks.clear();
        return;
    }
    let rows = model.rows();
    let count = rows.len().min(limits::BULK_ITEMS);
    let shown = text::group_digits(i64::try_from(count).unwrap_or(i64::MAX));
    let ids = (0..count).map(|index| rows.id(index).to_owned()).collect();
    drop(rows);
    model.page.list.marks = ids;
    model.show_notice(
        Token::Info,
        format!("{shown} marked; actions apply to all of them"),
    );
}

fn notify_sorted(model: &mut Model, sorted: Result<Sort, &'static str>) {
    match sorted {
        Ok(Sort { column, descending }) => {
            let way = if descending {
                "largest or latest first"
            } else {
                "smallest or earliest first"
            };
            model.show_notice(Token::Info, format!("sorted by {column}, {way}"));
        }
        Err(reason) => model.show_notice(Token::Warning, reason),
    }
}

pub(super) fn open_column_picker(model: &mut Model) {
    let Some(table) = model.store.table_for_route(&model.page.route) else {
        return;
    };
    let heads = table.column_heads();
    let wanted = model.configured_columns();
    let is_wanted = |title: &str| wanted.iter().any(|it| it.eq_ignore_ascii_case(title));
    let is_shown = |head: &&&ColumnHead| {
        let is_usual = wanted.is_empty() && head.presence != Presence::DeliverySelection;
        is_usual || is_wanted(head.title)
    };
    let titles =
        |heads: Vec<&&ColumnHead>| heads.iter().map(|head| head.title.to_owned()).collect();
    let pick = Picker {
        title: format!("Columns of {}", model.page.route.screen_name()),
        items: titles(heads.iter().collect()),
        chosen: titles(heads.iter().filter(is_shown).collect()),
        values: None,
        purpose: PickerPurpose::Columns,
        needle: TextField::default(),
        cursor: 0,
    };
    drop(table);
    model.overlay = Some(Overlay::Picker(pick));
}

pub(super) fn set_columns(model: &mut Model, chosen: Vec<String>) {
    let screen = model.page.route.screen_name();
    if chosen.is_empty() {
        model.columns_of.remove(screen);
    } else {
        model.columns_of.insert(screen, chosen);
    }
}

pub(super) fn toggle_list_pause(model: &mut Model) {
    let events = &mut model.store.events;
    events.paused = !events.paused;
    let words = if events.paused {
        model.expand_keys("paused; ‹pause› resumes live updates")
    } else {
        "live updates resumed".to_owned()
    };
    model.show_notice(Token::Info, words);
}

/// Selects the first row as new events arrive, until the next key press.
pub(super) fn follow_newest(model: &mut Model) {
    let list = &model.page.list;
    if !list.follows && list.sort.is_some() {
        let words = "only the newest events can be followed; ‹sort› changes the order";
        let words = model.expand_keys(words);
        return model.show_notice(Token::Info, words);
    }
    let follows = !list.follows;
    navigate::move_cursor(model, isize::MIN / 2);
    model.page.list.follows = follows;
}

pub(super) fn open_explanation(model: &mut Model) {
    if let Some(id) = model.occurrence()
        && model.page.route.is_list()
    {
        navigate::go_to_route(model, Route::Event(id));
    }
    if let Content::Event { tab, .. } = &mut model.page.content {
        *tab = Tab::Explain;
        read::refresh_page(model);
    }
}

pub(super) fn toggle_mouse(model: &mut Model) {
    model.mouse = !model.mouse;
    model.effects.push(Effect::Mouse(model.mouse));
    let words = if model.mouse {
        "the mouse selects, opens and scrolls"
    } else {
        "the mouse selects text in the terminal"
    };
    model.show_notice(Token::Info, words);
}

/// Shows or hides the selected item beside lists, or shows a notice if the screen is too narrow.
pub(super) fn toggle_split(model: &mut Model) {
    if model.size.0 < limits::SPLIT_COLUMNS {
        let most = limits::SPLIT_COLUMNS;
        let answer = format!("needs a terminal with at least {most} columns");
        return model.show_notice(Token::Info, answer);
    }
    model.is_split = !model.is_split;
}

pub(super) fn open_palette(model: &mut Model, here: bool) {
    model.overlay = Some(Overlay::Palette(Palette {
        here,
        ..Palette::default()
    }));
}

pub(super) fn open_filter(model: &mut Model) {
    let field = TextField::with_selected_text(model.page.list.filter.clone());
    model.page.list.typing = Some(field);
    model.page.list.matching = Matching::default();
    model.page.list.recalled = None;
}

pub(super) fn cycle_sort(model: &mut Model) {
    let sorted = model.sort_next();
    apply_sort(model, sorted);
}

pub(super) fn apply_sort(model: &mut Model, sorted: Result<Sort, &'static str>) {
    if sorted.is_ok() && model.page.route == Route::EVENTS {
        // A selected row stays selected, unless it is the first row.
        let list = &mut model.page.list;
        list.follows = false;
        if list.index == 0 {
            list.selected = None;
        }
        (list.index, list.came) = (0, 0);
        read::read_events(model, false);
    }
    notify_sorted(model, sorted);
}

pub(super) fn open_only(model: &mut Model) {
    if matches!(model.page.route, Route::EventGroups { .. }) {
        return grouped::open_only(model);
    }
    model.store.events.filter.open_only = !model.store.events.filter.open_only;
    read::read_events(model, true);
}

pub(super) fn open_selected(model: &mut Model) {
    if model.page.route.is_list() {
        navigate::open_row(model);
    } else {
        match model.link_at_cursor() {
            Some(Link::Restore(version)) => confirm::confirm_restore(model, *version),
            Some(Link::Shift(..)) => model.follow.push_back(Action::Override),
            _ => navigate::follow_link(model),
        }
    }
}
