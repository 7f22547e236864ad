//! Conversion of failed calls, classified by what the operator can do.

use std::error::Error;

use bellwether_process::cause;
use bellwether_proto::json;
use tonic_types::StatusExt;

use crate::{
    data::{Failure, FailureKind, FieldError},
    limits,
};

/// Error messages for a connection that was closed before all data was read.
const CUT_OFF: [&str; 5] = [
    "connection closed",
    "connection was not ready",
    "broken pipe",
    "connection reset by peer",
    "operation was canceled",
];

const UNREACHABLE: &str = "SERVICE_UNREACHABLE";
const TLS: &str = "TLS_EXPECTED";
const SECURED: &str = "the server at that address does not speak unencrypted gRPC; if it has a \
                       certificate use `https://`";

pub(crate) fn failure(status: &tonic::Status) -> Failure {
    use tonic::Code;
    let kind = match status.code() {
        _ if is_not_grpc(status) => FailureKind::Unreachable,
        Code::Unavailable => FailureKind::Unreachable,
        // If a call was cancelled because the connection closed, it did not time out.
        Code::Cancelled if status.source().is_some_and(is_eof) => FailureKind::Unreachable,
        Code::DeadlineExceeded | Code::Cancelled => FailureKind::TimedOut,
        Code::Unauthenticated => FailureKind::Unauthenticated,
        Code::PermissionDenied => FailureKind::Denied,
        Code::NotFound => FailureKind::NotFound,
        Code::Aborted | Code::AlreadyExists => FailureKind::Conflict,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => FailureKind::Invalid,
        Code::Unimplemented => FailureKind::Unsupported,
        // A connection that breaks during a call is reported as an unknown error with its cause.
        Code::Unknown | Code::Internal if disconnect_reason(status).is_some() => {
            FailureKind::Unreachable
        }
        _ => FailureKind::Internal,
    };
    let details = status.get_details_bad_request();
    let violations = details.map(|details| details.field_violations);
    let fields = violations.into_iter().flatten().map(|item| FieldError {
        path: item.field,
        message: item.description,
    });
    let (code, message) = match kind {
        // Rephrased, because gRPC's message does not say which side has the limit.
        FailureKind::Invalid if is_too_large(status) => {
            let most = limits::MESSAGE_BYTES / (1024 * 1024);
            let message = format!("the response is larger than this console's limit of {most} MiB");
            ("", message)
        }
        FailureKind::Unreachable => {
            disconnect_reason(status).unwrap_or_else(|| (UNREACHABLE, status.message().to_owned()))
        }
        _ => ("", status.message().to_owned()),
    };
    let info = status.get_details_error_info();
    Failure {
        kind,
        code: info.map_or_else(|| code.to_owned(), |info| info.reason),
        message,
        fields: fields.collect(),
    }
}

fn is_too_large(status: &tonic::Status) -> bool {
    status.code() == tonic::Code::OutOfRange
        && status.message().contains("message length too large")
}

/// Returns the code and the reason if the connection broke during a call.
fn disconnect_reason(status: &tonic::Status) -> Option<(&'static str, String)> {
    if is_not_grpc(status) {
        let why = "the server at that address does not speak gRPC; it may be the REST address: use \
                   the gRPC address, by default with port 8481";
        return Some(("REST_ADDRESS", why.to_owned()));
    }
    if let Some(source) = status.source() {
        return Some(broken_connection_reason(source));
    }
    is_not_http2(status.message()).then(|| (TLS, SECURED.to_owned()))
}

/// Whether a response is not gRPC, recognized by tonic's error messages.
fn is_not_grpc(status: &tonic::Status) -> bool {
    let words = status.message();
    words.contains("received message with invalid compression flag")
        || words.contains("status header missing, mapped from HTTP status code")
}

/// Whether a response is not HTTP/2, such as that of a TLS server, recognized by the error message.
fn is_not_http2(words: &str) -> bool {
    words == "h2 protocol error: http2 error" || words.ends_with("frame with invalid size")
}

pub(crate) fn unreachable(error: &tonic::transport::Error) -> Failure {
    let (code, message) = broken_connection_reason(error);
    Failure {
        code: code.to_owned(),
        ..Failure::new(FailureKind::Unreachable, message)
    }
}

/// Returns the code and the reason of a broken connection, with a remedy where one is known.
fn broken_connection_reason(error: &(dyn Error + 'static)) -> (&'static str, String) {
    let text = cause::innermost(error).to_string();
    let tls = cause::find_cause::<rustls::Error>(error).cloned();
    if let Some(error) = tls.or_else(|| cause::find_alert(&text)) {
        let code = match error {
            rustls::Error::InvalidMessage(_) => TLS,
            _ => "CERTIFICATE_NOT_ACCEPTED",
        };
        return (code, cause::explain_error(&error, "tls_ca"));
    }
    if is_not_http2(&text) {
        return (TLS, SECURED.to_owned());
    }
    // The TLS alert is lost if the connection was closed before it was read.
    if is_eof(error) {
        let why = "the service closed the connection; it may require a client certificate \
                   (`tls_client_cert`), or TLS instead of `http://`: use `https://`";
        return (TLS, why.to_owned());
    }
    let words = text.split_once(" (os error ");
    let words = words.map(|(words, _number)| words.to_lowercase());
    (UNREACHABLE, words.unwrap_or(text))
}

fn is_eof(error: &(dyn Error + 'static)) -> bool {
    let text = cause::innermost(error).to_string().to_lowercase();
    CUT_OFF.iter().any(|it| text.starts_with(it))
}

pub(crate) fn malformed_response(error: &json::Error) -> Failure {
    let message = error.to_string();
    let fields = match &error {
        json::Error::Rejected(json::read::RejectReason::Violations(found)) => {
            let fields = found.as_slice().iter().map(|violation| FieldError {
                path: violation.field.clone(),
                message: violation.description.clone(),
            });
            fields.collect()
        }
        _ => Vec::new(),
    };
    Failure {
        fields,
        ..Failure::new(FailureKind::Invalid, message)
    }
}
