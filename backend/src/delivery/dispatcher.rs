//! The loop that leases due deliveries, starts their attempts, and records the outcomes.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use rand::rngs::StdRng;
use tokio::{
    sync::{Mutex, watch},
    task::{Id, JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    config::DeliveryConfig,
    delivery::{
        decide,
        digest_cascade::DigestCascade,
        egress::Egress,
        follow::{FollowedState, Follower},
        ledger::Ledger,
        notices::Notices,
        ownership::Ownership,
        queue::{Lease, Owner},
        queues::{Next, Queues},
        quiet::QuietModeCache,
    },
    domain::{Attempt, DestinationKind, RecordId, Transcript},
    error::{Error, log_failure},
    ops::{
        commit::commit,
        delivery::{Deliveries, QueueHolds, attempt::attempt_key},
    },
    send::{AttemptReport, SendRequest, Sender, Verdict},
    store::{Changes, EngineError, Lane, LogPosition, Store, engine::ApplyResult},
};

/// Maximum number of times that a commit is planned again after a conflict.
const TRIES_MAX: usize = 16;
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Pause while another process may have taken over slots of this process.
const UNSURE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time that a suspect message waits for its turn to be rendered.
const TRIAL_WAIT_MAX: Duration = Duration::from_secs(3);
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// The dispatcher of notifications: one loop that leases deliveries and records outcomes in shared
/// commits, and a bounded number of concurrent attempts.
///
/// All durable state is in the store; the memory only mirrors it.
#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    clock: Arc<dyn Clock>,
    sender: Sender,
    ownership: Ownership,
    /// The clock shift applied to the times in memory; see [`Store::current_shift_ms`].
    shift_ms: i64,
    follower: Follower,
    queues: Queues,
    ledger: Ledger,
    notices: Notices,
    digest_cascade: DigestCascade,
    attempts: JoinSet<AttemptReport>,
    tasks: HashMap<Id, RecordId>,
    status: watch::Sender<DispatcherStatus>,
    holds: QueueHolds,
    egress: Egress,
    unreached: watch::Sender<Vec<String>>,
    quiet: QuietModeCache,
    /// Held while a suspect message is rendered, so that only one at a time can crash the service.
    trial: Arc<Mutex<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispatcherStatus {
    /// Leased deliveries whose outcome is not recorded yet.
    pub in_flight: usize,
    /// Next automatic wake-up in milliseconds since 1970; `i64::MAX` if there is none.
    pub wakes_ms: i64,
    pub log_position: LogPosition,
    /// Whether the dispatcher is waiting because the store did not respond.
    pub is_waiting_for_store: bool,
}

impl Dispatcher {
    /// Creates a dispatcher for a store; `random` spreads the retries.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        sender: Sender,
        config: DeliveryConfig,
        random: StdRng,
    ) -> Self {
        let ownership = Ownership::from_store(&store, clock.now_ms());
        let store = ownership.store(store);
        let (a_store, a_clock) = (|| store.clone(), || Arc::clone(&clock));
        Self {
            shift_ms: store.current_shift_ms(),
            follower: Follower::new(a_store(), a_clock()),
            queues: Queues::new(config.clone()),
            ledger: Ledger::new(a_store(), a_clock(), config, random),
            notices: Notices::new(a_clock(), sender.clone()),
            digest_cascade: DigestCascade::new(a_store(), a_clock()),
            attempts: JoinSet::new(),
            tasks: HashMap::new(),
            status: watch::Sender::default(),
            holds: QueueHolds::default(),
            egress: Egress::default(),
            unreached: watch::Sender::default(),
            quiet: QuietModeCache::default(),
            trial: Arc::default(),
            ownership,
            store,
            clock,
            sender,
        }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> watch::Receiver<DispatcherStatus> {
        self.status.subscribe()
    }

    #[must_use]
    pub fn with_status_channel(mut self, status: watch::Sender<DispatcherStatus>) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn with_unreachable_sender(mut self, unreached: watch::Sender<Vec<String>>) -> Self {
        self.unreached = unreached;
        self
    }

    #[must_use]
    pub fn with_holds(mut self, holds: QueueHolds) -> Self {
        self.holds = holds;
        self
    }

    /// Delivers until shutdown, then starts no new attempts and lets attempts in flight end for a
    /// while. An attempt that does not end in that time is retried when its lease expires.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut committed = self.store.engine().log_signal();
        self.store.engine().cluster().set_owns_slots(true);
        loop {
            committed.mark_unchanged();
            let (wakes_ms, is_waiting_for_store) = match self.run_cycle().await {
                Ok(()) => {
                    self.store.record_progress();
                    (self.next_wake_ms(), false)
                }
                Err(error) => {
                    log_failure(
                        "cannot deliver; deliveries are waiting for the store",
                        &error,
                    );
                    let pause_ms = to_millis(STORE_PAUSE);
                    (self.clock.now_ms().saturating_add(pause_ms), true)
                }
            };
            self.report_unreached(self.egress.unreachable_destinations(self.clock.elapsed()));
            self.status.send_replace(DispatcherStatus {
                in_flight: self.ledger.len(),
                wakes_ms,
                log_position: self.follower.position(),
                is_waiting_for_store,
            });
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = self.attempts.join_next_with_id() => self.collect_result(ended),
                // A closed engine sends no more signals; the wait below paces the loop.
                Ok(()) = committed.changed() => {}
                () = self.ownership.wait_until_changed() => {}
                () = self.clock.wait_until(wakes_ms) => {}
                () = self.store.wait_until_progress_due() => {}
            }
            self.collect_ended_attempts();
        }
        self.store.engine().cluster().set_owns_slots(false);
        // The next owner reports the receivers that it cannot reach.
        self.report_unreached(Vec::new());
        self.drain_attempts().await;
        self.holds.clear();
    }

    fn report_unreached(&self, unreached: Vec<String>) {
        self.unreached.send_if_modified(|before| {
            let is_other = *before != unreached;
            *before = unreached;
            is_other
        });
    }

    /// Applies changes of ownership. Attempts to lost destinations are forgotten: their outcomes
    /// could not be recorded, and the new owner repeats them when their leases expire.
    fn apply_ownership(&mut self) {
        let Some(moved) = self.ownership.apply_current(self.clock.now_ms()) else {
            return;
        };
        for id in self.queues.ids() {
            if moved.has_lost(id) {
                self.queues.remove(id);
                self.notices.forget_destination(id);
            } else if let Some(queue) = self.queues.get_mut(id) {
                queue.owner = self.ownership.owner(id);
                if queue.owner == Owner::Another {
                    for delivery in self.queues.release_ended_leases(Some(id)) {
                        self.ledger.return_lease(delivery);
                    }
                }
            }
        }
        let ledger = &mut self.ledger;
        let forgotten = ledger.forget_lost_leases(|destination| moved.has_lost(destination));
        if forgotten > 0 {
            tracing::warn!(
                forgotten,
                "other nodes took over destinations with attempts in progress; repeating them"
            );
        }
        self.tasks.retain(|_, delivery| ledger.is_leased(*delivery));
        self.digest_cascade.apply_moves(&moved);
        self.follower.take_over(moved);
    }

    /// Follows the change log, commits outcomes and leases, and starts leased attempts.
    async fn run_cycle(&mut self) -> Result<(), Error> {
        self.apply_ownership();
        let (queues, notices) = (&mut self.queues, &mut self.notices);
        let ownership = &self.ownership;
        let before_ms = std::mem::replace(&mut self.shift_ms, self.store.current_shift_ms());
        if before_ms != self.shift_ms {
            queues.shift_times(self.shift_ms.saturating_sub(before_ms));
        }
        let mut followed = FollowedState {
            queues,
            ledger: &mut self.ledger,
            notices,
            ownership,
        };
        self.follower.apply_changes(&mut followed).await?;
        self.follower.cancel_deleted(queues, notices).await?;
        if self.quiet.read(&self.store).await? {
            for delivery in self.queues.release_ended_leases(None) {
                self.ledger.return_lease(delivery);
            }
        }
        self.commit_plan(!self.quiet.is_on).await?;
        self.resend().await?;
        for destination in self.queues.ids() {
            self.begin_next_attempts(destination);
        }
        self.digest_cascade.add(self.ledger.take_dead_digests());
        self.digest_cascade.update_batch(&self.ownership).await?;
        self.notices.close_dead_letter_reports();
        let holds = self.queues.hold_reasons(self.clock.now_ms());
        self.holds.replace(holds, self.ownership.subscribe());
        self.vacate();
        Ok(())
    }

    /// Reports the slots that can be handed over.
    fn vacate(&self) {
        let to_send_again = self.queues.ids_where(|queue| !queue.to_resend.is_empty());
        let in_flight = self.ledger.destinations().chain(to_send_again);
        self.ownership.release_all(&self.store, in_flight);
    }

    /// Resends messages that failed before their destination was known to be misconfigured.
    async fn resend(&mut self) -> Result<(), Error> {
        let deliveries = Deliveries::new(self.store.clone(), Arc::clone(&self.clock));
        for destination in self.queues.ids_where(|queue| !queue.to_resend.is_empty()) {
            let Some(queue) = self.queues.get_mut(destination) else {
                continue;
            };
            // Messages whose outcome is not recorded yet have to wait.
            let (ledger, to_resend) = (&self.ledger, &mut queue.to_resend);
            while let Some(at) = to_resend.iter().position(|it| !ledger.is_leased(*it)) {
                match deliveries.resend_dead(to_resend[at]).await {
                    Ok(()) | Err(Error::NotFound(_) | Error::FailedPrecondition(_)) => {}
                    Err(error) => return Err(error),
                }
                to_resend.remove(at);
            }
        }
        Ok(())
    }

    /// Whether no other process can be delivering to the destinations that this one owns.
    fn is_ownership_certain(&self) -> bool {
        self.store.engine().cluster().is_ownership_certain()
    }

    /// Begins as many attempts to a destination as allowed, unless another process may have begun
    /// some.
    fn begin_next_attempts(&mut self, destination: RecordId) {
        if !self.is_ownership_certain() || self.quiet.is_on {
            return;
        }
        while let Some(next) = self.queues.next(destination, self.clock.now_ms()) {
            match next {
                Next::Begin(lease, timeout) => self.begin_attempt(lease, timeout),
                Next::GiveBack(delivery) => self.ledger.return_lease(delivery),
            }
        }
    }

    fn begin_attempt(&mut self, lease: Lease, timeout: Duration) {
        let id = lease.delivery.value.id;
        let (sender, store) = (self.sender.clone(), self.store.clone());
        let trial = Arc::clone(&self.trial);
        let task = self.attempts.spawn(async move {
            let delivery = &lease.delivery.value;
            let request = SendRequest {
                delivery: delivery.id,
                rule: delivery.rule,
                content: &delivery.content,
                destination_name: &delivery.destination_name,
                kind: &lease.destination.kind,
                template_language: lease.destination.template_language,
                opening: lease.opening,
                opening_content: lease.thread.opening.as_deref(),
                thread: lease.thread.chat.as_ref(),
                kept: lease.thread.kept.as_ref(),
                recipients: &delivery.recipients,
                is_reduced: delivery.is_reduced,
                timeout,
                is_fresh: false,
            };
            if decide::may_be_poison(delivery) {
                run_trial_rendering(&store, &sender, request, &lease.attempt.value, &trial).await;
            }
            sender.send(request).await
        });
        self.tasks.insert(task.id(), id);
    }

    fn collect_ended_attempts(&mut self) {
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.collect_result(ended);
        }
    }

    /// Keeps the outcome of an attempt until it is recorded.
    fn collect_result(&mut self, ended: Result<(Id, AttemptReport), JoinError>) {
        let ended = ended.unwrap_or_else(|error| (error.id(), panic_report(&error)));
        let (task, mut report) = ended;
        let Some(delivery) = self.tasks.remove(&task) else {
            return;
        };
        let is_conclusive = !report.verdict.advice.is_inconclusive();
        if let Some(destination) = self.ledger.destination(delivery).filter(|_| is_conclusive) {
            self.queues.reclassify(destination, delivery, &mut report);
        }
        let report = Arc::new(report);
        let Some(destination) = self.ledger.record_end(delivery, &report) else {
            return;
        };
        if let Some(found) = self.queues.destination(destination) {
            let (kind, outcome) = (found.kind.as_str(), report.verdict.outcome.as_str());
            let metrics = self.store.metrics();
            metrics.record_attempt(kind, outcome, report.duration);
            if !matches!(found.kind, DestinationKind::Event(_)) {
                let (name, outcome) = (found.name.as_str(), report.verdict.outcome);
                self.egress
                    .record_outcome(name, outcome, self.clock.elapsed());
            }
        }
        let now_ms = self.clock.now_ms();
        self.queues
            .record_outcome(destination, delivery, &report, now_ms);
        self.begin_next_attempts(destination);
    }

    fn next_wake_ms(&mut self) -> i64 {
        let now_ms = self.clock.now_ms();
        if !self.ledger.is_recorded() || !self.digest_cascade.is_done() {
            return now_ms;
        }
        if self.quiet.is_on {
            // Quiet mode ends with a commit, which wakes the loop.
            return self.notices.next_due_ms();
        }
        let mut wakes_ms = self.queues.next_wake_ms(self.ledger.is_full(), now_ms);
        if !self.is_ownership_certain() {
            // Due deliveries cannot start until the ownership is certain.
            wakes_ms = wakes_ms.max(now_ms.saturating_add(to_millis(UNSURE_PAUSE)));
        }
        wakes_ms.min(self.notices.next_due_ms())
    }

    async fn drain_attempts(&mut self) {
        for delivery in self.queues.release_ended_leases(None) {
            self.ledger.return_lease(delivery);
        }
        let ends = async {
            loop {
                let recorded = self.record().await;
                if let Err(error) = &recorded {
                    log_failure("failed to record the results of attempts", error);
                }
                self.apply_ownership();
                self.vacate();
                // Attempts that ended during the last commit are recorded next.
                if !self.attempts.is_empty() {
                    tokio::select! {
                        Some(ended) = self.attempts.join_next_with_id() => self.collect_result(ended),
                        () = self.ownership.wait_until_changed() => {}
                    }
                    self.collect_ended_attempts();
                } else if recorded.is_err() || self.ledger.is_recorded() {
                    break;
                }
            }
        };
        if timeout(DRAIN_TIME_MAX, ends).await.is_err() {
            tracing::warn!("attempts in progress were interrupted; repeating them");
        }
    }

    async fn record(&mut self) -> Result<(), Error> {
        Ok(self.commit_plan(false).await?)
    }

    /// Records outcomes and, if `leasing`, leases due deliveries into the queues. Attempts continue
    /// to begin and end during the write.
    async fn commit_plan(&mut self, leasing: bool) -> Result<(), EngineError> {
        for _ in 0..TRIES_MAX {
            let store = self.store.clone();
            let _steady = store.lock_clock_shared().await;
            let (queues, notices) = (&mut self.queues, &mut self.notices);
            let mut plan = self.ledger.plan(queues, notices, leasing).await?;
            let changes = plan.take_changes(&self.store);
            let mut applied = None;
            if !changes.is_empty() {
                match self.apply(changes).await {
                    Ok(done) => applied = Some(done),
                    Err(EngineError::Conflict(_)) => {
                        let (queues, notices) = (&mut self.queues, &self.notices);
                        self.ledger.reread_deliveries(queues, notices).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let (queues, notices) = (&mut self.queues, &mut self.notices);
            self.ledger.apply_commit(plan, applied, queues, notices);
            return Ok(());
        }
        Err(EngineError::conflict())
    }

    async fn apply(&mut self, changes: Changes) -> Result<ApplyResult, EngineError> {
        let store = self.store.clone();
        let mut applied = pin!(store.apply(Lane::Bulk, changes));
        loop {
            tokio::select! {
                biased;
                done = &mut applied => return done,
                Some(ended) = self.attempts.join_next_with_id() => {
                    self.collect_result(ended);
                    self.collect_ended_attempts();
                }
            }
        }
    }
}

/// Renders a suspect message, and records the start and the end of the rendering. If these cannot
/// be recorded, or other renderings take too long, the attempt begins without a trial.
async fn run_trial_rendering(
    store: &Store,
    sender: &Sender,
    request: SendRequest<'_>,
    attempt: &Attempt,
    trial: &Mutex<()>,
) {
    let Ok(_alone) = timeout(TRIAL_WAIT_MAX, trial.lock()).await else {
        return;
    };
    let tried = async {
        record_rendering(store, attempt, false).await?;
        // A rendering error is reported by the attempt itself.
        drop(sender.render(request).await);
        record_rendering(store, attempt, true).await
    };
    if let Err(error) = tried.await {
        tracing::warn!(%error, delivery = %attempt.delivery, "failed to record the rendering of a message");
    }
}

async fn record_rendering(store: &Store, attempt: &Attempt, is_done: bool) -> Result<(), Error> {
    let decide = || async {
        let key = attempt_key(attempt.delivery, attempt.number);
        let mut changes = store.new_changes();
        if let Some(stored) = store.get::<Attempt>(key).await? {
            changes.update(&stored, &decide::rendering_attempt(&stored.value, is_done));
        }
        Ok((changes, ()))
    };
    commit(store, Lane::Bulk, decide).await.map(drop)
}

fn panic_report(error: &JoinError) -> AttemptReport {
    tracing::error!(%error, "an attempt broke");
    AttemptReport {
        verdict: Verdict::new_unknown("internal error"),
        duration: Duration::ZERO,
        transcript: Transcript::default(),
        times: None,
    }
}
