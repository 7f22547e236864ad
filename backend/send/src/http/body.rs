//! A request body that records whether it was handed over completely.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct OutgoingBody {
    rest: Bytes,
    sent: SentFlag,
}

/// Whether all of a body was handed to its connection. Clones share the state.
#[derive(Debug, Clone)]
pub(super) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    pub(super) fn is_fully_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl OutgoingBody {
    pub(super) fn new(bytes: Bytes) -> Self {
        let sent = SentFlag(Arc::new(AtomicBool::new(bytes.is_empty())));
        Self { rest: bytes, sent }
    }

    pub(super) fn sent_flag(&self) -> SentFlag {
        self.sent.clone()
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(piece);
        if self.rest.is_empty() {
            self.sent.0.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
