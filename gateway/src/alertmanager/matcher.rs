//! Label matchers: parsing, matching, and conversion to and from query clauses.

use std::collections::BTreeMap;

use bellwether_language::matcher::MatcherText;
use bellwether_proto::{
    json::violation::quote_for_message,
    v1::{And, Clause, Equals, Exists, In, Matches, Not, Or, clause::Kind, equals},
};
use prost_types::{Value, value::Kind as ValueKind};
use regex::{Regex, RegexBuilder};
use serde_json::json;

use crate::{
    label::{self, NAME, SEVERITY},
    limits,
};

pub(super) const SEVERITIES: [&str; 5] = ["debug", "info", "warning", "error", "critical"];

/// The severity as received: in a dimension, or in the metadata for events of earlier versions.
const SENT: &str = "dimensions.severity";
const SENT_EARLIER: &str = "metadata.severity";

/// Prefix and suffix of a matcher's regular expression in a clause: anchored and case-sensitive.
const ANCHORED: (&str, &str) = ("(?-i)^(?:", ")$");

#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) is_equal: bool,
    /// The anchored regular expression; `None` for a literal match.
    regex: Option<Regex>,
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| {
            (
                it.name.clone(),
                it.value.clone(),
                it.is_equal,
                it.is_regex(),
            )
        };
        parts(self) == parts(other)
    }
}

impl Matcher {
    pub(super) fn new(
        name: &str,
        value: &str,
        is_regex: bool,
        is_equal: bool,
    ) -> Result<Self, String> {
        if name.is_empty() {
            return Err("a matcher requires a label name".to_owned());
        }
        let regex = is_regex.then(|| compile_anchored(value)).transpose()?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
            is_equal,
            regex,
        })
    }

    /// Parses a matcher such as `host=~"db-.*"`. The quotes are optional.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            let found = quote_for_message(text);
            format!(
                "bad matcher format: {found}; expected NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX"
            )
        };
        let read = MatcherText::parse(text).ok_or_else(wrong)?;
        Self::new(&read.name, &read.value, read.is_regex, read.is_equal).map_err(|_unfit| wrong())
    }

    pub(super) fn is_regex(&self) -> bool {
        self.regex.is_some()
    }

    /// Whether a set of labels matches; a missing label is equal to an empty one.
    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_value(labels.get(&self.name).map_or("", String::as_str))
    }

    fn matches_value(&self, found: &str) -> bool {
        let hit = match &self.regex {
            Some(regex) => regex.is_match(found),
            None => found == self.value,
        };
        hit == self.is_equal
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "value": self.value,
            "isRegex": self.is_regex(),
            "isEqual": self.is_equal,
        })
    }

    /// Returns a clause that matches the same events, except that it ignores case when it compares
    /// a whole string. `None` if every event matches.
    pub(super) fn to_clause(&self) -> Result<Option<Clause>, String> {
        if self.name == SEVERITY {
            return self.severity_clause();
        }
        let field = match self.name.as_str() {
            NAME => "name".to_owned(),
            label => label::field_from_label(label),
        };
        let clause = if self.value.is_empty() && !self.is_regex() {
            negate(exists_clause(&field))
        } else if self.regex.as_ref().is_some_and(|it| it.is_match("")) {
            any_of(vec![
                negate(exists_clause(&field)),
                self.field_clause(&field),
            ])
        } else {
            self.field_clause(&field)
        };
        Ok(Some(self.negate_if_unequal(clause)))
    }

    fn field_clause(&self, field: &str) -> Clause {
        let field = field.to_owned();
        if self.is_regex() {
            let (start, end) = ANCHORED;
            return clause_with_kind(Kind::Matches(Matches {
                field,
                value: format!("{start}{}{end}", self.value),
            }));
        }
        clause_with_kind(Kind::Equals(Equals {
            field,
            value: Some(equals::Value::StringVal(self.value.clone())),
        }))
    }

    /// Returns a clause for a matcher of `severity`. It checks the received label, or the severity
    /// of events without that label.
    fn severity_clause(&self) -> Result<Option<Clause>, String> {
        let is_any = self.is_regex() && matches!(self.value.as_str(), ".*" | ".+");
        let is_none = self.value.is_empty() && !self.is_regex();
        if is_any && self.is_equal || is_none && !self.is_equal {
            return Ok(None);
        }
        if is_any || is_none {
            return Err(format!(
                "matcher for `{SEVERITY}`: every alert has a severity"
            ));
        }
        let hit = |word: &&&str| self.matches_value(word) == self.is_equal;
        let words = SEVERITIES.iter().filter(hit);
        let values: Vec<_> = words
            .map(|word| Value {
                kind: Some(ValueKind::StringValue((*word).to_owned())),
            })
            .collect();
        let by_word = (!values.is_empty()).then(|| {
            let field = SEVERITY.to_owned();
            [
                negate(exists_clause(SENT_EARLIER)),
                clause_with_kind(Kind::In(In { field, values })),
            ]
        });
        let by_word = by_word.and_then(|it| all_of(it.into()));
        let earlier = std::iter::once(self.field_clause(SENT_EARLIER)).chain(by_word);
        let earlier = all_of(vec![negate(exists_clause(SENT)), any_of(earlier.collect())]);
        let clauses = std::iter::once(self.field_clause(SENT)).chain(earlier);
        Ok(Some(self.negate_if_unequal(any_of(clauses.collect()))))
    }

    fn negate_if_unequal(&self, clause: Clause) -> Clause {
        if self.is_equal {
            clause
        } else {
            negate(clause)
        }
    }

    /// Converts a clause to a matcher; `None` if there is no equivalent matcher.
    pub(super) fn from_clause(clause: &Clause) -> Option<Self> {
        match clause.kind.as_ref()? {
            Kind::Equals(equals) => {
                let Some(equals::Value::StringVal(value)) = &equals.value else {
                    return None;
                };
                let name = parse_label(&equals.field)?;
                // The field contains one of the five severities, but the label can be any text.
                if equals.field == SEVERITY {
                    return Self::new(&name, &severity_label(value)?, false, true).ok();
                }
                Self::new(&name, value, false, true).ok()
            }
            Kind::In(list) => {
                let name = parse_label(&list.field)?;
                let values = list.values.iter().map(|value| match &value.kind {
                    Some(ValueKind::StringValue(text)) if list.field == SEVERITY => {
                        severity_label(text)
                    }
                    Some(ValueKind::StringValue(text)) => Some(text.clone()),
                    _ => None,
                });
                let values: Vec<_> = values.collect::<Option<_>>()?;
                if let [only] = &values[..] {
                    return Self::new(&name, only, false, true).ok();
                }
                let escaped: Vec<_> = values.iter().map(|it| regex::escape(it)).collect();
                Self::new(&name, &escaped.join("|"), true, true).ok()
            }
            Kind::Exists(exists) => Self::new(&parse_label(&exists.field)?, "", false, false).ok(),
            Kind::Matches(matches) => Self::from_regex(&matches.field, &matches.value),
            Kind::Or(or) => {
                let [absent, matches] = &or.clauses[..] else {
                    return None;
                };
                if let (Some(sent), Kind::And(_)) =
                    (Self::from_clause(absent), matches.kind.as_ref()?)
                    && sent.name == SEVERITY
                    && sent.severity_clause() == Ok(Some(clause.clone()))
                {
                    return Some(sent);
                }
                let (Kind::Not(absent), Kind::Matches(matches)) =
                    (absent.kind.as_ref()?, matches.kind.as_ref()?)
                else {
                    return None;
                };
                let matcher = Self::from_regex(&matches.field, &matches.value)?;
                let absent = Self::from_clause(absent.clause.as_ref()?)?;
                let is_absent = absent.name == matcher.name && absent.value.is_empty();
                let takes_empty = matcher.regex.as_ref()?.is_match("");
                (is_absent && takes_empty).then_some(matcher)
            }
            Kind::Not(inner) => {
                let matcher = Self::from_clause(inner.clause.as_ref()?)?;
                let is_equal = !matcher.is_equal;
                Some(Self {
                    is_equal,
                    ..matcher
                })
            }
            _ => None,
        }
    }

    fn from_regex(field: &str, value: &str) -> Option<Self> {
        let (start, end) = ANCHORED;
        let inner = value.strip_prefix(start)?.strip_suffix(end)?;
        Self::new(&parse_label(field)?, inner, true, true).ok()
    }
}

pub(crate) fn parse_all<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Matcher>, String> {
    let matchers: Vec<_> = texts
        .take(limits::MATCHERS + 1)
        .map(Matcher::parse)
        .collect::<Result<_, _>>()?;
    if matchers.len() > limits::MATCHERS {
        let limit = limits::MATCHERS;
        return Err(format!("too many matchers; the limit is {limit}"));
    }
    Ok(matchers)
}

fn exists_clause(field: &str) -> Clause {
    clause_with_kind(Kind::Exists(Exists {
        field: field.to_owned(),
    }))
}

fn any_of(mut clauses: Vec<Clause>) -> Clause {
    match clauses.len() {
        1 => clauses.remove(0),
        _ => clause_with_kind(Kind::Or(Or { clauses })),
    }
}

pub(super) fn all_of(mut clauses: Vec<Clause>) -> Option<Clause> {
    match clauses.len() {
        0 | 1 => clauses.pop(),
        _ => Some(clause_with_kind(Kind::And(And { clauses }))),
    }
}

pub(crate) fn compile_anchored(pattern: &str) -> Result<Regex, String> {
    let whole = format!("^(?:{pattern})$");
    let built = RegexBuilder::new(&whole)
        .size_limit(limits::MATCHER_REGEX_BYTES)
        .build();
    built.map_err(|_unfit| {
        format!(
            "{} is not a valid regular expression",
            quote_for_message(pattern)
        )
    })
}

fn parse_label(field: &str) -> Option<String> {
    const OTHERS: [&str; 10] = [
        "id",
        "type",
        "summary",
        "body",
        "status",
        "acknowledged",
        "count",
        "timestamp",
        "startTime",
        "lastSeen",
    ];
    match field {
        "name" => Some(NAME.to_owned()),
        SEVERITY => Some(SEVERITY.to_owned()),
        field if OTHERS.contains(&field) || field.starts_with("metadata.") => None,
        field => {
            let key = field.strip_prefix("dimensions.").unwrap_or(field);
            Some(label::to_label(key).to_owned())
        }
    }
}

fn severity_label(text: &str) -> Option<String> {
    let word = text.to_lowercase();
    let word = word.strip_prefix("severity_").unwrap_or(&word);
    SEVERITIES.contains(&word).then(|| word.to_owned())
}

fn clause_with_kind(kind: Kind) -> Clause {
    Clause { kind: Some(kind) }
}

fn negate(clause: Clause) -> Clause {
    let clause = Some(Box::new(clause));
    clause_with_kind(Kind::Not(Box::new(Not { clause })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_parse_as_in_alertmanager() {
        let table = [
            ("a=b", Some(("a", "b", false, true))),
            (" a = b ", Some(("a", "b", false, true))),
            ("a=\"b c\"", Some(("a", "b c", false, true))),
            (
                "a=\"b\\\"c\\\\d\\n\"",
                Some(("a", "b\"c\\d\n", false, true)),
            ),
            ("a!=b", Some(("a", "b", false, false))),
            ("a=~\"b.*\"", Some(("a", "b.*", true, true))),
            ("a!~b|c", Some(("a", "b|c", true, false))),
            ("a=", Some(("a", "", false, true))),
            ("a==b", Some(("a", "=b", false, true))),
            ("host.name=x", Some(("host.name", "x", false, true))),
            ("\"host name\"=x", Some(("host name", "x", false, true))),
            ("=b", None),
            ("a", None),
            ("", None),
            ("a=\"b", None),
            ("a=\"b\"c", None),
            ("a=~\"(\"", None),
        ];
        for (text, expected) in table {
            let found = Matcher::parse(text).ok();
            let found = found
                .as_ref()
                .map(|it| (&*it.name, &*it.value, it.is_regex(), it.is_equal));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn matchers_are_anchored_and_missing_labels_are_empty() {
        let labels = BTreeMap::from([("host".to_owned(), "db-1".to_owned())]);
        let table = [
            ("host=db-1", true),
            ("host=DB-1", false),
            ("host=~db", false),
            ("host=~db.*", true),
            ("host!~db", true),
            ("host!=db-1", false),
            ("zone=", true),
            ("zone!=x", true),
            ("zone!=", false),
            ("zone=~.*", true),
            ("zone=~.+", false),
        ];
        for (text, expected) in table {
            let matcher = Matcher::parse(text).unwrap();
            assert_eq!(matcher.matches(&labels), expected, "{text}");
        }
    }

    #[test]
    fn matcher_round_trips_through_its_clause() {
        for text in [
            "host=db-1",
            "host!=db-1",
            "host=~\"db-.*\"",
            "host!~\"db-.*\"",
            "host=~\".*\"",
            "host!~\".*\"",
            "host=",
            "host!=",
            "alertname=disk",
            "alertname=~\"a|b\"",
            "severity=critical",
            "host.name=x",
            "name=x",
            "name!~\"x.*\"",
            "severity=page",
            "severity!=page",
            "severity!=critical",
            "severity=~\"warn.*|error\"",
        ] {
            let matcher = Matcher::parse(text).unwrap();
            let clause = matcher.to_clause().unwrap().unwrap();
            assert_eq!(Matcher::from_clause(&clause), Some(matcher), "{text}");
        }
        for text in ["severity=~\".+\"", "severity=~\".*\"", "severity!=\"\""] {
            assert_eq!(
                Matcher::parse(text).unwrap().to_clause(),
                Ok(None),
                "{text}"
            );
        }
        for text in ["severity=\"\"", "severity!~\".+\""] {
            assert!(Matcher::parse(text).unwrap().to_clause().is_err(), "{text}");
        }
        // Earlier versions stored the severity as a word, and users write it so in silences.
        let value = |word: &str| Value {
            kind: Some(ValueKind::StringValue(word.to_owned())),
        };
        let list = clause_with_kind(Kind::In(In {
            field: SEVERITY.to_owned(),
            values: vec![value("warning"), value("error")],
        }));
        assert_eq!(Matcher::from_clause(&list).unwrap().value, "warning|error");
    }
}
