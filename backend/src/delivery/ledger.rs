//! The outcomes of attempts and new leases, committed together.

mod budget;
mod ends;
mod leases;

use std::{collections::HashMap, sync::Arc};

use futures_util::future::try_join;
use rand::rngs::StdRng;

use crate::{
    clock::Clock,
    config::DeliveryConfig,
    delivery::{
        backoff::Backoff, decide, notices::Notices, queue::Lease, queues::Queues, rank::Ranks,
    },
    domain::{
        Attempt, Delivery, DeliveryState, Health, OwnEvent, RecordId, Severity,
        counter::{Subject, Tally},
        destination::RejectedRecipient,
    },
    ops::delivery::attempt::attempt_key,
    send::AttemptReport,
    store::{
        Changes, EngineError, LogPosition, Store, Stored, engine::ApplyResult,
        record::bytes::read_id,
    },
};

/// The leases of this process and their unrecorded outcomes.
#[derive(Debug)]
pub(crate) struct Ledger {
    store: Store,
    clock: Arc<dyn Clock>,
    config: DeliveryConfig,
    backoff: Backoff,
    page_backoff: Backoff,
    random: StdRng,
    unrecorded: HashMap<RecordId, UnrecordedAttempt>,
    /// Deliveries with recorded outcomes, each with the log position of the record. Changes up to
    /// that position were made by this process.
    recorded: HashMap<RecordId, LogPosition>,
    in_flight: usize,
    /// Dead digests, as pairs of destination and digest.
    dead_digests: Vec<(RecordId, RecordId)>,
    ranks: Ranks,
}

#[derive(Debug)]
struct UnrecordedAttempt {
    destination: RecordId,
    number: u32,
    /// The delivery as last read or written; `None` if it was deleted.
    delivery: Option<Arc<Stored<Delivery>>>,
    attempt: Option<Arc<Stored<Attempt>>>,
    /// The original due time, if the attempt was made before it.
    early_for_ms: Option<i64>,
    /// `None` while the attempt is in flight or has not begun.
    end: Option<LeaseEnd>,
}

#[derive(Debug, Clone)]
enum LeaseEnd {
    Attempted(Arc<AttemptReport>),
    /// The attempt did not begin.
    GivenBack,
}

/// The content of one commit, and the effects to apply after it is on disk.
#[derive(Debug)]
pub(crate) struct CommitPlan {
    changes: Changes,
    /// The deliveries with recorded outcomes, and their next due times.
    ends: Vec<(RecordId, Option<i64>)>,
    paused: Vec<Health>,
    /// Destinations whose set of rejected addresses changed, with the new set.
    refused: Vec<(RecordId, Vec<RejectedRecipient>)>,
    /// Dead deliveries: the destination, the severity, and the error of the last attempt.
    dead: Vec<(RecordId, Severity, String)>,
    /// Deliveries that were given up because they crash the service, each with the event that
    /// reports this.
    poison: Vec<(RecordId, OwnEvent)>,
    /// Dead digests, as pairs of destination and digest.
    dead_digests: Vec<(RecordId, RecordId)>,
    /// Due deliveries to destinations with a budget.
    due: budget::DueIds,
    budgets: budget::Budgets,
    left: Vec<leases::RemainingWork>,
    leases: Vec<leases::LeasedDelivery>,
    held: Vec<leases::HeldDelivery>,
    /// Deliveries that held deliveries wait for. The commit raises their versions.
    touched: Vec<RecordId>,
    /// Held deliveries, which no longer have a due time.
    waiting: Vec<RecordId>,
    /// Destinations whose receiver has recovered, each with two flags: whether any delivery became
    /// due, and whether all waiting deliveries were released.
    released: Vec<(RecordId, bool, bool)>,
}

impl CommitPlan {
    pub(crate) fn take_changes(&mut self, store: &Store) -> Changes {
        std::mem::replace(&mut self.changes, store.new_changes())
    }

    fn count_failure(&mut self, delivery: &Delivery, now_ms: i64) {
        if delivery.content.is_drill() {
            return;
        }
        let rule = delivery.rule.map(Subject::Rule);
        let destination = Subject::Destination(delivery.destination);
        for subject in [Subject::Deliveries, destination].into_iter().chain(rule) {
            self.changes.count(subject, now_ms, Tally::Failed, 1);
        }
    }

    fn record_end(&mut self, delivery: &Delivery) {
        if delivery.state == DeliveryState::Dead {
            let error = delivery.last_error.clone();
            let severity = delivery.content.occurrence.severity;
            self.dead.push((delivery.destination, severity, error));
            if delivery.content.digest.is_some() {
                self.dead_digests.push((delivery.destination, delivery.id));
            }
        }
    }
}

impl Ledger {
    fn backoff(&self, delivery: &Delivery) -> &Backoff {
        match delivery.content.contact {
            Some(_) if !delivery.content.clear => &self.page_backoff,
            _ => &self.backoff,
        }
    }

    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        config: DeliveryConfig,
        random: StdRng,
    ) -> Self {
        Self {
            store,
            clock,
            backoff: Backoff::new(&config),
            page_backoff: Backoff::for_pages(&config),
            config,
            random,
            unrecorded: HashMap::new(),
            recorded: HashMap::new(),
            in_flight: 0,
            dead_digests: Vec::new(),
            ranks: Ranks::default(),
        }
    }

    pub(crate) fn is_leased(&self, delivery: RecordId) -> bool {
        self.unrecorded.contains_key(&delivery)
    }

    pub(crate) fn len(&self) -> usize {
        self.unrecorded.len()
    }

    pub(crate) fn destinations(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.unrecorded.values().map(|it| it.destination)
    }

    /// Forgets the leases of lost destinations and returns their number.
    pub(crate) fn forget_lost_leases(&mut self, is_lost: impl Fn(RecordId) -> bool) -> usize {
        let before = self.unrecorded.len();
        self.unrecorded.retain(|_, it| !is_lost(it.destination));
        let in_flight = self.unrecorded.values().filter(|it| it.end.is_none());
        self.in_flight = in_flight.count();
        self.dead_digests
            .retain(|(destination, _)| !is_lost(*destination));
        before - self.unrecorded.len()
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.in_flight == self.unrecorded.len()
    }

    /// Whether an attempt must end before more can be leased.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight >= self.config.max_in_flight
    }

    pub(crate) fn is_own_change(&self, key: &[u8], position: LogPosition) -> bool {
        read_id(key, 0).is_some_and(|id| {
            let recorded = self.recorded.get(&id);
            self.is_leased(id) || recorded.is_some_and(|until| position <= *until)
        })
    }

    pub(crate) fn forget_commits_through(&mut self, position: LogPosition) {
        self.recorded.retain(|_, until| *until > position);
    }

    /// Takes the digests that died since the last call, as pairs of destination and digest.
    pub(crate) fn take_dead_digests(&mut self) -> Vec<(RecordId, RecordId)> {
        std::mem::take(&mut self.dead_digests)
    }

    pub(crate) fn destination(&self, delivery: RecordId) -> Option<RecordId> {
        Some(self.unrecorded.get(&delivery)?.destination)
    }

    /// Keeps the outcome of an attempt until it is recorded. Returns the destination.
    pub(crate) fn record_end(
        &mut self,
        delivery: RecordId,
        report: &Arc<AttemptReport>,
    ) -> Option<RecordId> {
        self.finish_lease(delivery, LeaseEnd::Attempted(Arc::clone(report)))
    }

    pub(crate) fn return_lease(&mut self, delivery: RecordId) {
        self.finish_lease(delivery, LeaseEnd::GivenBack);
    }

    fn finish_lease(&mut self, delivery: RecordId, end: LeaseEnd) -> Option<RecordId> {
        let unrecorded = self.unrecorded.get_mut(&delivery)?;
        unrecorded.end = Some(end);
        self.in_flight -= 1;
        Some(unrecorded.destination)
    }

    /// Plans a commit that records outcomes and, if requested, leases due deliveries.
    pub(crate) async fn plan(
        &mut self,
        queues: &mut Queues,
        notices: &Notices,
        leasing: bool,
    ) -> Result<CommitPlan, EngineError> {
        let mut plan = CommitPlan {
            changes: self.store.new_changes(),
            ends: Vec::new(),
            paused: Vec::new(),
            refused: Vec::new(),
            dead: Vec::new(),
            poison: Vec::new(),
            dead_digests: Vec::new(),
            due: budget::DueIds::default(),
            budgets: budget::Budgets::default(),
            left: Vec::new(),
            leases: Vec::new(),
            held: Vec::new(),
            touched: Vec::new(),
            waiting: Vec::new(),
            released: Vec::new(),
        };
        let ready = if leasing {
            queues.ready_destinations(self.clock.now_ms())
        } else {
            Vec::new()
        };
        let (ends, waiting) = try_join(self.read_ends(queues), self.read_waiting(&ready)).await?;
        self.plan_ends(&mut plan, queues, ends);
        if leasing {
            self.plan_release(&mut plan, queues).await?;
            let ready = ready.into_iter().zip(waiting).collect();
            self.plan_leases(&mut plan, queues, notices, ready).await?;
        }
        self.plan_budgets(&mut plan, queues).await?;
        plan.hold_due_deliveries();
        Ok(plan)
    }

    /// Reads the deliveries with outcomes again, since another client may have changed them.
    pub(crate) async fn reread_deliveries(
        &mut self,
        queues: &mut Queues,
        notices: &Notices,
    ) -> Result<(), EngineError> {
        let ended = self.unrecorded.iter_mut();
        let mut ended: Vec<_> = ended.filter(|(_, it)| it.end.is_some()).collect();
        let keys = ended.iter().map(|(id, _)| id.to_bytes().into()).collect();
        let (deliveries, unreadable) = self.store.get_readable::<Delivery>(keys).await?;
        let keys = ended.iter().map(|(id, it)| attempt_key(**id, it.number));
        let (attempts, _) = self.store.get_readable::<Attempt>(keys.collect()).await?;
        for (((id, it), delivery), attempt) in ended.iter_mut().zip(deliveries).zip(attempts) {
            it.delivery = delivery.map(Arc::new);
            it.attempt = attempt.map(Arc::new);
            if unreadable.iter().any(|key| key[..] == id.to_bytes()[..])
                && let Some(name) = queues.set_aside_delivery(it.destination, **id)
            {
                notices.report_unreadable(**id, name);
            }
        }
        Ok(())
    }

    /// Applies a committed plan to memory. More attempts may have ended since it was planned.
    #[expect(clippy::too_many_lines, reason = "each part of a plan in turn")]
    pub(crate) fn apply_commit(
        &mut self,
        plan: CommitPlan,
        applied: Option<ApplyResult>,
        queues: &mut Queues,
        notices: &mut Notices,
    ) {
        let now_ms = self.clock.now_ms();
        for left in plan.left {
            if let Some(queue) = queues.get_mut(left.destination) {
                queue.quick &= !left.again;
                if let Some(backlog) = left.backlog {
                    queue.is_severe = backlog.is_severe;
                    queue.sorted_ms = now_ms;
                    queue.has_backlog = !backlog.is_over;
                    if backlog.is_over {
                        self.ranks.forget_rank(left.destination, None);
                    }
                }
            }
            let cursor = (!left.is_full).then_some(left.cursor).flatten();
            queues.record_served(left.destination, left.due_ms, cursor);
        }
        for (delivery, due_ms) in plan.ends {
            let Some(finished) = self.unrecorded.remove(&delivery) else {
                continue;
            };
            if let Some(applied) = applied {
                self.recorded.insert(delivery, applied.position);
            }
            self.ranks.forget_rank(finished.destination, Some(delivery));
            if let Some(queue) = queues.get_mut(finished.destination) {
                queue.unrecorded -= 1;
                if let Some(due_ms) = due_ms {
                    queue.add_waiting(due_ms);
                }
            }
        }
        for (destination, is_any, is_whole) in plan.released {
            if let Some(queue) = queues.get_mut(destination) {
                queue.is_recovered = !is_whole;
                if is_any {
                    queue.has_backlog = true;
                    queue.add_waiting(now_ms);
                }
            }
        }
        for health in plan.paused {
            if let Some(queue) = queues.get_mut(health.destination) {
                queue.paused = true;
                notices.report_paused(&queue.name, &health.last_error);
            }
        }
        for (destination, refused) in plan.refused {
            if let Some(queue) = queues.get(destination) {
                notices.report_refused(&queue.name, &refused);
            }
        }
        for (destination, severity, last_error) in plan.dead {
            if let Some(queue) = queues.get(destination) {
                notices.report_dead_letter(destination, &queue.name, severity, &last_error);
            }
        }
        for (delivery, said) in plan.poison {
            notices.report_poison(delivery, said);
        }
        self.dead_digests.extend(plan.dead_digests);
        for leased in plan.leases {
            let early_for_ms = leased.early_for_ms;
            // Leased deliveries are changed, so there was a change to commit.
            let version = applied.map_or(0, |applied| applied.version);
            let lease = leased.into_lease(version, &self.store);
            let unrecorded = UnrecordedAttempt {
                destination: lease.destination.id,
                number: lease.delivery.value.attempts,
                delivery: Some(Arc::clone(&lease.delivery)),
                attempt: Some(Arc::clone(&lease.attempt)),
                early_for_ms,
                end: None,
            };
            self.unrecorded.insert(lease.delivery.value.id, unrecorded);
            self.in_flight += 1;
            queues.keep_lease(lease, now_ms);
        }
        if let Some(applied) = applied {
            let waiting = plan.waiting.into_iter();
            self.recorded
                .extend(waiting.map(|it| (it, applied.position)));
        }
        for touched in plan.touched {
            let unrecorded = self.unrecorded.get_mut(&touched);
            let known = unrecorded.and_then(|it| it.delivery.as_mut());
            if let (Some(known), Some(applied)) = (known, applied) {
                *known = Arc::new(Stored::from_commit(
                    applied.version,
                    known.value.clone(),
                    &self.store,
                ));
            }
        }
    }
}

/// Returns the number of interrupted attempts among the first `attempts` of a delivery. Unreadable
/// attempts do not count.
async fn interrupted_count(
    store: &Store,
    delivery: RecordId,
    attempts: u32,
) -> Result<u32, EngineError> {
    let keys = (1..=attempts).map(|number| attempt_key(delivery, number));
    let (found, _) = store.get_readable::<Attempt>(keys.collect()).await?;
    let found = found.iter().flatten();
    let cut_off = found.filter(|attempt| decide::is_interrupted(&attempt.value));
    Ok(cut_off.count().try_into().unwrap_or(u32::MAX))
}

impl leases::LeasedDelivery {
    fn into_lease(self, version: u64, store: &Store) -> Lease {
        Lease {
            delivery: Arc::new(Stored::from_commit(version, self.delivery, store)),
            attempt: Arc::new(Stored::from_commit(version, self.attempt, store)),
            destination: self.destination,
            opening: self.opening,
            thread: self.thread,
        }
    }
}
