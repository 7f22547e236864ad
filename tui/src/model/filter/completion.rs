//! Completions at the end of an event filter: fields, and values seen in them.

use std::collections::BTreeSet;

use bellwether_language::filter;
use bellwether_proto::cloud::{Severity, Status};

use super::FIELDS;
use crate::data::{EventRow, Label as _};

const MOST: usize = 5;
/// Prefixes that are not part of a field's name.
const BEFORE: [&str; 1] = ["has:"];

pub(crate) struct Completion<'a> {
    pub(crate) typed: &'a str,
    pub(crate) words: Vec<String>,
}

pub(crate) fn complete_event_filter<'a>(
    text: &'a str,
    rows: &[&EventRow],
) -> Option<Completion<'a>> {
    // Text within quotes has no completions.
    if text.matches('"').count() % 2 == 1 {
        return None;
    }
    let word = text.rsplit([' ', '(', ',']).next()?;
    let word = word.strip_prefix('-').unwrap_or(word);
    let (typed, known) = if let Some(at) = word.rfind(['=', '>', '<']) {
        let field = word[..at].trim_end_matches(['!', '>', '<', '=']);
        (&word[at + 1..], value_suggestions(field, rows))
    } else {
        let field = BEFORE.iter().find_map(|it| word.strip_prefix(it));
        (field.unwrap_or(word), field_suggestions(rows))
    };
    let goes_on = |it: &String| it.len() > typed.len() && it.starts_with(typed);
    let mut words: Vec<String> = known.into_iter().filter(goes_on).collect();
    words.truncate(MOST);
    let is_begun = !typed.is_empty() || word.len() > typed.len();
    (is_begun && !words.is_empty()).then_some(Completion { typed, words })
}

fn field_suggestions(rows: &[&EventRow]) -> Vec<String> {
    let dimensions: BTreeSet<&str> = dimension_pairs(rows).map(|(field, _)| field).collect();
    let own = FIELDS.into_iter().chain(["since", "until"]);
    own.chain(dimensions).map(str::to_owned).collect()
}

fn value_suggestions(field: &str, rows: &[&EventRow]) -> Vec<String> {
    let severities = [
        Severity::Critical,
        Severity::Error,
        Severity::Warning,
        Severity::Info,
        Severity::Debug,
    ];
    let words: Vec<&str> = match field {
        "severity" => severities.map(Severity::label).into(),
        "status" => [Status::Open, Status::Suppressed, Status::Closed]
            .map(Status::label)
            .into(),
        "acknowledged" | "acked" => vec!["yes", "no"],
        "assignee" => {
            let all = rows.iter().map(|it| &*it.assignee);
            all.filter(|it| !it.is_empty()).collect()
        }
        "name" => rows.iter().map(|it| &*it.name).collect(),
        dimension => {
            let dimension = dimension.strip_prefix("dimensions.").unwrap_or(dimension);
            let own = dimension_pairs(rows).filter(|(field, _)| *field == dimension);
            own.map(|(_, value)| value).collect()
        }
    };
    let mut seen = BTreeSet::new();
    let new = words.into_iter().filter(|it| seen.insert(*it));
    new.map(filter::print_literal).collect()
}

fn dimension_pairs<'a>(rows: &[&'a EventRow]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = rows.iter().flat_map(|row| row.entity.split(' '));
    all.filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use bellwether_proto::v1;

    use super::*;

    fn sample_rows() -> Vec<EventRow> {
        let event = |name: &str, host: &str| v1::Event {
            name: name.to_owned(),
            dimensions: [("host".to_owned(), host.to_owned())].into(),
            occurrences: vec![v1::Occurrence::default()],
            ..v1::Event::default()
        };
        let events = [event("disk full", "db-1"), event("cpu", "db-2")];
        events.into_iter().flat_map(EventRow::from_event).collect()
    }

    #[test]
    fn completion_suggests_fields_and_seen_values() {
        let rows = sample_rows();
        let rows: Vec<_> = rows.iter().collect();
        let cases: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("sev", &["severity"]),
            ("disk -ho", &["host"]),
            ("(has:ho", &["host"]),
            ("host=", &["db-1", "db-2"]),
            ("host!=db-1", &[]),
            ("severity>=c", &["critical"]),
            ("name=", &["\"disk full\"", "cpu"]),
            ("acked=", &["yes", "no"]),
            ("host=db-1 sin", &["since"]),
            ("\"sev", &[]),
            ("nothing=", &[]),
        ];
        for (typed, words) in cases {
            let found = complete_event_filter(typed, &rows).map_or_else(Vec::new, |it| it.words);
            assert_eq!(found, words, "{typed}");
        }
    }
}
