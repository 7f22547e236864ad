//! Builds a request from path, query, body and `If-Match`. The path takes precedence over the body,
//! and the body over the query.

use bellwether_proto::json::{
    plan::{Kind, MessageId, Plan},
    read::{self, Options, Read, RejectReason},
    violation::{Violations, quote_for_message},
    wire::{self, Value},
};
use bellwether_proto::repair;
use http::{HeaderMap, Method, header};

use crate::{
    etag,
    operation::{BodyRule, BoundPath, Operation},
    problem::Problem,
    query, route,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    /// Captured path segments, still encoded.
    pub(crate) captures: &'a [&'a str],
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

pub(crate) fn bind_request(
    plan: &Plan,
    operation: &Operation,
    parts: RequestParts<'_>,
) -> Result<Read, Problem> {
    let mut violations = Violations::default();
    let mut out = query::read(plan, operation, parts.query, &mut violations);
    let mut read = match operation.body_message() {
        None => Read::default(),
        Some(message) => bind_body(plan, operation, message, parts.body, &mut violations)?,
    };
    let mut body = std::mem::take(&mut read.wire);
    if let Some(message) = operation.body_message() {
        fill_if_match(
            plan,
            operation,
            message,
            parts.headers,
            &mut body,
            &mut violations,
        );
    }
    let is_field = matches!(operation.body, BodyRule::Field(..));
    for (binding, capture) in operation.path_bindings.iter().zip(parts.captures) {
        match route::decode_segment(capture) {
            // The field is in the request, not in the body.
            Some(value) if is_field && !binding.in_body_field => {
                wire::put_bytes_field(&mut out, binding.number, value.as_bytes());
            }
            Some(value) => fill_parameters(&mut body, binding, &value, &mut violations),
            None => violations.add_at(
                &*binding.json_name,
                "is not valid percent-encoding in the path",
            ),
        }
    }
    if !violations.is_empty() {
        return Err(Problem::violations(&violations));
    }
    match operation.body {
        BodyRule::Field(number, _) => wire::put_bytes_field(&mut out, number, &body),
        BodyRule::None | BodyRule::Optional | BodyRule::Whole => out.extend_from_slice(&body),
    }
    read.wire = out;
    Ok(read)
}

fn bind_body(
    plan: &Plan,
    operation: &Operation,
    message: MessageId,
    body: &[u8],
    violations: &mut Violations,
) -> Result<Read, Problem> {
    if body.is_empty() && operation.body == BodyRule::Optional {
        return Ok(Read::default());
    }
    if body.is_empty() {
        return Err(Problem::invalid("the body is empty: send a JSON object"));
    }
    let repaired = operation.lenient.then(|| repair::repair_json(body));
    let body = repaired.as_deref().unwrap_or(body);
    let depth = usize::from(matches!(operation.body, BodyRule::Field(..)));
    match read::read(
        plan,
        message,
        body,
        Options {
            lenient: operation.lenient,
            depth,
            list: operation.list_plan(plan),
        },
    ) {
        Ok(read) => Ok(read),
        Err(RejectReason::Syntax(text)) => {
            Err(Problem::invalid(format!("the body is not JSON: {text}")))
        }
        Err(RejectReason::Violations(found)) => {
            violations.append(found);
            Ok(Read::default())
        }
    }
}

/// Sets a text field from the path. The body may omit or repeat it, but not contradict it.
fn fill_parameters(
    body: &mut Vec<u8>,
    binding: &BoundPath,
    value: &str,
    violations: &mut Violations,
) {
    match wire::find_last(body, binding.number) {
        Some(Value::Bytes(other)) if !other.is_empty() && other != value.as_bytes() => {
            let other = quote_for_message(&String::from_utf8_lossy(other));
            let value = quote_for_message(value);
            let description = format!("is {other} in the body but {value} in the path");
            violations.add_at(&*binding.json_name, description);
        }
        Some(Value::Bytes(other)) if other == value.as_bytes() => {}
        _ => wire::put_bytes_field(body, binding.number, value.as_bytes()),
    }
}

/// Sets the `etag` from the `If-Match` header: a tag, a list of alternatives, or `*`.
fn fill_if_match(
    plan: &Plan,
    operation: &Operation,
    message: MessageId,
    headers: &HeaderMap,
    body: &mut Vec<u8>,
    violations: &mut Violations,
) {
    let changes = [Method::PUT, Method::PATCH, Method::DELETE].contains(&operation.method);
    let field = plan
        .field(message, "etag")
        .filter(|field| field.kind == Kind::String);
    let (true, Some(field), true) = (changes, field, headers.contains_key(header::IF_MATCH)) else {
        return;
    };
    let given = headers.get_all(header::IF_MATCH).iter();
    let lists: Vec<_> = given
        .map(|list| list.to_str().unwrap_or_default())
        .collect();
    let list = lists.join(",");
    let tags: Vec<_> = etag::parse_list(&list).map(etag::resource_part).collect();
    if tags.is_empty() || tags.iter().any(|tag| tag.contains('"')) {
        let description =
            "must be entity tags separated by commas, or `*`, in the header `if-match`";
        violations.add_at("etag", description);
        return;
    }
    if tags.contains(&"*") {
        return;
    }
    match wire::find_last(body, field.number) {
        Some(Value::Bytes([])) | None => {
            wire::put_bytes_field(body, field.number, tags.join(",").as_bytes());
        }
        Some(Value::Bytes(other))
            if std::str::from_utf8(other)
                .is_ok_and(|it| tags.contains(&etag::resource_part(etag::unquote_tag(it)))) => {}
        Some(_) => {
            let description = "differs between the body and the header `if-match`";
            violations.add_at("etag", description);
        }
    }
}
