//! Completions in forms: fields and values in a condition, variables in a template.

use bellwether_proto::reference;

use crate::{
    data::Kind,
    kind::{FieldKind, line_format::LineFormat},
    model::{Model, field::TextField, filter::completion::complete_event_filter, form::Input},
};

const MOST: usize = 8;
/// Texts that open a tag before the name of a variable, longest first.
const OPENINGS: [&str; 7] = ["{{{", "{{#", "{{^", "{{/", "{{&", "{{", "{%"];
/// Placeholder at the end of variables that accept any key.
const ANY_KEY: &str = "KEY";

struct Completion {
    typed: usize,
    words: Vec<String>,
    end: &'static str,
}

/// Returns the field under the cursor, if the cursor is at its end.
fn completable_field(model: &Model) -> Option<&TextField> {
    let form = model.page.form()?;
    let field = match form.input() {
        Input::Clause(clause) => &clause.line,
        Input::Text(field)
            if matches!(
                form.spec().kind,
                FieldKind::Text | FieldKind::Lines | FieldKind::LineFormat(_)
            ) =>
        {
            field
        }
        _ => return None,
    };
    field.split_at_cursor().1.is_empty().then_some(field)
}

fn completion(model: &Model) -> Option<Completion> {
    let text = completable_field(model)?.text();
    if let Input::Clause(_) = model.page.form()?.input() {
        let rows: Vec<_> = model.seen_events().collect();
        let found = complete_event_filter(text, &rows)?;
        return Some(Completion {
            typed: found.typed.len(),
            words: found.words,
            end: "",
        });
    }
    let spec = model.page.form()?.spec();
    match spec.kind {
        FieldKind::LineFormat(format) => line_name(model, format, text),
        _ => name(model, spec.path, text).or_else(|| variable(text, &model.seen_dimensions())),
    }
}

/// Completes the value of a field that contains a single name.
fn name(model: &Model, path: &str, typed: &str) -> Option<Completion> {
    let names = match path {
        "timeZone" => {
            let zones = jiff::tz::db().available();
            zones.map(|zone| zone.as_str().to_owned()).collect()
        }
        "fallbackDestinationName" => model.store.names(Kind::Destination),
        "escalationPolicyName" => model.store.names(Kind::Policy),
        _ => return None,
    };
    complete_name(typed, names)
}

/// Completes the last name in a line of a contact, a schedule or a policy.
fn line_name(model: &Model, format: LineFormat, text: &str) -> Option<Completion> {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let last = line.rsplit([',', '+', ':']).next().unwrap_or_default();
    let last = last.trim_start();
    let names = |kind| model.store.names(kind);
    match format {
        LineFormat::Methods => complete_name(last, names(Kind::Destination)),
        LineFormat::Layers => complete_name(last, names(Kind::Contact)),
        LineFormat::Steps => {
            let named = [("contact ", Kind::Contact), ("schedule ", Kind::Schedule)];
            let mut of_kind = named.iter().filter_map(|(word, kind)| {
                let typed = last.strip_prefix(word)?;
                Some((typed, names(*kind)))
            });
            if let Some((typed, known)) = of_kind.next() {
                return complete_name(typed, known);
            }
            let words = named.map(|(word, _)| word.to_owned()).into_iter();
            complete_name(last, words.chain(names(Kind::Destination)).collect())
        }
    }
}

fn complete_name(typed: &str, names: Vec<String>) -> Option<Completion> {
    let lower = typed.to_lowercase();
    let goes_on =
        |name: &String| name.len() > typed.len() && name.to_lowercase().starts_with(&lower);
    let words: Vec<String> = names.into_iter().filter(goes_on).take(MOST).collect();
    let is_found = !typed.is_empty() && !words.is_empty();
    is_found.then_some(Completion {
        typed: typed.len(),
        words,
        end: "",
    })
}

/// Returns completions for the end of a template: variables, or filters after `|`.
fn variable(text: &str, dimensions: &[String]) -> Option<Completion> {
    let at = text.rfind("{{").max(text.rfind("{%"))?;
    let is_third = text[..at].ends_with('{');
    let tag = &text[at - usize::from(is_third)..];
    let opening = OPENINGS.iter().find(|opening| tag.starts_with(**opening))?;
    let inside = tag[opening.len()..].trim_start();
    if inside.contains('}') {
        return None;
    }
    let is_name = |c: char| !(c.is_whitespace() || "|(),=<>~+\"'[".contains(c));
    let before = inside.trim_end_matches(is_name);
    let typed = &inside[before.len()..];
    let names: Vec<String> = if before.trim_end().ends_with('|') {
        let filters = reference::template_filters().into_iter();
        filters.map(str::to_owned).collect()
    } else {
        let known = reference::template_variables().into_iter();
        let keyed = known.flat_map(|name| match name.strip_suffix(ANY_KEY) {
            Some("event.dimensions.") => dimensions
                .iter()
                .map(|key| format!("event.dimensions.{key}"))
                .collect(),
            Some(open) => vec![open.to_owned()],
            None => vec![name.to_owned()],
        });
        keyed.collect()
    };
    let goes_on = |name: &String| name.len() > typed.len() && name.starts_with(typed);
    let words: Vec<String> = names.into_iter().filter(goes_on).take(MOST).collect();
    // The tag is closed only if it consists of one name, because it may continue otherwise.
    let end = match *opening {
        _ if !before.is_empty() => "",
        "{%" => "",
        "{{{" => "}}}",
        _ => "}}",
    };
    (!words.is_empty()).then_some(Completion {
        typed: typed.len(),
        words,
        end,
    })
}

pub(crate) fn completions(model: &Model) -> Vec<String> {
    completion(model).map_or_else(Vec::new, |it| it.words)
}

pub(super) fn complete(model: &mut Model) -> bool {
    let completed = completion(model).and_then(|it| {
        let text = completable_field(model)?.text();
        let prefix = &text[..text.len() - it.typed];
        let word = it.words.first()?;
        // A key must follow.
        let end = if word.ends_with('.') { "" } else { it.end };
        Some(format!("{prefix}{word}{end}"))
    });
    let Some(completed) = completed else {
        return false;
    };
    let now_ms = model.now_ms;
    let Some(form) = model.page.form_mut() else {
        return false;
    };
    let field = match form.input_mut() {
        Input::Clause(clause) => Some(&mut clause.line),
        Input::Text(field) => Some(field),
        _ => None,
    };
    let Some(field) = field else {
        return false;
    };
    let lines = field.lines;
    *field = TextField::new(completed);
    field.lines = lines;
    form.record_change(now_ms);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_completion_suggests_variables_and_filters() {
        let seen = ["host".to_owned()];
        let cases: [(&str, &[&str], &str); 10] = [
            ("{% if event.is_cri", &["event.is_critical"], ""),
            ("{{ event.name|regex_r", &["regex_replace"], ""),
            ("{{ x ~ event.sum", &["event.summary"], ""),
            ("{{event.sum", &["event.summary"], "}}"),
            ("a {{{event.bo", &["event.body"], "}}}"),
            ("{{#event.is_cri", &["event.is_critical"], "}}"),
            ("{{event.dimensions.", &["event.dimensions.host"], "}}"),
            ("{{event.metadata", &["event.metadata."], "}}"),
            ("{{event.summary}} x", &[], ""),
            ("event.sum", &[], ""),
        ];
        for (text, words, end) in cases {
            let found = variable(text, &seen);
            let found = found.map_or((Vec::new(), ""), |it| (it.words, it.end));
            assert_eq!(
                found,
                (words.iter().map(|it| (*it).to_owned()).collect(), end),
                "{text}"
            );
        }
    }
}
