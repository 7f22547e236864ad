//! Builds an example of a message from its required fields and the examples in the `.proto` files.

use serde_json::{Map, Value, json};

use super::plan::{Behavior, Cardinality, FieldPlan, Kind, MessageId, Plan, Shape};

const MOMENT: &str = "2027-01-04T08:00:00Z";
const DURATION: &str = "60s";
const TEXT: &str = "text";

/// Returns an example of a message; `None` if the message contains itself infinitely.
pub fn message_example(plan: &Plan, id: MessageId) -> Option<Value> {
    nested_message(plan, id, &mut Vec::new())
}

/// `above` contains the enclosing messages.
fn nested_message(plan: &Plan, id: MessageId, above: &mut Vec<MessageId>) -> Option<Value> {
    if above.contains(&id) {
        return None;
    }
    above.push(id);
    let members = message_members(plan, id, above);
    above.pop();
    members.map(Value::Object)
}

fn message_members(
    plan: &Plan,
    id: MessageId,
    above: &mut Vec<MessageId>,
) -> Option<Map<String, Value>> {
    let message = &plan.messages[id];
    let mut missing: Vec<bool> = message.oneofs.clone();
    let mut members = Map::new();
    for field in &message.fields {
        let group = field.oneof.filter(|group| missing[*group]);
        let is_required = field.behavior == Behavior::Required;
        let is_shown = is_required || group.is_some() || !field.takes.example.is_empty();
        if field.behavior == Behavior::OutputOnly || !is_shown {
            continue;
        }
        if field.oneof.is_some() && group.is_none() {
            continue;
        }
        match field_example(plan, field, above) {
            Some(value) => {
                members.insert(field.json_name.to_string(), value);
                if let Some(group) = group {
                    missing[group] = false;
                }
            }
            None if is_required => return None,
            None => {}
        }
    }
    (!missing.contains(&true)).then_some(members)
}

fn field_example(plan: &Plan, field: &FieldPlan, above: &mut Vec<MessageId>) -> Option<Value> {
    let one = match declared_example(field) {
        Some(given) if field.cardinality == Cardinality::Map => return Some(given),
        Some(given) => given,
        None => example_of_kind(plan, field, above)?,
    };
    Some(match field.cardinality {
        Cardinality::Single => one,
        Cardinality::Repeated { .. } => json!([one]),
        Cardinality::Map => json!({TEXT: one}),
    })
}

/// Returns the example from the options of a field; for a list, a single entry.
pub fn declared_example(field: &FieldPlan) -> Option<Value> {
    let text = &*field.takes.example;
    match field.kind {
        _ if text.is_empty() => None,
        Kind::String => Some(json!(text)),
        _ => Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
    }
}

fn example_of_kind(plan: &Plan, field: &FieldPlan, above: &mut Vec<MessageId>) -> Option<Value> {
    Some(match field.kind {
        Kind::Bool => json!(true),
        Kind::String => json!(field.takes.words.first().map_or(TEXT, |word| word)),
        Kind::Bytes => json!(""),
        Kind::Enum(id) => {
            let mut values = plan.enums[id].values.iter();
            json!(&*values.find(|value| value.number > 0)?.name)
        }
        Kind::Message(id) => match plan.messages[id].shape {
            Shape::Plain if field.cardinality == Cardinality::Map => json!(TEXT),
            Shape::Plain => nested_message(plan, id, above)?,
            Shape::Timestamp => json!(MOMENT),
            Shape::Duration => json!(DURATION),
            Shape::Any | Shape::Struct => json!({}),
            Shape::ListValue => json!([]),
            Shape::FieldMask | Shape::Value | Shape::Wrapper => json!(TEXT),
        },
        _ => json!(field.takes.minimum.unwrap_or(1).max(1)),
    })
}
