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
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status, body::Body};
use tonic_types::{ErrorDetails, StatusExt};
use tower::{Layer, Service};

use super::entries::Entries;
use crate::{
    limits::{
        CHANGES_UNDER_WAY_MAX, INTAKE_UNDER_WAY_MAX, OVERLOAD_RETRY_AFTER, PAGES_UNDER_WAY_MAX,
        READS_UNDER_WAY_MAX, REQUEST_MEMORY_KIB_MAX, STREAMS_UNDER_WAY_MAX, WATCHES_OPEN_MAX,
    },
    rpc::methods::{Class, method},
};

/// Bytes of memory that a byte of a request may become: events are checked while they arrive, other
/// messages may unfold.
const EVENTS_UNFOLD: usize = 2;
const OTHERS_UNFOLD: usize = 8;

/// Lets as many calls of a class through as it has capacity for.
#[derive(Debug, Clone)]
pub(super) struct OverloadLayer(Arc<Capacities>);

#[derive(Debug)]
struct Capacities {
    intake: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// In KiB.
    memory: Arc<Semaphore>,
}

impl OverloadLayer {
    /// Nothing is under way.
    pub(super) fn new() -> Self {
        let calls = |count| Arc::new(Semaphore::new(count));
        Self(Arc::new(Capacities {
            intake: calls(INTAKE_UNDER_WAY_MAX),
            pages: calls(PAGES_UNDER_WAY_MAX),
            reads: calls(READS_UNDER_WAY_MAX),
            changes: calls(CHANGES_UNDER_WAY_MAX),
            watches: calls(WATCHES_OPEN_MAX),
            streams: calls(STREAMS_UNDER_WAY_MAX),
            memory: calls(REQUEST_MEMORY_KIB_MAX),
        }))
    }
}

impl Capacities {
    /// The capacity that calls of a class share; none for what is always answered.
    fn of(&self, class: Class) -> Option<&Arc<Semaphore>> {
        Some(match class {
            Class::Probe => return None,
            Class::Intake => &self.intake,
            Class::Page => &self.pages,
            Class::Read => &self.reads,
            Class::Change => &self.changes,
            Class::Watch => &self.watches,
            Class::Stream => &self.streams,
        })
    }
}

impl<S> Layer<S> for OverloadLayer {
    type Service = Overload<S>;

    fn layer(&self, inner: S) -> Overload<S> {
        Overload {
            capacities: Arc::clone(&self.0),
            inner,
        }
    }
}

/// The service that [`OverloadLayer`] makes.
#[derive(Debug, Clone)]
pub(super) struct Overload<S> {
    capacities: Arc<Capacities>,
    inner: S,
}

impl<S, In, Out> Service<Request<In>> for Overload<S>
where
    S: Service<Request<Body>, Response = Response<Out>>,
    S::Future: Send + 'static,
    In: http_body::Body<Data = Bytes> + Send + 'static,
    In::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    Out: http_body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        let request = request.map(Body::new);
        // What is not in the table does not get past the guard.
        let class = method(request.uri().path()).map_or(Class::Change, |method| method.class);
        let Some(capacity) = self.capacities.of(class) else {
            let answer = self.inner.call(request);
            return Box::pin(async move { Ok(answer.await?.map(Body::new)) });
        };
        let Ok(permit) = Arc::clone(capacity).try_acquire_owned() else {
            let status = busy("too many calls of this kind are under way; try again in a moment");
            return Box::pin(async move { Ok(status.into_http()) });
        };
        let memory = Memory::new(&self.capacities.memory);
        let request = if class.is_streaming() {
            request
        } else {
            let unfold = match class {
                Class::Intake => EVENTS_UNFOLD,
                _ => OTHERS_UNFOLD,
            };
            let memory = Arc::clone(&memory);
            request.map(|body| {
                Body::new(Measured {
                    body,
                    unfold,
                    memory,
                    entries: Entries::default(),
                })
            })
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let hold = |body| {
                Body::new(Held {
                    body: Body::new(body),
                    _permit: permit,
                    _memory: memory,
                })
            };
            Ok(answer.await?.map(hold))
        })
    }
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
            let bytes = data.len().saturating_mul(self.unfold);
            if !self.memory.take(bytes) {
                let status = busy("requests take up all memory there is for them; try again");
                return Poll::Ready(Some(Err(status)));
            }
            if let Err(error) = self.entries.look_at(data) {
                return Poll::Ready(Some(Err(error.into())));
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

/// The body of an answer, which keeps its call's place until it is sent.
struct Held {
    body: Body,
    _permit: OwnedSemaphorePermit,
    _memory: Arc<Memory>,
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
