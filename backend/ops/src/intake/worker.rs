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
    batch::{self, BatchError},
    job::{Accepted, Job, Outcome},
    queue::{ClaimedRequest, Queue},
    stopping_error,
};
use crate::{
    cause_lookup::RecentInhibitions,
    commit::ConflictPauses,
    decision_context::DecisionContext,
    domain::EventId,
    error::log_failure,
    limits::{INTAKE_BATCH_EVENTS, INTAKE_CONFLICT_TIME_MAX, INTAKE_WORKERS},
    scan,
    store::EngineError,
    trace::{Span, SpanKind},
};

/// The receiving end of an [`Intake`]; events wait until it runs.
#[derive(Debug)]
pub struct IntakeWorkers {
    intake: Intake,
    deciding: DecisionContext,
    queue: QueueGuard,
}

/// The queue of running workers. Dropping it closes the queue, so that no caller waits forever.
#[derive(Debug)]
struct QueueGuard(Queue);

impl Drop for QueueGuard {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl IntakeWorkers {
    pub(super) fn new(intake: Intake, deciding: DecisionContext) -> Self {
        Self {
            queue: QueueGuard(intake.queue.clone()),
            intake,
            deciding,
        }
    }

    /// Processes the queue until shutdown. Requests that are queued by then are still handled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let turns = Arc::new(RwLock::new(()));
        for _ in 0..INTAKE_WORKERS {
            let worker = Worker {
                queue: self.queue.0.clone(),
                intake: self.intake.clone(),
                deciding: self.deciding.clone(),
                turns: Arc::clone(&turns),
                recent: RecentInhibitions::default(),
            };
            // In a replay, the worker ends together with the call that started the replay.
            tasks.spawn(scan::with_current_scan(worker.run(shutdown.clone())));
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
    deciding: DecisionContext,
    /// Locked exclusively after a conflict with another worker, so that the next commit succeeds.
    turns: Arc<RwLock<()>>,
    recent: RecentInhibitions,
}

impl Worker {
    async fn run(self, shutdown: CancellationToken) {
        loop {
            let jobs = self.queue.claim_requests(INTAKE_BATCH_EVENTS);
            if !jobs.is_empty() {
                let begin = Instant::now();
                for claimed in &jobs {
                    self.intake
                        .metrics
                        .record_intake_wait(begin - claimed.job.queued);
                }
                let _spans: Vec<_> = jobs
                    .iter()
                    .filter_map(|it| decision_span(&it.job))
                    .collect();
                self.process_requests(jobs, begin + INTAKE_CONFLICT_TIME_MAX)
                    .await;
                continue;
            }
            if self.queue.is_closed() {
                return;
            }
            tokio::select! {
                () = self.queue.wait_until_ready() => {}
                () = shutdown.cancelled() => self.queue.close(),
            }
        }
    }

    /// Commits requests and responds to them. Requests in conflict with other clients are decided
    /// again until the deadline; the other requests do not wait for them.
    async fn process_requests(&self, mut jobs: Vec<ClaimedRequest>, until: Instant) {
        let mut pauses = ConflictPauses::default();
        loop {
            let failed = match self
                .decide_and_commit(&jobs, !pauses.is_first_attempt())
                .await
            {
                Ok(outcomes) => return self.respond(jobs, outcomes),
                Err(failed) => failed,
            };
            match failed.error {
                EngineError::Conflict(_) => {}
                EngineError::Corrupt(_) if jobs.len() > 1 => {
                    for job in jobs {
                        Box::pin(self.process_requests(vec![job], until)).await;
                    }
                    return;
                }
                EngineError::Corrupt(_) if jobs.iter().all(|it| can_be_split(&it.job)) => {
                    for job in jobs {
                        self.apply_individually(job, until).await;
                    }
                    return;
                }
                EngineError::Full(_) if spans_several_spaces(&jobs) => {
                    // Events of the service itself may use disk space that is not available to
                    // senders.
                    let least = jobs.iter().map(|it| it.job.space).min();
                    let (first, others) =
                        (jobs.into_iter()).partition(|it| Some(it.job.space) != least);
                    Box::pin(self.process_requests(first, until)).await;
                    jobs = others;
                    continue;
                }
                error => return self.reject(jobs, &error),
            }
            let (contested, others) = split_contested(jobs, failed.contested);
            if !others.is_empty() {
                Box::pin(self.process_requests(others, until)).await;
            }
            jobs = contested;
            if Instant::now() >= until {
                let why = "too many concurrent changes of the same events";
                return self.reject(jobs, &EngineError::Unavailable(why.into()));
            }
            pauses.wait_before_retry().await;
        }
    }

    /// Applies the events of a request one by one, so that an event with damaged state fails
    /// separately.
    async fn apply_individually(&self, mut claimed: ClaimedRequest, until: Instant) {
        let (mut number, mut all_opened, mut failed) = (0, 0, Vec::new());
        let events = std::mem::take(&mut claimed.job.events);
        let count = events.len();
        for (place, accepted) in events.into_iter().enumerate() {
            let (reply, answer) = oneshot::channel();
            let alone = ClaimedRequest::without_queue(Job {
                events: vec![accepted],
                author: claimed.job.author.clone(),
                chain: Arc::clone(&claimed.job.chain),
                claim: None,
                reply: Some(reply),
                queued: claimed.job.queued,
                trace: claimed.job.trace,
                space: claimed.job.space,
                stored: None,
                capacity: None,
            });
            Box::pin(self.process_requests(vec![alone], until)).await;
            match answer.await.unwrap_or_else(|_closed| Err(stopping_error())) {
                Ok(Outcome::Accepted {
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
                Ok(Outcome::Accepted {
                    number,
                    opened: all_opened,
                    failed,
                })
            }
        };
        let job = self.queue.release_claims(vec![claimed]).pop();
        if let Some(job) = job {
            job.respond(outcome);
        }
    }

    /// Decides and commits requests, exclusively if they conflicted before.
    async fn decide_and_commit(
        &self,
        jobs: &[ClaimedRequest],
        is_again: bool,
    ) -> Result<Vec<Outcome>, BatchError> {
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
        self.intake.metrics.record_intake_commit(begin.elapsed());
        self.intake.report_all(reports);
        Ok(outcomes)
    }

    fn respond(&self, jobs: Vec<ClaimedRequest>, outcomes: Vec<Outcome>) {
        let jobs = self.queue.release_claims(jobs);
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            job.respond(Ok(outcome));
        }
    }

    fn reject(&self, jobs: Vec<ClaimedRequest>, error: &EngineError) {
        log_failure("failed to store events; they were rejected", error);
        for job in self.queue.release_claims(jobs) {
            job.respond(Err(error.copy_for_caller().into()));
        }
    }
}

fn spans_several_spaces(jobs: &[ClaimedRequest]) -> bool {
    jobs.windows(2)
        .any(|pair| pair[0].job.space != pair[1].job.space)
}

fn can_be_split(job: &Job) -> bool {
    job.claim.is_none() && job.events.len() > 1
}

fn decision_span(job: &Job) -> Option<Span> {
    let mut span = Span::with_parent("decide", SpanKind::Internal, Some(job.trace?));
    span.set_attribute("bellwether.events", || {
        i64::try_from(job.events.len()).unwrap_or(i64::MAX)
    });
    Some(span)
}

/// Splits off the requests that must be decided again: those in conflict, and later ones that share
/// an event id with them. If the conflicting ids are unknown, splits off all requests.
fn split_contested(
    jobs: Vec<ClaimedRequest>,
    mut contested: HashSet<EventId>,
) -> (Vec<ClaimedRequest>, Vec<ClaimedRequest>) {
    if contested.is_empty() {
        return (jobs, Vec::new());
    }
    jobs.into_iter().partition(|claimed| {
        let ids = || claimed.job.events.iter().flat_map(Accepted::event_ids);
        let is_contested = ids().any(|id| contested.contains(&id));
        if is_contested {
            contested.extend(ids());
        }
        is_contested
    })
}
