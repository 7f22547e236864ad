//! A body that ends when the key of its call is revoked.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use crate::error::Error;

/// Which way a body travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the service: it ends with an error.
    In,
    /// To the caller: it ends with trailers, as gRPC states what went wrong.
    Out,
}

/// Passes a body on until the key is revoked.
#[derive(Debug)]
pub(super) struct UntilRevoked {
    body: tonic::body::Body,
    way: Way,
    /// None when the end has come.
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl UntilRevoked {
    pub(super) fn new(body: tonic::body::Body, way: Way, revoked: CancellationToken) -> Self {
        Self {
            body,
            way,
            revoked: Some(Box::pin(revoked.cancelled_owned())),
        }
    }
}

impl Body for UntilRevoked {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(revoked) = &mut this.revoked else {
            return Poll::Ready(None);
        };
        if revoked.as_mut().poll(context).is_pending() {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        // Whoever produces the body learns that nobody reads it any more.
        this.revoked = None;
        this.body = tonic::body::Body::empty();
        let status = Status::from(Error::Unauthenticated("the key was revoked".into()));
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(match this.way {
            Way::In => Err(status),
            Way::Out => status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.revoked.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // An end that may come early leaves nothing to be said.
        SizeHint::new()
    }
}
