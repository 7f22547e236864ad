//! JSON schemas of messages and enums.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::json::plan::{
    Behavior, Cardinality, EnumId, EnumPlan, FieldPlan, Kind, MessageId, MessagePlan, Plan,
    ResponsePresence, Shape,
};
use serde_json::{Map, Value, json};

use super::limit::{add_item_limits, with_limits};
use crate::operation::Operation;

const FREE_MAP: &str = "google.protobuf.Struct";

const DURATION: &str = r"^-?[0-9]+(\.[0-9]{1,9})?s$";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    /// The type is used only in responses, to which a newer service may add fields.
    Response,
    Strict,
    Lenient,
}

pub(super) fn all_schemas(plan: &Plan, operations: &[Operation]) -> BTreeMap<String, Value> {
    let mut uses = BTreeMap::new();
    let mut enums = BTreeSet::new();
    for operation in operations {
        let how = if operation.lenient {
            Direction::Lenient
        } else {
            Direction::Strict
        };
        if let Some(message) = operation.documented_body() {
            collect_reachable(plan, message, how, &mut uses, &mut enums);
        }
        if !operation.is_silent {
            collect_reachable(
                plan,
                operation.output,
                Direction::Response,
                &mut uses,
                &mut enums,
            );
        }
        for field in &plan.messages[operation.input].fields {
            if let (Kind::Enum(id), Cardinality::Single) = (field.kind, field.cardinality) {
                enums.insert(id);
            }
        }
    }
    let messages = uses.into_iter().map(|(id, how)| {
        let message = &plan.messages[id];
        (message.name.to_string(), object_schema(plan, message, how))
    });
    let enums = enums.into_iter().map(|id| {
        let plan = &plan.enums[id];
        (plan.name.to_string(), enum_schema(plan))
    });
    let any_object_schema = [(FREE_MAP.to_owned(), any_object_schema())];
    messages.chain(enums).chain(any_object_schema).collect()
}

pub(super) fn schema_ref(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Records all types reachable from a message, each with its most lenient use.
fn collect_reachable(
    plan: &Plan,
    id: MessageId,
    how: Direction,
    uses: &mut BTreeMap<MessageId, Direction>,
    enums: &mut BTreeSet<EnumId>,
) {
    if uses.get(&id).is_some_and(|known| *known >= how) {
        return;
    }
    uses.insert(id, how);
    for field in &plan.messages[id].fields {
        let value = match field.cardinality {
            _ if field.answered == ResponsePresence::AsSent => None,
            Cardinality::Map => map_value(plan, field),
            _ => Some(field),
        };
        match value.map(|field| field.kind) {
            Some(Kind::Message(inner)) if plan.messages[inner].shape == Shape::Plain => {
                collect_reachable(plan, inner, how, uses, enums);
            }
            Some(Kind::Enum(inner)) => {
                enums.insert(inner);
            }
            _ => {}
        }
    }
}

fn object_schema(plan: &Plan, message: &MessagePlan, how: Direction) -> Value {
    let exactly_one = message.oneofs.iter().position(|required| *required);
    let mut schema = match exactly_one {
        None => member_schemas(plan, &message.fields.iter().collect::<Vec<_>>(), None, how),
        Some(group) => variant_schemas(plan, message, group, how),
    };
    schema["description"] = json!(description(message));
    schema
}

fn member_schemas(
    plan: &Plan,
    fields: &[&FieldPlan],
    chosen: Option<&FieldPlan>,
    how: Direction,
) -> Value {
    let is_required = |member: &&&FieldPlan| match how {
        _ if chosen.is_some_and(|chosen| chosen.number == member.number) => true,
        Direction::Response => member.answered == ResponsePresence::Always,
        Direction::Strict | Direction::Lenient => member.behavior == Behavior::Required,
    };
    let required: Vec<_> = fields.iter().filter(is_required).collect();
    let required: Vec<_> = required.iter().map(|member| &*member.json_name).collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|member| {
            (
                member.json_name.to_string(),
                with_description(plan, member, how),
            )
        })
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    match how {
        Direction::Response => {}
        Direction::Strict => schema["additionalProperties"] = json!(false),
        Direction::Lenient => schema["additionalProperties"] = json!(true),
    }
    schema
}

/// Returns one object schema per field of a required oneof. Code generators create a type for each
/// object; they would ignore a list of required names next to the properties.
fn variant_schemas(plan: &Plan, message: &MessagePlan, group: usize, how: Direction) -> Value {
    let is_common = |field: &&FieldPlan| field.oneof != Some(group);
    let (common, chosen): (Vec<_>, Vec<_>) = message.fields.iter().partition(is_common);
    let variant = |chosen: &FieldPlan| {
        let fields = [&common[..], &[chosen]].concat();
        let mut variant = member_schemas(plan, &fields, Some(chosen), how);
        let name = message.name.rsplit('.').next().unwrap_or_default();
        variant["title"] = json!(format!("{name} {}", chosen.name.replace('_', " ")));
        variant
    };
    let mut variants: Vec<_> = chosen.into_iter().map(variant).collect();
    match variants.pop() {
        Some(only) if variants.is_empty() => only,
        last => {
            variants.extend(last);
            json!({"oneOf": variants})
        }
    }
}

fn description(message: &MessagePlan) -> String {
    let mut description = message.doc.to_string();
    for (group, required) in message.oneofs.iter().enumerate() {
        let members = message.fields.iter();
        let names: Vec<_> = members
            .filter(|field| field.oneof == Some(group))
            .map(|field| format!("`{}`", field.json_name))
            .collect();
        if !names.is_empty() {
            let count = if *required { "Exactly" } else { "At most" };
            description = format!("{description}\n{count} one of {}.", names.join(", "));
        }
    }
    description
}

fn enum_schema(plan: &EnumPlan) -> Value {
    let names: Vec<_> = plan.values.iter().map(|value| &*value.name).collect();
    let values = plan
        .values
        .iter()
        .map(|value| format!("\n`{}`: {}", value.name, value.doc));
    let mut description = plan.doc.to_string() + &values.collect::<String>();
    if let Some(value) = plan.values.iter().rfind(|value| !value.word.is_empty()) {
        let (word, name) = (&value.word, &value.name);
        let accepted = format!(
            "\nThe number and the short name, in any letter case, are also accepted: `{word}` for \
             `{name}`, for example."
        );
        description.push_str(&accepted);
    }
    json!({"type": "string", "description": description, "enum": names})
}

pub(super) fn field_schema(plan: &Plan, field: &FieldPlan) -> Value {
    let mut schema = with_description(plan, field, Direction::Strict);
    if let Cardinality::Repeated { .. } = field.cardinality {
        schema["type"] = json!("array");
    }
    if let (Kind::Enum(id), Cardinality::Repeated { .. }) = (field.kind, field.cardinality) {
        // The unspecified value is not valid as a list entry.
        let values = plan.enums[id].values.iter();
        let names = values.filter(|value| value.number != 0);
        let names: Vec<_> = names.map(|value| &*value.name).collect();
        schema["items"] = json!({"type": "string", "enum": names});
    }
    schema
}

fn with_description(plan: &Plan, field: &FieldPlan, how: Direction) -> Value {
    let mut schema = match field.cardinality {
        Cardinality::Single if field.answered == ResponsePresence::AsSent => schema_ref(FREE_MAP),
        Cardinality::Repeated { .. } if field.answered == ResponsePresence::AsSent => {
            json!({"type": "array", "items": schema_ref(FREE_MAP)})
        }
        Cardinality::Single => with_limits(scalar_schema(plan, field.kind, how), field),
        Cardinality::Repeated { .. } => {
            json!({"type": "array", "items": with_limits(scalar_schema(plan, field.kind, how), field)})
        }
        Cardinality::Map => {
            let value = map_value(plan, field).map(|value| scalar_schema(plan, value.kind, how));
            json!({"type": "object", "additionalProperties": value})
        }
    };
    add_item_limits(&mut schema, field);
    if how != Direction::Response
        && field.behavior != Behavior::Required
        && schema["type"].is_string()
    {
        match field.cardinality {
            Cardinality::Single => {}
            // Clients in some languages send `null` for an empty list.
            _ => schema["type"] = json!([schema["type"], "null"]),
        }
    }
    schema["description"] = json!(&*field.doc);
    match field.behavior {
        Behavior::OutputOnly => schema["readOnly"] = json!(true),
        Behavior::InputOnly => schema["writeOnly"] = json!(true),
        Behavior::Optional | Behavior::Required => {}
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

fn scalar_schema(plan: &Plan, kind: Kind, how: Direction) -> Value {
    match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            json!({"type": "integer", "format": "int32"})
        }
        Kind::Uint32 | Kind::Fixed32 => json!({"type": "integer", "format": "int64", "minimum": 0}),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            wide_integer_schema("int64", "^-?[0-9]+$", how)
        }
        Kind::Uint64 | Kind::Fixed64 => wide_integer_schema("uint64", "^[0-9]+$", how),
        Kind::Float => json!({"type": "number", "format": "float"}),
        Kind::Double => json!({"type": "number", "format": "double"}),
        Kind::String => json!({"type": "string"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Kind::Enum(id) => schema_ref(&plan.enums[id].name),
        Kind::Message(id) => message_schema(plan, id, how),
    }
}

/// Returns the schema of a 64-bit integer. Responses contain it as text, since some languages lack
/// 64-bit numbers; requests can contain a text or a number.
fn wide_integer_schema(format: &str, pattern: &str, how: Direction) -> Value {
    let mut schema = json!({"type": "string", "format": format, "pattern": pattern});
    if how != Direction::Response {
        schema["type"] = json!(["string", "integer"]);
    }
    schema
}

fn message_schema(plan: &Plan, id: MessageId, how: Direction) -> Value {
    match plan.messages[id].shape {
        Shape::Plain => schema_ref(&plan.messages[id].name),
        Shape::Any => json!({"type": "object", "required": ["@type"]}),
        Shape::Duration => {
            json!({"type": "string", "pattern": DURATION, "examples": ["1.5s"]})
        }
        Shape::FieldMask => json!({"type": "string", "examples": ["name,type.webhook"]}),
        Shape::ListValue => json!({"type": "array", "items": {}}),
        Shape::Struct => schema_ref(FREE_MAP),
        Shape::Timestamp => json!({"type": "string", "format": "date-time"}),
        Shape::Value => json!({}),
        Shape::Wrapper => match plan.messages[id].fields.first() {
            Some(value) => scalar_schema(plan, value.kind, how),
            None => json!({}),
        },
    }
}

/// Returns the schema of an object with any members. Without `additionalProperties`, tools expect
/// an object without members.
fn any_object_schema() -> Value {
    json!({"type": "object", "description": "Any members.", "additionalProperties": true})
}
