//! Describes messages and enums as JSON schemas.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::json::plan::{
    Cardinality, EnumId, EnumPlan, FieldPlan, Kind, MessageId, MessagePlan, Plan, Shape,
};
use serde_json::{Map, Value, json};

use crate::operation::Operation;

/// How a type's fields come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Only in answers: a newer service may add fields.
    Answer,
    /// In requests that are refused for unknown fields.
    Strict,
    /// In requests of which unknown fields are ignored.
    Lenient,
}

/// The schemas of every type that an operation needs, by full name.
pub(super) fn all(plan: &Plan, operations: &[Operation]) -> BTreeMap<String, Value> {
    let mut uses = BTreeMap::new();
    let mut enums = BTreeSet::new();
    for operation in operations {
        let how = if operation.lenient {
            Use::Lenient
        } else {
            Use::Strict
        };
        if let Some(message) = operation.body_message() {
            reach(plan, message, how, &mut uses, &mut enums);
        }
        reach(plan, operation.output, Use::Answer, &mut uses, &mut enums);
        for field in &plan.messages[operation.input].fields {
            if let Kind::Enum(id) = field.kind {
                enums.insert(id);
            }
        }
    }
    let messages = uses.into_iter().map(|(id, how)| {
        let message = &plan.messages[id];
        (message.name.to_string(), object(plan, message, how))
    });
    let enums = enums.into_iter().map(|id| {
        let plan = &plan.enums[id];
        (plan.name.to_string(), enumeration(plan))
    });
    messages.chain(enums).collect()
}

/// A reference to a type's schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Notes every type that can be reached from a message, and the most lenient way it comes in.
fn reach(
    plan: &Plan,
    id: MessageId,
    how: Use,
    uses: &mut BTreeMap<MessageId, Use>,
    enums: &mut BTreeSet<EnumId>,
) {
    if uses.get(&id).is_some_and(|known| *known >= how) {
        return;
    }
    uses.insert(id, how);
    for field in &plan.messages[id].fields {
        let value = match field.cardinality {
            Cardinality::Map => map_value(plan, field),
            _ => Some(field),
        };
        match value.map(|field| field.kind) {
            Some(Kind::Message(inner)) if plan.messages[inner].shape == Shape::Plain => {
                reach(plan, inner, how, uses, enums);
            }
            Some(Kind::Enum(inner)) => {
                enums.insert(inner);
            }
            _ => {}
        }
    }
}

fn object(plan: &Plan, message: &MessagePlan, how: Use) -> Value {
    let properties: Map<String, Value> = message
        .fields
        .iter()
        .map(|member| (member.json_name.to_string(), field(plan, member)))
        .collect();
    let mut description = message.doc.to_string();
    let groups: BTreeSet<_> = message
        .fields
        .iter()
        .filter_map(|field| field.oneof)
        .collect();
    for group in groups {
        let members = message
            .fields
            .iter()
            .filter(|field| field.oneof == Some(group));
        let names: Vec<_> = members
            .map(|field| format!("`{}`", field.json_name))
            .collect();
        description = format!("{description}\nAt most one of {}.", names.join(", "));
    }
    let mut schema =
        json!({"type": "object", "description": description, "properties": properties});
    match how {
        Use::Answer => {}
        Use::Strict => schema["additionalProperties"] = json!(false),
        Use::Lenient => schema["additionalProperties"] = json!(true),
    }
    schema
}

fn enumeration(plan: &EnumPlan) -> Value {
    let names: Vec<_> = plan.values.iter().map(|value| &*value.name).collect();
    let values = plan
        .values
        .iter()
        .map(|value| format!("\n`{}`: {}", value.name, value.doc));
    let mut description = plan.doc.to_string() + &values.collect::<String>();
    if let Some(value) = plan.values.iter().rfind(|value| !value.word.is_empty()) {
        let (word, name) = (&value.word, &value.name);
        let taken = format!("\nTaken in also by number, and as `{word}` for `{name}` in any case.");
        description.push_str(&taken);
    }
    json!({"type": "string", "description": description, "enum": names})
}

/// The schema of a field, with its comment.
pub(super) fn field(plan: &Plan, field: &FieldPlan) -> Value {
    let mut schema = match field.cardinality {
        Cardinality::Single => single(plan, field.kind),
        Cardinality::Repeated { .. } => json!({"type": "array", "items": single(plan, field.kind)}),
        Cardinality::Map => {
            let value = map_value(plan, field).map(|value| single(plan, value.kind));
            json!({"type": "object", "additionalProperties": value})
        }
    };
    schema["description"] = json!(&*field.doc);
    if field.doc.starts_with("Output only") {
        schema["readOnly"] = json!(true);
    }
    if field.deprecated {
        schema["deprecated"] = json!(true);
    }
    schema
}

fn map_value<'p>(plan: &'p Plan, field: &FieldPlan) -> Option<&'p FieldPlan> {
    match field.kind {
        Kind::Message(entry) => plan.messages[entry].fields.get(1),
        _ => None,
    }
}

fn single(plan: &Plan, kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            json!({"type": "integer", "format": "int32"})
        }
        Kind::Uint32 | Kind::Fixed32 => json!({"type": "integer", "format": "int64", "minimum": 0}),
        // Answered as text, as not every reader's numbers are wide enough; taken in as either.
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            json!({"type": ["string", "integer"], "format": "int64"})
        }
        Kind::Uint64 | Kind::Fixed64 => json!({"type": ["string", "integer"], "format": "uint64"}),
        Kind::Float => json!({"type": "number", "format": "float"}),
        Kind::Double => json!({"type": "number", "format": "double"}),
        Kind::String => json!({"type": "string"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Kind::Enum(id) => reference(&plan.enums[id].name),
        Kind::Message(id) => match plan.messages[id].shape {
            Shape::Plain => reference(&plan.messages[id].name),
            Shape::Any => json!({"type": "object", "required": ["@type"]}),
            Shape::Duration => json!({"type": "string", "examples": ["1.5s"]}),
            Shape::FieldMask => json!({"type": "string", "examples": ["name,type.webhook"]}),
            Shape::ListValue => json!({"type": "array"}),
            Shape::Struct => json!({"type": "object"}),
            Shape::Timestamp => json!({"type": "string", "format": "date-time"}),
            Shape::Value => json!({}),
            Shape::Wrapper => match plan.messages[id].fields.first() {
                Some(value) => single(plan, value.kind),
                None => json!({}),
            },
        },
    }
}
