//! Reads the body of a request up to its limit.

use std::{sync::Arc, time::Duration};

use bellwether_proto::listen::Activity;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{metrics::Metrics, problem::Problem};

/// How much of a body that is too large is read over, as a multiple of the limit, so that its
/// sender gets to read the answer instead of a broken connection.
const READ_OVER: usize = 4;
/// How long reading over may take.
const READ_OVER_TIME: Duration = Duration::from_secs(2);

/// The part of the memory for bodies that one request takes, until it is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    all: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    room_bytes: usize,
}

impl Memory {
    /// Nothing yet, of what all requests share, in KiB.
    pub(super) fn new(all: &Arc<Semaphore>) -> Self {
        Self {
            all: Arc::clone(all),
            taken: None,
            room_bytes: 0,
        }
    }

    /// Makes room for further bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        let Some(lacking) = bytes.checked_sub(self.room_bytes) else {
            self.room_bytes -= bytes;
            return Ok(());
        };
        let kib = lacking.div_ceil(1024);
        let permits = u32::try_from(kib).unwrap_or(u32::MAX);
        let Ok(taken) = Arc::clone(&self.all).try_acquire_many_owned(permits) else {
            let message = "the bodies under way take up all memory there is for them; try again \
                           in a moment";
            return Err(Problem::unavailable(message));
        };
        match &mut self.taken {
            Some(before) => before.merge(taken),
            none => *none = Some(taken),
        }
        self.room_bytes = kib * 1024 - lacking;
        Ok(())
    }
}

/// Refuses a body that is compressed: it would only be found not to be JSON.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(
            Problem::invalid("the body is compressed: send it without `content-encoding`"),
        ),
        _ => Ok(()),
    }
}

/// Reads a body.
///
/// # Errors
/// When it is larger than `limit_bytes`, breaks off, or there is no memory for it.
pub(super) async fn read(
    mut incoming: Incoming,
    limit_bytes: usize,
    memory: &mut Memory,
    metrics: &Metrics,
    activity: &Activity,
) -> Result<Bytes, Problem> {
    let stated = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let mut size = 0_usize;
    while stated <= limit_bytes && size <= limit_bytes {
        let Some(frame) = incoming.frame().await else {
            // Most bodies come in one piece and need no copy.
            return Ok(if whole.is_empty() {
                first.unwrap_or_default()
            } else {
                whole.freeze()
            });
        };
        let Ok(frame) = frame else {
            return Err(Problem::invalid("the body broke off"));
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        activity.note();
        metrics.received(data.len());
        size += data.len();
        memory.take(data.len())?;
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            earlier => {
                if let Some(earlier) = earlier {
                    // What is only announced may never come.
                    whole.reserve(earlier.len() + data.len());
                    whole.extend_from_slice(&earlier);
                }
                whole.extend_from_slice(&data);
            }
        }
    }
    drop((first, whole));
    // Whether the rest is read over in time or not, the answer is the same.
    let _ = tokio::time::timeout(READ_OVER_TIME, read_over(incoming, limit_bytes)).await;
    Err(Problem::body_too_large(limit_bytes))
}

async fn read_over(mut incoming: Incoming, limit_bytes: usize) {
    let mut left = limit_bytes.saturating_mul(READ_OVER);
    while let Some(Ok(frame)) = incoming.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(size) else {
            return;
        };
        left = rest;
    }
}
