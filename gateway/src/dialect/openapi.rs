//! The OpenAPI description of the senders' paths; other products document the bodies.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use super::{DIALECTS, Dialect, Endpoint};

pub(crate) const TAG: &str = "Senders";

const ALIAS: &str = "disk-db-1";

/// Returns an example body for a path with or without a key; `None` if any body is accepted or none
/// is sent.
fn request_example(path: &str) -> Option<Value> {
    let path = path.strip_suffix("/{key}").unwrap_or(path);
    let labels = json!({"alertname": "DiskFull", "severity": "critical", "host": "db-1"});
    let annotations = json!({"summary": "/var is 98% full"});
    let starts = "2027-01-04T08:00:00Z";
    Some(match path {
        "/v1/intake/alertmanager" => json!({
            "version": "4",
            "status": "firing",
            "alerts": [{
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": starts,
            }],
        }),
        "/api/v2/alerts" => {
            json!([{"labels": labels, "annotations": annotations, "startsAt": starts}])
        }
        "/v2/enqueue" => json!({
            "routing_key": "KEY",
            "event_action": "trigger",
            "dedup_key": ALIAS,
            "payload": {"summary": "/var is 98% full", "source": "db-1", "severity": "critical"},
        }),
        "/v2/change/enqueue" => json!({
            "routing_key": "KEY",
            "payload": {"summary": "deployed shop 4.2", "timestamp": starts},
        }),
        "/v2/alerts" => json!({
            "message": "/var is 98% full", "alias": ALIAS, "priority": "P1", "source": "db-1",
        }),
        "/v2/alerts/{id}/notes" => json!({"note": "moving logs to free space"}),
        "/v2/alerts/{id}/message" => json!({"message": "/var is 99% full"}),
        "/v2/alerts/{id}/description" => json!({"description": "db-1:/var has 1 GiB left"}),
        "/v2/alerts/{id}/priority" => json!({"priority": "P2"}),
        "/v2/heartbeats" => json!({"name": "nightly-backup"}),
        "/v2/alerts/{id}/close" | "/v2/alerts/{id}/acknowledge" => json!({"user": "ana"}),
        "/v1/intake/cloudevents" => json!({
            "specversion": "1.0",
            "id": "1",
            "type": "com.example.disk.full",
            "source": "/hosts/db-1",
            "data": {"percent": 98},
        }),
        "/v1/logs" => json!({"resourceLogs": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeLogs": [{"logRecords": [{
                "timeUnixNano": "1799049600000000000",
                "severityNumber": 17,
                "severityText": "ERROR",
                "body": {"stringValue": "payment failed"},
            }]}],
        }]}),
        "/v1/intake/webhooks/{mapping}" => json!({"title": "payment failed", "severity": "error"}),
        _ => return None,
    })
}

pub(crate) fn tag_json() -> Value {
    let description = "Requests and responses in the formats of other products: see \
                       `/docs/senders`.";
    json!({"name": TAG, "description": description})
}

pub(crate) fn add_operations(paths: &mut BTreeMap<String, Map<String, Value>>) {
    for dialect in DIALECTS {
        for endpoint in dialect.endpoints {
            let item = paths.entry(endpoint.path.to_owned()).or_default();
            let method = endpoint.method.as_str().to_lowercase();
            item.insert(method, operation_json(dialect, endpoint));
        }
    }
}

fn operation_json(dialect: &Dialect, endpoint: &Endpoint) -> Value {
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
        "parameters": parameters_json(endpoint.path),
        "responses": {
            endpoint.success.as_str(): {"description": "The response that the sender expects on success."},
            "4XX": {"description": "The response that the sender expects on a rejection."},
            "default": {"description": "The response that the sender expects on a failure."},
        },
    });
    if endpoint.method == Method::OPTIONS
        && let Some(parameters) = described["parameters"].as_array_mut()
    {
        parameters.push(json!({
            "name": "WebHook-Request-Origin",
            "in": "header",
            "required": true,
            "description": "The name of the sending system.",
            "example": "shop.example.com",
            "schema": {"type": "string"},
        }));
    }
    if [Method::POST, Method::PUT].contains(&endpoint.method) {
        let mut content = json!({"schema": {}});
        if let Some(example) = request_example(endpoint.path) {
            content["example"] = example;
        }
        described["requestBody"] = json!({"content": {"application/json": content}});
    }
    if endpoint.open {
        described["security"] = json!([]);
    }
    described
}

fn parameters_json(path: &str) -> Vec<Value> {
    let captured = path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        let description = match name {
            "key" => "The key of a client with the role `ingest`, used by this sender only.",
            "mapping" => "The name of a stored mapping.",
            _ => "The sender's identifier.",
        };
        let example = match name {
            "key" => "KEY",
            "mapping" => "grafana",
            _ => ALIAS,
        };
        Some(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": description,
            "schema": {"type": "string", "minLength": 1},
            "example": example,
        }))
    });
    captured.collect()
}
