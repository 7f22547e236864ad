//! Draws a list: its heading and visible rows, or hints if it is empty.

pub(super) mod tabs;

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    data::{Failure, Screen},
    document,
    kind::{self, Cell, ColumnHead, HOST, Presence},
    limits,
    model::{
        Model,
        field::TextField,
        filter::{self, local::LocalFilter},
        list::Rows,
        setup_checklist::SetupStep,
        sort::Sort,
    },
    route::Route,
    text,
    theme::Token,
};

pub(super) struct VisibleRows<'a> {
    rows: Box<dyn Rows + 'a>,
    /// The position and the cells of each row.
    shown: Vec<(usize, Vec<Cell>)>,
    columns: Vec<&'static ColumnHead>,
    are_shown: Vec<bool>,
}

/// Cells around the columns: the cursor before them, and the scroll bar after them.
const MARGIN: usize = 3;
/// Step of a list's width, so that the width does not change with every row, and the maximum width
/// of a column that grows.
const STEP: usize = 8;
const WIDEST: usize = 64;
/// Width that an important column gets on wide screens before further columns are shown.
const LEGIBLE: usize = 32;
/// Maximum cells of a line of text.
const READABLE: usize = 100;

impl<'a> VisibleRows<'a> {
    pub(super) fn new(model: &'a Model, height: u16) -> Self {
        let rows = model.rows();
        let list = &model.page.list;
        let height = usize::from(height.saturating_sub(1));
        let range = list.top..rows.len().min(list.top + height);
        let table = model.store.table_for_route(&model.page.route);
        let columns = table
            .as_ref()
            .map(|table| table.column_heads())
            .unwrap_or_default();
        let cells = |index| Some((index, table.as_ref()?.cells(model, rows.row_index(index))));
        let shown: Vec<_> = range.filter_map(cells).collect();
        let are_shown = shown_columns(model, &columns, &shown);
        Self {
            rows,
            shown,
            columns,
            are_shown,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the minimum width of each column and the width of its content; both are 0 if the
    /// column is omitted. On wide screens, the minimum of a column that grows depends on its
    /// content.
    fn contents(&self, model: &Model) -> Vec<(usize, usize)> {
        let is_wide = model.size.0 >= limits::SPLIT_COLUMNS;
        let widest = |at: usize| {
            let cells = self.shown.iter().filter_map(|(_, cells)| cells.get(at));
            let head = self.columns[at];
            let most = cells.map(Cell::width).max().unwrap_or(0);
            let most = most.min(WIDEST).max(text::cell_width(head.title) + 1);
            match head.grows {
                0 => (head.width, head.width),
                _ if is_wide && head.rank == 0 => (most.min(LEGIBLE), most),
                _ if is_wide => (head.width.min(most), most),
                _ => (head.width, most.max(head.width)),
            }
        };
        let all = 0..self.columns.len();
        let shown = all.map(|at| self.are_shown[at].then(|| widest(at)));
        shown.map(Option::unwrap_or_default).collect()
    }

    /// Returns the width of the list with all of its content, in steps.
    pub(super) fn content_width(&self, model: &Model) -> u16 {
        let widths = self.contents(model).into_iter().map(|(_, content)| content);
        let shown = widths.filter(|width| *width > 0);
        let cells = shown.map(|width| width + 1).sum::<usize>() + MARGIN;
        to_u16(cells.next_multiple_of(STEP))
    }
}

/// Draws the line above a list over the whole area, and the list in its first columns.
pub(super) fn draw(
    model: &Model,
    visible: &VisibleRows<'_>,
    width: u16,
    pen: &mut Pen<'_>,
    area: Rect,
) {
    let rows = &*visible.rows;
    draw_title(model, rows, pen, area);
    let area = Rect { width, ..area };
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    if rows.len() == 0 {
        return draw_empty(model, pen, body);
    }
    let list = &model.page.list;
    let columns = &visible.columns;
    let space = usize::from(area.width).saturating_sub(MARGIN);
    let widths = fit_columns(columns, &visible.contents(model), space);
    draw_heading(
        (columns, &model.host_field),
        &widths,
        model.current_sort(),
        pen,
        Rect { y: area.y, ..area },
    );
    for ((index, cells), y) in visible.shown.iter().zip(body.top()..body.bottom()) {
        let index = *index;
        let id = rows.id(index);
        let marked = list.marks.contains(id);
        draw_row(
            (columns, cells),
            &widths,
            marked,
            pen,
            Rect {
                y,
                height: 1,
                ..area
            },
        );
        if index == list.index {
            pen.draw_text(area.x, y, 1, Token::Key, if marked { "◆" } else { "▶" });
            pen.row(area, y, Token::Selected);
        }
    }
    pen.scrollbar(body, rows.len(), list.top);
}

fn shown_columns(model: &Model, columns: &[&ColumnHead], rows: &[(usize, Vec<Cell>)]) -> Vec<bool> {
    let wanted = model.configured_columns();
    let is_wanted = |head: &ColumnHead| {
        let same = |title: &str| title.eq_ignore_ascii_case(head.title);
        let old = |title: &str| title == "Since" && head.title == "Age";
        wanted.iter().any(|it| same(it) || old(it))
    };
    let is_chosen = columns.iter().any(|head| is_wanted(head));
    let is_shown = |at: usize| match columns[at].presence {
        _ if is_chosen => is_wanted(columns[at]),
        Presence::Always => true,
        Presence::DeliverySelection => false,
        Presence::Filled => {
            let mut cells = rows.iter().filter_map(|(_, cells)| cells.get(at));
            cells.any(|cell| !cell.text.is_empty())
        }
    };
    (0..columns.len()).map(is_shown).collect()
}

pub(crate) fn labelled_cells(model: &Model, id: &str) -> Vec<(&'static str, String, bool)> {
    let Some(table) = model.store.table_for_route(&model.page.route) else {
        return Vec::new();
    };
    let rows = model.rows();
    let place = rows.position(id).map(|index| rows.row_index(index));
    let cells = place.map(|place| table.cells(model, place));
    let pairs = table
        .column_heads()
        .into_iter()
        .zip(cells.into_iter().flatten());
    let pairs = pairs.filter(|(head, _)| head.presence != Presence::DeliverySelection);
    pairs
        .map(|(head, cell)| (head.title, cell.text, head.right))
        .collect()
}

fn draw_title(model: &Model, rows: &dyn Rows, pen: &mut Pen<'_>, area: Rect) {
    let y = area.y.saturating_sub(1);
    let list = &model.page.list;
    let space = usize::from(area.width).saturating_sub(2);
    if let Some(field) = &list.typing {
        let x = pen.draw_text(area.x + 1, y, 2, Token::Key, "/");
        let said = filter_feedback(model, field.text());
        // At least half of the line is reserved for typing.
        let wanted = said
            .as_ref()
            .map_or(0, |(_, said)| text::cell_width(said) + 1);
        let whole = usize::from(area.width.saturating_sub(3));
        let beside = u16::try_from(wanted.min(whole / 2)).unwrap_or(0);
        let place = Rect {
            x,
            y,
            width: area.width.saturating_sub(3 + beside),
            height: 1,
        };
        pen.field(place, field, true, false);
        if let Some((token, said)) = said {
            pen.draw_text(place.right() + 1, y, usize::from(beside) - 1, token, &said);
        }
        return;
    }
    let mut words = Vec::new();
    if rows.len() > 0 {
        let at = text::group_digits(saturating_i64(list.index + 1));
        let age = model.counts_age_ms().map(document::format_duration);
        let age = age.map_or_else(String::new, |age| format!(" ({age} old)"));
        words.push(format!("{at}/{}{age}", format_count(model, rows)));
    }
    if !list.marks.is_empty() {
        let marked = text::group_digits(saturating_i64(list.marks.len()));
        words.push(format!("{marked} marked"));
    }
    if !list.filter.is_empty() {
        words.push(format!("/{}", list.filter));
    }
    // Only in this order do new rows appear at the top.
    let is_newest_first = model.page.route == Route::EVENTS && list.sort.is_none();
    if list.came > 0 && is_newest_first {
        let came = text::group_digits(saturating_i64(list.came));
        words.push(model.expand_keys(&format!("▲ {came} new, ‹top› shows them")));
    } else if list.top > 0 && is_newest_first {
        let newer = text::group_digits(saturating_i64(list.top));
        words.push(model.expand_keys(&format!("▲ {newer} new, ‹top› shows them")));
    }
    let mut token = Token::Dim;
    if model.page.route == Route::EVENTS {
        token = describe_live(model, &mut words);
    }
    if let Route::EventGroups { filter, .. } = &model.page.route {
        token = describe_groups(model, filter, &mut words);
    }
    if matches!(model.page.route, Route::EVENTS | Route::DELIVERIES) && !list.filter.is_empty() {
        let warnings = &model.store.filter_warnings;
        if let Some(warning) = warnings.first() {
            token = Token::Bad;
            words.push(format!("✗ {warning}"));
        }
    }
    if let Some(failure) = list_failure(model).filter(|_| rows.len() > 0) {
        token = Token::Warning;
        let age = model.age_ms().map_or_else(String::new, |ms| {
            format!(", loaded {} ago", document::format_duration(ms))
        });
        words.push(format!("reload failed: {}{age}", failure.headline()));
    }
    let x = tabs::draw(model, pen, Rect { y, ..area });
    let space = space.saturating_sub(usize::from(x - area.x - 1));
    pen.draw_text(x, y, space, token, &words.join("  ·  "));
}

fn filter_feedback(model: &Model, text: &str) -> Option<(Token, String)> {
    if model.page.route != Route::EVENTS || text.trim().is_empty() {
        return None;
    }
    if let Err(error) = filter::parse_event_filter(text, &model.filter_reader()) {
        // An error at the end is dimmed: the filter may only be incomplete.
        let is_at_end = error.at >= text.chars().count();
        let token = if is_at_end { Token::Dim } else { Token::Bad };
        return Some((token, error.message));
    }
    if let Some(hint) = filter::filter_hint(text, &model.filter_reader()) {
        return Some((Token::Bad, hint.message));
    }
    Some(match model.page.list.matching.found.as_ref()? {
        Ok(Some(1)) => (Token::Dim, "1 event".to_owned()),
        Ok(Some(count)) => (
            Token::Dim,
            format!("{} events", text::group_digits(i64::from(*count))),
        ),
        Ok(None) => (Token::Dim, "too many to count while typing".to_owned()),
        Err(why) => (Token::Bad, why.clone()),
    })
}

fn format_selection(model: &Model) -> &'static str {
    if model.store.events.filter.open_only {
        "open only"
    } else {
        "open and closed"
    }
}

fn describe_live(model: &Model, words: &mut Vec<String>) -> Token {
    let events = &model.store.events;
    words.push(format_selection(model).to_owned());
    match &events.stream_failure {
        Some(failure) => words.push(format!("not live: {}", failure.headline())),
        None if events.paused => {
            words.push(format!(
                "▮▮ {} new",
                text::group_digits(saturating_i64(events.queued_update_count()))
            ));
            return Token::Held;
        }
        None if model.is_connected() => {
            let follows = model.page.list.follows;
            words.push(if follows { "live, following" } else { "live" }.to_owned());
        }
        None => {}
    }
    Token::Dim
}

fn describe_groups(model: &Model, filter: &str, words: &mut Vec<String>) -> Token {
    if !filter.is_empty() {
        words.push(format!("of {filter}"));
    }
    words.push(format_selection(model).to_owned());
    let Some(grouped) = model.store.loaded_groups() else {
        return Token::Dim;
    };
    let [events, groups] = [grouped.occurrence_count, grouped.group_count].map(text::group_digits);
    let held = saturating_i64(grouped.rows.len());
    let shown = if held < grouped.group_count {
        format!(
            "the largest {} of {groups} groups",
            text::group_digits(held)
        )
    } else {
        format!("{groups} groups")
    };
    words.push(format!("{events} events in {shown}"));
    if grouped.is_complete {
        return Token::Dim;
    }
    words.push("only the newest were counted; there are more".to_owned());
    Token::Warning
}

fn format_count(model: &Model, rows: &dyn Rows) -> String {
    let held = rows.len();
    match (model.has_more(), model.store.events.total.value) {
        (true, Some(total)) if model.page.route == Route::EVENTS => {
            text::group_digits(total.into())
        }
        (true, _) if model.page.route == Route::DELIVERIES => delivery_total(model)
            .unwrap_or_else(|| format!("{}+", text::group_digits(saturating_i64(held)))),
        (true, _) => format!("{}+", text::group_digits(saturating_i64(held))),
        (false, _) => text::group_digits(saturating_i64(held)),
    }
}

fn delivery_total(model: &Model) -> Option<String> {
    let tab = filter::delivery_tab_index(&model.page.list.filter, &model.clock())?;
    let count = text::group_digits(model.delivery_count(tab)?);
    let counts = model.store.delivery_counts.value.as_ref()?;
    let is_complete = counts.is_complete == Some(true);
    Some(if is_complete {
        count
    } else {
        format!("{count}+")
    })
}

fn saturating_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn list_failure(model: &Model) -> Option<&Failure> {
    model.store.failure(&model.page.route)
}

fn draw_empty(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let list = &model.page.list;
    // Lists held completely are filtered as the filter is typed.
    let typed = list.typing.as_ref().map(TextField::text);
    let filter = typed.unwrap_or(&list.filter);
    let is_read = model.store.is_loaded(&model.page.route);
    let (token, words) = match list_failure(model) {
        Some(failure) => (Token::Bad, format!("✗ {}", failure.sentence())),
        None if !is_read && model.is_connected() => (Token::Dim, "reading…".to_owned()),
        None if !is_read => (Token::Dim, "not loaded yet: not connected".to_owned()),
        None if typed.is_some_and(|text| is_invalid(model, text)) => {
            let words = "the filter is invalid or incomplete";
            (Token::Dim, words.to_owned())
        }
        None if !filter.is_empty() => (
            Token::Dim,
            format!(
                "no match `{filter}`\n{}",
                model.expand_keys("‹filter› edits the filter, ‹back› clears it")
            ),
        ),
        None => (Token::Text, first_steps(model).replace('`', "\"")),
    };
    let space = usize::from(area.width).saturating_sub(4).min(READABLE);
    for (line, y) in text::wrap_text(&words, space)
        .iter()
        .zip(area.top() + 1..area.bottom())
    {
        pen.draw_text(area.x + 2, y, space, token, line);
    }
}

fn is_invalid(model: &Model, text: &str) -> bool {
    let route = &model.page.route;
    let table = model.store.table_for_route(route);
    let table = table.filter(|_| matches!(route, Route::List(_)));
    table.is_some_and(|table| LocalFilter::read(text, &table.fields(), &model.clock()).is_err())
}

fn first_steps(model: &Model) -> String {
    if model.page.route != Route::EVENTS {
        return model.expand_keys(first_step(&model.page.route));
    }
    let steps = model.first_steps();
    let mut events = steps
        .iter()
        .flatten()
        .filter(|(step, _)| *step == SetupStep::Event);
    if events.all(|(_, is_done)| *is_done) {
        if !model.store.events.filter.open_only {
            return "No events.".to_owned();
        }
        return model.expand_keys("No open events.\n\n‹open_only› also shows closed ones.");
    }
    let command = model.shell.send_command().replace('\n', "\n  ");
    let [before, after] = [
        "No events here yet.\n\nSend one from a shell (‹copy› copies it):\n\n  ",
        "\n\nIt appears here immediately. \
         ‹trigger_from_event› on it creates a trigger; ‹open_only› also shows closed ones.",
    ]
    .map(|words| model.expand_keys(words));
    format!("{before}{command}{after}")
}

fn first_step(route: &Route) -> &'static str {
    match route {
        Route::List(kind) => kind::spec(*kind).empty,
        Route::EventGroups { .. } => {
            "No events to count.\n\n\
        ‹open_only› also counts closed ones; ‹back› returns to the list."
        }
        Route::Screen(Screen::Deliveries) => {
            "No deliveries yet.\n\nEach message on its way to a destination is shown here, with \
             every attempt.\n‹test_destination› in Destinations (‹go_destinations›) sends a test \
        message."
        }
        _ => "",
    }
}

/// Returns the width of each column; 0 if omitted.
fn fit_columns(columns: &[&ColumnHead], contents: &[(usize, usize)], space: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = contents.iter().map(|(least, _)| *least).collect();
    // The least important columns are omitted first.
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(columns[*at].rank));
    for at in order {
        if total_width(&widths) > space && columns[at].rank > 0 {
            widths[at] = 0;
        }
    }
    // Columns that grow first get the width of their content, and then share what remains.
    while grow_columns(columns, &mut widths, space, |at| contents[at].1) {}
    grow_columns(columns, &mut widths, space, |_| usize::MAX);
    widths
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.iter().filter(|width| **width > 0).count()
}

/// Divides the remaining width among the columns that grow, up to the most for each. Returns
/// whether any of them got wider.
fn grow_columns(
    columns: &[&ColumnHead],
    widths: &mut [usize],
    space: usize,
    most: impl Fn(usize) -> usize,
) -> bool {
    let spare = space.saturating_sub(total_width(widths));
    let is_growing = |at: usize| widths[at] > 0 && widths[at] < most(at);
    let growing: Vec<usize> = (0..columns.len()).filter(|at| is_growing(*at)).collect();
    let shares: usize = growing.iter().map(|at| columns[*at].grows).sum();
    let mut grew = false;
    for at in growing {
        let share = (spare * columns[at].grows).checked_div(shares);
        let more = share.unwrap_or(0).min(most(at) - widths[at]);
        widths[at] += more;
        grew |= more > 0;
    }
    grew
}

fn draw_heading(
    (columns, host_field): (&[&ColumnHead], &str),
    widths: &[usize],
    sorted: Option<Sort>,
    pen: &mut Pen<'_>,
    area: Rect,
) {
    let mut x = area.x + 2;
    for (column, width) in columns.iter().zip(widths).filter(|(_, width)| **width > 0) {
        let own = match column.title {
            HOST if host_field != "host" => host_field,
            title => title,
        };
        let shown = match sorted.filter(|sort| column.title == sort.column) {
            None => text::fit_to_width(own, *width),
            Some(sort) => {
                let title = text::fit_to_width(column.title, width.saturating_sub(1));
                format!("{title}{}", sort.arrow()).into()
            }
        };
        let pad = if column.right {
            width - text::cell_width(&shown)
        } else {
            0
        };
        pen.draw_text(x + to_u16(pad), area.y, *width, Token::Heading, &shown);
        x += to_u16(width + 1);
    }
}

fn draw_row(
    (heads, values): (&[&ColumnHead], &[Cell]),
    widths: &[usize],
    marked: bool,
    pen: &mut Pen<'_>,
    area: Rect,
) {
    if marked {
        pen.draw_text(area.x, area.y, 1, Token::Key, "◆");
    }
    let mut x = area.x + 2;
    let cells = heads.iter().zip(values).zip(widths);
    for ((head, cell), width) in cells.filter(|(_, width)| **width > 0) {
        let whole = cell.text_with_symbol();
        let shown = text::fit_to_width(&whole, *width);
        let pad = if head.right {
            width - text::cell_width(&shown)
        } else {
            0
        };
        pen.draw_text(x + to_u16(pad), area.y, *width, cell.token, &shown);
        x += to_u16(width + 1);
    }
}

fn to_u16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
