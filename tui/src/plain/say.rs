//! Screens as text: rows and pages with numbers instead of a cursor.

use crate::{
    data::{Label, Sign, WORST_FIRST},
    document::Line,
    kind::{FieldKind, secret},
    model::{
        Model, document,
        form::{Form, Input},
        page::{Content, Tab},
    },
    route::Route,
    view,
};

const INDENT: usize = 4;

pub(super) fn say_row(model: &Model, id: &str) -> String {
    let mut parts = Vec::new();
    for (title, text, is_number) in view::labelled_cells(model, id) {
        let title = title.trim_start_matches("→ ");
        let labelled = is_number || matches!(title, "Seen" | "Rules" | "Target" | "Destinations");
        match text.trim() {
            // Omits ages, which change every minute, and bars, which are only visual.
            "" => {}
            _ if matches!(title, "Age" | "Sent 1 h" | "Failed 1 h") => {}
            "✓" => parts.push("acknowledged".to_owned()),
            text if labelled || title.contains(' ') || title == "Created" => {
                parts.push(format!("{title} {text}"));
            }
            text => parts.push(text.to_owned()),
        }
    }
    parts.join("; ")
}

pub(super) fn page_title(model: &Model) -> String {
    let crumbs = view::breadcrumbs(model).join(", ");
    let Content::Event { tab, .. } = &model.page.content else {
        return crumbs;
    };
    let others = Tab::ALL.map(Tab::title).join(", ");
    format!("{crumbs}. {} (of {others})", tab.title())
}

pub(super) fn page_state(model: &Model) -> Vec<String> {
    let mut words = Vec::new();
    let list = &model.page.list;
    if model.page.route == Route::EVENTS {
        let events = &model.store.events;
        let which = if events.filter.open_only {
            "open only"
        } else {
            "open and closed"
        };
        words.push(which.to_owned());
        match &events.stream_failure {
            Some(failure) => words.push(format!("not live: {}", failure.headline())),
            None if events.paused => words.push("paused".to_owned()),
            None if model.is_connected() => words.push("live".to_owned()),
            None => {}
        }
    }
    if !list.filter.is_empty() {
        words.push(format!("filter {}", list.filter));
    }
    if let Some(sort) = list.sort.and(model.current_sort()) {
        let way = if sort.descending { "down" } else { "up" };
        words.push(format!("sorted by {}, {way}", sort.column));
    }
    if !list.marks.is_empty() {
        words.push(format!("{} marked", list.marks.len()));
    }
    if let Some(failure) = model.store.failure(&model.page.route) {
        words.push(format!("reload failed: {}", failure.sentence()));
    }
    words
}

/// Formats a line of a page without graphics; a link is followed by its number.
pub(super) fn say_line(line: &Line, number: Option<usize>) -> String {
    let is_drawn = |char: char| matches!(char, '\u{2500}'..='\u{259f}' | '▶');
    let mut said = String::new();
    for (at, span) in line.spans.iter().enumerate() {
        let next = line.spans.get(at + 1).map_or("", |it| it.text.trim());
        if is_severity_sign(&span.text, next) {
            continue;
        }
        let text = say_symbols(&span.text);
        let bare = text.trim();
        if bare.is_empty() || bare.chars().all(|char| char == ' ' || is_drawn(char)) {
            let is_indent = at == 0 && bare.is_empty();
            let indent = if is_indent { text.len().min(INDENT) } else { 0 };
            let gap = usize::from(at > 0 && !said.ends_with(' '));
            said.push_str(&" ".repeat(indent.max(gap)));
            continue;
        }
        let starts = text.starts_with(' ') && !said.is_empty() && !said.ends_with(' ');
        said.push_str(if starts { " " } else { "" });
        said.push_str(if at == 0 { text.trim_end() } else { bare });
        let is_label = at == 0 && line.spans.len() > 1 && bare.ends_with(char::is_alphanumeric);
        if text.ends_with(' ') {
            said.push_str(if is_label { ": " } else { " " });
        }
    }
    let said = said.trim_end().trim_end_matches(':');
    match number {
        Some(number) => format!("{said} [{number}]"),
        None => said.to_owned(),
    }
}

/// Whether a text is the symbol of the severity that the following text names.
fn is_severity_sign(text: &str, next: &str) -> bool {
    let mut severities = WORST_FIRST.into_iter();
    severities.any(|it| text.trim() == it.symbol() && next.starts_with(it.label()))
}

/// Symbols at the start of a text, and the words for them. A severity is also named.
const FIRST: [(&str, &str); 8] = [
    ("✓", "ok: "),
    ("✗", "not ok: "),
    ("◐", "waiting: "),
    ("○", "recorded: "),
    ("‖", "paused: "),
    ("☾", "silence: "),
    ("·", "- "),
    ("→", ""),
];
const INSIDE: [(&str, &str); 6] = [
    (" · ", ", "),
    (" → ", " to "),
    (" ✓", " delivered"),
    (" ✗", " not delivered"),
    (" ● ", " "),
    ("~", "about "),
];

/// Replaces symbols, which screen readers pronounce badly, with words.
pub(super) fn say_symbols(said: &str) -> String {
    let mut said = said.to_owned();
    for severity in WORST_FIRST {
        let [sign, label] = [severity.symbol(), severity.label()];
        said = said.replace(&format!("{sign} {label}"), label);
    }
    let (indent, body) = said.split_at(said.len() - said.trim_start().len());
    let first = FIRST
        .iter()
        .find_map(|(sign, word)| Some((word, body.strip_prefix(sign)?)));
    let body = match first {
        Some((word, rest)) => format!("{word}{}", rest.trim_start()),
        None => body.to_owned(),
    };
    let words = INSIDE.iter();
    let mut body = words.fold(body, |body, (sign, word)| body.replace(sign, word));
    // Removes the padding of columns, which are aligned only on a screen.
    while body.contains("   ") {
        body = body.replace("   ", "  ");
    }
    format!("{indent}{body}")
}

/// Formats the page on the screen, and returns the lines of its links, by number.
pub(super) fn say_document(model: &Model) -> (Vec<String>, Vec<usize>) {
    let mut links = Vec::new();
    let mut lines = Vec::new();
    for (at, read) in document::current_document(model).lines.iter().enumerate() {
        let number = read.link.as_ref().map(|_| {
            links.push(at);
            links.len()
        });
        lines.push(say_line(read, number));
    }
    (lines, links)
}

pub(super) fn say_form(model: &Model, form: &Form) -> Vec<String> {
    let mut lines = vec![format!("{}.", form.title())];
    if let Some(error) = form.errors.get("") {
        lines.push(format!("  not ok: {error}"));
    }
    for index in (0..form.specs.len()).filter(|index| form.is_fillable(*index)) {
        let spec = &form.specs[index];
        let needed = if spec.required { " (needed)" } else { "" };
        lines.push(format!(
            "{}{needed} = {}",
            spec.label,
            say_value(form, index)
        ));
        if let Some(error) = form.errors.get(spec.path) {
            lines.push(format!("  not ok: {error}"));
        }
    }
    if !model.is_connected() {
        lines.push("Not connected. Keep typing: nothing is lost.".to_owned());
    }
    lines
}

pub(super) fn say_value(form: &Form, index: usize) -> String {
    let spec = &form.specs[index];
    match &form.inputs[index] {
        Input::Text(field) => {
            let is_shown = spec.kind != FieldKind::Secret || form.reveal;
            if field.text().is_empty() {
                "nothing".to_owned()
            } else if is_shown {
                let text = if spec.path == secret::HEADERS && !form.reveal {
                    secret::mask_header_lines(form.base_json(), field.text())
                } else {
                    field.text().to_owned()
                };
                let text = text.replace('\n', "\\n");
                match form.parsed_time_text(index) {
                    Some(words) => format!("{text} ({words})"),
                    None => text,
                }
            } else {
                secret::STORED.to_owned()
            }
        }
        Input::Toggle(on) => if *on { "yes" } else { "no" }.to_owned(),
        Input::Choice(at) => {
            let words = spec.kind.choice_names();
            let word = words.get(*at).copied().unwrap_or_default();
            format!("{word} (of {})", words.join(", "))
        }
        Input::Names(names) if names.is_empty() => "nothing".to_owned(),
        Input::Names(names) => names.join(", "),
        Input::Clause(clause) => clause.describe(),
        Input::Section(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_spoken_as_words() {
        for (shown, said) in [
            ("✗ status-page  failing", "not ok: status-page  failing"),
            (
                "▲ critical disk-full      db-03",
                "critical disk-full  db-03",
            ),
            ("  ◐ night: waits", "  waiting: night: waits"),
            ("◐ warning", "warning"),
            ("ana ✓ · cleo in 38 s", "ana delivered, cleo in 38 s"),
            ("Delay  5m → 10m", "Delay  5m to 10m"),
            ("→ Add a destination", "Add a destination"),
        ] {
            assert_eq!(say_symbols(shown), said);
        }
    }
}
