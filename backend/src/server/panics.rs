//! The answer to a call that panicked.

use std::any::Any;

use http::Response;
use tonic::{Status, body::Body};
use tower_http::catch_panic::CatchPanicLayer;

/// Answers a call that panicked.
pub(super) type Answer = fn(Box<dyn Any + Send>) -> Response<Body>;

/// A panic would otherwise end the stream, and the caller would take that for its own doing.
pub(super) fn layer() -> CatchPanicLayer<Answer> {
    CatchPanicLayer::custom(|_panic| panicked().into_http())
}

/// The answer to a call that panicked.
pub(super) fn panicked() -> Status {
    tracing::error!("a call panicked");
    Status::internal("the service has an internal fault")
}
