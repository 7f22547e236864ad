//! The workers that claim requests from the queue, decide and commit them, and respond.

use std::{collections::HashSet, sync::Arc, time::Instant};

use tokio::{
    sync::{RwLock, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::{
    Intake,
    batch::{self, Failed},
    job::{Accepted, Job, Outcome},
    queue::{Queue, Taken},
    stopping,
};
use crate::{
    domain::EventId,
    error::log_failure,
    limits::{INTAKE_BATCH_EVENTS, INTAKE_CONFLICT_TIME_MAX, INTAKE_WORKERS},
    ops::{cause_lookup::Recent, commit::ConflictPauses, deciding::Deciding},
    scan,
    store::EngineError,
    trace::{Span, SpanKind},
};

/// The receiving end of an [`Intake`]; events wait until it runs.
#[derive(Debug)]
pub struct IntakeWorkers {
    intake: Intake,
    deciding: Deciding,
    queue: Attended,
}

/// The queue of running workers. Dropping it closes the queue, so that no one waits forever.
#[derive(Debug)]
struct Attended(Queue);

impl Drop for Attended {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl IntakeWorkers {
    pub(super) fn new(intake: Intake, deciding: Deciding) -> Self {
        Self {
            queue: Attended(intake.queue.clone()),
            intake,
            deciding,
        }
    }

    /// Processes the queue until shutdown; requests queued by then are still handled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let turns = Arc::new(RwLock::new(()));
        for _ in 0..INTAKE_WORKERS {
            let worker = Worker {
                queue: self.queue.0.clone(),
                intake: self.intake.clone(),
                deciding: self.deciding.clone(),
                turns: Arc::clone(&turns),
                recent: Recent::default(),
            };
            // In a replay, it ends with the call that started it.
            tasks.spawn(scan::carried(worker.run(shutdown.clone())));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                error!(%error, "an intake worker failed");
            }
        }
    }
}

struct Worker {
    queue: Queue,
    intake: Intake,
    deciding: Deciding,
    /// Held exclusively by a worker after a conflict with another one, so that it succeeds.
    turns: Arc<RwLock<()>>,
    recent: Recent,
}

impl Worker {
    async fn run(self, shutdown: CancellationToken) {
        loop {
            let jobs = self.queue.take(INTAKE_BATCH_EVENTS);
            if !jobs.is_empty() {
                let begin = Instant::now();
                for taken in &jobs {
                    self.intake.metrics.intake_waited(begin - taken.job.queued);
                }
                let _spans: Vec<_> = jobs.iter().filter_map(|it| decision(&it.job)).collect();
                self.take_in(jobs, begin + INTAKE_CONFLICT_TIME_MAX).await;
                continue;
            }
            if self.queue.is_closed() {
                return;
            }
            tokio::select! {
                () = self.queue.ready() => {}
                () = shutdown.cancelled() => self.queue.close(),
            }
        }
    }

    /// Commits requests and responds to them. Requests in conflict with other clients are decided
    /// again until the deadline; the others do not wait for them.
    async fn take_in(&self, mut jobs: Vec<Taken>, until: Instant) {
        let mut pauses = ConflictPauses::default();
        loop {
            let failed = match self.decided(&jobs, !pauses.is_first()).await {
                Ok(outcomes) => return self.answer(jobs, outcomes),
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
                EngineError::Corrupt(_) if jobs.iter().all(|it| is_divisible(&it.job)) => {
                    for job in jobs {
                        self.one_by_one(job, until).await;
                    }
                    return;
                }
                EngineError::Full(_) if is_mixed(&jobs) => {
                    // Events of the service itself may use disk space that senders may not.
                    let least = jobs.iter().map(|it| it.job.space).min();
                    let (first, others) =
                        (jobs.into_iter()).partition(|it| Some(it.job.space) != least);
                    Box::pin(self.take_in(first, until)).await;
                    jobs = others;
                    continue;
                }
                error => return self.refuse(jobs, &error),
            }
            let (contested, others) = part(jobs, failed.contested);
            if !others.is_empty() {
                Box::pin(self.take_in(others, until)).await;
            }
            jobs = contested;
            if Instant::now() >= until {
                let why = "the same events were changed concurrently too often";
                return self.refuse(jobs, &EngineError::Unavailable(why.into()));
            }
            pauses.wait().await;
        }
    }

    /// Applies the events of a request one by one, so that an event with damaged state fails alone.
    async fn one_by_one(&self, mut taken: Taken, until: Instant) {
        let (mut number, mut all_opened, mut failed) = (0, 0, Vec::new());
        let events = std::mem::take(&mut taken.job.events);
        let count = events.len();
        for (place, accepted) in events.into_iter().enumerate() {
            let (reply, answer) = oneshot::channel();
            let alone = Taken::apart(Job {
                events: vec![accepted],
                author: taken.job.author.clone(),
                chain: Arc::clone(&taken.job.chain),
                claim: None,
                reply: Some(reply),
                queued: taken.job.queued,
                trace: taken.job.trace,
                space: taken.job.space,
                stored: None,
                capacity: None,
            });
            Box::pin(self.take_in(vec![alone], until)).await;
            match answer.await.unwrap_or_else(|_closed| Err(stopping())) {
                Ok(Outcome::Taken {
                    number: of, opened, ..
                }) => {
                    (number, all_opened) = (of, all_opened + opened);
                }
                Ok(Outcome::Earlier(_) | Outcome::KeyUsed) => {}
                Err(error) => failed.push((place, error)),
            }
        }
        let outcome = match failed.pop() {
            Some((_, error)) if failed.len() + 1 == count => Err(error),
            last => {
                failed.extend(last);
                Ok(Outcome::Taken {
                    number,
                    opened: all_opened,
                    failed,
                })
            }
        };
        let job = self.queue.release(vec![taken]).pop();
        if let Some(job) = job {
            job.answer(outcome);
        }
    }

    /// Decides and commits; exclusively if it conflicted before.
    async fn decided(&self, jobs: &[Taken], is_again: bool) -> Result<Vec<Outcome>, Failed> {
        let begin = Instant::now();
        let jobs: Vec<&Job> = jobs.iter().map(|it| &it.job).collect();
        let committed = if is_again {
            let _alone = self.turns.write().await;
            batch::commit(&self.deciding, &jobs, &self.recent).await
        } else {
            let _together = self.turns.read().await;
            batch::commit(&self.deciding, &jobs, &self.recent).await
        };
        let (outcomes, reports) = committed?;
        self.intake.metrics.intake_committed(begin.elapsed());
        self.intake.report_all(reports);
        Ok(outcomes)
    }

    fn answer(&self, jobs: Vec<Taken>, outcomes: Vec<Outcome>) {
        let jobs = self.queue.release(jobs);
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            job.answer(Ok(outcome));
        }
    }

    fn refuse(&self, jobs: Vec<Taken>, error: &EngineError) {
        log_failure("failed to store events: they were refused", error);
        for job in self.queue.release(jobs) {
            job.answer(Err(error.again().into()));
        }
    }
}

/// Returns whether the requests have different shares of the disk.
fn is_mixed(jobs: &[Taken]) -> bool {
    jobs.windows(2)
        .any(|pair| pair[0].job.space != pair[1].job.space)
}

/// Returns whether events of a request can be accepted individually.
fn is_divisible(job: &Job) -> bool {
    job.claim.is_none() && job.events.len() > 1
}

/// Creates the span for deciding and storing the events of a request, together with others.
fn decision(job: &Job) -> Option<Span> {
    let mut span = Span::begin("decide", SpanKind::Internal, Some(job.trace?));
    span.note("bellwether.events", || {
        i64::try_from(job.events.len()).unwrap_or(i64::MAX)
    });
    Some(span)
}

/// Splits off the requests that must be decided again: those in conflict, and later ones that share
/// an event id. Without known ids, all of them.
fn part(jobs: Vec<Taken>, mut contested: HashSet<EventId>) -> (Vec<Taken>, Vec<Taken>) {
    if contested.is_empty() {
        return (jobs, Vec::new());
    }
    jobs.into_iter().partition(|taken| {
        let ids = || taken.job.events.iter().flat_map(Accepted::ids);
        let is_contested = ids().any(|id| contested.contains(&id));
        if is_contested {
            contested.extend(ids());
        }
        is_contested
    })
}
