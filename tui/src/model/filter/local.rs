//! Filters of lists that the console holds completely. They use the common filter language: words
//! search the visible text, and comparisons check columns and fields.

use std::collections::HashMap;

use bellwether_language::filter::{self, Clause, FilterError, Literal};
use regex::{Regex, RegexBuilder};

use super::Clock;

pub(crate) trait Fields {
    /// Returns the values of a field; empty if the row does not have it.
    fn values(&self, field: &str) -> Vec<String>;
    fn visible_values(&self) -> Vec<String>;
}

#[derive(Clone, Debug)]
pub(crate) enum LocalFilter {
    All,
    /// Matches rows that contain this text, in lower case.
    Text(String),
    /// Matches rows for which the condition is true. Contains the compiled regular expressions of
    /// the condition.
    Clause(Clause, HashMap<String, Regex>),
}

/// Characters that occur only in comparisons and in combinations of conditions.
const OPERATORS: [char; 9] = ['=', '<', '>', '~', '!', '(', ')', '"', '|'];

impl LocalFilter {
    /// Parses a filter of a list with these fields.
    pub(crate) fn read(text: &str, known: &[String], clock: &Clock) -> Result<Self, FilterError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::All);
        }
        let parsed = match filter::parse(text, Some(clock.time_reference())) {
            Ok(parsed) => parsed,
            Err(error) if text.contains(OPERATORS) => return Err(error),
            // The text is not a condition but, for example, an address or a channel, and is
            // searched for.
            Err(_) => return Ok(Self::Text(text.to_lowercase())),
        };
        if let Some(error) = find_unknown_field(&parsed.clause, known) {
            let at = parsed
                .fields()
                .into_iter()
                .find(|(field, _)| *field == error.0);
            let at = at.map_or(0, |(_, at)| at);
            return Err(FilterError {
                at,
                message: error.1,
            });
        }
        let mut expressions = HashMap::new();
        compile(&parsed.clause, &mut expressions);
        Ok(Self::Clause(parsed.clause, expressions))
    }

    /// Parses a filter while it is typed; an incomplete condition is searched as text.
    pub(crate) fn parse_partial(text: &str, known: &[String], clock: &Clock) -> Self {
        let text = text.trim();
        Self::read(text, known, clock).unwrap_or_else(|_| Self::Text(text.to_lowercase()))
    }

    pub(crate) fn matches(&self, row: &dyn Fields) -> bool {
        match self {
            Self::All => true,
            Self::Text(text) => row
                .visible_values()
                .iter()
                .any(|shown| shown.contains(text)),
            Self::Clause(clause, expressions) => clause_matches(clause, expressions, row),
        }
    }
}

fn find_unknown_field(clause: &Clause, known: &[String]) -> Option<(String, String)> {
    if filter::is_search(clause) {
        return None;
    }
    match clause {
        Clause::And(all) | Clause::Or(all) => {
            all.iter().find_map(|it| find_unknown_field(it, known))
        }
        Clause::Not(inner) => find_unknown_field(inner, known),
        other => {
            let field = other.field()?;
            let lower = field.to_lowercase();
            if known.contains(&lower) {
                return None;
            }
            let names = known.iter().map(String::as_str);
            let near = filter::nearest_field(&lower, names.clone());
            let message = if let Some((_, near)) = near {
                format!("no field `{field}` here: `{near}`?")
            } else {
                let all: Vec<&str> = names.take(FIELDS_NAMED).collect();
                format!(
                    "no field `{field}` here; expected one of {}",
                    all.join(", ")
                )
            };
            Some((field.to_owned(), message))
        }
    }
}

const FIELDS_NAMED: usize = 12;

/// Compiles the regular expressions of a condition, which the parser has validated.
fn compile(clause: &Clause, into: &mut HashMap<String, Regex>) {
    match clause {
        Clause::And(all) | Clause::Or(all) => all.iter().for_each(|it| compile(it, into)),
        Clause::Not(inner) => compile(inner, into),
        Clause::Matches(_, text) => {
            let built = RegexBuilder::new(text).case_insensitive(true).build();
            into.extend(built.ok().map(|built| (text.clone(), built)));
        }
        _ => {}
    }
}

fn clause_matches(clause: &Clause, expressions: &HashMap<String, Regex>, row: &dyn Fields) -> bool {
    if filter::is_search(clause) {
        return search_text(clause).is_some_and(|text| {
            let text = text.to_lowercase();
            row.visible_values()
                .iter()
                .any(|shown| shown.contains(&text))
        });
    }
    let any = |field: &str, test: &dyn Fn(&str) -> bool| {
        let values = row.values(&field.to_lowercase());
        values.iter().any(|value| test(&value.to_lowercase()))
    };
    let text = |text: &str| text.to_lowercase();
    match clause {
        Clause::And(all) => all.iter().all(|it| clause_matches(it, expressions, row)),
        Clause::Or(all) => all.iter().any(|it| clause_matches(it, expressions, row)),
        Clause::Not(inner) => !clause_matches(inner, expressions, row),
        Clause::Equals(field, literal) => any(field, &|value| equals_literal(value, literal)),
        Clause::In(field, literals) => any(field, &|value| {
            literals
                .iter()
                .any(|literal| equals_literal(value, literal))
        }),
        Clause::Contains(field, part) => any(field, &|value| value.contains(&text(part))),
        Clause::StartsWith(field, part) => any(field, &|value| value.starts_with(&text(part))),
        Clause::EndsWith(field, part) => any(field, &|value| value.ends_with(&text(part))),
        Clause::Matches(field, text) => any(field, &|value| {
            expressions.get(text).is_some_and(|it| it.is_match(value))
        }),
        Clause::Exists(field) => any(field, &|value| !value.is_empty()),
        Clause::Greater(field, than) => any(field, &|value| {
            compare_with_literal(value, than) == Some(true)
        }),
        Clause::LessAndEquals(field, than) => any(field, &|value| {
            compare_with_literal(value, than) == Some(false) || equals_literal(value, than)
        }),
        Clause::Less(field, than) => any(field, &|value| {
            compare_with_literal(value, than) == Some(false) && !equals_literal(value, than)
        }),
        Clause::GreaterAndEquals(field, than) => any(field, &|value| {
            compare_with_literal(value, than) == Some(true) || equals_literal(value, than)
        }),
    }
}

fn search_text(clause: &Clause) -> Option<&str> {
    match clause {
        Clause::Contains(_, text)
        | Clause::StartsWith(_, text)
        | Clause::EndsWith(_, text)
        | Clause::Equals(_, Literal::Text(text)) => Some(text),
        Clause::Or(all) | Clause::And(all) => search_text(all.first()?),
        _ => None,
    }
}

fn equals_literal(value: &str, literal: &Literal) -> bool {
    match literal {
        Literal::Text(text) => value == text.to_lowercase(),
        Literal::Number(wanted) => parse_number(value) == Some(*wanted),
        Literal::Bool(true) => matches!(value, "yes" | "true" | "on"),
        Literal::Bool(false) => matches!(value, "no" | "false" | "off"),
    }
}

/// Compares a value with a literal; `None` if they are not comparable.
fn compare_with_literal(value: &str, literal: &Literal) -> Option<bool> {
    let wanted = match literal {
        Literal::Number(wanted) => *wanted,
        Literal::Text(text) => parse_number(text)?,
        Literal::Bool(_) => return None,
    };
    Some(parse_number(value)? > wanted)
}

fn parse_number(text: &str) -> Option<f64> {
    let digits = text.replace(',', "");
    digits.trim_end_matches('+').parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    struct Row(&'static [(&'static str, &'static str)]);

    impl Fields for Row {
        fn values(&self, field: &str) -> Vec<String> {
            let own = self.0.iter().filter(|(name, _)| *name == field);
            own.map(|(_, value)| (*value).to_owned()).collect()
        }

        fn visible_values(&self) -> Vec<String> {
            self.0
                .iter()
                .map(|(_, value)| value.to_lowercase())
                .collect()
        }
    }

    const HOOK: Row = Row(&[
        ("name", "on-call"),
        ("health", "failing"),
        ("target", "http://10.0.0.9/Hook"),
        ("enabled", "no"),
        ("waiting", "1,689"),
        ("tags", "prod"),
        ("tags", "db"),
    ]);

    fn read(text: &str) -> Result<LocalFilter, FilterError> {
        let known: Vec<String> = HOOK.0.iter().map(|(name, _)| (*name).to_owned()).collect();
        LocalFilter::read(text, &known, &Clock::new(0, TimeZone::UTC))
    }

    #[test]
    fn comparisons_match_fields_and_words_match_shown_text() {
        for (text, keeps) in [
            ("health=failing", true),
            ("health=FAILING", true),
            ("health!=failing", false),
            ("name=on-*", true),
            ("name~^o.*l$", true),
            ("name~^call", false),
            ("enabled=no", true),
            ("enabled=yes", false),
            ("tags=db", true),
            ("tags=lab", false),
            ("waiting>1000", true),
            ("waiting<1000", false),
            ("has:tags", true),
            ("failing", true),
            ("hook failing", true),
            ("hook healthy", false),
            ("http://10.0.0.9/", true),
            ("-call", false),
            ("(health=slow or tags=prod) -healthy", true),
        ] {
            let found = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.matches(&HOOK), keeps, "{text}: {found:?}");
        }
    }

    #[test]
    fn unknown_field_is_an_error_with_a_suggestion() {
        let error = read("helth=failing").unwrap_err();
        assert_eq!(error.message, "no field `helth` here: `health`?");
        let error = read("failing zzz=1").unwrap_err();
        assert!(
            error
                .message
                .starts_with("no field `zzz` here; expected one of name")
        );
        assert_eq!(error.at, 8);
        assert!(read("health=").is_err());
    }
}
