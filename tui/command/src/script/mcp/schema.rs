//! Compact JSON schemas of requests: types, descriptions and allowed words, to a limited depth.

use bellwether_proto::json::{
    example,
    plan::{Behavior, Cardinality, FieldPlan, Kind, MessageId, Plan, Shape},
};
use serde_json::{Map, Value, json};

/// Fields that skip a check of the service, or the write itself.
pub(super) const HIDDEN: [&str; 2] = ["allowBroad", "validateOnly"];
/// Levels of messages below the request that are described.
const DEPTH: usize = 2;
/// Maximum number of fields of a message that is described below the first level.
const INNER_FIELDS: usize = 12;
const SENTENCES: usize = 2;

pub(super) fn request_schema(plan: &Plan, input: MessageId) -> Value {
    message_schema(plan, input, DEPTH)
}

/// Returns the first sentences of a comment, on one line.
pub(super) fn first_sentences(doc: &str) -> String {
    let line = doc.replace('\n', " ");
    let mut ends = line.match_indices(". ");
    match ends.nth(SENTENCES - 1) {
        Some((at, _)) => line[..=at].to_owned(),
        None => line,
    }
}

fn message_schema(plan: &Plan, id: MessageId, depth: usize) -> Value {
    let fields = plan.messages[id].fields.iter().filter(|field| {
        let is_input = field.behavior != Behavior::OutputOnly && !field.deprecated;
        is_input && !HIDDEN.contains(&&*field.json_name)
    });
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        if field.behavior == Behavior::Required {
            required.push(&*field.json_name);
        }
        let schema = field_schema(plan, field, depth);
        properties.insert(field.json_name.to_string(), schema);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn field_schema(plan: &Plan, field: &FieldPlan, depth: usize) -> Value {
    let mut value = match (field.cardinality, field.kind) {
        (Cardinality::Map, Kind::Message(entry)) => {
            let value = plan.messages[entry].fields.get(1);
            let value = value.map(|it| value_schema(plan, it.kind, depth));
            json!({"type": "object", "additionalProperties": value})
        }
        (_, kind) => value_schema(plan, kind, depth),
    };
    if !field.takes.words.is_empty() {
        value["enum"] = json!(field.takes.words);
    }
    if let Some(example) = example::declared_example(field) {
        value["examples"] = json!([example]);
    }
    let mut schema = match field.cardinality {
        Cardinality::Repeated { .. } => json!({"type": "array", "items": value}),
        Cardinality::Single | Cardinality::Map => value,
    };
    schema["description"] = first_sentences(&field.doc).into();
    schema
}

fn is_described(plan: &Plan, id: MessageId, depth: usize) -> bool {
    depth == DEPTH || depth > 0 && plan.messages[id].fields.len() <= INNER_FIELDS
}

fn value_schema(plan: &Plan, kind: Kind, depth: usize) -> Value {
    match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Float | Kind::Double => json!({"type": "number"}),
        Kind::String | Kind::Bytes => json!({"type": "string"}),
        Kind::Enum(id) => {
            let names = plan.enums[id].values.iter();
            let names: Vec<_> = names.map(|value| &*value.name).collect();
            json!({"type": "string", "enum": names})
        }
        Kind::Message(id) => match plan.messages[id].shape {
            Shape::Plain if is_described(plan, id, depth) => message_schema(plan, id, depth - 1),
            Shape::Plain | Shape::Any | Shape::Struct => json!({"type": "object"}),
            Shape::Timestamp => json!({"type": "string", "format": "date-time"}),
            Shape::Duration => json!({"type": "string", "pattern": "^[0-9.]+s$"}),
            Shape::FieldMask => json!({"type": "string"}),
            Shape::ListValue => json!({"type": "array"}),
            Shape::Value => json!({}),
            Shape::Wrapper => match plan.messages[id].fields.first() {
                Some(value) => value_schema(plan, value.kind, depth),
                None => json!({}),
            },
        },
        _ => json!({"type": "integer"}),
    }
}
