//! Conversion of JSON to well-known types of protobuf.

use prost_types::{ListValue, Struct, Value, value::Kind};
use serde_json::Value as Json;

/// Converts a JSON object. Any other value becomes an empty object.
pub fn object(json: Json) -> Struct {
    match json {
        Json::Object(fields) => Struct {
            fields: fields
                .into_iter()
                .map(|(name, json)| (name, value(json)))
                .collect(),
        },
        _ => Struct::default(),
    }
}

// The value was built by this service with few levels, so the recursion is bounded.
fn value(json: Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(truth) => Kind::BoolValue(truth),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(value).collect(),
        }),
        Json::Object(_) => Kind::StructValue(object(json)),
    };
    Value { kind: Some(kind) }
}
