//! The events that active silences cover, as far as the fields of a list tell.

use bellwether_proto::filter::{self, Clause, Literal};

use crate::data::{EventRow, Object};

/// An active silence of all rules.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    clause: Clause,
    end_ms: i64,
}

impl Coverage {
    /// Returns the coverage of a silence; `None` if it is not active, or covers only some rules.
    pub(crate) fn of(silence: &Object) -> Option<Self> {
        let is_active = silence.text("state") == "ACTIVE";
        let covers_all_rules = silence.texts("ruleNames").len() == 0;
        let parsed = filter::parse(silence.text("filter"), None).ok()?;
        (is_active && covers_all_rules).then(|| Self {
            clause: parsed.clause,
            end_ms: silence.timestamp_ms("endsTime").unwrap_or(i64::MAX),
        })
    }

    /// Whether the silence certainly covers an event.
    pub(crate) fn covers(&self, row: &EventRow, now_ms: i64) -> bool {
        now_ms < self.end_ms && matches(&self.clause, row) == Some(true)
    }
}

/// Evaluates a condition; `None` if the list does not contain its fields.
fn matches(clause: &Clause, row: &EventRow) -> Option<bool> {
    let is = |values: &[String], literal: &Literal| match literal {
        Literal::Text(text) => values.contains(text),
        _ => false,
    };
    match clause {
        Clause::And(all) => joined(all, row, false),
        Clause::Or(all) => joined(all, row, true),
        Clause::Not(inner) => matches(inner, row).map(|it| !it),
        Clause::Equals(field, literal @ Literal::Text(_)) => {
            Some(is(&values(field, row)?, literal))
        }
        Clause::In(field, literals) => {
            let values = values(field, row)?;
            Some(literals.iter().any(|literal| is(&values, literal)))
        }
        Clause::Exists(field) => Some(!values(field, row)?.is_empty()),
        _ => None,
    }
}

/// Evaluates a conjunction or disjunction, which one clause with the result `decides` settles.
fn joined(all: &[Clause], row: &EventRow, decides: bool) -> Option<bool> {
    let mut is_known = true;
    for clause in all {
        match matches(clause, row) {
            Some(result) if result == decides => return Some(decides),
            Some(_) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(!decides)
}

/// Returns the value of a field, or nothing if the event does not have it; `None` if the list does
/// not contain the field.
fn values(field: &str, row: &EventRow) -> Option<Vec<String>> {
    let value = match field.strip_prefix("dimensions.") {
        Some(key) => row.dimension(key),
        None if field == "name" => Some(row.name.to_string()),
        None if field == "id" => row.id.split(':').next().map(str::to_owned),
        None if super::filter::FIELDS.contains(&field) => return None,
        // Or else a metadata field, which the list does not contain.
        None => return row.dimension(field).map(|value| vec![value]),
    };
    Some(value.into_iter().collect())
}

/// Returns the first comparison of a condition with a text, which every covered event meets.
pub(crate) fn first_comparison(text: &str) -> Option<(String, String)> {
    fn first(clause: &Clause) -> Option<(String, String)> {
        match clause {
            Clause::Equals(field, Literal::Text(text)) => Some((field.clone(), text.clone())),
            Clause::And(all) => all.iter().find_map(first),
            _ => None,
        }
    }
    first(&filter::parse(text, None).ok()?.clause)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::data::Kind;

    #[test]
    fn silence_covers_rows_by_the_fields_they_have() {
        let row = EventRow {
            id: "e1:2".into(),
            name: "disk".into(),
            entity: "host=db-1 rack=a b".into(),
            ..EventRow::default()
        };
        for (filter, expected) in [
            ("host=db-1", true),
            ("host=db-10", false),
            ("dimensions.host=db-1", true),
            ("rack=\"a b\"", true),
            ("name=disk host=db-1", true),
            ("name=disk host=db-2", false),
            ("host=db-2 or name=disk", true),
            ("host in (db-1, db-2)", true),
            ("id in (e1, e2)", true),
            ("-host=db-2", true),
            ("has:zone", false),
            ("-has:zone", false),
            ("-has:dimensions.zone", true),
            // The list does not contain the text of an event, so the result is not known.
            ("body~full", false),
            ("-body~full", false),
            ("name=disk body~full", false),
            ("name=disk or body~full", true),
        ] {
            let silence = Object {
                kind: Kind::Silence,
                json: json!({"state": "ACTIVE", "filter": filter, "endsTime": "1970-01-01T00:00:05Z"}),
            };
            let coverage = Coverage::of(&silence).unwrap();
            assert_eq!(coverage.covers(&row, 4_999), expected, "{filter}");
            assert!(!coverage.covers(&row, 5_000), "{filter}");
        }
    }

    #[test]
    fn only_active_silences_of_all_rules_cover() {
        for json in [
            json!({"state": "EXPIRED", "filter": "host=db-1"}),
            json!({"state": "ACTIVE", "filter": "host=db-1", "ruleNames": ["night"]}),
        ] {
            let kind = Kind::Silence;
            assert!(Coverage::of(&Object { kind, json }).is_none());
        }
    }
}
