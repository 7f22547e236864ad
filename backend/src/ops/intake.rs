//! Takes events in: queues them, decides in batches, and answers after the commit.

mod batch;
pub mod check;
mod job;
mod once;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, RwLock, Semaphore, mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use batch::Failed;
use check::check;
use job::{Accepted, Job, Outcome, Reply};
pub use once::Once;

use crate::{
    clock::Clock,
    domain::{EventId, IncomingEvent, Name, OccurrenceId, RecordId, value::json_bytes},
    error::Error,
    limits::{
        INTAKE_BATCH_EVENTS, INTAKE_CONFLICT_TIME_MAX, INTAKE_QUEUE_KIB_MAX, INTAKE_RETRY_AFTER,
        INTAKE_WORKERS,
    },
    metrics::Metrics,
    ops::{deciding::Deciding, loop_guard::Reports},
    store::EngineError,
    trace::{self, Span, SpanKind},
};

/// The pause before events about which others commit are decided once more, and the longest one.
const CONFLICT_PAUSE_MIN: Duration = Duration::from_millis(1);
const CONFLICT_PAUSE_MAX: Duration = Duration::from_millis(100);

/// The way in for events. Clones share the queues.
///
/// Every event identity belongs to one worker, so two events of one identity are decided in the
/// order in which they were submitted, and workers never conflict with each other. While one worker
/// waits for its commit the others decide. Only a request with an idempotency key goes to one worker
/// as a whole, whosever its events are, because it is one commit: see [`Intake::submit_once`].
#[derive(Debug, Clone)]
pub struct Intake {
    queues: Arc<[mpsc::Sender<Job>]>,
    /// Capacity of the queues, in KiB of events.
    capacity: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
}

/// The other end of an [`Intake`]; events wait until it runs.
#[derive(Debug)]
pub struct IntakeWorkers {
    intake: Intake,
    deciding: Deciding,
    queues: Vec<mpsc::Receiver<Job>>,
}

/// What became of submitted events.
#[derive(Debug, Default)]
pub struct Submitted {
    /// The places in the list of events that were not taken in, and why.
    pub failed: Vec<(Vec<usize>, Error)>,
    /// How many of the others opened an occurrence.
    pub opened: usize,
}

impl Intake {
    /// Makes the queues; [`IntakeWorkers::run`] works them off.
    pub fn new(deciding: Deciding) -> (Self, IntakeWorkers) {
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..INTAKE_WORKERS)
            .map(|_| mpsc::channel(INTAKE_QUEUE_KIB_MAX as usize))
            .unzip();
        let intake = Self {
            queues: queues.into(),
            capacity: Arc::new(Semaphore::new(INTAKE_QUEUE_KIB_MAX as usize)),
            clock: Arc::clone(&deciding.clock),
            metrics: deciding.store.metrics().clone(),
        };
        let workers = IntakeWorkers {
            intake: intake.clone(),
            deciding,
            queues: receivers,
        };
        (intake, workers)
    }

    /// Where what is taken in is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How much waits in the queues: requests, or their parts, and KiB of events.
    pub fn queued(&self) -> (usize, usize) {
        let waiting = |queue: &mpsc::Sender<Job>| queue.max_capacity() - queue.capacity();
        let free_kib = self.capacity.available_permits();
        let kib = (INTAKE_QUEUE_KIB_MAX as usize).saturating_sub(free_kib);
        (self.queues.iter().map(waiting).sum(), kib)
    }

    /// Takes events in and returns once each is on disk with all it causes, or is not taken in.
    ///
    /// # Errors
    /// When no event was taken in: `Exhausted` when the queue is full, `Unavailable` when the
    /// service stops, and those of the store.
    ///
    /// # Cancel safety
    /// The events of a dropped call may still be taken in.
    pub async fn submit(
        &self,
        events: Vec<IncomingEvent>,
        author: Option<Name>,
    ) -> Result<Submitted, Error> {
        let events = match <[IncomingEvent; 1]>::try_from(events) {
            Ok([event]) => return self.submit_one(event, author).await,
            Err(events) => events,
        };
        let total = events.len();
        let parts = split(events);
        let mut capacities = Vec::with_capacity(INTAKE_WORKERS);
        for (_, part) in &parts {
            capacities.push(self.capacity_for(part)?);
        }
        let mut waiting = Vec::with_capacity(INTAKE_WORKERS);
        for ((queue, (places, events)), capacity) in self.queues.iter().zip(parts).zip(capacities) {
            if events.is_empty() {
                continue;
            }
            let (reply, answer) = oneshot::channel();
            let job = Job {
                events,
                author: author.clone(),
                chain: Arc::default(),
                claim: None,
                reply: Some(reply),
                queued: Instant::now(),
                trace: trace::current(),
                _capacity: capacity,
            };
            // A refused job drops its reply, which is seen below.
            drop(queue.try_send(job));
            waiting.push((places, answer));
        }
        let (mut failed, mut all_opened) = (Vec::new(), 0);
        for (places, answer) in waiting {
            match answer.await.unwrap_or_else(|_closed| Err(stopping())) {
                Ok(Outcome::Taken { opened, .. }) => all_opened += opened,
                Ok(Outcome::Earlier(_) | Outcome::KeyUsed) => {}
                Err(error) => failed.push((places, error)),
            }
        }
        let opened = all_opened;
        let failed_count: usize = failed.iter().map(|(places, _)| places.len()).sum();
        match failed.pop() {
            Some((_, error)) if failed_count == total => Err(error),
            Some(last) => {
                failed.push(last);
                Ok(Submitted { failed, opened })
            }
            None => Ok(Submitted { failed, opened }),
        }
    }

    /// As [`Intake::submit`], without a list to be parted.
    async fn submit_one(
        &self,
        event: IncomingEvent,
        author: Option<Name>,
    ) -> Result<Submitted, Error> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(event, author, Vec::new(), Some(reply))?;
        let outcome = answer.await.unwrap_or_else(|_closed| Err(stopping()));
        let opened = match outcome? {
            Outcome::Taken { opened, .. } => opened,
            Outcome::Earlier(_) | Outcome::KeyUsed => 0,
        };
        Ok(Submitted {
            failed: Vec::new(),
            opened,
        })
    }

    /// Takes in an event that an `event` destination makes, with the rules that led to it; answers
    /// the occurrence that took it in.
    ///
    /// # Errors
    /// `Invalid` when no sender could send such an event; else as [`Intake::submit`], and those of the store.
    ///
    /// # Cancel safety
    /// The event of a dropped call may still be taken in.
    pub async fn submit_internal(
        &self,
        event: IncomingEvent,
        chain: Vec<RecordId>,
    ) -> Result<OccurrenceId, Error> {
        let violations = check(&event, self.clock.now_ms());
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let (reply, answer) = oneshot::channel();
        let id = event.id();
        self.enqueue(event, None, chain, Some(reply))?;
        match answer.await.unwrap_or_else(|_closed| Err(stopping()))? {
            Outcome::Taken { number, .. } => Ok(OccurrenceId { event: id, number }),
            Outcome::Earlier(_) | Outcome::KeyUsed => Err(stopping()),
        }
    }

    /// Takes in an event of the service's own without waiting for it; a full queue loses it, and
    /// the log says so.
    pub fn report(&self, event: IncomingEvent, chain: Vec<RecordId>) {
        let name = event.name.clone();
        if let Err(error) = self.enqueue(event, None, chain, None) {
            warn!(event = %name, %error, "an event of the service's own was lost");
        }
    }

    /// Takes in what the service says of rules that were stopped, as [`Intake::report`] does.
    pub(crate) fn report_all(&self, reports: Reports) {
        for (event, chain) in reports {
            self.report(event, chain);
        }
    }

    fn enqueue(
        &self,
        event: IncomingEvent,
        author: Option<Name>,
        chain: Vec<RecordId>,
        reply: Option<Reply>,
    ) -> Result<(), Error> {
        let id = event.id();
        let events = vec![Accepted { id, event }];
        let job = Job {
            _capacity: self.capacity_for(&events)?,
            events,
            author,
            chain: chain.into(),
            claim: None,
            reply,
            queued: Instant::now(),
            trace: trace::current(),
        };
        let queue = &self.queues[worker_of(id)];
        queue.try_send(job).map_err(|_job| stopping())
    }

    fn capacity_for(&self, events: &[Accepted]) -> Result<OwnedSemaphorePermit, Error> {
        self.capacity(weight_kib(events))
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

/// The events of each worker, with their places in the list.
fn split(events: Vec<IncomingEvent>) -> Vec<(Vec<usize>, Vec<Accepted>)> {
    let mut parts: Vec<(Vec<usize>, Vec<Accepted>)> = Vec::new();
    parts.resize_with(INTAKE_WORKERS, Default::default);
    for (place, event) in events.into_iter().enumerate() {
        let id = event.id();
        let (places, accepted) = &mut parts[worker_of(id)];
        places.push(place);
        accepted.push(Accepted { id, event });
    }
    parts
}

fn stopping() -> Error {
    Error::Unavailable("the service is stopping".into())
}

fn worker_of(id: EventId) -> usize {
    usize::from(id.to_bytes()[0]) % INTAKE_WORKERS
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

impl IntakeWorkers {
    /// Works the queues off until shutdown; what is queued then is still answered.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let turns = Arc::new(RwLock::new(()));
        for queue in self.queues {
            let worker = Worker {
                intake: self.intake.clone(),
                deciding: self.deciding.clone(),
                turns: Arc::clone(&turns),
            };
            tasks.spawn(worker.run(queue, shutdown.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                error!(%error, "an intake worker broke");
            }
        }
    }
}

struct Worker {
    intake: Intake,
    deciding: Deciding,
    /// Held alone by a worker that conflicted with another one, so that it gets through.
    turns: Arc<RwLock<()>>,
}

impl Worker {
    async fn run(self, mut queue: mpsc::Receiver<Job>, shutdown: CancellationToken) {
        let mut jobs = Vec::new();
        loop {
            tokio::select! {
                count = queue.recv_many(&mut jobs, INTAKE_BATCH_EVENTS) => {
                    if count == 0 {
                        return;
                    }
                }
                () = shutdown.cancelled(), if !queue.is_closed() => {
                    queue.close();
                    continue;
                }
            }
            while !jobs.is_empty() {
                let rest = jobs.split_off(batch_length(&jobs));
                let begin = Instant::now();
                for job in &jobs {
                    self.intake.metrics.intake_waited(begin - job.queued);
                }
                let _spans: Vec<_> = jobs.iter().filter_map(decision).collect();
                self.take_in(jobs, begin + INTAKE_CONFLICT_TIME_MAX).await;
                jobs = rest;
            }
        }
    }

    /// Commits jobs and answers them. Those about which somebody else committed meanwhile are decided
    /// anew until that time; the others do not wait for them.
    async fn take_in(&self, mut jobs: Vec<Job>, until: Instant) {
        let mut pause = Duration::ZERO;
        loop {
            let failed = match self.decided(&jobs, pause > Duration::ZERO).await {
                Ok(outcomes) => return answer(jobs, outcomes),
                Err(failed) => failed,
            };
            match failed.error {
                EngineError::Conflict(_) => {}
                EngineError::Corrupt(_) if jobs.len() > 1 => {
                    for job in jobs {
                        Box::pin(self.take_in(vec![job], until)).await;
                    }
                    return;
                }
                error => return refuse(jobs, &error),
            }
            let (contested, others) = part(jobs, failed.contested);
            if !others.is_empty() {
                Box::pin(self.take_in(others, until)).await;
            }
            jobs = contested;
            if Instant::now() >= until {
                let why = "others changed the same events all the while";
                return refuse(jobs, &EngineError::Unavailable(why.into()));
            }
            if pause > Duration::ZERO {
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            }
            pause = (2 * pause).clamp(CONFLICT_PAUSE_MIN, CONFLICT_PAUSE_MAX);
        }
    }

    /// Decides and commits, without any other worker where it conflicted before.
    async fn decided(&self, jobs: &[Job], is_again: bool) -> Result<Vec<Outcome>, Failed> {
        let begin = Instant::now();
        let committed = if is_again {
            let _alone = self.turns.write().await;
            batch::commit(&self.deciding, jobs).await
        } else {
            let _together = self.turns.read().await;
            batch::commit(&self.deciding, jobs).await
        };
        let (outcomes, reports) = committed?;
        self.intake.metrics.intake_committed(begin.elapsed());
        self.intake.report_all(reports);
        Ok(outcomes)
    }
}

/// The span in which the events of a job are decided and stored, together with others.
fn decision(job: &Job) -> Option<Span> {
    let mut span = Span::begin("decide", SpanKind::Internal, Some(job.trace?));
    span.note("bellwether.events", || {
        i64::try_from(job.events.len()).unwrap_or(i64::MAX)
    });
    Some(span)
}

/// Parts the jobs that have to be decided anew, and those that come after one of them with the same
/// identity, from the others. All are where it is not known which.
fn part(jobs: Vec<Job>, mut contested: HashSet<EventId>) -> (Vec<Job>, Vec<Job>) {
    if contested.is_empty() {
        return (jobs, Vec::new());
    }
    jobs.into_iter().partition(|job| {
        let mut events = job.events.iter();
        let is_contested = events.any(|accepted| contested.contains(&accepted.id));
        if is_contested {
            contested.extend(job.events.iter().map(|accepted| accepted.id));
        }
        is_contested
    })
}

/// How many of the first jobs make a batch; at least one.
fn batch_length(jobs: &[Job]) -> usize {
    let mut events = 0;
    let within = jobs.iter().take_while(|job| {
        events += job.events.len();
        events <= INTAKE_BATCH_EVENTS
    });
    within.count().max(1)
}

fn answer(jobs: Vec<Job>, outcomes: Vec<Outcome>) {
    for (mut job, outcome) in jobs.into_iter().zip(outcomes) {
        if let Some(reply) = job.reply.take() {
            // Nobody may be waiting any more.
            drop(reply.send(Ok(outcome)));
        }
    }
}

fn refuse(jobs: Vec<Job>, error: &EngineError) {
    warn!(%error, requests = jobs.len(), "events were not taken in");
    for mut job in jobs {
        if let Some(reply) = job.reply.take() {
            drop(reply.send(Err(error.again().into())));
        }
    }
}

#[cfg(test)]
mod tests;
