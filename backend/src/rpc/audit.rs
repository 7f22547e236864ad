//! Logs one line per call of an audited method.

use http::{Extensions, HeaderValue};

use super::methods::Audit;
use crate::{domain::Name, ops::subject::changed_resource};

/// Logs a call, with the method and the subject in its response. A call without a subject is logged
/// as well.
pub(super) fn log_call(
    audit: &Audit,
    author: &Name,
    request_id: Option<&HeaderValue>,
    answer: &Extensions,
) {
    let Some(name) = changed_resource(answer) else {
        return;
    };
    let (author, change, what) = (author.as_str(), &*audit.action, &*audit.what);
    let request_id = request_id.and_then(|it| it.to_str().ok());
    tracing::info!(target: "bellwether::audit", author, change, what, name, request_id, "changed");
}
