//! Commands of plain mode: the name or key of an action, rows, and further arguments. Other lines
//! are looked up in the palette.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    keymap::{self, Action, ActionPlace, Entry, Requirement},
    model::{
        Model, access,
        field::TextField,
        overlay::{Palette, PaletteTarget},
    },
};

pub(super) const ESC: KeyEvent = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
pub(super) const ENTER: KeyEvent = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
pub(super) const TAB: KeyEvent = KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE);
pub(super) const YES: KeyEvent = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);

const SUGGESTIONS: usize = 3;
const ALIKE: f64 = 0.8;

#[derive(Debug, PartialEq)]
pub(super) enum LineMeaning {
    ReadOn,
    Number(usize),
    Act {
        action: Action,
        rows: Vec<String>,
        rest: String,
    },
    Find(PaletteTarget),
    Wrong(String),
}

fn is_about_rows(entry: &Entry) -> bool {
    let is_everywhere = entry.places.contains(&ActionPlace::Anywhere);
    let mut places = entry.places.iter();
    places.any(|place| *place != ActionPlace::Document) && !is_everywhere && !entry.lines.all
}

pub(super) fn shows_a_page(entry: &Entry) -> bool {
    !matches!(entry.need, Requirement::Write(_)) && !entry.lines.silent
}

fn available_entries(model: &Model) -> impl Iterator<Item = &'static Entry> {
    let places = model.page.route.key_places();
    let mut entries: Vec<_> = keymap::available_entries(&places)
        .filter(|entry| !entry.lines.screen)
        .collect();
    // Commands of the screen come before global ones.
    let particular = |entry: &&Entry| {
        let at = places.iter().position(|place| entry.places.contains(place));
        at.unwrap_or(places.len())
    };
    entries.sort_by_key(particular);
    entries.into_iter()
}

/// Returns the keys of an action that can be typed; digits are row numbers instead.
fn typeable_keys(model: &Model, entry: &Entry) -> Vec<String> {
    let keys = model.keymap.keys_for(entry, &model.page.route.key_places());
    let shown = keys.map(keymap::format_keys);
    let is_typed = |key: &String| {
        let digits = key.chars().all(|char| char.is_ascii_digit());
        !digits && (key.chars().count() == 1 || key.starts_with('^'))
    };
    shown.filter(is_typed).collect()
}

pub(super) fn help_lines(model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in available_entries(model).filter(|entry| access::has_target(model, entry)) {
        let rows = if model.page.route.is_list() && is_about_rows(entry) {
            if entry.lines.several { " ROWS" } else { " ROW" }
        } else {
            ""
        };
        let text = if entry.lines.text { " TEXT" } else { "" };
        let keys = typeable_keys(model, entry);
        let keys = if keys.is_empty() {
            String::new()
        } else {
            format!(" ({})", keys.join(" "))
        };
        let why_not = access::check_allowed(model, entry).err();
        let why_not = why_not.map_or_else(String::new, |reason| format!(". Not now: {reason}"));
        let (name, title) = (entry.name, entry.title);
        lines.push(format!("{name}{rows}{text}{keys}: {title}{why_not}"));
    }
    lines
}

/// Parses a line. `numbered` contains the ids of the printed rows, in order.
pub(super) fn parse_line(model: &Model, line: &str, numbered: &[String]) -> LineMeaning {
    let line = line.trim();
    if line.is_empty() {
        return LineMeaning::ReadOn;
    }
    if let Ok(number) = line.parse() {
        return LineMeaning::Number(number);
    }
    let mut unfit = None;
    if let Some((entry, rest)) = find_action(model, line) {
        match parse_action(model, entry, rest, numbered) {
            Ok(meant) => return meant,
            Err(reason) => unfit = Some(reason),
        }
    }
    find_in_list(model, line).unwrap_or_else(|near| LineMeaning::Wrong(unfit.unwrap_or(near)))
}

/// Returns the action with the longest name or key that the line begins with, and the rest of the
/// line.
fn find_action<'a>(model: &Model, line: &'a str) -> Option<(&'static Entry, &'a str)> {
    let mut found: Option<(&'static Entry, &str, usize)> = None;
    for entry in available_entries(model) {
        let in_full = entry.action.name().replace('_', " ");
        let names = [entry.name.to_owned(), in_full].into_iter();
        let names = names.map(|name| (name, true));
        let keys = typeable_keys(model, entry)
            .into_iter()
            .map(|key| (key, false));
        for (name, any_case) in names.chain(keys) {
            let Some((head, rest)) = line.split_at_checked(name.len()) else {
                continue;
            };
            let same = head == name || any_case && head.eq_ignore_ascii_case(&name);
            let ends = rest.is_empty() || rest.starts_with(' ');
            if same && ends && found.is_none_or(|(_, _, longest)| name.len() > longest) {
                found = Some((entry, rest.trim(), name.len()));
            }
        }
    }
    found.map(|(entry, rest, _)| (entry, rest))
}

fn parse_action(
    model: &Model,
    entry: &'static Entry,
    rest: &str,
    numbered: &[String],
) -> Result<LineMeaning, String> {
    let (action, name) = (entry.action, entry.name);
    access::check_allowed(model, entry).map_err(|reason| format!("{}: {reason}", entry.name))?;
    if !access::has_target(model, entry) {
        return Err(format!("{}: not applicable here", entry.name));
    }
    let is_list = model.page.route.is_list() && is_about_rows(entry);
    let (rows, rest) = if is_list {
        // Only the first word contains rows: the text after it may contain numbers too.
        let end = if entry.lines.text {
            rest.find(' ').unwrap_or(rest.len())
        } else {
            rest.len()
        };
        let (ids, unread) = parse_rows(model, &rest[..end], numbered)?;
        let unread = rest.len() - end + unread.len();
        (ids, rest[rest.len() - unread..].trim_start())
    } else {
        (Vec::new(), rest)
    };
    let list = &model.page.list;
    if is_list && rows.is_empty() && (list.marks.is_empty() || !entry.lines.several) {
        if list.count == 1 {
            return Ok(LineMeaning::Act {
                action,
                rows: vec![model.rows().id(0).to_owned()],
                rest: rest.to_owned(),
            });
        }
        return Err(format!("{name}: specify a row, such as `{name} 1`"));
    }
    if rows.len() > 1 && !entry.lines.several {
        return Err(format!("{name}: expected one row"));
    }
    if !rest.is_empty() && !entry.lines.text {
        return Err(format!("{name}: unexpected `{rest}`"));
    }
    let rest = rest.to_owned();
    Ok(LineMeaning::Act { action, rows, rest })
}

/// Parses the rows at the start of a text: `3`, `3 5`, `3-7`, or an id or name.
fn parse_rows<'a>(
    model: &Model,
    text: &'a str,
    numbered: &[String],
) -> Result<(Vec<String>, &'a str), String> {
    let mut ids: Vec<String> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let Some((first, last)) = parse_range(word) else {
            break;
        };
        if first == 0 || last > numbered.len() || first > last {
            let message = match numbered.len() {
                0 => "no rows printed yet".to_owned(),
                1 => "only row 1 was printed".to_owned(),
                count => format!("only rows 1 to {count} were printed"),
            };
            return Err(format!("`{word}`: unknown row; {message}"));
        }
        ids.extend(numbered[first - 1..last].iter().cloned());
        rest = behind.trim_start_matches([' ', ',']);
    }
    if ids.is_empty() && !rest.is_empty() {
        let all = model.rows();
        let first = rest.split(' ').next().unwrap_or_default();
        let behind = rest[first.len()..].trim_start();
        for (id, behind) in [(rest, ""), (first, behind)] {
            if all.position(id).is_some() {
                return Ok((vec![id.to_owned()], behind));
            }
        }
    }
    let gone = |id: &&String| model.rows().position(id).is_none();
    if let Some(id) = ids.iter().find(gone) {
        let at = numbered.iter().position(|other| other == id).unwrap_or(0) + 1;
        return Err(format!("row {at} is no longer in the list"));
    }
    Ok((ids, rest))
}

fn parse_range(word: &str) -> Option<(usize, usize)> {
    match word.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => word.parse().ok().map(|number| (number, number)),
    }
}

fn find_in_list(model: &Model, line: &str) -> Result<LineMeaning, String> {
    let palette = Palette {
        field: TextField::new(line),
        ..Palette::default()
    };
    let items = palette.items(model);
    let line = line.to_lowercase();
    let (word, argument) = line.split_once(' ').unwrap_or((&line, ""));
    let is_meant = |title: &str| {
        let title = title.to_lowercase();
        let behind = title.strip_prefix(word).unwrap_or_default();
        title == line
            || !argument.is_empty()
                && (behind.trim_start() == argument
                    || behind.ends_with(&format!(" {argument}"))
                    || behind.starts_with(&format!(" {argument} ")))
    };
    let usable =
        |target: &PaletteTarget| !matches!(target, PaletteTarget::Type(_) | PaletteTarget::Act(_));
    let mut meant = items
        .iter()
        .filter(|item| is_meant(&item.title) && usable(&item.target));
    if let Some(item) = meant.next() {
        return Ok(match &item.refusal {
            Some(reason) => LineMeaning::Wrong(format!("{}: {reason}", item.title)),
            None => LineMeaning::Find(item.target.clone()),
        });
    }
    let names = available_entries(model).map(|entry| entry.name);
    let mut near: Vec<_> = names
        .map(|name| (strsim::jaro_winkler(name, word), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let near = near.iter().take(SUGGESTIONS).map(|(_, name)| *name);
    let near: Vec<_> = near.collect();
    Err(if near.is_empty() {
        format!("unknown command `{line}`; `help` lists all")
    } else {
        let near = near.join("`, `");
        format!("unknown command `{line}`; did you mean `{near}`? `help` lists all")
    })
}
