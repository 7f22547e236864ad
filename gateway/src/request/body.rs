//! Reads the body of a request up to its limit.

use std::{sync::Arc, time::Duration};

use bellwether_process::listen::{Activity, Permit, PermitError, Pool};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::Owner;
use crate::{metrics::Metrics, problem::Problem};

/// Maximum bytes drained of a body that is too large, as a multiple of the limit. Draining lets the
/// client receive the response instead of a reset.
const READ_OVER: usize = 4;
const READ_OVER_TIME: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct BodyMemory {
    permit: Permit<Owner>,
    free_bytes: usize,
}

impl BodyMemory {
    /// Creates an empty reservation from the shared memory, in KiB.
    pub(super) fn new(all: &Arc<Pool<Owner>>, owner: Owner) -> Self {
        Self {
            permit: all.new_permit(Some(owner)),
            free_bytes: 0,
        }
    }

    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), Problem> {
        let Some(lacking) = bytes.checked_sub(self.free_bytes) else {
            self.free_bytes -= bytes;
            return Ok(());
        };
        let kib = lacking.div_ceil(1024);
        self.permit.acquire(kib).map_err(|full| {
            Problem::unavailable(match full {
                PermitError::All => {
                    "memory for request bodies is exhausted; try again in a moment"
                }
                PermitError::Share => {
                    "this client has reached its limit, a quarter of the memory for request bodies; \
                     try again in a moment"
                }
            })
        })?;
        self.free_bytes = kib * 1024 - lacking;
        Ok(())
    }
}

pub(super) async fn read_body(
    mut incoming: Incoming,
    limit_bytes: usize,
    memory: &mut BodyMemory,
    metrics: &Metrics,
    activity: &Activity,
) -> Result<Bytes, Problem> {
    let stated = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let mut size = 0_usize;
    while stated <= limit_bytes && size <= limit_bytes {
        let Some(frame) = incoming.frame().await else {
            // Most bodies arrive in one chunk and are not copied.
            return Ok(if whole.is_empty() {
                first.unwrap_or_default()
            } else {
                whole.freeze()
            });
        };
        let Ok(frame) = frame else {
            return Err(Problem::invalid("the body is incomplete"));
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        activity.record_activity();
        metrics.record_received(data.len());
        size += data.len();
        memory.reserve(data.len())?;
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            earlier => {
                if let Some(earlier) = earlier {
                    // Does not allocate the announced length, because the client may send less.
                    whole.reserve(earlier.len() + data.len());
                    whole.extend_from_slice(&earlier);
                }
                whole.extend_from_slice(&data);
            }
        }
    }
    drop((first, whole));
    let most = limit_bytes.saturating_mul(READ_OVER);
    drain_body(incoming, most).await;
    Err(Problem::body_too_large(limit_bytes))
}

pub(super) async fn drain_body(incoming: Incoming, most_bytes: usize) {
    let reading = drain_unbounded(incoming, most_bytes);
    // A timeout is ignored: the response is the same.
    drop(tokio::time::timeout(READ_OVER_TIME, reading).await);
}

async fn drain_unbounded(mut incoming: Incoming, most_bytes: usize) {
    let mut left = most_bytes;
    while let Some(Ok(frame)) = incoming.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(size) else {
            return;
        };
        left = rest;
    }
}
