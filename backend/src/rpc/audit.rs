//! Who changed what: one log line for each call whose method asks for one.

use std::fmt::Display;

use http::{Extensions, HeaderValue};
use tonic::Response;

use super::methods::Audit;
use crate::domain::Name;

/// What a call was about; travels in the extensions of its answer.
#[derive(Debug, Clone)]
enum Subject {
    /// It was only tried.
    Nothing,
    /// That.
    Named(String),
}

/// The answer of a call that changed what is called so.
pub(super) fn of<T>(name: impl Display, answer: T) -> Response<T> {
    with(Subject::Named(name.to_string()), answer)
}

/// The answer of a call that changed what is called so, or only tried.
pub(super) fn unless<T>(tried: bool, name: impl Display, answer: T) -> Response<T> {
    if tried {
        with(Subject::Nothing, answer)
    } else {
        of(name, answer)
    }
}

fn with<T>(subject: Subject, answer: T) -> Response<T> {
    let mut response = Response::new(answer);
    response.extensions_mut().insert(subject);
    response
}

/// Writes down what a call did, by its method and by what its answer carries. A method without a word
/// from the handler is written down anyway.
pub(super) fn note(
    audit: &Audit,
    author: &Name,
    request_id: Option<&HeaderValue>,
    answer: &Extensions,
) {
    let name = match answer.get::<Subject>() {
        Some(Subject::Nothing) => return,
        Some(Subject::Named(name)) => name,
        None => "",
    };
    let (author, change, what) = (author.as_str(), &*audit.action, &*audit.what);
    let request_id = request_id.and_then(|it| it.to_str().ok());
    tracing::info!(target: "bellwether::audit", author, change, what, name, request_id, "changed");
}
