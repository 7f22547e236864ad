//! The events of one request as a queued job, and its outcome.

use std::{sync::Arc, time::Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    domain::{EventId, IncomingEvent, Name, RecordId, Refusal, TraceContext},
    error::Error,
    receipt::ReceiptClaim,
    store::engine::DiskShare,
};

pub(super) type Reply = oneshot::Sender<Result<Outcome, Error>>;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) events: Vec<Accepted>,
    pub(super) author: Option<Name>,
    pub(super) chain: Arc<[RecordId]>,
    /// Idempotency key under which the outcome is stored.
    pub(super) claim: Option<ReceiptClaim>,
    /// Notified once the events are on disk. `None` for events of the service itself, for which no
    /// caller waits.
    pub(super) reply: Option<Reply>,
    pub(super) queued: Instant,
    pub(super) trace: Option<TraceContext>,
    pub(super) space: DiskShare,
    /// Id of the service's own stored event that the job ingests. The event is ingested only once.
    pub(super) stored: Option<RecordId>,
    /// Capacity of the queue, held while the job is queued.
    pub(super) capacity: Option<OwnedSemaphorePermit>,
}

impl Job {
    pub(super) fn respond(mut self, outcome: Result<Outcome, Error>) {
        // Release the capacity before the sender gets the response.
        drop(self.capacity.take());
        if let Some(reply) = self.reply.take() {
            // The caller may have stopped waiting.
            drop(reply.send(outcome));
        }
    }
}

#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) id: EventId,
    pub(super) event: IncomingEvent,
}

impl Accepted {
    /// Returns the possible event ids: the current one and that of earlier versions.
    pub(super) fn event_ids(&self) -> impl Iterator<Item = EventId> {
        std::iter::once(self.id).chain(self.event.report.folded)
    }
}

#[derive(Debug)]
pub(super) enum Outcome {
    Accepted {
        number: u32,
        opened: usize,
        /// Events that were not accepted, by position, with the error.
        failed: Vec<(usize, Error)>,
    },
    /// Carried out by an earlier request, which refused these events.
    Earlier(Vec<Refusal>),
    KeyUsed,
}
