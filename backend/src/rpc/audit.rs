//! Logs one line per call of an audited method.

use std::fmt::Display;

use http::{Extensions, HeaderValue};
use tonic::Response;

use super::methods::Audit;
use crate::domain::Name;

/// The subject of a call, in the extensions of its response.
#[derive(Debug, Clone)]
enum Subject {
    /// No resource was changed, because the call was a dry run.
    Nothing,
    Named(String),
}

pub(super) fn for_resource<T>(name: impl Display, answer: T) -> Response<T> {
    with_subject(Subject::Named(name.to_string()), answer)
}

pub(super) fn mutation_response<T>(tried: bool, name: impl Display, answer: T) -> Response<T> {
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

/// Logs a call, with the method and the subject in its response. A call without a subject is logged
/// as well.
pub(super) fn log_call(
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
