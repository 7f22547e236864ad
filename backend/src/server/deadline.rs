//! The deadline of unary calls, with the status `DEADLINE_EXCEEDED`.
//!
//! tonic's own timeouts return `CANCELLED`, which suggests that the caller cancelled the call.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, Request, Response};
use tonic::Status;
use tower::{Layer, Service};

use crate::{
    limits::REQUEST_TIME_MAX,
    rpc::{access::requested_timeout, methods::find_method},
};

/// Whether a call runs until the caller stops it. Admission ends it at the caller's deadline.
fn is_streaming(path: &str) -> bool {
    find_method(path).is_some_and(|method| method.class.is_streaming())
}

/// Ends a unary call after the shorter of [`REQUEST_TIME_MAX`] and the caller's `grpc-timeout`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeadlineLayer;

impl<S> Layer<S> for DeadlineLayer {
    type Service = DeadlineService<S>;

    fn layer(&self, inner: S) -> DeadlineService<S> {
        DeadlineService { inner }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct DeadlineService<S> {
    inner: S,
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for DeadlineService<S>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing>>,
    S::Future: Send + 'static,
    Outgoing: Default,
{
    type Response = Response<Outgoing>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let path = request.uri().path();
        if is_streaming(path) {
            return Box::pin(self.inner.call(request));
        }
        let limit = call_limit(request.headers());
        let answer = self.inner.call(request);
        Box::pin(async move {
            with_time_limit(limit, answer)
                .await
                .unwrap_or_else(|late| Ok(late.into_http()))
        })
    }
}

pub(super) fn call_limit(headers: &HeaderMap) -> Duration {
    let requested = requested_timeout(headers).unwrap_or(REQUEST_TIME_MAX);
    requested.min(REQUEST_TIME_MAX)
}

pub(super) async fn with_time_limit<T>(
    limit: Duration,
    call: impl Future<Output = T>,
) -> Result<T, Status> {
    let late = || {
        let message = format!("the call exceeded {} ms", limit.as_millis());
        Status::deadline_exceeded(message)
    };
    // Timers have a resolution of one millisecond, in which a call with a timeout of zero could
    // complete.
    if limit.is_zero() {
        return Err(late());
    }
    tokio::time::timeout(limit, call)
        .await
        .map_err(|_elapsed| late())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Returns the status of a call that never ends; `None` if there is no response.
    async fn status_after(path: &str, wait: Duration) -> Option<String> {
        let never = service_fn(|_request: Request<()>| {
            std::future::pending::<Result<Response<()>, Infallible>>()
        });
        let request = Request::get(path)
            .header("grpc-timeout", "10m")
            .body(())
            .unwrap();
        let call = DeadlineLayer.layer(never).oneshot(request);
        let response = tokio::time::timeout(wait, call).await.ok()?.unwrap();
        Some(
            response.headers()["grpc-status"]
                .to_str()
                .unwrap()
                .to_owned(),
        )
    }

    #[tokio::test]
    async fn unary_call_ends_as_deadline_exceeded_and_stream_continues() {
        let unary = "/bellwether.v1.RuleService/GetRule";
        let code = status_after(unary, REQUEST_TIME_MAX).await;
        assert_eq!(code.as_deref(), Some("4"));
        let stream = "/bellwether.v1.EventQueryService/WatchEvents";
        assert_eq!(status_after(stream, Duration::from_millis(20)).await, None);
    }

    #[test]
    fn maximum_deadline_applies_unless_a_shorter_one_is_given() {
        for (timeout, expected) in [
            ("10m", Duration::from_millis(10)),
            ("99999999H", REQUEST_TIME_MAX),
            ("123456789S", REQUEST_TIME_MAX),
            ("nonsense", REQUEST_TIME_MAX),
            ("", REQUEST_TIME_MAX),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-timeout"),
                timeout.parse().unwrap(),
            )]);
            assert_eq!(call_limit(&headers), expected, "{timeout:?}");
        }
    }
}
