//! Errors as gRPC status, with the only mapping from errors to codes.

use std::{collections::HashMap, error::Error as StdError};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use bellwether_proto::ERROR_DOMAIN;

use super::{Error, Reason, Violation, log_failure};

/// Details are base64-encoded in a header, and clients of the official gRPC library may reject more
/// than 8 KiB of headers.
const VIOLATION_BYTES_MAX: usize = 3 * 1024;
const VIOLATION_FRAME_BYTES: usize = 8;
const MESSAGE_CHARACTERS_MAX: usize = 1_000;
/// Maximum bytes of a message in its header, where it is percent-encoded.
const MESSAGE_BYTES_MAX: usize = 1_500;

impl From<Error> for Status {
    /// Converts an error. The sources of an internal error are logged.
    fn from(error: Error) -> Self {
        if let Error::Internal(source) | Error::Indeterminate(source) = &error {
            log_failure("internal fault", &error_chain(source.as_ref()));
        }
        let (code, reason) = code_and_reason(&error);
        let mut details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, HashMap::new());
        match &error {
            Error::Invalid(violations) => {
                details.set_bad_request(fit_violations(violations));
            }
            Error::Exhausted {
                retry_after: Some(after),
                ..
            } => {
                details.set_retry_info(Some(*after));
            }
            _ => {}
        }
        Self::with_error_details(code, error_message(&error), details)
    }
}

fn code_and_reason(error: &Error) -> (Code, &'static str) {
    match error {
        Error::Invalid(_) => (Code::InvalidArgument, "FIELDS_INVALID"),
        Error::NotFound(_) => (Code::NotFound, "NOT_FOUND"),
        Error::AlreadyExists(_) => (Code::AlreadyExists, "NAME_TAKEN"),
        Error::KeyUsed => (Code::AlreadyExists, "IDEMPOTENCY_KEY_USED"),
        Error::FailedPrecondition(_) => (Code::FailedPrecondition, "STATE_FORBIDS"),
        Error::Refused { reason, .. } => {
            let reason = match reason {
                Reason::SilenceTooBroad => "SILENCE_TOO_BROAD",
                Reason::SilenceExpired => "SILENCE_EXPIRED",
                Reason::InUse => "IN_USE",
            };
            (Code::FailedPrecondition, reason)
        }
        Error::Aborted(_) => (Code::Aborted, "CHANGED_MEANWHILE"),
        Error::Unauthenticated(_) => (Code::Unauthenticated, "KEY_NOT_ACCEPTED"),
        Error::PermissionDenied(_) => (Code::PermissionDenied, "ROLE_LACKING"),
        Error::Exhausted { .. } => (Code::ResourceExhausted, "LIMIT_REACHED"),
        Error::Unavailable(_) => (Code::Unavailable, "UNAVAILABLE"),
        Error::Unimplemented(_) => (Code::Unimplemented, "NOT_SERVED"),
        Error::Indeterminate(_) => (Code::Internal, "OUTCOME_UNKNOWN"),
        Error::Internal(_) => (Code::Internal, "INTERNAL"),
    }
}

fn error_message(error: &Error) -> String {
    let text = error.to_string();
    let mut left = MESSAGE_BYTES_MAX;
    let mut cut = text
        .char_indices()
        .enumerate()
        .filter(|(count, (_, char))| {
            let is_encoded = !char.is_ascii_graphic() || "\"#%<>`?{}".contains(*char);
            let encoded = if is_encoded { 3 * char.len_utf8() } else { 1 };
            left = left.saturating_sub(encoded);
            left == 0 || *count == MESSAGE_CHARACTERS_MAX
        });
    match cut.next() {
        Some((_, (cut, _))) => format!("{}\u{2026}", &text[..cut]),
        None => text,
    }
}

/// Returns the violations that fit into the details, in order. The last one reports the number of
/// omitted violations.
fn fit_violations(violations: &[Violation]) -> Vec<FieldViolation> {
    let mut room = VIOLATION_BYTES_MAX;
    let mut fitting = Vec::new();
    for violation in violations {
        let text = violation.field.len() + violation.description.len();
        let needed = text + VIOLATION_FRAME_BYTES;
        if needed > room {
            let left = violations.len() - fitting.len();
            fitting.push(FieldViolation::new("", format!("{left} more not listed")));
            break;
        }
        room -= needed;
        fitting.push(FieldViolation::new(
            &violation.field,
            &violation.description,
        ));
    }
    fitting
}

fn error_chain(mut error: &dyn StdError) -> String {
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text.push_str(": ");
        text.push_str(&source.to_string());
        error = source;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_violated_field_is_listed_with_its_path() {
        let status = Status::from(Error::Invalid(vec![
            Violation::new("name", "is required"),
            Violation::new("type.webhook.url", "is not an address"),
        ]));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "name: is required (and 1 more)");
        let details = status.get_error_details();
        let listed: Vec<_> = details
            .bad_request()
            .unwrap()
            .field_violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect();
        assert_eq!(listed, ["name", "type.webhook.url"]);
        assert_eq!(details.error_info().unwrap().domain, ERROR_DOMAIN);
    }

    #[test]
    fn error_details_fit_into_a_header() {
        let many = (0..1_000)
            .map(|at| Violation::new(format!("tags[{at}]"), "x".repeat(100)))
            .collect();
        let status = Status::from(Error::Invalid(many));
        let details = status.get_error_details();
        let last = details.bad_request().unwrap().field_violations.last();
        assert!(last.unwrap().description.ends_with("more not listed"));
        let status = Status::from(Error::NotFound("x".repeat(100_000)));
        assert_eq!(status.message().chars().count(), MESSAGE_CHARACTERS_MAX + 1);
        for text in ["x", "\u{e9}", "\u{1f514}", " ", "a b", "%"] {
            for length in [1, 10, 100, 10_000] {
                let violation = Violation::new(text.repeat(length), text.repeat(length));
                for error in [
                    Error::NotFound(text.repeat(length)),
                    Error::Invalid(vec![violation; 5_000]),
                ] {
                    let mut headers = http::HeaderMap::new();
                    Status::from(error).add_header(&mut headers).unwrap();
                    let bytes: usize = headers
                        .iter()
                        .map(|(name, value)| name.as_str().len() + value.len() + 32)
                        .sum();
                    assert!(bytes < 7_500, "{bytes} of {length} times {text:?}");
                }
            }
        }
    }

    #[test]
    fn exhausted_status_carries_a_retry_delay() {
        let status = Status::from(Error::Exhausted {
            message: "too many requests".into(),
            retry_after: Some(Duration::from_secs(3)),
        });
        assert_eq!(status.code(), Code::ResourceExhausted);
        let details = status.get_error_details();
        let retry = details.retry_info().unwrap();
        assert_eq!(retry.retry_delay, Some(Duration::from_secs(3)));
    }

    #[test]
    fn indeterminate_write_reports_unknown_outcome() {
        let source = std::io::Error::other("/data/store.redb: input/output error");
        let status = Status::from(Error::Indeterminate(Box::new(source)));
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().contains("unknown whether"), "{status:?}");
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "OUTCOME_UNKNOWN");
        assert!(!format!("{status:?}").contains("redb"));
    }

    #[test]
    fn internal_error_hides_its_source() {
        let source = std::io::Error::other("/data/bellwether.redb is damaged");
        let status = Status::from(Error::Internal(Box::new(source)));
        assert_eq!(status.code(), Code::Internal);
        assert!(!format!("{status:?}").contains("redb"));
    }
}
