//! The response to a call that panicked.

use std::any::Any;

use http::Response;
use tonic::{Status, body::Body};
use tower_http::catch_panic::CatchPanicLayer;

pub(super) type PanicHandler = fn(Box<dyn Any + Send>) -> Response<Body>;

/// Without this layer, a panic would reset the stream, and the caller would look for the cause on
/// its own side.
pub(super) fn catch_panic_layer() -> CatchPanicLayer<PanicHandler> {
    CatchPanicLayer::custom(|_panic| panic_status().into_http())
}

pub(super) fn panic_status() -> Status {
    tracing::error!("a call panicked");
    Status::internal("internal error")
}
