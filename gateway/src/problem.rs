//! Error responses, and the only mapping from gRPC codes to HTTP.

use std::error::Error as _;

use bellwether_process::cause;
use bellwether_proto::{
    ERROR_DOMAIN,
    json::{plan::Plan, violation::Violations, write},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use prost::Message as _;
use prost_types::Any;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::limits;

#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: Code,
    pub(crate) message: String,
    details: Vec<Any>,
    retry_after_s: Option<u64>,
    allow: Vec<Method>,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            status: http_status(code),
            code,
            message: message.into(),
            details: vec![error_info(reason_for_code(code))],
            retry_after_s: None,
            allow: Vec::new(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub(crate) fn violations(violations: &Violations) -> Self {
        let field_violations =
            violations
                .as_slice()
                .iter()
                .map(|violation| pb::bad_request::FieldViolation {
                    field: violation.field.clone(),
                    description: violation.description.clone(),
                    ..Default::default()
                });
        let details = pb::BadRequest {
            field_violations: field_violations.collect(),
        };
        let mut problem = Self::invalid(violations.to_sentence());
        problem.details = vec![
            error_info("FIELDS_INVALID"),
            pack_any("google.rpc.BadRequest", &details),
        ];
        problem
    }

    pub(crate) fn wrong_host() -> Self {
        let why = "the header `host` names another service; the setting `hosts` lists the names \
                   of this one";
        Self {
            status: StatusCode::MISDIRECTED_REQUEST,
            ..Self::new(Code::InvalidArgument, why)
        }
    }

    pub(crate) fn unknown_path() -> Self {
        Self::new(
            Code::NotFound,
            "unknown path; GET /openapi.json lists all paths",
        )
    }

    /// Returns the error for a path that belongs to an unsupported part of the published interface.
    pub(crate) fn events_only_key() -> Self {
        Self::new(
            Code::Unimplemented,
            "this service ingests events only; send them to /v1/data-receiver/events",
        )
    }

    pub(crate) fn wrong_method(mut allow: Vec<Method>) -> Self {
        allow.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        allow.dedup();
        let names = join_names(&allow);
        let message = format!("method not allowed for this path; allowed: {names}");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self {
            status,
            allow,
            ..Self::new(Code::Unimplemented, message)
        }
    }

    pub(crate) fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!("the body exceeds {limit_bytes} bytes; send less at a time");
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self {
            status,
            ..Self::new(Code::ResourceExhausted, message)
        }
    }

    pub(crate) fn unknown_encoding() -> Self {
        let message = "the content encoding is not supported; send the body uncompressed, or \
                       compressed once with gzip";
        Self {
            status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ..Self::invalid(message)
        }
    }

    pub(crate) fn headers_too_large(limit_bytes: usize) -> Self {
        let message = format!("the request line and headers exceed {limit_bytes} bytes");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self {
            status,
            ..Self::new(Code::ResourceExhausted, message)
        }
    }

    pub(crate) fn deadline_exceeded() -> Self {
        Self::new(Code::DeadlineExceeded, "the request timed out; try again")
    }

    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "internal error")
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        let mut problem = Self::new(Code::Unavailable, message);
        let seconds = limits::RETRY_AFTER_S;
        problem.retry_after_s = Some(seconds);
        let retry_delay = i64::try_from(seconds).unwrap_or_default();
        let delay = prost_types::Duration {
            seconds: retry_delay,
            nanos: 0,
        };
        let details = pb::RetryInfo {
            retry_delay: Some(delay),
        };
        problem
            .details
            .push(pack_any("google.rpc.RetryInfo", &details));
        problem
    }

    pub(crate) fn from_status(status: &Status, body_limit_bytes: usize) -> Self {
        if let Some(problem) = Self::from_transport(status, body_limit_bytes) {
            return problem;
        }
        let mut problem = Self::new(status.code(), status.message());
        if let Ok(mut details) = pb::Status::decode(status.details())
            && !details.details.is_empty()
        {
            let is_public = |detail: &Any| !detail.type_url.ends_with("google.rpc.DebugInfo");
            details.details.retain(is_public);
            problem.details = details.details;
        }
        problem.retry_after_s = problem.details.iter().find_map(retry_after_s);
        if problem.code == Code::Unavailable {
            problem.retry_after_s = problem.retry_after_s.or(Some(limits::RETRY_AFTER_S));
        }
        problem
    }

    /// Converts an error that tonic generated for a failed call. Its codes are often misleading and
    /// its messages technical.
    fn from_transport(status: &Status, body_limit_bytes: usize) -> Option<Self> {
        const TOO_LARGE: &str = "Error, decoded message length too large";
        const LOCAL: [&str; 6] = [
            "Missing response message.",
            "Unexpected EOF decoding stream.",
            "protocol error:",
            "grpc-status header missing",
            "Error decompressing",
            "h2 protocol error",
        ];
        if let Some(why) = tls_error(status) {
            let why = format!("cannot reach the backend: {why}");
            return Some(Self::unavailable(why));
        }
        let text = status.message();
        let answer_limit = format!("the limit is: {} bytes", limits::ANSWER_BYTES);
        match status.code() {
            Code::OutOfRange if text.starts_with(TOO_LARGE) && text.ends_with(&answer_limit) => {
                Some(Self::new(
                    Code::Internal,
                    "the response is too large; request less at a time",
                ))
            }
            Code::OutOfRange if text.starts_with(TOO_LARGE) => {
                Some(Self::body_too_large(body_limit_bytes))
            }
            Code::Cancelled if text == "Timeout expired" => Some(Self::deadline_exceeded()),
            code if status.source().is_some() || LOCAL.iter().any(|it| text.starts_with(it)) => {
                Some(match code {
                    Code::Unavailable => Self::unavailable("cannot reach the backend"),
                    _ if is_connection_error(status) => Self::unavailable(
                        "lost the connection to the backend; it is unknown whether the request had an effect",
                    ),
                    Code::DeadlineExceeded => Self::deadline_exceeded(),
                    Code::ResourceExhausted => Self::unavailable("the backend is overloaded"),
                    _ => Self::internal(),
                })
            }
            _ => None,
        }
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(seconds) = self.retry_after_s
            && matches!(self.code, Code::ResourceExhausted | Code::Unavailable)
        {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            let value = HeaderValue::from_static("Bearer realm=\"bellwether\"");
            headers.insert(header::WWW_AUTHENTICATE, value);
        }
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Ok(allow) = HeaderValue::try_from(join_names(&self.allow))
            && !self.allow.is_empty()
        {
            headers.insert(header::ALLOW, allow);
        }
        headers
    }

    pub(crate) fn body(&self, plan: &Plan) -> Vec<u8> {
        let status = |details| pb::Status {
            code: i32::from(self.code),
            message: self.message.clone(),
            details,
        };
        let mut out = Vec::new();
        for details in [self.details.clone(), Vec::new()] {
            // If the backend's details are malformed, the error is returned without them.
            let bytes = status(details).encode_to_vec();
            let written = plan
                .by_name
                .get("google.rpc.Status")
                .map(|id| write::write(plan, *id, &bytes, &mut out));
            if matches!(written, Some(Ok(()))) {
                break;
            }
            out.clear();
        }
        out
    }
}

fn tls_error(status: &Status) -> Option<String> {
    let source = status.source()?;
    let error = cause::find_cause::<rustls::Error>(source).cloned();
    let error = error.or_else(|| cause::find_alert(&cause::innermost(source).to_string()))?;
    Some(cause::explain_error(&error, "tls_ca"))
}

fn is_connection_error(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        let of_hyper = error.downcast_ref::<hyper::Error>();
        if error.is::<std::io::Error>()
            || of_hyper.is_some_and(|error| error.is_closed() || error.is_canceled())
        {
            return true;
        }
        source = error.source();
    }
    false
}

fn http_status(code: Code) -> StatusCode {
    let number = match code {
        Code::Ok => 200,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::ResourceExhausted => 429,
        Code::Cancelled => 499,
        Code::Internal | Code::Unknown | Code::DataLoss => 500,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
    };
    StatusCode::from_u16(number).expect("between 100 and 999")
}

/// Returns the service's reason code for an error that the gateway itself detected.
fn reason_for_code(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument | Code::OutOfRange => "REQUEST_INVALID",
        Code::FailedPrecondition => "STATE_FORBIDS",
        Code::Unauthenticated => "KEY_NOT_ACCEPTED",
        Code::PermissionDenied => "ROLE_LACKING",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "NAME_TAKEN",
        Code::Aborted => "CHANGED_MEANWHILE",
        Code::ResourceExhausted => "LIMIT_REACHED",
        Code::Unimplemented => "NOT_SERVED",
        Code::Unavailable => "UNAVAILABLE",
        Code::DeadlineExceeded | Code::Cancelled => "TIMED_OUT",
        Code::Ok | Code::Internal | Code::Unknown | Code::DataLoss => "INTERNAL",
    }
}

fn error_info(reason: &str) -> Any {
    let info = pb::ErrorInfo {
        reason: reason.to_owned(),
        domain: ERROR_DOMAIN.to_owned(),
        ..Default::default()
    };
    pack_any("google.rpc.ErrorInfo", &info)
}

fn pack_any(name: &str, message: &impl prost::Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: message.encode_to_vec(),
    }
}

fn retry_after_s(detail: &Any) -> Option<u64> {
    if !detail.type_url.ends_with("/google.rpc.RetryInfo") {
        return None;
    }
    let delay = pb::RetryInfo::decode(&*detail.value).ok()?.retry_delay?;
    Some(u64::try_from(delay.seconds).ok()? + u64::from(delay.nanos > 0))
}

fn join_names(methods: &[Method]) -> String {
    methods
        .iter()
        .map(Method::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
