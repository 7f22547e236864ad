//! Converts domain types to the JSON shown in documents.

use jiff::Timestamp;
use serde_json::{Map, Number, Value as Json, json};

use crate::domain::{Clause, Literal, Trigger, Value, value::Fields};

/// The largest number up to which all integers are exact as doubles.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

pub fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => self::number(*number),
        Value::Text(text) => text.as_str().into(),
        Value::List(values) => values.iter().map(self::value).collect(),
        Value::Object(fields) => object(fields),
    }
}

/// Formats a single value: a string unchanged, any other value as JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => self::value(other).to_string(),
    }
}

pub fn object(fields: &Fields) -> Json {
    let pairs = fields.iter();
    Json::Object(
        pairs
            .map(|(key, field)| (key.clone(), value(field)))
            .collect(),
    )
}

/// Formats a time as RFC 3339; empty if it is out of range.
pub fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Converts a trigger to the form of the REST interface, without the fields computed on reading:
/// `ruleNames`, `recentNotificationCount`, `etag`.
pub fn trigger(trigger: &Trigger) -> Json {
    let mut shown = Map::new();
    shown.insert("name".into(), trigger.name.as_str().into());
    if !trigger.description.is_empty() {
        shown.insert("description".into(), trigger.description.as_str().into());
    }
    if !trigger.tags.is_empty() {
        shown.insert("tags".into(), trigger.tags.clone().into());
    }
    let query = json!({"clause": clause(&trigger.query.clause)});
    shown.insert("type".into(), json!({"event": {"query": query}}));
    shown.insert("createTime".into(), time(trigger.create_ms).into());
    shown.insert("updateTime".into(), time(trigger.update_ms).into());
    Json::Object(shown)
}

fn clause(of: &Clause) -> Json {
    let part = |field: &str, text: &str| json!({"field": field, "value": text});
    match of {
        Clause::And(clauses) => json!({"and": {"clauses": clauses_json(clauses)}}),
        Clause::Or(clauses) => json!({"or": {"clauses": clauses_json(clauses)}}),
        Clause::Not(inner) => json!({"not": {"clause": clause(inner)}}),
        Clause::Equals(field, literal) => {
            let key = match literal {
                Literal::Text(_) => "stringVal",
                Literal::Number(_) => "numberVal",
                Literal::Bool(_) => "boolVal",
            };
            json!({"equals": {"field": field, key: self::literal(literal)}})
        }
        Clause::In(field, literals) => {
            let values: Vec<_> = literals.iter().map(literal).collect();
            json!({"in": {"field": field, "values": values}})
        }
        Clause::GreaterAndEquals(field, value) => {
            json!({"greaterAndEquals": {"field": field, "value": literal(value)}})
        }
        Clause::LessAndEquals(field, value) => {
            json!({"lessAndEquals": {"field": field, "value": literal(value)}})
        }
        Clause::Contains(field, text) => json!({"contains": part(field, text)}),
        Clause::StartsWith(field, text) => json!({"startsWith": part(field, text)}),
        Clause::EndsWith(field, text) => json!({"endsWith": part(field, text)}),
        Clause::Matches(field, pattern) => json!({"matches": part(field, pattern)}),
        Clause::Exists(field) => json!({"exists": {"field": field}}),
        Clause::Greater(field, value) => {
            json!({"greater": {"field": field, "value": literal(value)}})
        }
        Clause::Less(field, value) => json!({"less": {"field": field, "value": literal(value)}}),
    }
}

fn clauses_json(clauses: &[Clause]) -> Vec<Json> {
    clauses.iter().map(clause).collect()
}

fn literal(literal: &Literal) -> Json {
    match literal {
        Literal::Text(text) => text.as_str().into(),
        Literal::Number(value) => number(*value),
        Literal::Bool(flag) => (*flag).into(),
    }
}

fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and within 2^53"
        )]
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}
