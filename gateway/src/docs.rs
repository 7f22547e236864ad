//! The interface as one HTML page for people, made from the OpenAPI document.

use serde_json::Value;

/// Makes the page; it needs no other resource.
pub(crate) fn page(document: &Value) -> String {
    format!(
        "<!doctype html><title>Bellwether</title><pre>{}</pre>",
        document["openapi"]
    )
}
