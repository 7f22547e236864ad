//! The resource that a call changed, in the extensions of its response, for the audit log.

use std::fmt::Display;

use http::Extensions;
use tonic::Response;

#[derive(Debug, Clone)]
enum Subject {
    /// No resource was changed, because the call was a dry run.
    Nothing,
    Named(String),
}

pub fn for_resource<T>(name: impl Display, answer: T) -> Response<T> {
    with_subject(Subject::Named(name.to_string()), answer)
}

pub fn mutation_response<T>(tried: bool, name: impl Display, answer: T) -> Response<T> {
    if tried {
        with_subject(Subject::Nothing, answer)
    } else {
        for_resource(name, answer)
    }
}

fn with_subject<T>(subject: Subject, answer: T) -> Response<T> {
    let mut response = Response::new(answer);
    response.extensions_mut().insert(subject);
    response
}

/// Returns the name of the changed resource, which is empty if the response does not name it; `None`
/// if no resource was changed.
pub fn changed_resource(answer: &Extensions) -> Option<&str> {
    match answer.get::<Subject>() {
        Some(Subject::Nothing) => None,
        Some(Subject::Named(name)) => Some(name),
        None => Some(""),
    }
}
