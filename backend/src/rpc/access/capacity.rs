//! How many calls are under way at once, and how much memory what they bring may take.
//!
//! Intake, reading, changing and following have capacities of their own, so that a flood of one leaves
//! the others served. What finds none is told so at once, with when to come back.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status, body::Body};
use tonic_types::{ErrorDetails, StatusExt};

use super::entries::Entries;
use crate::{
    limits::{
        CHANGES_UNDER_WAY_MAX, INTAKE_UNDER_WAY_MAX, OVERLOAD_RETRY_AFTER, PAGES_UNDER_WAY_MAX,
        READS_UNDER_WAY_MAX, REQUEST_MEMORY_KIB_MAX, STREAMS_UNDER_WAY_MAX, WATCHES_OPEN_MAX,
    },
    rpc::methods::Class,
};

/// Bytes of memory that a byte of a request may become: events are checked while they arrive, other
/// messages may unfold.
const EVENTS_UNFOLD: usize = 2;
const OTHERS_UNFOLD: usize = 8;

/// How many calls of each class may be under way.
#[derive(Debug, Clone)]
pub(super) struct Capacities(Arc<Classes>);

#[derive(Debug)]
struct Classes {
    intake: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// In KiB.
    memory: Arc<Semaphore>,
}

impl Capacities {
    /// Nothing is under way.
    pub(super) fn new() -> Self {
        let calls = |count| Arc::new(Semaphore::new(count));
        Self(Arc::new(Classes {
            intake: calls(INTAKE_UNDER_WAY_MAX),
            pages: calls(PAGES_UNDER_WAY_MAX),
            reads: calls(READS_UNDER_WAY_MAX),
            changes: calls(CHANGES_UNDER_WAY_MAX),
            watches: calls(WATCHES_OPEN_MAX),
            streams: calls(STREAMS_UNDER_WAY_MAX),
            memory: calls(REQUEST_MEMORY_KIB_MAX),
        }))
    }

    /// What a call of that class may take; nothing is taken for what is always answered.
    ///
    /// # Errors
    /// When as many of the class are under way as may be, with when to come back.
    pub(super) fn share(&self, class: Class) -> Result<Option<Share>, Status> {
        let classes = &*self.0;
        let calls = match class {
            Class::Probe => return Ok(None),
            Class::Intake => &classes.intake,
            Class::Page => &classes.pages,
            Class::Read => &classes.reads,
            Class::Change => &classes.changes,
            Class::Watch => &classes.watches,
            Class::Stream => &classes.streams,
        };
        let Ok(permit) = Arc::clone(calls).try_acquire_owned() else {
            let message = "too many calls of this kind are under way; try again in a moment";
            return Err(busy(message));
        };
        let unfold = match class {
            Class::Intake => EVENTS_UNFOLD,
            _ => OTHERS_UNFOLD,
        };
        Ok(Some(Share {
            unfold,
            memory: Memory::new(&classes.memory),
            _permit: permit,
        }))
    }
}

/// What a call takes of the capacity of its class, and the memory that it takes.
#[derive(Debug)]
pub(super) struct Share {
    unfold: usize,
    memory: Arc<Memory>,
    _permit: OwnedSemaphorePermit,
}

impl Share {
    /// Takes the memory for a message that is there, and counts its entries.
    ///
    /// # Errors
    /// When there is no memory for it, or it has too many entries.
    pub(super) fn take(&self, message: &[u8]) -> Result<(), Status> {
        look_at(
            message,
            self.unfold,
            &self.memory,
            &mut Entries::of_message(),
        )
    }

    /// Takes the memory for a message while it arrives in a body, and counts its entries.
    pub(super) fn measure(&self, body: Body) -> Body {
        Body::new(Measured {
            body,
            unfold: self.unfold,
            memory: Arc::clone(&self.memory),
            entries: Entries::default(),
        })
    }

    /// Keeps the capacity and the memory until the answer was sent.
    pub(super) fn hold(self, body: Body) -> Body {
        Body::new(Held { body, _share: self })
    }
}

/// Looks at the next bytes of a message.
fn look_at(
    data: &[u8],
    unfold: usize,
    memory: &Memory,
    entries: &mut Entries,
) -> Result<(), Status> {
    if !memory.take(data.len().saturating_mul(unfold)) {
        let message = "requests take up all memory there is for them; try again";
        return Err(busy(message));
    }
    Ok(entries.look_at(data)?)
}

fn busy(message: &str) -> Status {
    let details = ErrorDetails::with_retry_info(Some(OVERLOAD_RETRY_AFTER));
    Status::with_error_details(Code::Unavailable, message, details)
}

/// The memory that one call takes.
#[derive(Debug)]
struct Memory {
    all: Arc<Semaphore>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    permit: Option<OwnedSemaphorePermit>,
    /// What is taken and not used yet.
    free_bytes: usize,
}

impl Memory {
    fn new(all: &Arc<Semaphore>) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::clone(all),
            taken: Mutex::default(),
        })
    }

    /// Takes further bytes; false when there are none.
    fn take(&self, bytes: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = taken.free_bytes.checked_sub(bytes) {
            taken.free_bytes = left;
            return true;
        }
        let lacking = bytes - taken.free_bytes;
        let kib = lacking.div_ceil(1024);
        let permits = u32::try_from(kib).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.all).try_acquire_many_owned(permits) else {
            return false;
        };
        match &mut taken.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        taken.free_bytes = kib * 1024 - lacking;
        true
    }
}

/// The body of a unary request, measured while it arrives.
struct Measured {
    body: Body,
    unfold: usize,
    memory: Arc<Memory>,
    entries: Entries,
}

impl http_body::Body for Measured {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let this = &mut *self;
            if let Err(status) = look_at(data, this.unfold, &this.memory, &mut this.entries) {
                return Poll::Ready(Some(Err(status)));
            }
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

/// The body of an answer, which keeps what its call takes until it is sent.
struct Held {
    body: Body,
    _share: Share,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
