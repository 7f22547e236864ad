//! Makes an example of each request: what is required, and what the `.proto` files give examples of.

use bellwether_proto::json::plan::{
    Behavior, Cardinality, FieldPlan, Kind, MessageId, Plan, Shape,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::operation::{BodyRule, Operation};

const MOMENT: &str = "2027-01-04T08:00:00Z";
const DURATION: &str = "60s";
const TEXT: &str = "text";

/// The body of a request; none where the message has no end.
pub(super) fn body(plan: &Plan, operation: &Operation) -> Option<Value> {
    message(plan, operation.described_body()?, &mut Vec::new())
}

/// A value of a field as it is in a path.
pub(super) fn segment(field: &FieldPlan) -> String {
    let example = &*field.takes.example;
    if example.is_empty() { TEXT } else { example }.to_owned()
}

/// The request as a command. `SERVICE` and `KEY` are variables of the reader's shell.
pub(super) fn command(plan: &Plan, operation: &Operation, body: Option<&Value>) -> String {
    let mut path = String::new();
    let mut bindings = operation.path_bindings.iter();
    for segment in &operation.template.segments {
        path.push('/');
        if let Some(literal) = segment {
            path.push_str(literal);
        } else if let Some(binding) = bindings.next() {
            let message = match operation.body {
                BodyRule::Field(_, message) if binding.in_body_field => message,
                _ => operation.input,
            };
            let value = plan.field(message, &binding.json_name).map(self::segment);
            let value = value.unwrap_or_default();
            path.push_str(&utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string());
        }
    }
    if let Some(verb) = &operation.template.verb {
        path.push(':');
        path.push_str(verb);
    }
    shell(operation.method.as_str(), &path, true, body)
}

/// A request as a command; `with_key` authenticates it.
fn shell(method: &str, path: &str, with_key: bool, body: Option<&Value>) -> String {
    let mut command = format!("curl --request {method} \"$SERVICE{path}\"");
    if with_key {
        command.push_str(" \\\n  --header \"authorization: Bearer $KEY\"");
    }
    if let Some(body) = body {
        let text = serde_json::to_string_pretty(body).unwrap_or_default();
        let text = text.replace('\'', "'\\''");
        command.push_str(" \\\n  --header 'content-type: application/json' \\\n  --data '");
        command.push_str(&text);
        command.push('\'');
    }
    command
}

/// Adds the command to an operation that was not made from a descriptor. A key in the path stands for
/// itself; other parameters of the path have examples.
pub(super) fn add_command(method: &str, path: &str, operation: &mut Value) {
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    let is_open = operation["security"] == json!([]);
    let mut filled = path.replace("{key}", "$KEY");
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = parameter["example"].as_str().unwrap_or(TEXT);
        filled = filled.replace(&format!("{{{name}}}"), example);
    }
    let with_key = !is_open && !path.contains("{key}");
    let body = (!body.is_null()).then_some(body);
    let command = shell(&method.to_uppercase(), &filled, with_key, body);
    operation["x-codeSamples"] = sample(&command);
}

/// A command as pages of the documentation show it.
pub(super) fn sample(command: &str) -> Value {
    json!([{"lang": "Shell", "label": "curl", "source": command}])
}

/// `above` holds the messages that this one is in.
fn message(plan: &Plan, id: MessageId, above: &mut Vec<MessageId>) -> Option<Value> {
    if above.contains(&id) {
        return None;
    }
    above.push(id);
    let members = members(plan, id, above);
    above.pop();
    members.map(Value::Object)
}

fn members(plan: &Plan, id: MessageId, above: &mut Vec<MessageId>) -> Option<Map<String, Value>> {
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
        match value(plan, field, above) {
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

fn value(plan: &Plan, field: &FieldPlan, above: &mut Vec<MessageId>) -> Option<Value> {
    let one = match given(field) {
        Some(given) if field.cardinality == Cardinality::Map => return Some(given),
        Some(given) => given,
        None => of_kind(plan, field, above)?,
    };
    Some(match field.cardinality {
        Cardinality::Single => one,
        Cardinality::Repeated { .. } => json!([one]),
        Cardinality::Map => json!({TEXT: one}),
    })
}

/// The example that stands with a field, of a list for one of its entries.
pub(super) fn given(field: &FieldPlan) -> Option<Value> {
    let text = &*field.takes.example;
    match field.kind {
        _ if text.is_empty() => None,
        Kind::String => Some(json!(text)),
        _ => Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
    }
}

fn of_kind(plan: &Plan, field: &FieldPlan, above: &mut Vec<MessageId>) -> Option<Value> {
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
            Shape::Plain => message(plan, id, above)?,
            Shape::Timestamp => json!(MOMENT),
            Shape::Duration => json!(DURATION),
            Shape::Any | Shape::Struct => json!({}),
            Shape::ListValue => json!([]),
            Shape::FieldMask | Shape::Value | Shape::Wrapper => json!(TEXT),
        },
        _ => json!(field.takes.minimum.unwrap_or(1).max(1)),
    })
}
