//! Messages that cannot be decoded, answered in the codes that other clients know.
//!
//! tonic answers `OUT_OF_RANGE` to a message over the size limit and `INTERNAL` to bytes that are no
//! message, which mean something else to every other client.

use http::Response;
use prost::DecodeError;
use tonic::{Code, Status};

use crate::limits::REQUEST_BYTES_MAX;
pub(super) use crate::rpc::access::too_large;

/// The limit that tonic names in its answer.
fn limit_in(text: &str) -> usize {
    let limit = text.rsplit_once("the limit is: ");
    let limit = limit.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    limit.unwrap_or(REQUEST_BYTES_MAX)
}

/// The bytes are no message of the method.
pub(super) fn malformed(error: &DecodeError) -> Status {
    Status::invalid_argument(error.to_string())
}

/// What tonic says of bytes that are no message, no beginning of one, or none at all.
fn is_of_bytes(text: &str) -> bool {
    const FAULTS: [&str; 4] = [
        "failed to decode Protobuf message",
        "protocol error: received message with",
        "Missing request message.",
        "Unexpected EOF decoding stream.",
    ];
    FAULTS.iter().any(|fault| text.starts_with(fault))
}

/// Rewrites tonic's answer to a message that it could not decode; leaves every other answer as it
/// is.
pub(super) fn rewrite<Body>(mut response: Response<Body>) -> Response<Body> {
    if !response.headers().contains_key(Status::GRPC_STATUS) {
        return response;
    }
    let Some(status) = Status::from_header_map(response.headers()) else {
        return response;
    };
    let text = status.message();
    let rewritten = match status.code() {
        Code::OutOfRange if text.contains("message length too large") => too_large(limit_in(text)),
        Code::Internal if is_of_bytes(text) => Status::invalid_argument(text),
        _ => return response,
    };
    // Only what cannot be in a header is refused here, and these texts can.
    let _ = rewritten.add_header(response.headers_mut());
    response
}
