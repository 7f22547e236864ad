//! The OpenAPI description of Alertmanager's paths; the schemas are in Alertmanager's own document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ENDPOINTS, Endpoint, Operation};

pub(crate) const TAG: &str = "Alertmanager";

pub(crate) fn tag_json() -> Value {
    let description = "Alertmanager's API v2 for `amtool`, karma, Grafana and others: open events as \
                       alerts, and silences. See `/docs/alertmanager`.";
    json!({"name": TAG, "description": description})
}

pub(crate) fn add_operations(paths: &mut BTreeMap<String, Map<String, Value>>) {
    for endpoint in &ENDPOINTS {
        let item = paths.entry(endpoint.path.to_owned()).or_default();
        let method = endpoint.method.as_str().to_lowercase();
        item.insert(method, operation_json(endpoint));
    }
}

fn operation_json(endpoint: &Endpoint) -> Value {
    let mut described = json!({
        "operationId": format!("{TAG}_{:?}", endpoint.operation),
        "tags": [TAG],
        "summary": endpoint.about.trim_end_matches('.'),
        "description": endpoint.about,
        "x-required-role": match endpoint.operation {
            Operation::PostSilences | Operation::DeleteSilence => "operator",
            _ => "viewer",
        },
        "parameters": parameters_json(endpoint),
        "responses": {
            "200": {"description": "Same response as Alertmanager's."},
            "4XX": {"description": "The error message, as a JSON string."},
            "default": {"description": "The error message, as a JSON string."},
        },
    });
    if endpoint.operation == Operation::PostSilences {
        described["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": {"type": "object"}, "example": {
                "matchers": [{"name": "host", "value": "db-1", "isRegex": false, "isEqual": true}],
                "startsAt": "2027-01-04T06:00:00Z",
                "endsAt": "2027-01-04T08:00:00Z",
                "createdBy": "ana",
                "comment": "db-1 is moved",
            }}},
        });
    }
    described
}

fn parameters_json(endpoint: &Endpoint) -> Vec<Value> {
    let parameter = |name: &str, place: &str, description: &str, schema: Value| {
        json!({
            "name": name,
            "in": place,
            "required": place == "path",
            "description": description,
            "schema": schema,
        })
    };
    let texts = json!({"type": "array", "items": {"type": "string"}, "maxItems": 50});
    let matchers = |name: &str, of: &str| {
        let description = format!("Matchers of the labels of {of}, such as `host=~\"db-.*\"`.");
        parameter(name, "query", &description, texts.clone())
    };
    let shown = |name: &str, of: &str| {
        let description = format!("Whether to list {name} {of}.");
        let schema = json!({"type": "boolean", "default": true});
        parameter(name, "query", &description, schema)
    };
    if matches!(
        endpoint.operation,
        Operation::GetSilence | Operation::DeleteSilence
    ) {
        let description = "The id or name of a silence.";
        let schema = json!({"type": "string", "minLength": 1});
        let mut id = parameter("silenceID", "path", description, schema);
        id["example"] = json!("patch-window");
        return vec![id];
    }
    let listed = match endpoint.operation {
        Operation::GetSilences => "silences",
        _ => "alerts",
    };
    let named = endpoint.parameters.iter().map(|name| match *name {
        "filter" => matchers(name, listed),
        "receiver_matchers" => matchers(name, "receivers, their tags of the form `key:value`"),
        "receiver" => parameter(
            name,
            "query",
            "Regular expression that matches the whole receiver name.",
            json!({"type": "string"}),
        ),
        "allowBroad" => parameter(
            name,
            "query",
            "Stores the silence even if it appears to be too broad.",
            json!({"type": "boolean", "default": false}),
        ),
        "muted" => shown("muted", "groups, whose alerts are all suppressed"),
        _ => shown(name, listed),
    });
    named.collect()
}
