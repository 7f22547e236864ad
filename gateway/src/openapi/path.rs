//! The OpenAPI description of operations.

use bellwether_proto::json::plan::{Cardinality, FieldPlan, Plan};
use http::Method;
use serde_json::{Value, json};

use super::{example, responses, schema};
use crate::operation::{BodyRule, Operation};

/// One entity tag without quotes, or one or more with quotes.
const TAGS: &str = "^([!#-+.-~]+|(W/)?\"[!#-+.-~]+\"( *, *(W/)?\"[!#-+.-~]+\")*)$";

/// Returns the path with plain parameter names: OpenAPI tools do not support `{trigger.name}`.
pub(super) fn path_text(operation: &Operation) -> String {
    let template = &operation.template;
    let mut captures = template.captures.iter();
    let mut text = String::new();
    for segment in &template.segments {
        text.push('/');
        if let Some(literal) = segment {
            text.push_str(literal);
        } else {
            let field = captures.next().map_or("", |capture| last_part(capture));
            text.push('{');
            text.push_str(field);
            text.push('}');
        }
    }
    if let Some(verb) = &template.verb {
        text.push(':');
        text.push_str(verb);
    }
    text
}

fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns a unique operation id. For an additional binding it includes the verb and all path
/// parameters except the last.
fn operation_id(operation: &Operation) -> String {
    let id = format!("{}_{}", last_part(&operation.service), operation.name);
    if !operation.is_additional {
        return id;
    }
    let verb = operation.method.as_str().to_lowercase();
    let more = operation.template.captures.iter().rev().skip(1);
    more.fold(format!("{id}_{verb}"), |id, capture| {
        format!("{id}_{capture}")
    })
}

pub(super) fn operation_json(plan: &Plan, operation: &Operation) -> Value {
    let (doc, role) = (&*operation.doc, &*operation.role);
    let end = doc.find(['.', ':']).unwrap_or(doc.len());
    let mut described = json!({
        "operationId": operation_id(operation),
        "tags": [&*operation.title],
        "summary": doc[..end].replace('\n', " "),
        "description": format!("{doc}\n\n{}", required_role(role)),
        "x-required-role": role,
        "parameters": parameters_json(plan, operation),
        "responses": responses::operation_responses(plan, operation),
    });
    if role == "none" {
        described["security"] = json!([]);
    }
    let example = example::body_example(plan, operation);
    let command = example::curl_command(plan, operation, example.as_ref());
    described["x-codeSamples"] = example::sample_value(&command);
    if let Some(message) = operation.documented_body() {
        let mut content = json!({"schema": schema::schema_ref(&plan.messages[message].name)});
        if let Some(example) = example {
            content["example"] = example;
        }
        described["requestBody"] = json!({
            "required": operation.body != BodyRule::Optional,
            "content": {"application/json": content},
        });
    }
    described
}

fn required_role(role: &str) -> String {
    match role {
        "any" => "Any key is accepted.".to_owned(),
        "none" => "No key is required.".to_owned(),
        "ingest" => "The key must have the role `ingest` or `admin`.".to_owned(),
        "admin" => "The key must have the role `admin`.".to_owned(),
        _ => format!("The key must have the role `{role}` or higher."),
    }
}

fn parameters_json(plan: &Plan, operation: &Operation) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (binding, capture) in operation
        .path_bindings
        .iter()
        .zip(&operation.template.captures)
    {
        let message = match operation.body {
            BodyRule::Field(_, message) if binding.in_body_field => message,
            _ => operation.input,
        };
        let field = plan.field(message, &binding.json_name);
        parameters.push(json!({
            "name": last_part(capture),
            "in": "path",
            "required": true,
            "description": field.map_or("", |field| &field.doc),
            "example": field.map(example::path_segment),
            "schema": {"type": "string", "minLength": 1},
        }));
    }
    let query = plan.messages[operation.input].fields.iter();
    parameters.extend(
        query
            .filter(|field| operation.accepts_query(plan, field))
            .map(|field| query_parameter(plan, field)),
    );
    let changes = [Method::PUT, Method::PATCH, Method::DELETE].contains(&operation.method);
    let has_etag = operation
        .body_message()
        .is_some_and(|id| plan.field(id, "etag").is_some());
    if changes && has_etag {
        parameters.push(json!({
            "name": "if-match",
            "in": "header",
            "description": "The `etag` or `ETag` that must be current, several separated by \
                commas, or `*` for any; otherwise nothing is changed.",
            "schema": {"type": "string", "pattern": TAGS},
        }));
    }
    if operation.is_tagged() {
        parameters.push(json!({
            "name": "if-none-match",
            "in": "header",
            "description": "The `ETag` of a cached response, several separated by commas, or `*`: \
                if it is still current, the response is 304.",
            "schema": {"type": "string"},
        }));
    }
    if responses::requires_key(operation) {
        parameters.push(responses::key_parameter());
    }
    parameters
}

fn query_parameter(plan: &Plan, field: &FieldPlan) -> Value {
    let mut parameter = json!({
        "name": &*field.json_name,
        "in": "query",
        "description": &*field.doc,
        "schema": schema::field_schema(plan, field),
    });
    if matches!(field.cardinality, Cardinality::Repeated { .. }) {
        parameter["explode"] = json!(true);
    }
    parameter
}
