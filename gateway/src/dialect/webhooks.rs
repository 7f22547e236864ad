//! Webhooks from any service, which the backend converts with a stored mapping.

use std::collections::BTreeMap;

use bellwether_proto::v1::ReceiveWebhookRequest;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::json;

use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, IncomingRequest, Success,
    Translation, consent, plain_error,
};
use crate::limits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "webhooks",
    bodies: BodyLimit::Usual,
    is_json: |_| false,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/webhooks/{mapping}",
            about: "Accepts webhooks from any service through a stored mapping.",
            success: StatusCode::OK,
            open: false,
            read,
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/webhooks/{mapping}/{key}",
            about: "Same, with the key in the path.",
            success: StatusCode::OK,
            open: false,
            read,
        },
        consent::endpoint("/v1/intake/webhooks/{mapping}"),
        consent::endpoint("/v1/intake/webhooks/{mapping}/{key}"),
    ],
    error_response: plain_error,
};

const HIDDEN: [&str; 5] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-routing-key",
    "zenoss-api-key",
];

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let mapping = incoming.captures.first().cloned().unwrap_or_default();
    if incoming.body.is_empty() {
        return Err(DialectError::new_invalid("the body is empty: send JSON"));
    }
    let success = Success::from_outcome(|outcome| {
        let body = if !outcome.validation.is_empty() {
            json!({"validationResponse": outcome.validation})
        } else if let Ok(reply) = serde_json::from_str(&outcome.reply) {
            reply
        } else {
            json!({"succeeded": outcome.result.succeeded, "dropped": outcome.dropped})
        };
        DialectResponse::json(StatusCode::OK, &body)
    });
    Ok(Translation {
        webhook: Some(ReceiveWebhookRequest {
            mapping,
            body: Bytes::copy_from_slice(incoming.body).into(),
            headers: loggable_headers(incoming.headers),
        }),
        ..Translation::from_events(Vec::new(), success)
    })
}

fn loggable_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let named = headers
        .iter()
        .filter(|(name, _)| !HIDDEN.contains(&name.as_str()));
    let texts = named.filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    texts.take(limits::WEBHOOK_HEADERS).collect()
}
