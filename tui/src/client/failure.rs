//! Conversion of failed calls, classified by what the operator can do.

use std::error::Error;

use bellwether_process::cause;
use bellwether_proto::json;
use tonic_types::StatusExt;

use crate::{
    data::{Failure, FailureKind, FieldError},
    limits,
};

/// Error messages for a connection that was closed before its last data was read.
const CUT_OFF: [&str; 5] = [
    "connection closed",
    "connection was not ready",
    "broken pipe",
    "connection reset by peer",
    "operation was canceled",
];

const SECURED: &str = "the server at that address does not speak unencrypted gRPC; for a service with a \
                       certificate use `https://`";

pub(crate) fn failure(status: &tonic::Status) -> Failure {
    use tonic::Code;
    let kind = match status.code() {
        _ if is_not_grpc(status) => FailureKind::Unreachable,
        Code::Unavailable => FailureKind::Unreachable,
        // A call cancelled because its connection closed did not time out.
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
        Code::Unknown | Code::Internal if broken_reason(status).is_some() => {
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
    let message = match kind {
        // The message of gRPC does not identify the side with the limit.
        FailureKind::Invalid if is_too_large(status) => format!(
            "the response is larger than this console's limit of {} MiB",
            limits::MESSAGE_BYTES / (1024 * 1024)
        ),
        FailureKind::Unreachable => failure_reason(status),
        _ => status.message().to_owned(),
    };
    Failure {
        kind,
        message,
        fields: fields.collect(),
    }
}

fn is_too_large(status: &tonic::Status) -> bool {
    status.code() == tonic::Code::OutOfRange
        && status.message().contains("message length too large")
}

/// Returns the reason why the connection broke during a call; `None` if it did not.
pub fn broken_reason(status: &tonic::Status) -> Option<String> {
    if is_not_grpc(status) {
        return Some(
            "the server at that address does not speak gRPC; it may be the REST address: use the \
             gRPC address, by default with port 8481"
                .to_owned(),
        );
    }
    if let Some(source) = status.source() {
        return Some(reason(source));
    }
    is_not_http2(status.message()).then(|| SECURED.to_owned())
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

/// Returns the reason why a call failed. For a broken connection, it suggests a remedy.
pub fn failure_reason(status: &tonic::Status) -> String {
    broken_reason(status).unwrap_or_else(|| status.message().to_owned())
}

pub(super) fn unreachable(error: &tonic::transport::Error) -> Failure {
    Failure::new(FailureKind::Unreachable, unreachable_reason(error))
}

pub fn unreachable_reason(error: &tonic::transport::Error) -> String {
    reason(error)
}

fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = cause::find::<rustls::Error>(error) {
        return cause::explain(error, "tls_ca");
    }
    let text = cause::innermost(error).to_string();
    if let Some(error) = cause::alert(&text) {
        return cause::explain(&error, "tls_ca");
    }
    if is_not_http2(&text) {
        return SECURED.to_owned();
    }
    // The TLS alert is lost if the connection was closed before it was read.
    if is_eof(error) {
        return "the service closed the connection; it may require a client certificate \
                (`tls_client_cert`), or TLS instead of `http://`: use `https://`"
            .to_owned();
    }
    match text.split_once(" (os error ") {
        Some((words, _number)) => words.to_lowercase(),
        None => text,
    }
}

fn is_eof(error: &(dyn Error + 'static)) -> bool {
    let text = cause::innermost(error).to_string().to_lowercase();
    CUT_OFF.iter().any(|it| text.starts_with(it))
}

pub(crate) fn malformed(error: &json::Error) -> Failure {
    let message = error.to_string();
    let fields = match &error {
        json::Error::Rejected(json::read::Rejected::Violations(found)) => {
            let fields = found.list().iter().map(|violation| FieldError {
                path: violation.field.clone(),
                message: violation.description.clone(),
            });
            fields.collect()
        }
        _ => Vec::new(),
    };
    Failure {
        kind: FailureKind::Invalid,
        message,
        fields,
    }
}
