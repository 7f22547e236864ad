//! Tells from hyper's errors whether a request was sent and why no answer came.

use std::{error::Error, io};

use hyper_util::client::legacy;

use crate::destination::{
    dial::{self, DialError},
    http::Failure,
    tls,
};

/// What an error of the client means for the message.
pub(super) fn classify(error: &legacy::Error) -> Failure {
    if let Some(dial) = find::<DialError>(error) {
        return match dial {
            DialError::Blocked(refusal) => Failure::Blocked(refusal.clone()),
            other => Failure::Unreachable(other.to_string()),
        };
    }
    if error.is_connect() {
        return Failure::Unreachable(format!("no secure connection: {}", reason(error)));
    }
    match find::<hyper::Error>(error) {
        Some(hyper) if hyper.is_canceled() => {
            Failure::Unreachable("the connection was closed before the request was sent".into())
        }
        Some(hyper) if hyper.is_parse() => Failure::Unknown(
            "the request was sent, and what came back is not an HTTP answer".into(),
        ),
        Some(hyper) if hyper.is_incomplete_message() => Failure::Unknown(
            "the request was sent, and the connection closed without answer".into(),
        ),
        _ => Failure::Unknown(format!(
            "the request was sent, and the connection broke before the answer: {}",
            innermost(error)
        )),
    }
}

/// What is at the bottom of an error, for people.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    match find::<rustls::Error>(error) {
        Some(error) => tls::explain(error),
        None => innermost(error),
    }
}

/// The first error of that type in the chain. What an I/O error wraps is not in its chain of
/// sources, so it is unwrapped.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = below(error);
    }
    None
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(deeper) = below(last) {
        last = deeper;
    }
    match last.downcast_ref() {
        Some(error) => dial::reason(error),
        None => last.to_string(),
    }
}

fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => match io.get_ref() {
            Some(wrapped) => Some(wrapped),
            None => io.source(),
        },
        None => error.source(),
    }
}
