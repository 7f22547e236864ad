//! Generates the OpenAPI 3.1 document from the descriptors and their comments.

mod example;
mod health;
mod limit;
mod name;
mod path;
mod responses;
mod schema;

use std::collections::BTreeMap;

use bellwether_proto::json::plan::Plan;
use serde_json::{Map, Value, json};

use crate::{
    alertmanager::openapi as alertmanager, dialect::openapi as senders, operation::Operation,
};

pub(crate) fn build_document(plan: &Plan, operations: &[Operation]) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut tags = BTreeMap::new();
    for operation in operations {
        let item = paths.entry(path::path_text(operation)).or_default();
        item.insert(
            operation.method.as_str().to_lowercase(),
            path::operation_json(plan, operation),
        );
        let tag = &*operation.title;
        tags.insert(
            tag.to_owned(),
            json!({"name": tag, "description": &*operation.service_doc}),
        );
    }
    tags.insert(senders::TAG.to_owned(), senders::tag_json());
    senders::add_operations(&mut paths);
    tags.insert(health::TAG.to_owned(), health::tag_json());
    health::add_health(&mut paths);
    tags.insert(alertmanager::TAG.to_owned(), alertmanager::tag_json());
    alertmanager::add_operations(&mut paths);
    for (path, item) in &mut paths {
        for (method, operation) in item {
            if operation["x-codeSamples"].is_null() {
                example::add_command(method, path, operation);
            }
        }
    }
    let mut schemas = schema::all_schemas(plan, operations);
    schemas.extend(responses::error_schemas());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bellwether",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A notification and event service. JSON is the canonical mapping of \
                protocol buffers: zero values are omitted from responses unless a field is \
                documented as always present, and names are accepted in camelCase and in \
                snake_case.",
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
            "contact": {"name": "The operator of this service"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"key": []}],
        "tags": tags.into_values().collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses::shared_responses(),
            "headers": responses::response_headers(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "zenoss-api-key"},
            },
        },
    });
    name::shorten_operations(&mut document);
    name::shorten_schemas(&mut document);
    document
}
