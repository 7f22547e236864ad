//! A condition over events as people type and read it, in one line.

use bellwether_proto::{
    filter,
    v1::{self, Clause, clause::Kind},
};
use serde_json::Value;

use super::{moment::value as json, number};

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
        let kind = match self {
            Self::Equals => Kind::Equals(equals(field, &value)),
            Self::In => Kind::In(v1::In {
                field,
                values: value.split(',').map(wire).collect(),
            }),
            Self::AtLeast => Kind::GreaterAndEquals(v1::GreaterAndEquals {
                field,
                value: Some(wire(&value)),
            }),
            Self::AtMost => Kind::LessAndEquals(v1::LessAndEquals {
                field,
                value: Some(wire(&value)),
            }),
            Self::Contains => Kind::Contains(v1::Contains {
                field,
                value: unquoted(&value),
            }),
            Self::StartsWith => Kind::StartsWith(v1::StartsWith {
                field,
                value: unquoted(&value),
            }),
            Self::EndsWith => Kind::EndsWith(v1::EndsWith {
                field,
                value: unquoted(&value),
            }),
            Self::Matches => Kind::Matches(v1::Matches {
                field,
                value: unquoted(&value),
            }),
            Self::Exists => Kind::Exists(v1::Exists { field }),
            Self::Above => Kind::Greater(v1::Greater {
                field,
                value: Some(wire(&value)),
            }),
            Self::Below => Kind::Less(v1::Less {
                field,
                value: Some(wire(&value)),
            }),
        };
        Clause { kind: Some(kind) }
    }

    /// The field, comparison and typed value of a plain comparison; `None` for combinations.
    pub(crate) fn of(clause: &Clause) -> Option<(&str, Self, String)> {
        let typed =
            |value: &Option<prost_types::Value>| typed(&value.as_ref().map_or(Value::Null, json));
        Some(match clause.kind.as_ref()? {
            Kind::Equals(equals) => (&equals.field, Self::Equals, typed_equals(equals)?),
            Kind::In(set) => {
                let values = set.values.iter().map(|value| self::typed(&json(value)));
                let values: Vec<String> = values.collect();
                (&set.field, Self::In, values.join(", "))
            }
            Kind::GreaterAndEquals(it) => (&it.field, Self::AtLeast, typed(&it.value)),
            Kind::LessAndEquals(it) => (&it.field, Self::AtMost, typed(&it.value)),
            Kind::Contains(it) => (&it.field, Self::Contains, typed_text(&it.value)),
            Kind::StartsWith(it) => (&it.field, Self::StartsWith, typed_text(&it.value)),
            Kind::EndsWith(it) => (&it.field, Self::EndsWith, typed_text(&it.value)),
            Kind::Matches(it) => (&it.field, Self::Matches, typed_text(&it.value)),
            Kind::Exists(it) => (&it.field, Self::Exists, String::new()),
            Kind::Greater(it) => (&it.field, Self::Above, typed(&it.value)),
            Kind::Less(it) => (&it.field, Self::Below, typed(&it.value)),
            Kind::And(_) | Kind::Or(_) | Kind::Not(_) => return None,
        })
    }
}

fn equals(field: String, typed: &str) -> v1::Equals {
    use v1::equals::Value as Wanted;
    let wanted = match scalar(typed) {
        Value::Number(number) => Wanted::NumberVal(number.as_f64().unwrap_or_default()),
        Value::Bool(flag) => Wanted::BoolVal(flag),
        other => Wanted::StringVal(other.as_str().unwrap_or_default().to_owned()),
    };
    let value = Some(wanted);
    v1::Equals { field, value }
}

fn wire(typed: &str) -> prost_types::Value {
    super::scalar(scalar(typed))
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

/// A condition as the filter that means it.
pub(crate) fn describe(clause: &Clause) -> String {
    let read = filter::Clause::of_wire(clause);
    read.map_or_else(|| "(nothing)".to_owned(), |read| filter::print(&read))
}

/// Text as typed into a field that takes text only: quoted when spaces or quotes would be lost.
fn typed_text(value: &str) -> String {
    if value.trim() == value && unquoted(value) == value {
        value.to_owned()
    } else {
        Value::String(value.to_owned()).to_string()
    }
}

fn typed_equals(equals: &v1::Equals) -> Option<String> {
    use v1::equals::Value as Wanted;
    Some(match equals.value.as_ref()? {
        Wanted::StringVal(text) => {
            let value = Value::String(text.clone());
            let plain = scalar(text) == value && text.trim() == text;
            if plain {
                text.clone()
            } else {
                value.to_string()
            }
        }
        Wanted::NumberVal(double) => number(*double)?.to_string(),
        Wanted::BoolVal(flag) => flag.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_in_one_line() {
        let clause = serde_json::json!({"and":{"clauses":[
            {"greaterAndEquals":{"field":"severity","value":"SEVERITY_ERROR"}},
            {"or":{"clauses":[
                {"contains":{"field":"summary","value":"disk full"}},
                {"in":{"field":"env","values":["lab", 3]}}]}},
            {"not":{"clause":{"equals":{"field":"dimensions.env","stringVal":"lab"}}}}]}});
        let clause = bellwether_proto::json::from_json::<Clause>(clause.to_string().as_bytes());
        assert_eq!(
            describe(&clause.unwrap()),
            "severity>=SEVERITY_ERROR (summary=*\"disk full\"* or env in (lab, 3)) \
             dimensions.env!=lab"
        );
    }

    #[test]
    fn what_is_typed_for_a_comparison_reads_back_as_the_same_clause() {
        for typed in [
            "lab", "3", "\"3\"", "true", "\"true\"", "a b", "\" x\"", "\"a,b\"", "",
        ] {
            for comparison in Comparison::ALL {
                let clause = comparison.clause("f", typed);
                let (field, again, value) = Comparison::of(&clause).unwrap();
                assert_eq!(
                    again.clause(field, &value),
                    clause,
                    "{typed} {comparison:?} {value}"
                );
            }
        }
    }
}
