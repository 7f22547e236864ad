//! The OpenAPI description of health checks and metrics.

use std::collections::BTreeMap;

use bellwether_process::metrics;
use serde_json::{Map, Value, json};

pub(super) const TAG: &str = "Health";

const PATHS: [(&str, &str, &[&str]); 5] = [
    ("/healthz", "Reports whether the gateway is running.", &[]),
    (
        "/readyz",
        "Reports whether requests are served and events accepted.",
        &["503"],
    ),
    (
        "/-/healthy",
        "Same as `/healthz`, at Alertmanager's path.",
        &[],
    ),
    (
        "/-/ready",
        "Same as `/readyz`, at Alertmanager's path.",
        &["503"],
    ),
    (
        metrics::PATH,
        "Returns the metrics for Prometheus. If `metrics.key` is set, it is required as \
         `authorization: Bearer KEY`; if `metrics.listen` is set, they are served there instead.",
        &["401", "404"],
    ),
];

pub(super) fn tag_json() -> Value {
    json!({"name": TAG, "description": "Health checks for load balancers and orchestrators, and metrics."})
}

pub(super) fn add_health(paths: &mut BTreeMap<String, Map<String, Value>>) {
    for (path, about, failures) in PATHS {
        let name: String = path.chars().filter(char::is_ascii_alphabetic).collect();
        let text = json!({"text/plain": {"schema": {"type": "string"}}});
        let success = if path == metrics::PATH {
            "The metrics in text format 0.0.4."
        } else {
            "Yes: `ok`."
        };
        let mut responses = json!({"200": {"description": success, "content": text}});
        for status in failures {
            responses[*status] = json!({"$ref": format!("#/components/responses/{status}")});
        }
        let operation = json!({
            "operationId": format!("{TAG}_{name}"),
            "tags": [TAG],
            "summary": about.split('.').next(),
            "description": about,
            "security": [],
            "responses": responses,
        });
        let item = paths.entry(path.to_owned()).or_default();
        item.insert("get".to_owned(), operation);
    }
}
