//! Examples of each request, as a body and as a command.

use bellwether_language::text::percent_encode;
use bellwether_proto::json::{
    example,
    plan::{FieldPlan, Plan},
};
use serde_json::{Value, json};

use crate::operation::{BodyRule, Operation};

const TEXT: &str = "text";

pub(super) fn body_example(plan: &Plan, operation: &Operation) -> Option<Value> {
    example::message_example(plan, operation.documented_body()?)
}

pub(super) fn path_segment(field: &FieldPlan) -> String {
    let example = &*field.takes.example;
    if example.is_empty() { TEXT } else { example }.to_owned()
}

pub(super) fn curl_command(plan: &Plan, operation: &Operation, body: Option<&Value>) -> String {
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
            let value = plan.field(message, &binding.json_name).map(path_segment);
            let value = value.unwrap_or_default();
            path.push_str(&percent_encode(&value));
        }
    }
    if let Some(verb) = &operation.template.verb {
        path.push(':');
        path.push_str(verb);
    }
    shell_quote(operation.method.as_str(), &path, true, body)
}

fn shell_quote(method: &str, path: &str, with_key: bool, body: Option<&Value>) -> String {
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

/// Adds an example command to an operation without a descriptor. A key in the path remains a
/// variable; other path parameters have examples.
pub(super) fn add_command(method: &str, path: &str, operation: &mut Value) {
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    let is_open = operation["security"] == json!([]);
    let mut filled = path.replace("{key}", "$KEY");
    let mut headers = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = parameter["example"].as_str().unwrap_or(TEXT);
        if parameter["in"] == "header" && parameter["required"] == true {
            headers.extend([" \\\n  --header \"", name, ": ", example, "\""]);
        }
        filled = filled.replace(&format!("{{{name}}}"), example);
    }
    let with_key = !is_open && !path.contains("{key}");
    let body = (!body.is_null()).then_some(body);
    let command = shell_quote(&method.to_uppercase(), &filled, with_key, body);
    operation["x-codeSamples"] = sample_value(&(command + &headers));
}

pub(super) fn sample_value(command: &str) -> Value {
    json!([{"lang": "Shell", "label": "curl", "source": command}])
}
