//! Determines from hyper's errors whether a request was sent, and why there is no response.

use std::error::Error;

use bellwether_process::cause::{self, find_cause};
use hyper_util::client::legacy;
use rustls::AlertDescription;

use crate::{
    dial::{self, DialError},
    http::{ConnectionProgress, SendFailure},
};

#[derive(Debug)]
pub(super) enum RequestFailure {
    Unprocessed,
    /// The connection was reused and closed; whether the request arrived first is unknown.
    Stale(SendFailure),
    /// The request was not sent, because there was no connection.
    Refused(SendFailure),
    /// The connection failed or did not respond.
    Broken(SendFailure),
}

pub(super) fn classify(error: &legacy::Error, progress: ConnectionProgress) -> RequestFailure {
    if let Some(dial) = find_cause::<DialError>(error) {
        return RequestFailure::Refused(match dial {
            DialError::Blocked(refusal) => SendFailure::Blocked(refusal.clone()),
            other => SendFailure::Unreachable(other.to_string()),
        });
    }
    if error.is_connect() {
        let said = format!("secure connection failed: {}", root_cause(error));
        return RequestFailure::Refused(SendFailure::Unreachable(said));
    }
    if let Some(refused) = refused_identity(error) {
        let reason = cause::explain_error(&refused, "egress.ca_file");
        let said = format!("secure connection failed: {reason}");
        return RequestFailure::Refused(SendFailure::Unreachable(said));
    }
    if find_cause::<h2::Error>(error).is_some_and(is_unprocessed) {
        return RequestFailure::Unprocessed;
    }
    let hyper = find_cause::<hyper::Error>(error);
    let is_sent = progress.is_sent && !hyper.is_some_and(hyper::Error::is_canceled);
    let failure = match hyper {
        _ if !is_sent => {
            SendFailure::Unreachable("the connection was closed before the request was sent".into())
        }
        Some(hyper) if hyper.is_parse() => {
            return RequestFailure::Broken(SendFailure::Unknown(
                "the request was sent, but the response is not HTTP".into(),
            ));
        }
        Some(hyper) if hyper.is_incomplete_message() => SendFailure::Unknown(
            "the request was sent, but the connection was closed without a response".into(),
        ),
        _ => SendFailure::Unknown(format!(
            "the request was sent, but the connection broke before the response: {}",
            innermost(error)
        )),
    };
    match (progress.is_reused, is_sent) {
        (true, true) => RequestFailure::Stale(failure),
        (true, false) => RequestFailure::Unprocessed,
        (false, _) => RequestFailure::Broken(failure),
    }
}

/// Whether an HTTP/2 receiver reports that it did not process a request: it refused the stream, or
/// is closing the connection.
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    error.is_remote() && (is_refused || error.is_go_away())
}

/// Returns the TLS alert by which a receiver refused the client certificate or its absence. In TLS
/// 1.3 the alert may arrive after the request was sent, but the request was not processed then.
fn refused_identity(error: &(dyn Error + 'static)) -> Option<rustls::Error> {
    let words = match find_cause::<rustls::Error>(error) {
        Some(error) => error.to_string(),
        None => cause::innermost(error).to_string(),
    };
    let is_about_it = |alert: &rustls::Error| {
        // This alert can also have other causes.
        !matches!(
            alert,
            rustls::Error::AlertReceived(AlertDescription::DecryptError)
        )
    };
    cause::find_alert(&words).filter(is_about_it)
}

pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    match find_cause::<rustls::Error>(error) {
        Some(error) => cause::explain_error(error, "egress.ca_file"),
        None => innermost(error),
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let last = cause::innermost(error);
    match last.downcast_ref() {
        Some(error) => dial::describe_io_error(error),
        None => last.to_string(),
    }
}
