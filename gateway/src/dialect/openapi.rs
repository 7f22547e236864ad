//! Describes the paths of senders for programs; what they carry is described by those who send it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{DIALECTS, Dialect, Endpoint};

/// The tag of all of them.
pub(crate) const TAG: &str = "Senders";

/// What the tag stands for.
pub(crate) fn tag() -> Value {
    let description = "Requests and responses in the formats of other products: see \
                       `/docs/senders`.";
    json!({"name": TAG, "description": description})
}

/// Adds every path.
pub(crate) fn describe(paths: &mut BTreeMap<String, Map<String, Value>>) {
    for dialect in DIALECTS {
        for endpoint in dialect.endpoints {
            let item = paths.entry(endpoint.path.to_owned()).or_default();
            let method = endpoint.method.as_str().to_lowercase();
            item.insert(method, operation(dialect, endpoint));
        }
    }
}

fn operation(dialect: &Dialect, endpoint: &Endpoint) -> Value {
    let name = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    let path: String = endpoint.path.chars().map(name).collect();
    let mut described = json!({
        "operationId": format!("{TAG}_{}{path}", endpoint.method.as_str().to_lowercase()),
        "tags": [TAG],
        "summary": endpoint.about.trim_end_matches('.'),
        "description": format!("{} Dialect: `{}`.", endpoint.about, dialect.name),
        "parameters": parameters(endpoint.path),
        "responses": {
            endpoint.success.as_str(): {"description": "The response that the sender expects on success."},
            "4XX": {"description": "The response that the sender expects on a rejection."},
            "default": {"description": "The response that the sender expects on a failure."},
        },
    });
    if endpoint.method == http::Method::POST {
        described["requestBody"] = json!({"content": {"application/json": {"schema": {}}}});
    }
    if endpoint.open {
        described["security"] = json!([]);
    }
    described
}

fn parameters(path: &str) -> Vec<Value> {
    let captured = path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        let description = match name {
            "key" => "The key of a client with the role `ingest`, used by this sender only.",
            "mapping" => "The name of a stored mapping.",
            _ => "The sender's identifier.",
        };
        Some(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": description,
            "schema": {"type": "string", "minLength": 1},
        }))
    });
    captured.collect()
}
