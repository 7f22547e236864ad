//! The events of one request on their way through a queue, and what happened to them.

use std::{sync::Arc, time::Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    domain::{EventId, IncomingEvent, Name, RecordId, Refusal, TraceContext},
    error::Error,
    ops::receipt::Claim,
    store::engine::DiskShare,
};

/// Called with the outcome of a job.
pub(super) type Reply = oneshot::Sender<Result<Outcome, Error>>;

/// The events of one request.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) events: Vec<Accepted>,
    pub(super) author: Option<Name>,
    pub(super) chain: Arc<[RecordId]>,
    /// What to remember it under.
    pub(super) claim: Option<Claim>,
    /// Completes once the events are on disk; no one waits for events of the service's own.
    pub(super) reply: Option<Reply>,
    pub(super) queued: Instant,
    /// What its events follow from.
    pub(super) trace: Option<TraceContext>,
    /// The free space that it may use.
    pub(super) space: DiskShare,
    /// The stored event of the service's own that it ingests; it is ingested once.
    pub(super) stored: Option<RecordId>,
    /// What it takes of the queue's capacity, for as long as it is there.
    pub(super) capacity: Option<OwnedSemaphorePermit>,
}

impl Job {
    pub(super) fn answer(mut self, outcome: Result<Outcome, Error>) {
        // The capacity is free before the sender learns of it.
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
    /// The identities that it may be of: its own, and the one that an earlier version gave it.
    pub(super) fn ids(&self) -> impl Iterator<Item = EventId> {
        std::iter::once(self.id).chain(self.event.report.folded)
    }
}

/// The outcome of a job.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was accepted.
    Taken {
        /// The number of the occurrence that accepted its last event.
        number: u32,
        /// How many of its events opened an occurrence.
        opened: usize,
        /// The places of its events that were not, and why.
        failed: Vec<(usize, Error)>,
    },
    /// It was carried out before, and these events of it were refused.
    Earlier(Vec<Refusal>),
    /// Its idempotency key stands for another request.
    KeyUsed,
}
