//! Describes the responses of an operation: all possible statuses, and the headers.

use bellwether_proto::json::plan::Plan;
use http::Method;
use serde_json::{Map, Value, json};

use super::schema;
use crate::operation::{BodyRule, Operation};

/// The only operation with idempotency keys. It returns the first response again when a key is
/// repeated.
const REMEMBERED: &str = "/zenoss.cloud.DataReceiverService/PutEvents";

const HEADERS_OF_EVERY_RESPONSE: [&str; 3] = ["x-request-id", "ratelimit", "ratelimit-policy"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Body,
    /// The path or the body of the operation names a resource.
    Named,
    Changing,
}

struct ErrorResponse {
    status: u16,
    when: Condition,
    description: &'static str,
    headers: &'static [&'static str],
}

const fn error_response(status: u16, when: Condition, description: &'static str) -> ErrorResponse {
    ErrorResponse {
        status,
        when,
        description,
        headers: &[],
    }
}

/// Possible errors by status, except 405, which occurs only on paths without an operation for the
/// method.
const FAILURES: [ErrorResponse; 14] = [
    error_response(
        400,
        Condition::Always,
        "The request is invalid, or the stored state does not allow it; nothing was done. If \
         every item of a list is rejected, the response also has the members of a success. \
         `google.rpc.BadRequest` in the details lists every invalid field.",
    ),
    ErrorResponse {
        headers: &["www-authenticate"],
        ..error_response(401, Condition::Always, "The key is missing or unknown.")
    },
    error_response(
        403,
        Condition::Always,
        "The key's role does not allow this; the message names the required role.",
    ),
    error_response(404, Condition::Named, "No resource has this name or id."),
    error_response(
        409,
        Condition::Changing,
        "The resource already exists, or was changed concurrently (`etag`, `if-match`), or the \
         idempotency key belongs to another request. Nothing was done.",
    ),
    error_response(413, Condition::Body, "The body exceeds the limit."),
    error_response(
        415,
        Condition::Body,
        "Unsupported content encoding; only gzip is supported.",
    ),
    ErrorResponse {
        headers: &["retry-after"],
        ..error_response(
            429,
            Condition::Always,
            "A limit is reached: the client's rate limit, the number of concurrent calls of this \
             kind, or free disk space. Nothing was done.",
        )
    },
    error_response(
        431,
        Condition::Always,
        "The request line and headers exceed the limit.",
    ),
    error_response(499, Condition::Always, "The call was cancelled."),
    error_response(
        500,
        Condition::Always,
        "Internal error. With the reason `OUTCOME_UNKNOWN` in the details it is unknown whether \
         the request had an effect.",
    ),
    error_response(
        501,
        Condition::Always,
        "The backend is older than the gateway and lacks this operation.",
    ),
    ErrorResponse {
        headers: &["retry-after"],
        ..error_response(
            503,
            Condition::Always,
            "The service is overloaded or stopping, or its backend is unreachable.",
        )
    },
    error_response(
        504,
        Condition::Always,
        "The request timed out; it is unknown whether it had an effect.",
    ),
];

impl ErrorResponse {
    fn applies_to(&self, operation: &Operation) -> bool {
        let has_body = operation.body != BodyRule::None;
        match self.when {
            Condition::Always => true,
            Condition::Body => has_body,
            Condition::Named => has_body || !operation.template.captures.is_empty(),
            Condition::Changing => operation.method != Method::GET,
        }
    }
}

pub(super) fn operation_responses(plan: &Plan, operation: &Operation) -> Value {
    let output = &plan.messages[operation.output];
    let mut headers = header_refs(&HEADERS_OF_EVERY_RESPONSE);
    if requires_key(operation) {
        headers.extend(header_refs(&["idempotent-replayed"]));
    }
    let mut answers = Map::new();
    if operation.is_tagged() {
        headers.extend(header_refs(&["etag"]));
        let unchanged = json!({
            "description": "The resource still matches `if-none-match`.",
            "headers": headers,
        });
        answers.insert("304".to_owned(), unchanged);
    }
    let mut content = json!({"application/json": {"schema": schema::schema_ref(&output.name)}});
    if !operation.csv.is_empty() {
        content["text/csv"] = json!({"schema": {"type": "string"}});
    }
    let mut success = json!({"description": &*output.doc, "headers": headers});
    if !operation.is_silent {
        success["content"] = content;
    }
    answers.insert("200".to_owned(), success);
    for failure in FAILURES
        .iter()
        .filter(|failure| failure.applies_to(operation))
    {
        let status = failure.status;
        let reference = json!({"$ref": format!("#/components/responses/{status}")});
        answers.insert(status.to_string(), reference);
    }
    let other = format!("#/components/responses/{OTHER}");
    answers.insert("default".to_owned(), json!({"$ref": other}));
    Value::Object(answers)
}

pub(super) fn requires_key(operation: &Operation) -> bool {
    operation.grpc_path == REMEMBERED
}

pub(super) fn key_parameter() -> Value {
    json!({
        "name": "idempotency-key",
        "in": "header",
        "description": "Identifies this request, so that it can be retried if the response was \
            lost: for a day, the same request of the same client with the same key is \
            not executed again and returns the first response. 409 if the key belongs \
            to another request.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    })
}

fn header_refs(headers: &[&str]) -> Map<String, Value> {
    let reference = |name: &&str| {
        let reference = json!({"$ref": format!("#/components/headers/{name}")});
        ((*name).to_owned(), reference)
    };
    headers.iter().map(reference).collect()
}

pub(super) fn shared_responses() -> Map<String, Value> {
    let described = |description: &str, own: &[&str]| {
        let mut headers = header_refs(&HEADERS_OF_EVERY_RESPONSE);
        headers.extend(header_refs(own));
        json!({
            "description": description,
            "headers": headers,
            "content": {"application/json": {"schema": schema::schema_ref(ERROR)}},
        })
    };
    let of_failure = |failure: &ErrorResponse| {
        let described = described(failure.description, failure.headers);
        (failure.status.to_string(), described)
    };
    let mut responses: Map<_, _> = FAILURES.iter().map(of_failure).collect();
    responses.insert(OTHER.to_owned(), described("Any other error.", &[]));
    responses
}

const OTHER: &str = "Other";

const ERROR: &str = "Error";
const DETAIL: &str = "ErrorDetail";

/// Returns the error schemas: the JSON form of a `google.rpc.Status` and of its details.
pub(super) fn error_schemas() -> [(String, Value); 2] {
    let text = |description: &str| json!({"type": "string", "description": description});
    let error = json!({
        "type": "object",
        "description": "What went wrong.",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "integer", "description": "The gRPC code."},
            "message": text("A human-readable message."),
            "details": {
                "type": "array",
                "description": "Machine-readable details: `google.rpc.BadRequest` lists every \
                    invalid field, `google.rpc.ErrorInfo` contains the reason, \
                    `google.rpc.RetryInfo` the time to wait before a retry.",
                "items": schema::schema_ref(DETAIL),
            },
        },
    });
    let violation = json!({
        "type": "object",
        "required": ["description"],
        "properties": {
            "field": text("The field, such as `type.event.filter`."),
            "description": text("A human-readable error message."),
        },
        "additionalProperties": true,
    });
    let detail = json!({
        "type": "object",
        "description": "Details of the error; `@type` determines the other members.",
        "required": ["@type"],
        "properties": {
            "@type": text("`type.googleapis.com/` followed by the name of a message."),
            "fieldViolations": {
                "type": "array",
                "description": "For `google.rpc.BadRequest`: all invalid fields.",
                "items": violation,
            },
            "reason": text("For `google.rpc.ErrorInfo`: the reason, in capitals."),
            "domain": text("For `google.rpc.ErrorInfo`: the domain that defines the reason."),
            "metadata": {
                "type": "object",
                "description": "For `google.rpc.ErrorInfo`: details of the reason.",
                "additionalProperties": {"type": "string"},
            },
            "retryDelay": text("For `google.rpc.RetryInfo`: the delay, such as `1.5s`."),
        },
        "additionalProperties": true,
    });
    [(ERROR.to_owned(), error), (DETAIL.to_owned(), detail)]
}

pub(super) fn response_headers() -> Value {
    let text =
        |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "x-request-id": text("The request's id, from the request or generated: include it in \
            support requests."),
        "ratelimit": text("The remaining rate limits of the client, and the seconds until they \
            reset; only for a client with rate limits."),
        "ratelimit-policy": text("The rate limits of the client; absent without limits."),
        "retry-after": {
            "description": "Seconds to wait before a retry, if known.",
            "schema": {"type": "integer", "minimum": 0},
        },
        "etag": text("Identifies this version of the response. Can be used in `if-match` for a \
            stored resource."),
        "www-authenticate": text("Requests a key as `authorization: Bearer KEY`."),
        "idempotent-replayed": {
            "description": "`true` if the response is that of an earlier request with the same \
                key; absent otherwise.",
            "schema": {"type": "string", "enum": ["true"]},
        },
    })
}
