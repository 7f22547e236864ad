//! JSON values.

use std::collections::BTreeMap;

use crate::domain::value::{Fields, Value};

/// Levels of nested values; deeper ones never pass intake.
const DEPTH_MAX: usize = 100;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ValueV1 {
    #[prost(oneof = "KindV1", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<KindV1>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum KindV1 {
    #[prost(bool, tag = "1")]
    Null(bool),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(double, tag = "3")]
    Number(f64),
    #[prost(string, tag = "4")]
    Text(String),
    #[prost(message, tag = "5")]
    List(ListV1),
    #[prost(message, tag = "6")]
    Object(FieldsV1),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ListV1 {
    #[prost(message, repeated, tag = "1")]
    values: Vec<ValueV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FieldsV1 {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, ValueV1>,
}

impl From<&Value> for ValueV1 {
    fn from(value: &Value) -> Self {
        let kind = match value {
            Value::Null => KindV1::Null(true),
            Value::Bool(flag) => KindV1::Bool(*flag),
            Value::Number(number) => KindV1::Number(*number),
            Value::Text(text) => KindV1::Text(text.clone()),
            Value::List(values) => KindV1::List(ListV1 {
                values: values.iter().map(Self::from).collect(),
            }),
            Value::Object(fields) => KindV1::Object(fields.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl From<&Fields> for FieldsV1 {
    fn from(fields: &Fields) -> Self {
        let fields = fields
            .iter()
            .map(|(key, value)| (key.clone(), value.into()))
            .collect();
        Self { fields }
    }
}

impl FieldsV1 {
    pub(crate) fn into_fields(self) -> Option<Fields> {
        self.into_fields_at(0)
    }

    fn into_fields_at(self, depth: usize) -> Option<Fields> {
        let entries = self.fields.into_iter();
        entries
            .map(|(key, value)| Some((key, value.into_value_at(depth + 1)?)))
            .collect()
    }
}

impl ValueV1 {
    fn into_value_at(self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.kind? {
            KindV1::Null(_) => Value::Null,
            KindV1::Bool(flag) => Value::Bool(flag),
            KindV1::Number(number) => Value::Number(number),
            KindV1::Text(text) => Value::Text(text),
            KindV1::List(list) => {
                let values = list.values.into_iter();
                Value::List(
                    values
                        .map(|value| value.into_value_at(depth + 1))
                        .collect::<Option<_>>()?,
                )
            }
            KindV1::Object(fields) => Value::Object(fields.into_fields_at(depth)?),
        })
    }
}
