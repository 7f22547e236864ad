//! Converts OpenTelemetry values to JSON and to event metadata.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind as WireKind};
use serde_json::{Map, Value};

use super::wire::{AnyValue, KeyValue, any_value::Kind};

/// Maximum nesting of lists and objects; deeper values become text.
const DEPTH: usize = 24;
/// The largest integer up to which a double represents every integer exactly.
const EXACT_MAX: u64 = 1 << 53;

pub(super) fn value_text(any: Option<&AnyValue>) -> String {
    match json_value(any) {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

pub(super) fn json_value(any: Option<&AnyValue>) -> Value {
    match any.and_then(|any| any.kind.as_ref()) {
        None => Value::Null,
        Some(Kind::String(text)) => text.as_str().into(),
        Some(Kind::Bool(flag)) => (*flag).into(),
        Some(Kind::Int(number)) => (*number).into(),
        // JSON has no infinity or NaN.
        Some(Kind::Double(number)) if !number.is_finite() => number.to_string().into(),
        Some(Kind::Double(number)) => (*number).into(),
        Some(Kind::Array(list)) => list.values.iter().map(|it| json_value(Some(it))).collect(),
        Some(Kind::Kvlist(list)) => json_object(&list.values),
        Some(Kind::Bytes(bytes)) => STANDARD.encode(bytes).into(),
    }
}

pub(super) fn json_object(pairs: &[KeyValue]) -> Value {
    let pairs = pairs.iter();
    let pairs = pairs.map(|pair| (pair.key.clone(), json_value(pair.value.as_ref())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

pub(super) fn attributes_to_fields(
    values: impl IntoIterator<Item = (String, Value)>,
) -> BTreeMap<String, WireValue> {
    let values = values.into_iter();
    values.map(|(key, it)| (key, wire_value(&it, 0))).collect()
}

pub(super) fn wire_value(value: &Value, depth: usize) -> WireValue {
    let kind = match value {
        Value::Null => WireKind::NullValue(0),
        Value::Bool(flag) => WireKind::BoolValue(*flag),
        Value::Number(number) => {
            let whole = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
            match number.as_f64() {
                Some(double) if whole.is_none_or(|it| it <= EXACT_MAX) => {
                    WireKind::NumberValue(double)
                }
                _ => WireKind::StringValue(number.to_string()),
            }
        }
        Value::String(text) => WireKind::StringValue(text.clone()),
        deep @ (Value::Array(_) | Value::Object(_)) if depth >= DEPTH => {
            WireKind::StringValue(deep.to_string())
        }
        Value::Array(list) => WireKind::ListValue(ListValue {
            values: list.iter().map(|it| wire_value(it, depth + 1)).collect(),
        }),
        Value::Object(members) => WireKind::StructValue(Struct {
            fields: members
                .iter()
                .map(|(key, it)| (key.clone(), wire_value(it, depth + 1)))
                .collect(),
        }),
    };
    WireValue { kind: Some(kind) }
}
