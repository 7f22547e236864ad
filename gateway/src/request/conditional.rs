//! Entity tags of responses to GET, and conditional requests.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash as _, Hasher as _},
};

use bellwether_proto::json::{
    plan::{Kind, MessageId, Plan},
    wire::{self, Value},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::Reply;
use crate::etag;

/// Adds an `ETag` to a response, and returns 304 if it matches `If-None-Match`. The tag begins with
/// `stored`, the etag of the returned resource, so that it is valid for `If-Match`. It ends with a
/// hash of the response, which can change without the resource.
pub(super) fn with_etag(reply: Reply, request_headers: &HeaderMap, stored: Option<&str>) -> Reply {
    let mut hasher = DefaultHasher::new();
    reply.body.hash(&mut hasher);
    let tag = etag::response_tag(stored, hasher.finish());
    let Ok(value) = HeaderValue::try_from(format!("\"{tag}\"")) else {
        return reply;
    };
    let known = |list: &str| etag::parse_list(list).any(|known| known == "*" || known == tag);
    let request_headers = request_headers.get_all(header::IF_NONE_MATCH).iter();
    let is_known = request_headers
        .filter_map(|list| list.to_str().ok())
        .any(known);
    let mut reply = if is_known {
        Reply::without_body(StatusCode::NOT_MODIFIED, reply.headers)
    } else {
        reply
    };
    reply.headers.insert(header::ETAG, value);
    reply
}

pub(super) fn stored_etag<'a>(plan: &Plan, output: MessageId, answer: &'a [u8]) -> Option<&'a str> {
    plan.messages[output].fields.iter().find_map(|field| {
        let Kind::Message(id) = field.kind else {
            return None;
        };
        let etag = plan.field(id, "etag")?;
        let Some(Value::Bytes(resource)) = wire::find_last(answer, field.number) else {
            return None;
        };
        match wire::find_last(resource, etag.number) {
            Some(Value::Bytes(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    })
}
