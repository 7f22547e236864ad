//! Tells from hyper's errors whether a request was sent and why no answer came.

use std::error::Error;

use bellwether_proto::cause::{self, find};
use hyper_util::client::legacy;
use rustls::AlertDescription;

use crate::destination::{
    dial::{self, DialError},
    http::SendFailure,
};

/// What an error of the client means for the message.
pub(super) fn classify(error: &legacy::Error) -> SendFailure {
    if let Some(dial) = find::<DialError>(error) {
        return match dial {
            DialError::Blocked(refusal) => SendFailure::Blocked(refusal.clone()),
            other => SendFailure::Unreachable(other.to_string()),
        };
    }
    if error.is_connect() {
        return SendFailure::Unreachable(format!("no secure connection: {}", reason(error)));
    }
    if let Some(refused) = refused_identity(error) {
        let told = cause::explain(&refused, "egress.ca_file");
        return SendFailure::Unreachable(format!("no secure connection: {told}"));
    }
    match find::<hyper::Error>(error) {
        Some(hyper) if hyper.is_canceled() => {
            SendFailure::Unreachable("the connection was closed before the request was sent".into())
        }
        Some(hyper) if hyper.is_parse() => SendFailure::Unknown(
            "the request was sent, and what came back is not an HTTP answer".into(),
        ),
        Some(hyper) if hyper.is_incomplete_message() => SendFailure::Unknown(
            "the request was sent, and the connection closed without answer".into(),
        ),
        _ => SendFailure::Unknown(format!(
            "the request was sent, and the connection broke before the answer: {}",
            innermost(error)
        )),
    }
}

/// What the receiver found wrong with the certificate that it was shown, or with there being none. By
/// TLS 1.3 that is heard after the request has left; nothing of it was taken then.
fn refused_identity(error: &(dyn Error + 'static)) -> Option<rustls::Error> {
    let words = match find::<rustls::Error>(error) {
        Some(error) => error.to_string(),
        None => cause::innermost(error).to_string(),
    };
    let is_about_it = |alert: &rustls::Error| {
        // This one can come at any time.
        !matches!(
            alert,
            rustls::Error::AlertReceived(AlertDescription::DecryptError)
        )
    };
    cause::alert(&words).filter(is_about_it)
}

/// What is at the bottom of an error, for people.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    match find::<rustls::Error>(error) {
        Some(error) => cause::explain(error, "egress.ca_file"),
        None => innermost(error),
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let last = cause::innermost(error);
    match last.downcast_ref() {
        Some(error) => dial::reason(error),
        None => last.to_string(),
    }
}
