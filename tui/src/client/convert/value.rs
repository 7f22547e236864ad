//! Conditions and JSON values from the wire.

use bellwether_proto::v1;
use prost_types::value::Kind as WireKind;
use serde_json::{Number, Value};

use crate::data::{Clause, Equals};

pub(super) fn clause(from: v1::Clause) -> Option<Clause> {
    use v1::clause::Kind;
    let all = |clauses: Vec<v1::Clause>| clauses.into_iter().filter_map(clause).collect();
    Some(match from.kind? {
        Kind::And(and) => Clause::And {
            clauses: all(and.clauses),
        },
        Kind::Or(or) => Clause::Or {
            clauses: all(or.clauses),
        },
        Kind::Not(not) => Clause::Not {
            clause: Box::new(clause(*not.clause?)?),
        },
        Kind::Equals(equals) => {
            use v1::equals::Value as Wanted;
            let mut read = Equals {
                field: equals.field,
                ..Equals::default()
            };
            match equals.value {
                Some(Wanted::StringVal(text)) => read.string_val = Some(text),
                Some(Wanted::NumberVal(double)) => read.number_val = number(double),
                Some(Wanted::BoolVal(flag)) => read.bool_val = Some(flag),
                None => {}
            }
            Clause::Equals(read)
        }
        Kind::In(set) => Clause::In {
            field: set.field,
            values: set.values.into_iter().map(value).collect(),
        },
        Kind::GreaterAndEquals(bound) => Clause::GreaterAndEquals {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
        Kind::LessAndEquals(bound) => Clause::LessAndEquals {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
        Kind::Contains(text) => Clause::Contains {
            field: text.field,
            value: text.value,
        },
        Kind::StartsWith(text) => Clause::StartsWith {
            field: text.field,
            value: text.value,
        },
        Kind::EndsWith(text) => Clause::EndsWith {
            field: text.field,
            value: text.value,
        },
        Kind::Matches(text) => Clause::Matches {
            field: text.field,
            value: text.value,
        },
        Kind::Exists(there) => Clause::Exists { field: there.field },
        Kind::Greater(bound) => Clause::Greater {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
        Kind::Less(bound) => Clause::Less {
            field: bound.field,
            value: bound.value.map_or(Value::Null, value),
        },
    })
}

/// A number as people write it: without a fraction when it has none.
pub(super) fn number(double: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if double.fract() == 0.0 && double.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(Number::from(double as i64));
    }
    Number::from_f64(double)
}

pub(super) fn value(from: prost_types::Value) -> Value {
    match from.kind {
        None | Some(WireKind::NullValue(_)) => Value::Null,
        Some(WireKind::BoolValue(flag)) => Value::Bool(flag),
        Some(WireKind::NumberValue(double)) => number(double).map_or(Value::Null, Value::Number),
        Some(WireKind::StringValue(text)) => Value::String(text),
        Some(WireKind::ListValue(list)) => list.values.into_iter().map(value).collect(),
        Some(WireKind::StructValue(object)) => structure(object),
    }
}

pub(super) fn structure(from: prost_types::Struct) -> Value {
    Value::Object(
        from.fields
            .into_iter()
            .map(|(key, item)| (key, value(item)))
            .collect(),
    )
}
