//! Copies the listed HTTP headers to gRPC metadata and back.

use bellwether_process::listen::{FORWARDED_FOR, REQUEST_ID};
use bellwether_proto::AGENT_KEY;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use tonic::metadata::MetadataMap;

use super::Exchange;

const REQUEST_HEADERS_FORWARDED: [&str; 6] = [
    "authorization",
    "zenoss-api-key",
    "traceparent",
    "tracestate",
    "idempotency-key",
    AGENT_KEY,
];

const RESPONSE_HEADERS_FORWARDED: [&str; 5] = [
    "ratelimit",
    "ratelimit-policy",
    "deprecation",
    "sunset",
    "idempotent-replayed",
];

/// Passes the names of the client certificate to a backend in this process; a remote backend
/// ignores the header.
const CLIENT_CERTIFICATE: HeaderName = HeaderName::from_static("x-client-certificate");

pub(super) fn request_metadata(headers: &HeaderMap, exchange: &Exchange<'_>) -> MetadataMap {
    let mut passed = HeaderMap::with_capacity(REQUEST_HEADERS_FORWARDED.len() + 2);
    if let Ok(peer) = HeaderValue::try_from(exchange.peer.to_string()) {
        passed.insert(FORWARDED_FOR, peer);
    }
    for name in exchange.certificate {
        if let Ok(name) = HeaderValue::try_from(name) {
            passed.append(CLIENT_CERTIFICATE, name);
        }
    }
    for name in REQUEST_HEADERS_FORWARDED {
        if let Some(value) = headers.get(name) {
            passed.insert(HeaderName::from_static(name), value.clone());
        }
    }
    passed.insert(REQUEST_ID, exchange.request_id.clone());
    MetadataMap::from_headers(passed)
}

pub(super) fn copy_response_headers(metadata: &MetadataMap, headers: &mut HeaderMap) {
    for name in RESPONSE_HEADERS_FORWARDED {
        let value = metadata
            .get(name)
            .map(|value| HeaderValue::from_bytes(value.as_bytes()));
        if let Some(Ok(value)) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

pub(super) fn request_size<B>(request: &Request<B>) -> usize {
    const AROUND_A_HEADER: usize = ": \r\n".len();
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |it| it.as_str().len());
    let line = request.method().as_str().len() + target + "  HTTP/1.1\r\n".len();
    let headers = request.headers().iter();
    line + headers
        .map(|(name, value)| name.as_str().len() + value.len() + AROUND_A_HEADER)
        .sum::<usize>()
}
