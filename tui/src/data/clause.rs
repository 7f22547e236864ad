//! The condition of a query, and how it reads in one line.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// One condition: a comparison or a combination of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Clause {
    And { clauses: Vec<Clause> },
    Or { clauses: Vec<Clause> },
    Not { clause: Box<Clause> },
    Equals(Equals),
    In { field: String, values: Vec<Value> },
    GreaterAndEquals { field: String, value: Value },
    LessAndEquals { field: String, value: Value },
    Contains { field: String, value: String },
    StartsWith { field: String, value: String },
    EndsWith { field: String, value: String },
    Matches { field: String, value: String },
    Exists { field: String },
    Greater { field: String, value: Value },
    Less { field: String, value: Value },
}

/// A comparison for equality; the service wants exactly one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Equals {
    pub(crate) field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) string_val: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) number_val: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bool_val: Option<bool>,
}

/// The ways to compare a field, in the order a form offers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equals,
    In,
    AtLeast,
    AtMost,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Exists,
    Above,
    Below,
}

impl Comparison {
    /// All of them.
    pub(crate) const ALL: [Self; 11] = [
        Self::Equals,
        Self::Contains,
        Self::AtLeast,
        Self::AtMost,
        Self::In,
        Self::StartsWith,
        Self::EndsWith,
        Self::Matches,
        Self::Exists,
        Self::Above,
        Self::Below,
    ];

    /// How it is written between a field and a value.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Equals => "=",
            Self::In => "in",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Contains => "contains",
            Self::StartsWith => "starts with",
            Self::EndsWith => "ends with",
            Self::Matches => "matches",
            Self::Exists => "exists",
            Self::Above => ">",
            Self::Below => "<",
        }
    }

    /// The clause that compares `field` with what an operator typed.
    pub(crate) fn clause(self, field: &str, typed: &str) -> Clause {
        let field = field.trim().to_owned();
        let value = typed.trim().to_owned();
        match self {
            Self::Equals => Clause::Equals(equals(field, &value)),
            Self::In => Clause::In {
                field,
                values: value.split(',').map(scalar).collect(),
            },
            Self::AtLeast => Clause::GreaterAndEquals {
                field,
                value: scalar(&value),
            },
            Self::AtMost => Clause::LessAndEquals {
                field,
                value: scalar(&value),
            },
            Self::Contains => Clause::Contains {
                field,
                value: unquoted(&value),
            },
            Self::StartsWith => Clause::StartsWith {
                field,
                value: unquoted(&value),
            },
            Self::EndsWith => Clause::EndsWith {
                field,
                value: unquoted(&value),
            },
            Self::Matches => Clause::Matches {
                field,
                value: unquoted(&value),
            },
            Self::Exists => Clause::Exists { field },
            Self::Above => Clause::Greater {
                field,
                value: scalar(&value),
            },
            Self::Below => Clause::Less {
                field,
                value: scalar(&value),
            },
        }
    }
}

fn equals(field: String, typed: &str) -> Equals {
    let mut equals = Equals {
        field,
        ..Equals::default()
    };
    match scalar(typed) {
        Value::Number(number) => equals.number_val = Some(number),
        Value::Bool(flag) => equals.bool_val = Some(flag),
        other => equals.string_val = Some(other.as_str().unwrap_or_default().to_owned()),
    }
    equals
}

/// What an operator typed as a value: a number, `true`, `false`, or text; quotes force text.
fn scalar(typed: &str) -> Value {
    let typed = typed.trim();
    match serde_json::from_str::<Value>(typed) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::String(_))) => value,
        _ => Value::String(typed.to_owned()),
    }
}

fn unquoted(typed: &str) -> String {
    match serde_json::from_str::<Value>(typed) {
        Ok(Value::String(text)) => text,
        _ => typed.to_owned(),
    }
}

/// How a value is typed so that reading it back gives the same value.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text)
            if scalar(text) == *value && !text.contains(',') && text.trim() == text =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}

impl Clause {
    /// The field, comparison and typed value of a plain comparison; `None` for combinations.
    pub(crate) fn as_comparison(&self) -> Option<(&str, Comparison, String)> {
        let text = |value: &String| typed_text(value);
        Some(match self {
            Self::Equals(equals) => (&equals.field, Comparison::Equals, equals.typed()?),
            Self::In { field, values } => {
                let values: Vec<String> = values.iter().map(typed).collect();
                (field, Comparison::In, values.join(", "))
            }
            Self::GreaterAndEquals { field, value } => (field, Comparison::AtLeast, typed(value)),
            Self::LessAndEquals { field, value } => (field, Comparison::AtMost, typed(value)),
            Self::Contains { field, value } => (field, Comparison::Contains, text(value)),
            Self::StartsWith { field, value } => (field, Comparison::StartsWith, text(value)),
            Self::EndsWith { field, value } => (field, Comparison::EndsWith, text(value)),
            Self::Matches { field, value } => (field, Comparison::Matches, text(value)),
            Self::Exists { field } => (field, Comparison::Exists, String::new()),
            Self::Greater { field, value } => (field, Comparison::Above, typed(value)),
            Self::Less { field, value } => (field, Comparison::Below, typed(value)),
            Self::And { .. } | Self::Or { .. } | Self::Not { .. } => return None,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, nested: bool) -> fmt::Result {
        match self {
            Self::And { clauses } => join(f, clauses, " and ", nested),
            Self::Or { clauses } => join(f, clauses, " or ", nested),
            Self::Not { clause } => {
                f.write_str("not ")?;
                clause.describe(f, true)
            }
            other => match other.as_comparison() {
                Some((field, comparison, value)) => {
                    let quoted = match comparison {
                        Comparison::Contains
                        | Comparison::StartsWith
                        | Comparison::EndsWith
                        | Comparison::Matches => Value::String(unquoted(&value)).to_string(),
                        Comparison::Exists => return write!(f, "{field} exists"),
                        _ => value,
                    };
                    write!(f, "{field} {} {quoted}", comparison.word())
                }
                None => f.write_str("(nothing)"),
            },
        }
    }
}

/// Text as typed into a field that takes text only: quoted when spaces or quotes would be lost.
fn typed_text(value: &str) -> String {
    if value.trim() == value && unquoted(value) == value {
        value.to_owned()
    } else {
        Value::String(value.to_owned()).to_string()
    }
}

impl Equals {
    fn typed(&self) -> Option<String> {
        match (&self.string_val, &self.number_val, self.bool_val) {
            (Some(text), None, None) => {
                let value = Value::String(text.clone());
                let plain = scalar(text) == value && text.trim() == text;
                Some(if plain {
                    text.clone()
                } else {
                    value.to_string()
                })
            }
            (None, Some(number), None) => Some(number.to_string()),
            (None, None, Some(flag)) => Some(flag.to_string()),
            _ => None,
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, clauses: &[Clause], word: &str, nested: bool) -> fmt::Result {
    let brackets = nested && clauses.len() > 1;
    f.write_str(if brackets { "(" } else { "" })?;
    for (index, clause) in clauses.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { word })?;
        clause.describe(f, true)?;
    }
    f.write_str(if brackets { ")" } else { "" })
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_in_one_line() {
        let clause: Clause = serde_json::from_value(serde_json::json!({"and":{"clauses":[
            {"greaterAndEquals":{"field":"severity","value":"SEVERITY_ERROR"}},
            {"or":{"clauses":[
                {"contains":{"field":"summary","value":"disk full"}},
                {"in":{"field":"env","values":["lab", 3]}}]}},
            {"not":{"clause":{"equals":{"field":"dimensions.env","stringVal":"lab"}}}}]}}))
        .unwrap();
        assert_eq!(
            clause.to_string(),
            "severity >= SEVERITY_ERROR and (summary contains \"disk full\" or env in lab, 3) \
             and not dimensions.env = lab"
        );
    }

    #[test]
    fn what_is_typed_for_a_comparison_reads_back_as_the_same_clause() {
        for typed in [
            "lab", "3", "\"3\"", "true", "\"true\"", "a b", "\" x\"", "\"a,b\"", "",
        ] {
            for comparison in Comparison::ALL {
                let clause = comparison.clause("f", typed);
                let (field, again, value) = clause.as_comparison().unwrap();
                assert_eq!(
                    again.clause(field, &value),
                    clause,
                    "{typed} {comparison:?} {value}"
                );
            }
        }
    }
}
