//! Links of events, opened in a browser, and custom commands.

use serde_json::Value;

use super::{call, copy, execute::execute};
use crate::{
    client::events,
    limits,
    model::{
        Model,
        message::{Effect, ProgramOutput},
        overlay::{Confirm, Consequence, Menu, MenuAction, MenuItem, Overlay, Program},
    },
    text,
    theme::Token,
};

const MENU_KEYS: &str = "123456789abcdefg";

pub(super) fn open_link(model: &mut Model) {
    with_item(model, choose_link);
}

pub(super) fn run_command(model: &mut Model, at: usize) {
    with_item(model, move |model, item| confirm_command(model, at, item));
}

/// Runs a task on the selected or shown item. Rows of events are incomplete, so the event is read
/// first; the task is skipped if another event was requested in the meantime.
fn with_item(model: &mut Model, task: impl FnOnce(&mut Model, &Value) + Send + 'static) {
    match model.current_json(&model.current_id()) {
        Some(MenuAction::Event(id)) => {
            let ticket = call(model, events::get_event(&id), |model, ticket, answer| {
                let requested = &mut model.requested_item;
                if requested.take_if(|waiting| *waiting == ticket).is_none() {
                    return false;
                }
                model.notice = None;
                match events::parse_event(answer) {
                    Ok(event) => {
                        let json = copy::pretty_json(&event);
                        task(model, &serde_json::from_str(&json).unwrap_or_default());
                    }
                    Err(failure) => {
                        model.show_notice(Token::Bad, format!("✗ {}", failure.sentence()));
                    }
                }
                true
            });
            model.requested_item = Some(ticket);
            model.show_notice(Token::Dim, "…");
        }
        Some(MenuAction::Text(json)) => {
            task(model, &serde_json::from_str(&json).unwrap_or_default());
        }
        _ => model.show_notice(
            Token::Info,
            "nothing is selected, or it is still being read",
        ),
    }
}

fn choose_link(model: &mut Model, event: &Value) {
    let mut links = event_links(event);
    if links.len() > 1 {
        let items = MENU_KEYS.chars().zip(links);
        let item = |(key, (label, url)): (char, (&str, String))| MenuItem {
            key,
            label: label.to_owned(),
            what: MenuAction::Open(url),
        };
        model.overlay = Some(Overlay::Menu(Menu {
            title: "Open a link".to_owned(),
            help: "key or Enter opens · Esc closes",
            items: items.map(item).collect(),
            cursor: 0,
        }));
        return;
    }
    match links.pop() {
        Some((_, url)) => open_url(model, url),
        None => model.show_notice(Token::Info, "this event has no links"),
    }
}

/// Returns the URLs in the metadata, dimensions and details of an event: runbooks first, then its
/// source, each with a label.
fn event_links(event: &Value) -> Vec<(&'static str, String)> {
    let occurrence = &event["occurrences"][0];
    let mut found = Vec::new();
    for part in [
        &occurrence["metadataFields"],
        &event["dimensions"],
        &occurrence["body"],
    ] {
        collect_links(part, "", &mut found);
    }
    found.sort_by_key(|(label, _)| {
        ["runbook", "source", "link"]
            .iter()
            .position(|it| it == label)
    });
    let mut seen = std::collections::HashSet::new();
    found.retain(|(_, url)| seen.insert(url.clone()));
    found.truncate(limits::LINKS);
    found
}

fn collect_links(value: &Value, name: &str, found: &mut Vec<(&'static str, String)>) {
    match value {
        Value::String(text) => {
            let label = match name.to_lowercase() {
                name if name.contains("runbook") => "runbook",
                name if name.contains("generator") => "source",
                _ => "link",
            };
            let words = text.split_whitespace().filter_map(clean_url);
            found.extend(words.map(|url| (label, url)));
        }
        Value::Array(items) => items.iter().for_each(|it| collect_links(it, name, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                collect_links(field, name, found);
            }
        }
        _ => {}
    }
}

/// Returns the URL in a word, without the punctuation around it; `None` for any scheme other than
/// `http` or `https`.
fn clean_url(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['<', '(', '"', '\'']);
    let word =
        word.trim_end_matches(|it| "\"'>.,;:".contains(it) || it == ')' && !word.contains('('));
    let (scheme, rest) = word.split_once("://")?;
    let is_web = ["http", "https"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(scheme));
    let is_plain = word.bytes().all(|byte| byte.is_ascii_graphic());
    let has_host = rest.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '[');
    (is_web && is_plain && has_host && word.len() <= limits::LINK_BYTES).then(|| word.to_owned())
}

/// Opens a URL in a browser on this machine. If there is none, shows and copies the URL.
pub(super) fn open_url(model: &mut Model, url: String) {
    if model.opener.is_some() {
        model.show_notice(Token::Info, format!("opening {url}"));
        model.effects.push(Effect::Open(url));
    } else {
        model.show_notice(
            Token::Info,
            format!("no browser on this machine; copied {url}"),
        );
        model.effects.push(Effect::Copy(url));
    }
}

/// Runs a command for an item; asks before the first run of each command.
fn confirm_command(model: &mut Model, at: usize, item: &Value) {
    let Some(command) = model.keymap.command(at) else {
        return;
    };
    let name = command.name.clone();
    let words = match command.arguments(item) {
        Ok(words) => words,
        Err(problem) => return model.show_notice(Token::Bad, format!("{name} not run: {problem}")),
    };
    let is_confirmed = model.confirmed_commands.contains(&name);
    let shown: Vec<String> = words.iter().map(|word| copy::shell_quote(word)).collect();
    let shown = shown.join(" ");
    let title = format!("Run {name}?");
    let program = Program {
        name,
        words,
        shown: shown.clone(),
    };
    let then = Consequence::Run(Box::new(program));
    if is_confirmed {
        return execute(model, then);
    }
    let confirm = Confirm::new(title, "Run", then).line(Token::Text, shown);
    let words = "The console does not ask again for this command until it is restarted.";
    model.overlay = Some(Overlay::Confirm(confirm.line(Token::Dim, words)));
}

pub(super) fn show_output(model: &mut Model, output: &ProgramOutput) {
    let Some(Overlay::Program(pane)) = &mut model.overlay else {
        return;
    };
    let lines = output.text.lines().take(limits::OUTPUT_LINES);
    pane.lines = lines.map(text::clean_text).collect();
    pane.end = Some(output.end.clone());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_are_ordered_unique_and_of_the_web_only() {
        let event = json!({
            "dimensions": {"instance": "https://shop.example/health"},
            "occurrences": [{
                "body": "see (http://wiki/disk), or javascript:alert(1) and file:///etc/passwd.",
                "metadataFields": {
                    "generatorURL": "http://prometheus/graph",
                    "links": [
                        {"href": "http://grafana/d/1", "text": "ftp://x"},
                        {"href": "http://-option"}, {"href": "https://"},
                        {"href": "http://wiki/Disk_(computer)"},
                        {"href": "http://a\u{1b}]0;x"},
                    ],
                    "annotations": {"runbook_url": "HTTPS://runbooks/disk", "again": "http://wiki/disk"},
                },
            }],
        });
        let found = event_links(&event);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(label, url)| (*label, url.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("runbook", "HTTPS://runbooks/disk"),
                ("source", "http://prometheus/graph"),
                ("link", "http://wiki/disk"),
                ("link", "http://grafana/d/1"),
                ("link", "http://wiki/Disk_(computer)"),
                ("link", "https://shop.example/health"),
            ]
        );
        assert_eq!(
            clean_url(&format!("http://{}", "a".repeat(limits::LINK_BYTES))),
            None
        );
    }
}
