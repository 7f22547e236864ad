//! Conversion of times and values of the API.

use bellwether_proto::v1;
use prost_types::{Duration, Timestamp, value::Kind};
use serde_json::{Number, Value};

pub(crate) fn to_millis(time: Option<&Timestamp>) -> Option<i64> {
    let time = time?;
    let millis = time.seconds.saturating_mul(1_000);
    Some(millis.saturating_add(i64::from(time.nanos) / 1_000_000))
}

pub(crate) fn span_ms(span: &Duration) -> i64 {
    let millis = span.seconds.saturating_mul(1_000);
    millis.saturating_add(i64::from(span.nanos) / 1_000_000)
}

pub(crate) fn value_to_json(from: &prost_types::Value) -> Value {
    match &from.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(*flag),
        Some(Kind::NumberValue(double)) => {
            number_to_json(*double).map_or(Value::Null, Value::Number)
        }
        Some(Kind::StringValue(text)) => Value::String(text.clone()),
        Some(Kind::ListValue(list)) => list.values.iter().map(value_to_json).collect(),
        Some(Kind::StructValue(fields)) => struct_to_json(fields),
    }
}

pub(crate) fn struct_to_json(from: &prost_types::Struct) -> Value {
    let fields = from.fields.iter();
    Value::Object(
        fields
            .map(|(key, item)| (key.clone(), value_to_json(item)))
            .collect(),
    )
}

/// Converts a number, without a fraction if it is an integer.
pub(crate) fn number_to_json(double: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if double.fract() == 0.0 && double.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(Number::from(double as i64));
    }
    Number::from_f64(double)
}

pub(crate) fn occurrence(event: &v1::Event) -> Option<&v1::Occurrence> {
    event.occurrences.first()
}
