//! Converts label matchers to conditions on events that are created from alerts.

use std::collections::BTreeMap;

use bellwether_language::matcher::MatcherText;
use regex::{Regex, RegexBuilder};

use super::{
    super::{
        fields::{Fields, invalid_field_error},
        imported::ImportOutput,
    },
    condition::{
        Condition, equals_condition, exists_condition, matches_condition, one_of_condition,
    },
};
use crate::error::ImportError;

/// A metadata field of every event that was created from an alert.
pub(crate) const ALERT: &str = "metadata.alertname";
const NAME: &str = "alertname";
const SEVERITY: &str = "severity";
/// The field with the original label value, if the value is not the name of a severity.
const SENT_SEVERITY: &str = "metadata.severity";
const SEVERITIES: [&str; 5] = ["debug", "info", "warning", "error", "critical"];
/// Severity of an alert without the label `severity`, unless `senders.alert_severity` is set.
const SEVERITY_DEFAULT: &str = "warning";
/// Labels that distinguish replicas of a Prometheus server. Events do not have these labels, unless
/// `senders.replica_labels` has another value.
const REPLICAS: [&str; 5] = [
    "prometheus_replica",
    "__replica__",
    "replica",
    "rule_replica",
    "thanos_ruler_replica",
];
const REGEX_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    text: MatcherText,
    /// The regular expression for the whole value; `None` if the value is compared literally.
    regex: Option<Regex>,
}

impl Matcher {
    fn new(path: &str, text: MatcherText) -> Result<Self, ImportError> {
        let compiled = text.is_regex.then(|| {
            let whole = format!("^(?:{})$", text.value);
            let built = RegexBuilder::new(&whole)
                .size_limit(REGEX_BYTES_MAX)
                .build();
            built.map_err(|_unfit| {
                invalid_field_error(path, "a regular expression is invalid or too large (1 MiB)")
            })
        });
        let regex = compiled.transpose()?;
        Ok(Self { text, regex })
    }

    /// Whether a value of the label matches. An absent label counts as an empty text.
    fn matches(&self, value: &str) -> bool {
        let hit = match &self.regex {
            Some(regex) => regex.is_match(value),
            None => value == self.text.value,
        };
        hit == self.text.is_equal
    }

    /// Returns the only value that matches; `None` if several can.
    fn only_value(&self) -> Option<(&str, &str)> {
        let is_one = self.text.is_equal && !self.text.is_regex;
        is_one.then_some((&*self.text.name, &*self.text.value))
    }

    /// Returns the alternatives of a regular expression such as `a|b`; `None` if it has another
    /// form.
    fn alternatives(&self) -> Option<Vec<&str>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|');
        let pattern = &self.text.value;
        let values: Vec<_> = pattern.split('|').collect();
        let is_list = pattern.chars().all(is_plain) && !values.contains(&"");
        is_list.then_some(values)
    }

    fn to_condition(&self) -> Condition {
        match self.text.name.as_str() {
            label if REPLICAS.contains(&label) => self.constant_condition(""),
            SEVERITY => self.severity_condition(),
            NAME => self.condition_for_field("name"),
            "name" => self.condition_for_field("dimensions.label_name"),
            label => self.condition_for_field(&format!("dimensions.{label}")),
        }
    }

    fn constant_condition(&self, value: &str) -> Condition {
        if self.matches(value) {
            Condition::Always
        } else {
            Condition::Never
        }
    }

    fn condition_for_field(&self, field: &str) -> Condition {
        let value = &self.text.value;
        let found = if !self.text.is_regex {
            if value.is_empty() {
                exists_condition(field).negated()
            } else {
                equals_condition(field, value)
            }
        } else if let Some(values) = self.alternatives() {
            one_of_condition(field, values)
        } else if value.is_empty() {
            exists_condition(field).negated()
        } else if value == ".*" {
            Condition::Always
        } else if self.regex.as_ref().is_some_and(|it| it.is_match("")) {
            // An empty label is the same as an absent one.
            Condition::any_of([
                exists_condition(field).negated(),
                matches_condition(field, value),
            ])
        } else if value == ".+" {
            exists_condition(field)
        } else {
            matches_condition(field, value)
        };
        self.negate_if_unequal(found)
    }

    /// Returns the condition on the event's severity. A label that is not the name of a severity is
    /// stored as metadata.
    fn severity_condition(&self) -> Condition {
        let hit = |word: &&str| self.matches(word) == self.text.is_equal;
        let words: Vec<_> = SEVERITIES.into_iter().filter(hit).collect();
        let is_word = || exists_condition(SENT_SEVERITY).negated();
        let by_word = if words.len() == SEVERITIES.len() {
            is_word()
        } else if words.is_empty() {
            Condition::Never
        } else {
            Condition::all_of([one_of_condition(SEVERITY, words), is_word()])
        };
        let value = &self.text.value;
        let sent = if !self.text.is_regex {
            if value.is_empty() || SEVERITIES.contains(&value.as_str()) {
                Condition::Never
            } else {
                equals_condition(SENT_SEVERITY, value)
            }
        } else if let Some(values) = self.alternatives() {
            let others = values.into_iter().filter(|it| !SEVERITIES.contains(it));
            one_of_condition(SENT_SEVERITY, others)
        } else if matches!(value.as_str(), ".*" | ".+") {
            return self.negate_if_unequal(Condition::Always);
        } else {
            matches_condition(SENT_SEVERITY, value)
        };
        self.negate_if_unequal(Condition::any_of([by_word, sent]))
    }

    fn negate_if_unequal(&self, condition: Condition) -> Condition {
        if self.text.is_equal {
            condition
        } else {
            condition.negated()
        }
    }

    fn check(&self, path: &str, imported: &mut ImportOutput) {
        if REPLICAS.contains(&self.text.name.as_str()) {
            let label = &self.text.name;
            imported.add_note(
                path,
                &format!("the label `{label}` is excluded from events (`senders.replica_labels`)"),
            );
        }
        if self.text.name == SEVERITY && self.matches("") != self.matches(SEVERITY_DEFAULT) {
            imported.add_note(
                path,
                "an alert without the label `severity` gets the severity warning here \
                 (`senders.alert_severity`)",
            );
        }
    }
}

/// Reads the matchers of a route or inhibition: the list with this name, and the deprecated
/// objects, which contain texts or regular expressions.
pub(crate) fn read_matchers(
    fields: &mut Fields,
    [list, texts, patterns]: [&str; 3],
    imported: &mut ImportOutput,
) -> Result<Vec<Matcher>, ImportError> {
    let mut matchers = Vec::new();
    let path = fields.path_of(list);
    for (at, line) in matcher_lines(fields, list)?.into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        let read = MatcherText::parse_list(&line).ok_or_else(|| {
            invalid_field_error(&path, "expected a matcher such as `team=\"db\"`")
        })?;
        for text in read {
            matchers.push((path.clone(), text));
        }
    }
    for (name, is_regex) in [(texts, false), (patterns, true)] {
        let path = fields.path_of(name);
        for (label, value) in fields.take_pairs(name)? {
            let path = format!("{path}.{label}");
            let text = MatcherText {
                name: label,
                value,
                is_regex,
                is_equal: true,
            };
            matchers.push((path, text));
        }
    }
    let mut read = Vec::with_capacity(matchers.len());
    for (path, text) in matchers {
        let matcher = Matcher::new(&path, text)?;
        matcher.check(&path, imported);
        read.push(matcher);
    }
    Ok(read)
}

/// Returns the matchers of a list; a text counts as a list of one.
fn matcher_lines(fields: &mut Fields, name: &str) -> Result<Vec<String>, ImportError> {
    if fields.is_list(name) {
        fields.take_texts(name)
    } else {
        Ok(fields.take_text(name)?.into_iter().collect())
    }
}

/// Returns the condition that is true if all required matchers match and no excluded list matches
/// as a whole.
pub(crate) fn combined_condition(required: &[Matcher], excluded: &[Vec<Matcher>]) -> Condition {
    let known: BTreeMap<_, _> = required.iter().filter_map(Matcher::only_value).collect();
    // A required value determines whether an excluded matcher of the same label matches.
    let is_decided = |matcher: &&Matcher| {
        let value = known.get(matcher.text.name.as_str());
        value.is_some_and(|value| matcher.matches(value))
    };
    let one = |matchers: &Vec<Matcher>| {
        let contradicts = matchers.iter().any(|matcher| {
            let value = known.get(matcher.text.name.as_str());
            value.is_some_and(|value| !matcher.matches(value))
        });
        if contradicts {
            return Condition::Never;
        }
        let open = matchers.iter().filter(|matcher| !is_decided(matcher));
        Condition::all_of(open.map(Matcher::to_condition))
    };
    let contradicts = required.iter().any(|matcher| {
        let value = known.get(matcher.text.name.as_str());
        value.is_some_and(|value| !matcher.matches(value))
    });
    if contradicts {
        return Condition::Never;
    }
    let excluded = Condition::any_of(excluded.iter().map(one)).negated();
    Condition::all_of(required.iter().map(Matcher::to_condition).chain([excluded]))
}

/// Returns the event field for a label; `None` if events do not have it.
pub(crate) fn field_for_label(label: &str) -> Option<String> {
    match label {
        label if REPLICAS.contains(&label) => None,
        NAME => Some("name".to_owned()),
        SEVERITY => Some(SEVERITY.to_owned()),
        "name" => Some("dimensions.label_name".to_owned()),
        label => Some(format!("dimensions.{label}")),
    }
}

/// Reports values of a label that differ only in case, because conditions ignore case.
pub(crate) fn check_case<'a>(
    matchers: impl Iterator<Item = &'a Matcher>,
    imported: &mut ImportOutput,
) {
    let mut seen: BTreeMap<(String, String), &str> = BTreeMap::new();
    let mut reported = Vec::new();
    for matcher in matchers {
        if matcher.text.is_regex {
            continue;
        }
        let (name, value) = (&matcher.text.name, &matcher.text.value);
        let first = seen
            .entry((name.clone(), value.to_lowercase()))
            .or_insert(value);
        if *first != value && !reported.contains(name) {
            reported.push(name.clone());
            let what = "matching ignores letter case here";
            imported.add_note(&format!("route: label `{name}`"), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_matchers(texts: &[&str]) -> Vec<Matcher> {
        let parse = |text: &&str| {
            let text = MatcherText::parse(text).unwrap();
            Matcher::new("x", text).unwrap()
        };
        texts.iter().map(parse).collect()
    }

    #[test]
    fn matcher_becomes_an_event_condition() {
        let table = [
            (r#"team="db""#, r"dimensions.team=db"),
            (r#"team!="db""#, r"dimensions.team!=db"),
            (r#"team=~"db|web""#, r"dimensions.team in (db, web)"),
            (r#"team="""#, r"-has:dimensions.team"),
            (r#"team!="""#, r"has:dimensions.team"),
            (r#"team=~".+""#, r"has:dimensions.team"),
            (r#"team=~"d.*""#, r#"dimensions.team~"(?-i)^(?:d.*)$""#),
            (r#"team!~"d.*""#, r#"dimensions.team!~"(?-i)^(?:d.*)$""#),
            (
                r#"team=~"(db)?""#,
                r#"-has:dimensions.team or dimensions.team~"(?-i)^(?:(db)?)$""#,
            ),
            (r#"alertname="Disk""#, "name=Disk"),
            (r#"name="x""#, "dimensions.label_name=x"),
            (
                r#"severity="critical""#,
                "severity=critical -has:metadata.severity",
            ),
            (r#"severity="page""#, "metadata.severity=page"),
            (
                r#"severity=~"page|error""#,
                "severity=error -has:metadata.severity or metadata.severity=page",
            ),
        ];
        for (text, expected) in table {
            let found = combined_condition(&parse_matchers(&[text]), &[]).to_text();
            assert_eq!(found, expected, "{text}");
        }
        for text in ["team=~\".*\"", "replica!=\"a\"", "severity!=\"\""] {
            assert_eq!(
                combined_condition(&parse_matchers(&[text]), &[]),
                Condition::Always,
                "{text}"
            );
        }
        for text in ["team!~\".*\"", "replica=\"a\"", "severity=\"\""] {
            assert_eq!(
                combined_condition(&parse_matchers(&[text]), &[]),
                Condition::Never,
                "{text}"
            );
        }
    }

    #[test]
    fn required_matchers_simplify_exclusions() {
        let required = parse_matchers(&["team=db"]);
        let excluded = [
            parse_matchers(&["team=web"]),
            parse_matchers(&["team=db", "env=lab"]),
        ];
        let found = combined_condition(&required, &excluded).to_text();
        assert_eq!(found, "dimensions.team=db dimensions.env!=lab");
        let excluded = [parse_matchers(&["team=~\"d.*\""])];
        assert_eq!(combined_condition(&required, &excluded), Condition::Never);
        assert_eq!(
            combined_condition(&parse_matchers(&["team=db", "team=web"]), &[]),
            Condition::Never
        );
    }
}
