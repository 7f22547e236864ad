//! Takes events in: queues them, decides in batches, and answers after the commit.

mod batch;
pub mod check;
mod job;
mod once;
mod queue;
mod worker;

use std::{sync::Arc, time::Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{debug, warn};

use check::check;
use job::{Accepted, Job, Outcome, Reply};
pub use once::Once;
use queue::Queue;
pub use worker::IntakeWorkers;

use crate::{
    clock::Clock,
    domain::{IncomingEvent, Name, OccurrenceId, OwnEvent, RecordId, value::json_bytes},
    error::Error,
    limits::{INTAKE_QUEUE_KIB_MAX, INTAKE_RETRY_AFTER},
    metrics::Metrics,
    ops::{deciding::Deciding, loop_guard::RecordedReports},
    store::{
        Direction, Store,
        engine::{DiskShare, Range},
    },
    trace,
};

/// The way in for events. Clones share the queue.
///
/// A request is decided as a whole by one worker, in one commit. Two events of one identity are
/// decided in the order in which they were submitted: a request waits for the earlier ones with which
/// it has an identity in common, so workers never conflict with each other about an event. While one
/// worker waits for its commit the others decide.
#[derive(Debug, Clone)]
pub struct Intake {
    queue: Queue,
    /// Capacity of the queue, in KiB of events.
    capacity: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
}

/// Events of the service's own that are ingested again at a time.
const RESUMED_MAX: usize = 100;

/// How events came.
#[derive(Debug)]
struct Origin {
    /// The client that sent them; `None` if the service did.
    author: Option<Name>,
    /// The rules that led to them.
    chain: Vec<RecordId>,
    /// The free space that they may use.
    space: DiskShare,
    /// The stored event of the service's own that this is.
    stored: Option<RecordId>,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            author: None,
            chain: Vec::new(),
            space: DiskShare::AboveFloor,
            stored: None,
        }
    }
}

/// The outcome of submitted events.
#[derive(Debug, Default)]
pub struct Submitted {
    /// The places in the list of events that were not accepted, and why.
    pub failed: Vec<(usize, Error)>,
    /// How many of the others opened an occurrence.
    pub opened: usize,
}

impl Intake {
    /// Makes the queue; [`IntakeWorkers::run`] works it off.
    pub fn new(deciding: Deciding) -> (Self, IntakeWorkers) {
        let intake = Self {
            queue: Queue::default(),
            capacity: Arc::new(Semaphore::new(INTAKE_QUEUE_KIB_MAX as usize)),
            clock: Arc::clone(&deciding.clock),
            metrics: deciding.store.metrics().clone(),
        };
        let workers = IntakeWorkers::new(intake.clone(), deciding);
        (intake, workers)
    }

    /// Where what is accepted is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How much waits in the queue: requests, and KiB of events.
    pub fn queued(&self) -> (usize, usize) {
        let free_kib = self.capacity.available_permits();
        let kib = (INTAKE_QUEUE_KIB_MAX as usize).saturating_sub(free_kib);
        (self.queue.waiting(), kib)
    }

    /// Takes the events of a request in, decided as a whole, and returns once all of them are on disk
    /// with all they cause. An event whose stored state is damaged fails alone.
    ///
    /// # Errors
    /// When no event was accepted: `Exhausted` when the queue is full, `Unavailable` when the
    /// service stops, and those of the store.
    ///
    /// # Cancel safety
    /// The events of a dropped call may still be accepted.
    pub async fn submit(
        &self,
        events: Vec<IncomingEvent>,
        author: Option<Name>,
    ) -> Result<Submitted, Error> {
        let (reply, answer) = oneshot::channel();
        let from = Origin {
            author,
            ..Origin::default()
        };
        self.enqueue(events, from, Some(reply))?;
        match answer.await.unwrap_or_else(|_closed| Err(stopping()))? {
            Outcome::Taken { opened, failed, .. } => Ok(Submitted { failed, opened }),
            Outcome::Earlier(_) | Outcome::KeyUsed => Ok(Submitted::default()),
        }
    }

    /// Ingests an event that an `event` destination makes, with the rules that led to it; answers
    /// the occurrence that took it in.
    ///
    /// # Errors
    /// `Invalid` when no sender could send such an event; else as [`Intake::submit`], and those of the store.
    ///
    /// # Cancel safety
    /// The event of a dropped call may still be accepted.
    pub async fn submit_internal(
        &self,
        event: IncomingEvent,
        chain: Vec<RecordId>,
    ) -> Result<OccurrenceId, Error> {
        self.submit_own(event, chain, DiskShare::Reserve).await
    }

    /// Ingests an event about the store itself, as [`Intake::submit_internal`] does, however little space is
    /// left.
    ///
    /// # Errors
    /// Those of [`Intake::submit_internal`].
    ///
    /// # Cancel safety
    /// The event of a dropped call may still be accepted.
    pub async fn submit_about_store(&self, event: IncomingEvent) -> Result<OccurrenceId, Error> {
        self.submit_own(event, Vec::new(), DiskShare::All).await
    }

    async fn submit_own(
        &self,
        event: IncomingEvent,
        chain: Vec<RecordId>,
        space: DiskShare,
    ) -> Result<OccurrenceId, Error> {
        let violations = check(&event, self.clock.now_ms());
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let (reply, answer) = oneshot::channel();
        let id = event.id();
        let from = Origin {
            chain,
            space,
            ..Origin::default()
        };
        self.enqueue(vec![event], from, Some(reply))?;
        match answer.await.unwrap_or_else(|_closed| Err(stopping()))? {
            Outcome::Taken { number, .. } => Ok(OccurrenceId { event: id, number }),
            Outcome::Earlier(_) | Outcome::KeyUsed => Err(stopping()),
        }
    }

    /// Ingests an event of the service's own without waiting for it; a full queue loses it, and the
    /// log reports it.
    pub fn report(&self, event: IncomingEvent, chain: Vec<RecordId>) {
        let name = event.name.clone();
        let from = Origin {
            chain,
            space: DiskShare::Reserve,
            ..Origin::default()
        };
        if let Err(error) = self.enqueue(vec![event], from, None) {
            warn!(event = %name, %error, "an event of the service's own was lost");
        }
    }

    /// Ingests events of the service's own that are stored: what the queue has no room for is found by the next
    /// [`Intake::resume`].
    pub(crate) fn report_all(&self, reports: RecordedReports) {
        for OwnEvent { id, event, chain } in reports.0 {
            let name = event.name.clone();
            let from = Origin {
                chain,
                space: DiskShare::Reserve,
                stored: Some(id),
                ..Origin::default()
            };
            if let Err(error) = self.enqueue(vec![event], from, None) {
                debug!(event = %name, %error, "an event of the service's own is ingested later");
            }
        }
    }

    /// Ingests the events of the service's own that were stored and not ingested, as after a restart.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub async fn resume(&self, store: &Store) -> Result<(), Error> {
        let (all, ascending) = (Range::under(&[]), Direction::Ascending);
        let found = store.page::<OwnEvent>(all, ascending, RESUMED_MAX).await?;
        let found = found.into_iter().map(|it| it.value).collect();
        self.report_all(RecordedReports(found));
        Ok(())
    }

    fn enqueue(
        &self,
        events: Vec<IncomingEvent>,
        from: Origin,
        reply: Option<Reply>,
    ) -> Result<(), Error> {
        let events = accepted(events);
        let job = Job {
            capacity: Some(self.capacity(weight_kib(&events))?),
            events,
            author: from.author,
            chain: from.chain.into(),
            claim: None,
            reply,
            queued: Instant::now(),
            trace: trace::current(),
            space: from.space,
            stored: from.stored,
        };
        if self.queue.push(job) {
            Ok(())
        } else {
            Err(stopping())
        }
    }

    fn capacity(&self, kib: usize) -> Result<OwnedSemaphorePermit, Error> {
        let kib = u32::try_from(kib)
            .unwrap_or(u32::MAX)
            .min(INTAKE_QUEUE_KIB_MAX);
        let capacity = Arc::clone(&self.capacity);
        capacity
            .try_acquire_many_owned(kib)
            .map_err(|_full| Error::Exhausted {
                message: "the intake queue is full".into(),
                retry_after: Some(INTAKE_RETRY_AFTER),
            })
    }
}

fn accepted(events: Vec<IncomingEvent>) -> Vec<Accepted> {
    let accept = |event: IncomingEvent| Accepted {
        id: event.id(),
        event,
    };
    events.into_iter().map(accept).collect()
}

fn stopping() -> Error {
    Error::Unavailable("the service is stopping".into())
}

/// About how much memory events take, in KiB; each counts.
fn weight_kib(events: &[Accepted]) -> usize {
    let each = events.iter().map(|it| 1 + weight_bytes(&it.event) / 1024);
    each.sum()
}

/// About how much memory an event takes.
fn weight_bytes(event: &IncomingEvent) -> usize {
    let dimensions = event
        .dimensions
        .iter()
        .map(|(key, value)| key.len() + value.len());
    let metadata = json_bytes(&event.metadata);
    event.summary.len() + event.body.len() + metadata + dimensions.sum::<usize>()
}

#[cfg(test)]
mod tests;
