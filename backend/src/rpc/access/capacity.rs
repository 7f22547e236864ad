//! Capacity: concurrent calls, and memory for their messages.
//!
//! Intake, reads, changes and streams have separate capacities, so that overload of one does not
//! affect the others. One client gets at most a quarter of each. A unary call acquires its permit
//! when its message is complete, so that slow clients hold none. A call that gets no permit is
//! rejected immediately with a retry time.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bellwether_process::listen::{Permit, PermitError, Pool, network_key};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::{Code, Status, body::Body};
use tonic_types::{ErrorDetails, StatusExt};

use super::{
    entries::{Entries, PREFIX_BYTES},
    inflate::{Inflater, too_large_status},
};
use crate::{
    domain::RecordId,
    limits::{
        CALLS_ARRIVING_MAX, CHANGES_IN_FLIGHT_MAX, HEALTH_WATCHES_MAX, INTAKE_IN_FLIGHT_MAX,
        OVERLOAD_RETRY_AFTER, PAGES_IN_FLIGHT_MAX, READS_IN_FLIGHT_MAX, REQUEST_MEMORY_KIB_MAX,
        STREAMS_IN_FLIGHT_MAX, WATCHES_OPEN_MAX,
    },
    ops::client::Caller,
    rpc::methods::Class,
};

/// Memory reserved per byte of a request. Events are validated while they arrive; other messages
/// expand when they are decoded.
const EVENTS_UNFOLD: usize = 2;
const OTHERS_UNFOLD: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CapacityHolder {
    Client(RecordId),
    Address(Option<IpAddr>),
}

impl CapacityHolder {
    pub(super) fn for_call(caller: Option<&Caller>, peer: Option<IpAddr>) -> Self {
        match caller {
            Some(caller) => Self::Client(caller.id),
            None => Self::Address(peer.map(network_key)),
        }
    }

    pub(super) fn holder_key(&self) -> Arc<str> {
        match self {
            Self::Client(id) => id.to_string().into(),
            Self::Address(Some(address)) => address.to_string().into(),
            Self::Address(None) => "unknown".into(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Capacities(Arc<ClassCapacities>);

#[derive(Debug)]
struct ClassCapacities {
    intake: Arc<Pool<CapacityHolder>>,
    pages: Arc<Pool<CapacityHolder>>,
    reads: Arc<Pool<CapacityHolder>>,
    changes: Arc<Pool<CapacityHolder>>,
    watches: Arc<Pool<CapacityHolder>>,
    streams: Arc<Pool<CapacityHolder>>,
    health_watches: Arc<Pool<CapacityHolder>>,
    /// Unary calls whose message is incomplete.
    arriving: Arc<Pool<CapacityHolder>>,
    /// In KiB.
    memory: Arc<Pool<CapacityHolder>>,
}

impl Capacities {
    pub(super) fn new() -> Self {
        Self(Arc::new(ClassCapacities {
            intake: Pool::new(INTAKE_IN_FLIGHT_MAX),
            pages: Pool::new(PAGES_IN_FLIGHT_MAX),
            reads: Pool::new(READS_IN_FLIGHT_MAX),
            changes: Pool::new(CHANGES_IN_FLIGHT_MAX),
            watches: Pool::new(WATCHES_OPEN_MAX),
            streams: Pool::new(STREAMS_IN_FLIGHT_MAX),
            health_watches: Pool::new(HEALTH_WATCHES_MAX),
            arriving: Pool::new(CALLS_ARRIVING_MAX),
            memory: Pool::new(REQUEST_MEMORY_KIB_MAX),
        }))
    }

    pub(super) fn watch_count(&self) -> usize {
        self.0.watches.permits_in_use()
    }

    /// Reserves a share of the capacity of a class for a call; `None` for calls that are always
    /// accepted. For a stream, the permit is acquired here; for a unary call, when its message is
    /// complete.
    ///
    /// # Errors
    /// Returns an error with a retry time if the class is at its limit.
    pub(super) fn reserve_share(
        &self,
        class: Class,
        holder: CapacityHolder,
    ) -> Result<Option<CapacityShare>, Status> {
        let classes = &*self.0;
        let calls = match class {
            Class::Probe => return Ok(None),
            Class::Intake => &classes.intake,
            Class::Page => &classes.pages,
            Class::Read => &classes.reads,
            Class::Change => &classes.changes,
            Class::Watch => &classes.watches,
            Class::Stream => &classes.streams,
            Class::HealthWatch => &classes.health_watches,
        };
        let mut permit = calls.new_permit(Some(holder.clone()));
        let mut arriving = classes.arriving.new_permit(Some(holder.clone()));
        if class.is_streaming() {
            acquire_call(&mut permit)?;
        } else {
            acquire_call(&mut arriving)?;
        }
        let unfold = match class {
            Class::Intake => EVENTS_UNFOLD,
            _ => OTHERS_UNFOLD,
        };
        let reserved = Mutex::new(ReservedResources {
            permit,
            arriving: Some(arriving),
            memory: classes.memory.new_permit(Some(holder)),
            free_bytes: 0,
        });
        Ok(Some(CapacityShare {
            unfold,
            reserved: Arc::new(reserved),
        }))
    }
}

fn acquire_call(permit: &mut Permit<CapacityHolder>) -> Result<(), Status> {
    permit.acquire(1).map_err(|full| {
        busy_status(match full {
            PermitError::All => "too many concurrent calls of this kind; try again in a moment",
            PermitError::Share => {
                "this client has reached its limit, a quarter of the capacity for calls of this \
                 kind; try again in a moment"
            }
        })
    })
}

/// The share of a call: its permit, and its memory.
#[derive(Debug)]
pub(super) struct CapacityShare {
    unfold: usize,
    reserved: Arc<Mutex<ReservedResources>>,
}

#[derive(Debug)]
struct ReservedResources {
    permit: Permit<CapacityHolder>,
    /// Held until the message is complete.
    arriving: Option<Permit<CapacityHolder>>,
    memory: Permit<CapacityHolder>,
    /// Memory that is reserved but unused.
    free_bytes: usize,
}

impl CapacityShare {
    /// Acquires the permit and the memory for a complete message, and counts its entries.
    ///
    /// # Errors
    /// Returns an error if no permit or memory is available, or there are too many entries.
    pub(super) fn take_memory(&self, message: &[u8]) -> Result<(), Status> {
        account_data(
            message,
            self.unfold,
            &self.reserved,
            &mut Entries::for_message(),
        )?;
        finish_arrival(&self.reserved)
    }

    /// Wraps a body. While a message of at most `bytes_max` bytes arrives, memory for it is
    /// reserved and its entries are counted. When it is complete, the permit is acquired. A
    /// compressed message is decompressed.
    pub(super) fn measure_body(&self, body: Body, bytes_max: usize, is_packed: bool) -> Body {
        Body::new(MeasuredBody {
            body,
            unfold: self.unfold,
            reserved: Arc::clone(&self.reserved),
            entries: Entries::default(),
            bytes: 0,
            bytes_max,
            inflate: is_packed.then(|| Inflater::new(bytes_max)),
            ended: false,
        })
    }

    /// Wraps the response body so that the share is held until the body has been sent.
    pub(super) fn hold_until_end(self, body: Body) -> Body {
        Body::new(MeteredBody { body, _share: self })
    }
}

fn account_data(
    data: &[u8],
    unfold: usize,
    reserved: &Mutex<ReservedResources>,
    entries: &mut Entries,
) -> Result<(), Status> {
    reserve_memory(data.len().saturating_mul(unfold), reserved)?;
    Ok(entries.parse_next(data)?)
}

fn reserve_memory(bytes: usize, reserved: &Mutex<ReservedResources>) -> Result<(), Status> {
    let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
    reserved.reserve(bytes).map_err(|full| {
        busy_status(match full {
            PermitError::All => "memory for requests is exhausted; try again",
            PermitError::Share => {
                "this client has reached its limit, a quarter of the memory for requests; try again"
            }
        })
    })
}

fn finish_arrival(reserved: &Mutex<ReservedResources>) -> Result<(), Status> {
    let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
    if reserved.arriving.is_none() {
        return Ok(());
    }
    acquire_call(&mut reserved.permit)?;
    reserved.arriving = None;
    Ok(())
}

fn busy_status(message: &str) -> Status {
    let details = ErrorDetails::with_retry_info(Some(OVERLOAD_RETRY_AFTER));
    Status::with_error_details(Code::Unavailable, message, details)
}

impl ReservedResources {
    fn reserve(&mut self, bytes: usize) -> Result<(), PermitError> {
        if let Some(left) = self.free_bytes.checked_sub(bytes) {
            self.free_bytes = left;
            return Ok(());
        }
        let lacking = bytes - self.free_bytes;
        let kib = lacking.div_ceil(1024);
        self.memory.acquire(kib)?;
        self.free_bytes = kib * 1024 - lacking;
        Ok(())
    }
}

struct MeasuredBody {
    body: Body,
    unfold: usize,
    reserved: Arc<Mutex<ReservedResources>>,
    entries: Entries,
    bytes: usize,
    bytes_max: usize,
    inflate: Option<Inflater>,
    ended: bool,
}

impl MeasuredBody {
    fn account_data(&mut self, data: Bytes) -> Result<Bytes, Status> {
        let (unfold, reserved) = (self.unfold, &self.reserved);
        let Some(inflate) = &mut self.inflate else {
            self.bytes += data.len();
            if self.bytes > self.bytes_max + PREFIX_BYTES {
                return Err(too_large_status(self.bytes_max));
            }
            account_data(&data, unfold, reserved, &mut self.entries)?;
            return Ok(data);
        };
        let grow = |bytes: usize| reserve_memory(bytes.saturating_mul(unfold), reserved);
        let data = inflate.inflate_bytes(&data, grow)?;
        self.entries.parse_next(&data)?;
        Ok(data.into())
    }
}

impl http_body::Body for MeasuredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let polled = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.account_data(data),
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Ready(None) => match finish_arrival(&self.reserved) {
                    Ok(()) => return Poll::Ready(None),
                    Err(status) => Err(status),
                },
                other => return other,
            };
            match polled {
                // A part of a compressed message can be empty when decompressed.
                Ok(data) if data.is_empty() && self.inflate.is_some() => {}
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(status) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // The reader must poll until the end, because the permit is acquired there.
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct MeteredBody {
    body: Body,
    _share: CapacityShare,
}

impl http_body::Body for MeteredBody {
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
