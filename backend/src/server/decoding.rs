//! Converts errors of undecodable messages to the usual codes.
//!
//! tonic returns `OUT_OF_RANGE` for a message above the size limit and `INTERNAL` for malformed
//! bytes. Clients expect these codes to mean something else.

use http::Response;
use prost::DecodeError;
use tonic::{Code, Status};

use crate::limits::REQUEST_BYTES_MAX;
pub(super) use crate::rpc::access::too_large_status;

fn parse_limit(text: &str) -> usize {
    let limit = text.rsplit_once("the limit is: ");
    let limit = limit.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    limit.unwrap_or(REQUEST_BYTES_MAX)
}

pub(super) fn malformed_status(error: &DecodeError) -> Status {
    Status::invalid_argument(error.to_string())
}

fn is_decode_message(text: &str) -> bool {
    const MESSAGES: [&str; 4] = [
        "failed to decode Protobuf message",
        "protocol error: received message with",
        "Missing request message.",
        "Unexpected EOF decoding stream.",
    ];
    MESSAGES.iter().any(|message| text.starts_with(message))
}

/// Rewrites tonic's response to an undecodable message. Other responses are unchanged.
pub(super) fn rewrite_response<Body>(mut response: Response<Body>) -> Response<Body> {
    if !response.headers().contains_key(Status::GRPC_STATUS) {
        return response;
    }
    let Some(status) = Status::from_header_map(response.headers()) else {
        return response;
    };
    let text = status.message();
    let rewritten = match status.code() {
        Code::OutOfRange if text.contains("message length too large") => {
            too_large_status(parse_limit(text))
        }
        Code::Internal if is_decode_message(text) => Status::invalid_argument(text),
        _ => return response,
    };
    // Fails only for strings that are invalid in a header, which these are not.
    let _ = rewritten.add_header(response.headers_mut());
    response
}
