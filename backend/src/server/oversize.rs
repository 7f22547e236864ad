//! Messages over the size limit, answered as `RESOURCE_EXHAUSTED`.
//!
//! tonic answers `OUT_OF_RANGE`, which means something else to every other client.

use http::{HeaderValue, Response};

use crate::limits::REQUEST_BYTES_MAX;

const OUT_OF_RANGE: &[u8] = b"11";
const RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");

/// Rewrites the answer to an oversized message; leaves every other answer as it is.
pub(crate) fn rewrite<Body>(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    let is_oversize = headers
        .get("grpc-status")
        .is_some_and(|code| code == OUT_OF_RANGE)
        && headers
            .get("grpc-message")
            .and_then(|message| message.to_str().ok())
            .is_some_and(|message| message.contains("message%20length%20too%20large"));
    if is_oversize {
        headers.insert("grpc-status", RESOURCE_EXHAUSTED);
        let message = format!("the message is larger than {REQUEST_BYTES_MAX} bytes");
        let encoded = message.replace(' ', "%20");
        if let Ok(value) = HeaderValue::from_str(&encoded) {
            headers.insert("grpc-message", value);
        }
    }
    response
}
