//! Event intake: queues events, decides them in batches, and responds after the commit.

mod batch;
pub mod check;
mod idempotent;
mod job;
mod queue;
mod worker;

use std::{sync::Arc, time::Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{debug, warn};

use check::check;
pub use idempotent::IdempotentOutcome;
use job::{Accepted, Job, Outcome, Reply};
use queue::Queue;
pub use worker::IntakeWorkers;

use crate::{
    clock::Clock,
    decision_context::DecisionContext,
    domain::{IncomingEvent, Name, OccurrenceId, OwnEvent, RecordId, value::json_bytes},
    error::Error,
    limits::{INTAKE_QUEUE_KIB_MAX, INTAKE_RETRY_AFTER},
    loop_guard::{RecordedReports, is_mark},
    metrics::Metrics,
    store::{
        Direction, Store,
        engine::{DiskShare, Range},
    },
    trace,
};

/// The entry point for events. Clones share the queue.
///
/// Each request is decided as a whole by one worker, in one commit. Events with the same id are
/// decided in the order of submission. A request waits for earlier requests that share an event id,
/// so two workers never decide the same event. While one worker waits for its commit, the others
/// decide.
#[derive(Debug, Clone)]
pub struct Intake {
    queue: Queue,
    /// Capacity of the queue, in KiB of events.
    capacity: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
}

const RESUMED_MAX: usize = 100;

#[derive(Debug)]
struct Origin {
    /// Client that sent the events; `None` for events of the service itself.
    author: Option<Name>,
    /// Rules that caused the events.
    chain: Vec<RecordId>,
    space: DiskShare,
    /// Id of the stored event of the service itself; `None` for other events.
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

#[derive(Debug, Default)]
pub struct SubmitOutcome {
    /// Events that were not accepted, by position, with the error.
    pub failed: Vec<(usize, Error)>,
    pub opened: usize,
}

impl Intake {
    /// Creates the queue, which [`IntakeWorkers::run`] processes.
    pub fn new(deciding: DecisionContext) -> (Self, IntakeWorkers) {
        let intake = Self {
            queue: Queue::default(),
            capacity: Arc::new(Semaphore::new(INTAKE_QUEUE_KIB_MAX as usize)),
            clock: Arc::clone(&deciding.clock),
            metrics: deciding.store.metrics().clone(),
        };
        let workers = IntakeWorkers::new(intake.clone(), deciding);
        (intake, workers)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the number of queued requests and their size in KiB.
    pub fn queue_size(&self) -> (usize, usize) {
        let free_kib = self.capacity.available_permits();
        let kib = (INTAKE_QUEUE_KIB_MAX as usize).saturating_sub(free_kib);
        (self.queue.waiting(), kib)
    }

    /// Submits the events of a request, and returns once all of them are on disk with all their
    /// consequences. The events are decided as a whole, but an event whose stored state is damaged
    /// fails separately.
    ///
    /// # Errors
    /// Returns an error if no event was accepted: `Exhausted` if the queue is full, `Unavailable`
    /// if the service is stopping, and any error of the store.
    ///
    /// # Cancel safety
    /// The events may still be accepted if the future is dropped.
    pub async fn submit(
        &self,
        events: Vec<IncomingEvent>,
        author: Option<Name>,
    ) -> Result<SubmitOutcome, Error> {
        let (reply, answer) = oneshot::channel();
        let from = Origin {
            author,
            ..Origin::default()
        };
        self.enqueue(events, from, Some(reply))?;
        match answer
            .await
            .unwrap_or_else(|_closed| Err(stopping_error()))?
        {
            Outcome::Accepted { opened, failed, .. } => Ok(SubmitOutcome { failed, opened }),
            Outcome::Earlier(_) | Outcome::KeyUsed => Ok(SubmitOutcome::default()),
        }
    }

    /// Submits an event created by an `event` destination, with the rules that caused it. Returns
    /// the id of its occurrence.
    ///
    /// # Errors
    /// Returns `Invalid` if the event is not valid, the errors of [`Intake::submit`], and an error
    /// if the store fails.
    ///
    /// # Cancel safety
    /// The event may still be accepted if the future is dropped.
    pub async fn submit_internal(
        &self,
        event: IncomingEvent,
        chain: Vec<RecordId>,
    ) -> Result<OccurrenceId, Error> {
        self.submit_own(event, chain, DiskShare::Reserve).await
    }

    /// Submits an event about the store itself. Like [`Intake::submit_internal`], but regardless of
    /// free space.
    ///
    /// # Cancel safety
    /// The event may still be accepted if the future is dropped.
    pub async fn submit_store_event(&self, event: IncomingEvent) -> Result<OccurrenceId, Error> {
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
        match answer
            .await
            .unwrap_or_else(|_closed| Err(stopping_error()))?
        {
            Outcome::Accepted { number, .. } => Ok(OccurrenceId { event: id, number }),
            Outcome::Earlier(_) | Outcome::KeyUsed => Err(stopping_error()),
        }
    }

    /// Submits an event of the service itself without waiting. If the queue is full, the event is
    /// dropped and logged.
    pub fn report(&self, event: IncomingEvent, chain: Vec<RecordId>) {
        let name = event.name.clone();
        let from = Origin {
            chain,
            space: DiskShare::Reserve,
            ..Origin::default()
        };
        if let Err(error) = self.enqueue(vec![event], from, None) {
            warn!(event = %name, %error, "lost an event created by the service");
        }
    }

    /// Submits stored events of the service itself. Those that do not fit in the queue are found by
    /// the next [`Intake::resume`].
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
                debug!(event = %name, %error, "an event created by the service will be ingested later");
            }
        }
    }

    /// Submits the stored events of the service itself that were not ingested, for example after a
    /// restart.
    pub async fn resume(&self, store: &Store) -> Result<(), Error> {
        let (all, ascending) = (Range::with_prefix(&[]), Direction::Ascending);
        let found = store.page::<OwnEvent>(all, ascending, RESUMED_MAX).await?;
        let found = found.into_iter().map(|it| it.value);
        let events = found.filter(|it| !is_mark(it));
        self.report_all(RecordedReports(events.collect()));
        Ok(())
    }

    fn enqueue(
        &self,
        events: Vec<IncomingEvent>,
        from: Origin,
        reply: Option<Reply>,
    ) -> Result<(), Error> {
        let events = accept_events(events);
        let job = Job {
            capacity: Some(self.capacity(weight_kib(&events))?),
            events,
            author: from.author,
            chain: from.chain.into(),
            claim: None,
            reply,
            queued: Instant::now(),
            trace: trace::current_context(),
            space: from.space,
            stored: from.stored,
        };
        if self.queue.push(job) {
            Ok(())
        } else {
            Err(stopping_error())
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

fn accept_events(events: Vec<IncomingEvent>) -> Vec<Accepted> {
    let accept = |event: IncomingEvent| Accepted {
        id: event.id(),
        event,
    };
    events.into_iter().map(accept).collect()
}

fn stopping_error() -> Error {
    Error::Unavailable("the service is stopping".into())
}

fn weight_kib(events: &[Accepted]) -> usize {
    let each = events.iter().map(|it| 1 + weight_bytes(&it.event) / 1024);
    each.sum()
}

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
