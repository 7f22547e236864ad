//! Describes the health checks.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The tag of all of them.
pub(super) const TAG: &str = "Health";

/// The paths, each with what it reports.
const PATHS: [(&str, &str, bool); 4] = [
    ("/healthz", "Reports whether the gateway runs.", false),
    (
        "/readyz",
        "Reports whether requests can be served and events are accepted.",
        true,
    ),
    (
        "/-/healthy",
        "The same as `/healthz`, where Alertmanager has it.",
        false,
    ),
    (
        "/-/ready",
        "The same as `/readyz`, where Alertmanager has it.",
        true,
    ),
];

/// What the tag stands for.
pub(super) fn tag() -> Value {
    json!({"name": TAG, "description": "Health checks for load balancers and orchestrators."})
}

/// Adds every path.
pub(super) fn describe(paths: &mut BTreeMap<String, Map<String, Value>>) {
    for (path, about, may_fail) in PATHS {
        let name: String = path.chars().filter(char::is_ascii_alphabetic).collect();
        let text = json!({"text/plain": {"schema": {"type": "string"}}});
        let mut responses = json!({"200": {"description": "Yes: `ok`.", "content": text}});
        if may_fail {
            responses["503"] = json!({"$ref": "#/components/responses/503"});
        }
        let operation = json!({
            "operationId": format!("{TAG}_{name}{}", path.matches('-').count()),
            "tags": [TAG],
            "summary": about.trim_end_matches('.'),
            "description": about,
            "security": [],
            "responses": responses,
        });
        let item = paths.entry(path.to_owned()).or_default();
        item.insert("get".to_owned(), operation);
    }
}
