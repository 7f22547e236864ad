//! The interface as an OpenAPI 3.1 document, made from the descriptors and their comments.

mod path;
mod schema;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::plan::Plan;

/// Makes the document.
pub(crate) fn document(plan: &Plan) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut tags = BTreeMap::new();
    for operation in &plan.operations {
        let item = paths.entry(path::text(operation)).or_default();
        item.insert(
            operation.method.as_str().to_lowercase(),
            path::operation(plan, operation),
        );
        let tag = path::tag(operation);
        tags.insert(
            tag.to_owned(),
            json!({"name": tag, "description": &*operation.service_doc}),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bellwether",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A notification and event service. JSON is the canonical mapping of \
                protocol buffers: zero values are left out of answers unless a field says that it \
                is always answered, and names are taken in camelCase and in snake_case.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"key": []}],
        "tags": tags.into_values().collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schema::all(plan),
            "responses": {"Error": error_response()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "zenoss-api-key"},
            },
        },
    })
}

/// What every operation answers when it fails.
fn error_response() -> Value {
    json!({
        "description": "What went wrong. Also sent by the gateway itself: 404 unknown path, \
            405 wrong method, 413 body too large, 431 headers too large, 503 overloaded or backend \
            away, 504 too slow.",
        "headers": {
            "retry-after": {
                "description": "Seconds to wait before trying again; with 429 and 503.",
                "schema": {"type": "integer"},
            },
        },
        "content": {"application/json": {"schema": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "integer", "description": "The gRPC code."},
                "message": {"type": "string", "description": "A sentence for people."},
                "details": {
                    "type": "array",
                    "description": "`google.rpc.BadRequest` lists every violated field; \
                        `google.rpc.ErrorInfo` and `google.rpc.RetryInfo` are for programs.",
                    "items": {
                        "type": "object",
                        "required": ["@type"],
                        "properties": {"@type": {"type": "string"}},
                    },
                },
            },
        }}},
    })
}
