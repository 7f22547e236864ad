//! Bodies that are ended early because the key of the call is revoked, the deadline has passed, or
//! the body is too large.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use super::deadline::deadline_exceeded;
use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyDirection {
    /// A request body. When ended early, it returns an error.
    In,
    /// A response body. When ended early, it returns trailers with the gRPC status.
    Out,
}

#[derive(Debug, Clone)]
pub(super) struct CallEnds {
    /// Cancelled when the key is revoked; `None` for a call without a key.
    pub(super) revoked: Option<CancellationToken>,
    pub(super) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct EndingBody {
    body: tonic::body::Body,
    way: BodyDirection,
    is_over: bool,
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl EndingBody {
    pub(super) fn new(body: tonic::body::Body, way: BodyDirection, ends: CallEnds) -> Self {
        let revoked = ends.revoked.map(|it| Box::pin(it.cancelled_owned()));
        Self {
            body,
            way,
            is_over: false,
            revoked,
            deadline: ends.deadline.map(|at| Box::pin(sleep_until(at))),
        }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Option<Status> {
        let revoked = self.revoked.as_mut();
        if revoked.is_some_and(|it| it.as_mut().poll(context).is_ready()) {
            return Some(Error::Unauthenticated("the key was revoked".into()).into());
        }
        let deadline = self.deadline.as_mut();
        let is_late = deadline.is_some_and(|it| it.as_mut().poll(context).is_ready());
        is_late.then(deadline_exceeded)
    }
}

impl Body for EndingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let Some(status) = this.poll_end(context) else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        // Dropping the body tells its producer to stop.
        this.is_over = true;
        this.body = tonic::body::Body::empty();
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(match this.way {
            BodyDirection::In => Err(status),
            BodyDirection::Out => status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The body may end early, so its size is unknown.
        SizeHint::new()
    }
}

#[derive(Debug)]
pub(super) struct SmallBody {
    body: tonic::body::Body,
    left: usize,
}

impl SmallBody {
    pub(super) fn new(body: tonic::body::Body, most: usize) -> Self {
        Self { body, left: most }
    }
}

impl Body for SmallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(left) = self.left.checked_sub(bytes) else {
                let status = Status::resource_exhausted("the request is too large");
                return Poll::Ready(Some(Err(status)));
            };
            self.left = left;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
