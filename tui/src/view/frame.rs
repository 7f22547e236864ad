//! Draws the frame around every page: the header, the connection's state and the hints.

use bellwether_proto::v1;
use ratatui::layout::Rect;

use super::pen::Pen;
use crate::{
    data::{FailureKind, Label},
    document::format_duration,
    keymap::{self, Action},
    kind::{self, EventCell},
    limits,
    model::{CRUMB_GAP, Connection, Model, access, overlay::Overlay, page::Content, tabs},
    route::Route,
    text,
    theme::Token,
};

pub(super) fn draw_too_small(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let words = ["Bellwether", "needs 40x8", "‹quit› quits"];
    for (y, word) in (area.top()..area.bottom()).zip(words) {
        let word = model.expand_keys(word);
        pen.draw_text(area.x, y, usize::from(area.width), Token::Text, &word);
    }
}

/// Draws header, tabs, banner and footer; returns the remaining area.
pub(super) fn draw_frame(model: &Model, pen: &mut Pen<'_>, area: Rect) -> Rect {
    draw_header(model, pen, area);
    let mut top = area.top() + 1;
    if tabs::has_tab_line(model) {
        let line = Rect {
            y: top,
            height: 1,
            ..area
        };
        super::tabs::draw(model, pen, line);
        top += 1;
    }
    if let Connection::Down { .. } = model.link {
        draw_banner(model, pen, area, top);
        top += 1;
    }
    draw_hints(model, pen, area);
    let top = top + model.rows_above();
    Rect {
        x: area.x,
        y: top,
        width: area.width,
        height: (area.bottom() - 1).saturating_sub(top),
    }
}

pub(crate) fn breadcrumbs(model: &Model) -> Vec<String> {
    let page = &model.page;
    let mut breadcrumbs = vec![page.route.screen_name().to_owned()];
    match &page.content {
        Content::Form(form) => {
            breadcrumbs = vec![form.title()];
            if form.is_changed() {
                breadcrumbs.push("unsaved".to_owned());
            }
        }
        Content::Report(report) => breadcrumbs = vec![report.title.clone()],
        _ if matches!(page.route, Route::EventGroups { .. }) => {
            breadcrumbs.push(format!("by {}", page.route.object_name()));
        }
        _ if !page.route.object_name().is_empty() => {
            let shown = shown_name(model).filter(|it| !it.is_empty());
            breadcrumbs.push(shown.unwrap_or_else(|| page.route.object_name().to_owned()));
        }
        _ => {}
    }
    if matches!(page.content, Content::Form(_) | Content::Report(_)) {
        breadcrumbs.insert(0, page.home_route().screen_name().to_owned());
    }
    breadcrumbs
}

/// Returns the name of what the page shows, if it is loaded.
fn shown_name(model: &Model) -> Option<String> {
    match (&model.page.route, &model.page.content) {
        (_, Content::Event { detail, .. }) => Some(detail.value.as_ref()?.name.clone()),
        (Route::Delivery(_), content) => {
            let delivery = content.response::<v1::Delivery>()?.value.as_ref()?;
            let event = EventCell::from_delivery(delivery, &model.host_field).title();
            let gap = if event.is_empty() { "" } else { " " };
            Some(format!("{event}{gap}to {}", delivery.destination_name))
        }
        (Route::Object(kind, name), _) => {
            let object = model.store.object(*kind, name)?;
            Some(kind::displayed_name(model, object))
        }
        _ => None,
    }
}

fn draw_header(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let width = usize::from(area.width);
    pen.draw_text(area.x, area.y, width, Token::Bar, &" ".repeat(width));
    let is_stale = model.is_response_overdue();
    let (sign, state) = match &model.link {
        Connection::Connecting => ("…", "connecting"),
        Connection::Up if is_stale => ("○", "last heard at"),
        Connection::Up => ("●", "connected at"),
        Connection::Down { .. } => ("✗", "not connected since"),
    };
    let caller = model.caller.as_ref();
    let (name, role) = caller.map_or_else(Default::default, |caller| {
        let name = format!("  {}", caller.name);
        (name, format!(" ({})", caller.role.label()))
    });
    let (time, zone) = model.last_received_ms.map_or_else(Default::default, |ms| {
        let time = format!(" {}", model.format_time(ms));
        (time, format!(" {}", model.zone_word()))
    });
    let state = if time.is_empty() {
        state.rsplit_once(' ').map_or(state, |(state, _)| state)
    } else {
        state
    };
    let right = [
        format!("{sign} {state}{time}{zone}{name}{role} "),
        format!("{sign} {state}{time}{name}{role} "),
        format!("{sign} {state}{time}{name} "),
        if is_stale {
            format!("{sign} {state}{time} ")
        } else {
            format!("{sign}{time}{name} ")
        },
        format!("{sign}{time} "),
    ];
    let head = model.head_parts();
    let breadcrumbs = format!("{CRUMB_GAP}{}", breadcrumbs(model).join(" › "));
    let left: usize = head.iter().map(|(_, words)| text::cell_width(words)).sum();
    let space = width.saturating_sub(left + text::cell_width(&breadcrumbs) + 1);
    let fitting = right
        .iter()
        .find(|it| text::cell_width(it) <= space.min(width / 2));
    let right = text::fit_to_width(fitting.unwrap_or(&right[right.len() - 1]), width / 2);
    let right_width = text::cell_width(&right);
    let mut space = width.saturating_sub(right_width + 1);
    let mut x = area.x;
    let mut put = |x: &mut u16, token, words: &str| {
        let start = *x;
        *x = pen.draw_text(start, area.y, space, token, words);
        space = space.saturating_sub(usize::from(*x - start));
    };
    for (token, words) in head {
        put(&mut x, token, &words);
    }
    put(&mut x, Token::Bar, &breadcrumbs);
    let x = area.right() - u16::try_from(right_width).unwrap_or(area.width);
    let token = if is_stale { Token::Dim } else { Token::Bar };
    pen.draw_text(x, area.y, right_width, token, &right);
}

fn draw_banner(model: &Model, pen: &mut Pen<'_>, area: Rect, y: u16) {
    let Connection::Down {
        failure,
        retry_at_ms,
        ..
    } = &model.link
    else {
        return;
    };
    let wait = retry_at_ms - model.now_ms;
    let retry = if wait <= 0 {
        "trying now".to_owned()
    } else {
        let seconds = (wait + 999) / 1_000;
        model.expand_keys(&format!(
            "next attempt in {seconds} s, ‹retry_now› retries now"
        ))
    };
    let age = model.age_ms().map_or_else(String::new, |ms| {
        format!(" · data shown is {} old", format_header_age(ms))
    });
    let room = usize::from(area.width).saturating_sub(4);
    let (sentence, mut tail) = (failure.sentence(), format!("{age} · {retry}"));
    // If the operator has to sign in, the reason is more important than the next automatic attempt.
    let is_theirs = failure.kind == FailureKind::NotSignedIn;
    if is_theirs && text::cell_width(&sentence) + text::cell_width(&tail) > room {
        tail.clear();
    }
    let reason = text::fit_to_width(
        &sentence,
        room.saturating_sub(text::cell_width(&tail)).max(16),
    );
    let words = format!(" ✗ {reason}{tail}");
    pen.draw_text(area.x, y, usize::from(area.width), Token::Critical, &words);
}

fn format_header_age(ms: i64) -> String {
    match ms.max(0) {
        ms @ ..10_000 => format!("{} s", ms / 1_000),
        ms => format_duration(ms),
    }
}

fn draw_hints(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let y = area.bottom() - 1;
    let (words, last) = hint_words(model);
    let wide = |(key, name, _): &Hint| text::cell_width(key) + text::cell_width(name) + 3;
    let reserved: usize = last.iter().map(wide).sum();
    let mut space = usize::from(area.width).saturating_sub(reserved);
    let mut x = area.x + 1;
    let fitting = words.into_iter().filter(|hint| {
        let fits = wide(hint) <= space;
        space -= if fits { wide(hint) } else { 0 };
        fits
    });
    for (key, name, allowed) in fitting.collect::<Vec<_>>().into_iter().chain(last) {
        let token = |token| if allowed { token } else { Token::Dim };
        x = pen.draw_text(x, y, usize::from(area.width), token(Token::Key), &key);
        x = pen.draw_text(x + 1, y, usize::from(area.width), token(Token::Text), &name) + 2;
    }
}

type Hint = (String, String, bool);

fn fixed_hints(pairs: &[(&str, &str)]) -> Vec<Hint> {
    pairs
        .iter()
        .map(|(key, name)| ((*key).to_owned(), (*name).to_owned(), true))
        .collect()
}

fn overlay_hints(overlay: &Overlay) -> (Vec<Hint>, Vec<Hint>) {
    match overlay {
        // These dialogs show their keys themselves.
        Overlay::Confirm(_)
        | Overlay::Clash(_)
        | Overlay::Bulk(_)
        | Overlay::Menu(_)
        | Overlay::Silence(_)
        | Overlay::Key { .. }
        | Overlay::Program(_) => (vec![], vec![]),
        Overlay::Palette(_) => (
            fixed_hints(&[("Enter", "do it"), ("↑↓", "choose"), ("Tab", "complete")]),
            fixed_hints(&[("Esc", "leave")]),
        ),
        Overlay::Prompt(_) | Overlay::Picker(_) => (
            fixed_hints(&[("Enter", "continue")]),
            fixed_hints(&[("Esc", "leave")]),
        ),
    }
}

fn hint_words(model: &Model) -> (Vec<Hint>, Vec<Hint>) {
    if let Some(words) = model.overlay.as_ref().map(overlay_hints) {
        return words;
    }
    if model.page.list.typing.is_some() {
        let mut words = fixed_hints(&[("Enter", "filter"), ("↑↓", "older ones"), ("^U", "empty")]);
        if let Some(found) = model.filter_completion() {
            words.insert(0, ("Tab".to_owned(), found.words.join("  "), true));
        }
        return (words, fixed_hints(&[("Esc", "leave unchanged")]));
    }
    if model.cycle.is_some() {
        return (Vec::new(), fixed_hints(&[("q", "quit")]));
    }
    let places = model.page.route.key_places();
    if !model.begun.is_empty() {
        let begun = (keymap::format_keys(&model.begun), "…".to_owned(), true);
        return (vec![begun], fixed_hints(&[("Esc", "cancel")]));
    }
    // The hints of a page without a list always include the key to leave it.
    let is_read = !model.page.route.is_list() && !model.back.is_empty();
    let mut entries: Vec<_> = keymap::available_entries(&places)
        .filter(|entry| (1..60).contains(&entry.hint) && access::has_target(model, entry))
        .filter(|entry| !is_read || entry.action != Action::Back)
        .collect();
    entries.sort_by_key(|entry| entry.hint);
    entries.truncate(limits::HINTS);
    let words = entries.into_iter().map(|entry| {
        let key = model.keymap.hint(entry, &places).unwrap_or_default();
        (
            key,
            entry.name.to_owned(),
            access::check_allowed(model, entry).is_ok(),
        )
    });
    let back = is_read.then_some(Action::Back);
    let last = [Action::Help, Action::FormLeave, Action::Quit];
    let last = { back.into_iter().chain(last) }
        .map(keymap::entry_for)
        .filter(|entry| entry.places.iter().any(|place| places.contains(place)))
        .take(2 + usize::from(is_read && model.page.form().is_none()))
        .map(|entry| {
            let key = model.keymap.hint(entry, &places).unwrap_or_default();
            (key, entry.name.to_owned(), true)
        });
    (words.collect(), last.collect())
}

/// Lists the keys that complete a sequence, in columns above the footer.
pub(super) fn draw_continuations(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let places = model.page.route.key_places();
    let endings = model.keymap.continuations(&model.begun, &places);
    if model.begun.is_empty() || endings.is_empty() {
        return;
    }
    let words = |(keys, entry): &(String, &keymap::Entry)| (keys.clone(), entry.name);
    let all: Vec<_> = endings.iter().map(words).collect();
    let keys_width = all.iter().map(|(keys, _)| text::cell_width(keys)).max();
    let keys_width = keys_width.unwrap_or(0) + 1;
    let names_width = all.iter().map(|(_, name)| text::cell_width(name)).max();
    let cell = keys_width + names_width.unwrap_or(0) + 2;
    let columns = (usize::from(area.width).saturating_sub(4) / cell).max(1);
    let count = all.len().div_ceil(columns);
    let height = u16::try_from(count + 2).unwrap_or(u16::MAX);
    let height = height.min(area.height.saturating_sub(2));
    let place = Rect {
        y: area.bottom() - 1 - height,
        height,
        ..area
    };
    let inside = pen.draw_window(place, &keymap::format_keys(&model.begun));
    for (at, ((keys, name), (_, entry))) in all.iter().zip(&endings).enumerate() {
        let row = u16::try_from(at % count).unwrap_or(u16::MAX);
        let column = u16::try_from(at / count * cell).unwrap_or(u16::MAX);
        if row >= inside.height {
            continue;
        }
        let (x, y) = (inside.x + column, inside.y + row);
        let allowed = access::check_allowed(model, entry).is_ok();
        let token = |token| if allowed { token } else { Token::Dim };
        pen.draw_text(x, y, keys_width, token(Token::Key), keys);
        let x = x + u16::try_from(keys_width).unwrap_or(0);
        pen.draw_text(x, y, cell - keys_width, token(Token::Text), name);
    }
}

pub(super) fn draw_notice(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let Some(notice) = &model.notice else { return };
    let lines = model.notice_lines();
    let height = u16::try_from(lines.len()).unwrap_or(1);
    let y = area.bottom().saturating_sub(1 + height);
    let place = Rect {
        x: area.x,
        y,
        width: area.width,
        height,
    };
    pen.clear(place);
    for (row, line) in (y..).zip(&lines) {
        pen.draw_text(
            area.x + 1,
            row,
            usize::from(area.width) - 2,
            notice.token,
            line,
        );
    }
}
