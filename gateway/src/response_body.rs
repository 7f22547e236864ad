//! A response body that is passed to the connection in chunks.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bellwether_process::listen::Permit;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::{limits, owner::Owner};

/// A body in memory. Holds the request's in-flight permit until the connection has received the
/// last chunk.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    rest: Bytes,
    _place: Option<Permit<Owner>>,
}

impl ResponseBody {
    pub(crate) fn new(rest: Bytes, permit: Option<Permit<Owner>>) -> Self {
        Self {
            rest,
            _place: permit,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let size = self.rest.len().min(limits::CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(size)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
