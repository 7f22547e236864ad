//! Describes what an operation answers: every status that the gateway can give, and the headers.

use bellwether_proto::json::plan::Plan;
use http::Method;
use serde_json::{Map, Value, json};

use super::schema;
use crate::operation::{BodyRule, Operation};

/// The one operation that gives its first answer again to a request with the same key.
const REMEMBERED: &str = "/zenoss.cloud.DataReceiverService/PutEvents";

/// Headers of every answer.
const OF_EVERY_ANSWER: [&str; 3] = ["x-request-id", "ratelimit", "ratelimit-policy"];

/// Which operations can fail with a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// There is a body.
    Body,
    /// The path or the body names something.
    Named,
    /// Something is changed, or looks like it: the method is not GET.
    Changing,
}

/// An answer that says what went wrong.
struct FailureAnswer {
    status: u16,
    when: When,
    description: &'static str,
    headers: &'static [&'static str],
}

const fn failure(status: u16, when: When, description: &'static str) -> FailureAnswer {
    FailureAnswer {
        status,
        when,
        description,
        headers: &[],
    }
}

/// What can go wrong, by status. 405 is not among them: it is no answer of an operation, but of a
/// path that has none for the method.
const FAILURES: [FailureAnswer; 14] = [
    failure(
        400,
        When::Always,
        "Something in the request is wrong, or what is stored forbids it; nothing was done. An \
         answer to a list of which every item is refused also has the members of its other answers. \
         `google.rpc.BadRequest` among the details lists every wrong field.",
    ),
    FailureAnswer {
        headers: &["www-authenticate"],
        ..failure(401, When::Always, "The key is missing or not known.")
    },
    failure(
        403,
        When::Always,
        "The key is known, and its role may not do this; the message names the role that may.",
    ),
    failure(404, When::Named, "There is nothing of that name or id."),
    failure(
        409,
        When::Changing,
        "It is there already, or was changed meanwhile (`etag`, `if-match`), or the idempotency key \
         stands for another request. Nothing was done.",
    ),
    failure(413, When::Body, "The body exceeds the limit."),
    failure(
        415,
        When::Body,
        "The body is encoded in a way that is not known: it may be compressed with gzip.",
    ),
    FailureAnswer {
        headers: &["retry-after"],
        ..failure(
            429,
            When::Always,
            "A limit is reached: the client's rate, the places for such calls, or the room on the \
             disk. Nothing was done.",
        )
    },
    failure(
        431,
        When::Always,
        "The request line and headers exceed the limit.",
    ),
    failure(499, When::Always, "The call was taken back."),
    failure(
        500,
        When::Always,
        "The fault is in the service. With the reason `OUTCOME_UNKNOWN` among the details it is not \
         known whether the request had an effect.",
    ),
    failure(
        501,
        When::Always,
        "The backend does not have this operation: it is older than the gateway.",
    ),
    FailureAnswer {
        headers: &["retry-after"],
        ..failure(
            503,
            When::Always,
            "The service is overloaded, stopping, or its backend cannot be reached.",
        )
    },
    failure(
        504,
        When::Always,
        "The request took longer than a request may; whether it had an effect is not known.",
    ),
];

impl FailureAnswer {
    fn is_of(&self, operation: &Operation) -> bool {
        let has_body = operation.body != BodyRule::None;
        match self.when {
            When::Always => true,
            When::Body => has_body,
            When::Named => has_body || !operation.template.captures.is_empty(),
            When::Changing => operation.method != Method::GET,
        }
    }
}

/// The answers of an operation, by status.
pub(super) fn of(plan: &Plan, operation: &Operation) -> Value {
    let output = &plan.messages[operation.output];
    let mut headers = referred(&OF_EVERY_ANSWER);
    if takes_key(operation) {
        headers.extend(referred(&["idempotent-replayed"]));
    }
    let mut answers = Map::new();
    if operation.method == Method::GET {
        headers.extend(referred(&["etag"]));
        let unchanged = json!({
            "description": "It is still what `if-none-match` names.",
            "headers": headers,
        });
        answers.insert("304".to_owned(), unchanged);
    }
    answers.insert(
        "200".to_owned(),
        json!({
            "description": &*output.doc,
            "headers": headers,
            "content": {"application/json": {"schema": schema::reference(&output.name)}},
        }),
    );
    for failure in FAILURES.iter().filter(|failure| failure.is_of(operation)) {
        let status = failure.status;
        let reference = json!({"$ref": format!("#/components/responses/{status}")});
        answers.insert(status.to_string(), reference);
    }
    let other = format!("#/components/responses/{OTHER}");
    answers.insert("default".to_owned(), json!({"$ref": other}));
    Value::Object(answers)
}

/// Whether an operation remembers what it answered under an idempotency key.
pub(super) fn takes_key(operation: &Operation) -> bool {
    operation.grpc_path == REMEMBERED
}

/// The header that carries the key.
pub(super) fn key_parameter() -> Value {
    json!({
        "name": "idempotency-key",
        "in": "header",
        "description": "Names this request, so that it can be sent again when its answer was lost: \
            for a day, the same client's same request under the same key is not carried out again, \
            but answered as it was the first time. 409 when the key stands for another request.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    })
}

fn referred(headers: &[&str]) -> Map<String, Value> {
    let reference = |name: &&str| {
        let reference = json!({"$ref": format!("#/components/headers/{name}")});
        ((*name).to_owned(), reference)
    };
    headers.iter().map(reference).collect()
}

/// The answers that operations refer to.
pub(super) fn responses() -> Map<String, Value> {
    let described = |description: &str, own: &[&str]| {
        let mut headers = referred(&OF_EVERY_ANSWER);
        headers.extend(referred(own));
        json!({
            "description": description,
            "headers": headers,
            "content": {"application/json": {"schema": schema::reference(ERROR)}},
        })
    };
    let of_failure = |failure: &FailureAnswer| {
        let described = described(failure.description, failure.headers);
        (failure.status.to_string(), described)
    };
    let mut responses: Map<_, _> = FAILURES.iter().map(of_failure).collect();
    responses.insert(
        OTHER.to_owned(),
        described("Anything else that goes wrong.", &[]),
    );
    responses
}

/// The name of the answer for statuses that are not listed.
const OTHER: &str = "Other";

/// The names of the schemas that every failure has.
const ERROR: &str = "Error";
const DETAIL: &str = "ErrorDetail";

/// These schemas: the JSON form of a `google.rpc.Status`, and of what stands in its details.
pub(super) fn schemas() -> [(String, Value); 2] {
    let text = |description: &str| json!({"type": "string", "description": description});
    let error = json!({
        "type": "object",
        "description": "What went wrong.",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "integer", "description": "The gRPC code."},
            "message": text("A sentence for people."),
            "details": {
                "type": "array",
                "description": "For programs: `google.rpc.BadRequest` lists every violated field, \
                    `google.rpc.ErrorInfo` names the reason, `google.rpc.RetryInfo` says when to \
                    come again.",
                "items": schema::reference(DETAIL),
            },
        },
    });
    let violation = json!({
        "type": "object",
        "required": ["description"],
        "properties": {
            "field": text("The field, as `type.event.filter`."),
            "description": text("What is wrong with it, for people."),
        },
        "additionalProperties": true,
    });
    let detail = json!({
        "type": "object",
        "description": "More about what went wrong: which members it has says `@type`.",
        "required": ["@type"],
        "properties": {
            "@type": text("`type.googleapis.com/` and the name of a message."),
            "fieldViolations": {
                "type": "array",
                "description": "Of `google.rpc.BadRequest`: every wrong field.",
                "items": violation,
            },
            "reason": text("Of `google.rpc.ErrorInfo`: the reason, in capitals."),
            "domain": text("Of `google.rpc.ErrorInfo`: whose reason it is."),
            "metadata": {
                "type": "object",
                "description": "Of `google.rpc.ErrorInfo`: more about the reason.",
                "additionalProperties": {"type": "string"},
            },
            "retryDelay": text("Of `google.rpc.RetryInfo`: how long to wait, as `1.5s`."),
        },
        "additionalProperties": true,
    });
    [(ERROR.to_owned(), error), (DETAIL.to_owned(), detail)]
}

/// The headers that answers refer to.
pub(super) fn headers() -> Value {
    let text =
        |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "x-request-id": text("The request's id, from the request or made: name it when you ask \
            about this request."),
        "ratelimit": text("What is left of the client's rates, and in how many seconds they are \
            whole again; only for a client that has any."),
        "ratelimit-policy": text("The client's rates; only for a client that has any."),
        "retry-after": {
            "description": "Seconds to wait before the request is sent again, where that is known.",
            "schema": {"type": "integer", "minimum": 0},
        },
        "etag": text("Tells this answer from every other. With a stored resource it is also one for \
            `if-match`."),
        "www-authenticate": text("That a key is to be sent as `authorization: Bearer KEY`."),
        "idempotent-replayed": {
            "description": "`true` when the answer is that of an earlier request under the same \
                key; absent otherwise.",
            "schema": {"type": "string", "enum": ["true"]},
        },
    })
}
