//! The ends of attempts and the leases of those that begin, in shared commits.

mod budget;
mod ends;
mod leases;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rand::rngs::StdRng;

use crate::{
    clock::Clock,
    config::DeliveryConfig,
    delivery::{backoff::Backoff, decide, notices::Notices, queue::Lease, queues::Queues},
    destination::Report,
    domain::{
        Attempt, Delivery, DeliveryState, Health, OwnEvent, RecordId,
        counter::{Subject, Tally},
        destination::RefusedRecipient,
    },
    ops::delivery::attempt::attempt_key,
    store::{
        Changes, EngineError, LogPosition, Store, Stored, engine::Applied, record::bytes::id_at,
    },
};

/// What is leased here, and what of it is not recorded yet.
#[derive(Debug)]
pub(crate) struct Ledger {
    store: Store,
    clock: Arc<dyn Clock>,
    config: DeliveryConfig,
    backoff: Backoff,
    page_backoff: Backoff,
    random: StdRng,
    /// The deliveries that are leased here.
    unrecorded: HashMap<RecordId, Unrecorded>,
    /// Deliveries whose ends were recorded, with the place of that in the change log: what the log
    /// tells about them up to there is our own doing.
    recorded: HashMap<RecordId, LogPosition>,
    /// Leases that have not ended.
    under_way: usize,
    /// Digests that died: their destination, and which.
    dead_digests: Vec<(RecordId, RecordId)>,
}

/// A lease of ours whose end is not recorded yet.
#[derive(Debug)]
struct Unrecorded {
    destination: RecordId,
    number: u32,
    /// The delivery as it was read or written last; none when it is gone.
    delivery: Option<Arc<Stored<Delivery>>>,
    attempt: Option<Arc<Stored<Attempt>>>,
    /// None while the attempt is under way or has not begun.
    end: Option<LeaseEnd>,
}

/// How a lease ended.
#[derive(Debug, Clone)]
enum LeaseEnd {
    /// With an attempt.
    Made(Arc<Report>),
    /// Before the attempt began.
    GivenBack,
}

/// What one commit does, and what follows from it once it is on disk.
#[derive(Debug)]
pub(crate) struct Plan {
    changes: Changes,
    /// The deliveries whose ends are recorded, with when they are due next.
    ends: Vec<(RecordId, Option<i64>)>,
    /// Destinations that are paused from now on.
    paused: Vec<Health>,
    /// Destinations of which other addresses are refused than before, with all that are.
    refused: Vec<(RecordId, Vec<RefusedRecipient>)>,
    /// Deliveries that died: their destination, and what their last attempt said.
    dead: Vec<(RecordId, String)>,
    /// Deliveries that died because the service stopped twice during their attempts, with the events about that.
    poison: Vec<(RecordId, OwnEvent)>,
    /// Digests that died: their destination, and which.
    dead_digests: Vec<(RecordId, RecordId)>,
    /// The deliveries to destinations with a budget that were looked at because they are due.
    due: budget::DueIds,
    /// The budgets of the destinations that were looked at.
    budgets: budget::Budgets,
    /// What is left of the destinations that were looked at.
    left: Vec<leases::Left>,
    /// What is to be sent.
    leases: Vec<leases::Leased>,
    /// What waits for an earlier delivery.
    held: Vec<leases::Held>,
    /// The deliveries whose versions are raised by that,
    touched: Vec<RecordId>,
    /// and those that have no due time any more.
    waiting: Vec<RecordId>,
}

impl Plan {
    /// What there is to commit, which may be nothing.
    pub(crate) fn take_changes(&mut self, store: &Store) -> Changes {
        std::mem::replace(&mut self.changes, store.changes())
    }

    /// Counts an attempt that failed.
    fn count_failure(&mut self, delivery: &Delivery, now_ms: i64) {
        let rule = delivery.rule.map(Subject::Rule);
        let destination = Subject::Destination(delivery.destination);
        for subject in [Subject::Deliveries, destination].into_iter().chain(rule) {
            self.changes.count(subject, now_ms, Tally::Failed, 1);
        }
    }

    /// Takes note of a delivery as it is after an attempt.
    fn note_end(&mut self, delivery: &Delivery) {
        if delivery.state == DeliveryState::Dead {
            let error = delivery.last_error.clone();
            self.dead.push((delivery.destination, error));
            if delivery.content.digest.is_some() {
                self.dead_digests.push((delivery.destination, delivery.id));
            }
        }
    }
}

impl Ledger {
    /// What follows a failed attempt of a delivery.
    fn backoff(&self, delivery: &Delivery) -> &Backoff {
        match delivery.content.contact {
            Some(_) if !delivery.content.clear => &self.page_backoff,
            _ => &self.backoff,
        }
    }

    /// The ledger of a process that has leased nothing yet; `random` spreads the retries.
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
            page_backoff: Backoff::of_pages(&config),
            config,
            random,
            unrecorded: HashMap::new(),
            recorded: HashMap::new(),
            under_way: 0,
            dead_digests: Vec::new(),
        }
    }

    /// Whether a delivery is leased here.
    pub(crate) fn holds(&self, delivery: RecordId) -> bool {
        self.unrecorded.contains_key(&delivery)
    }

    /// Deliveries that are leased here.
    pub(crate) fn len(&self) -> usize {
        self.unrecorded.len()
    }

    /// The destinations of what is leased here.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.unrecorded.values().map(|it| it.destination)
    }

    /// Forgets what is leased of destinations that another process delivers to now; answers how much.
    pub(crate) fn forget(&mut self, is_lost: impl Fn(RecordId) -> bool) -> usize {
        let before = self.unrecorded.len();
        self.unrecorded.retain(|_, it| !is_lost(it.destination));
        let under_way = self.unrecorded.values().filter(|it| it.end.is_none());
        self.under_way = under_way.count();
        self.dead_digests
            .retain(|(destination, _)| !is_lost(*destination));
        before - self.unrecorded.len()
    }

    /// Whether there is nothing to commit separately.
    pub(crate) fn is_recorded(&self) -> bool {
        self.under_way == self.unrecorded.len()
    }

    /// Whether no more may be leased before an attempt ends.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way >= self.config.max_in_flight
    }

    /// Whether what the change log reports on a delivery is our own doing.
    pub(crate) fn is_own_doing(&self, key: &[u8], position: LogPosition) -> bool {
        id_at(key, 0).is_some_and(|id| {
            let recorded = self.recorded.get(&id);
            self.holds(id) || recorded.is_some_and(|until| position <= *until)
        })
    }

    /// Forgets what was recorded up to a place in the change log.
    pub(crate) fn forget_through(&mut self, position: LogPosition) {
        self.recorded.retain(|_, until| *until > position);
    }

    /// The digests that died since the last call, by their destination.
    pub(crate) fn take_dead_digests(&mut self) -> Vec<(RecordId, RecordId)> {
        std::mem::take(&mut self.dead_digests)
    }

    /// The destination of a delivery that is leased here.
    pub(crate) fn destination(&self, delivery: RecordId) -> Option<RecordId> {
        Some(self.unrecorded.get(&delivery)?.destination)
    }

    /// Keeps the end of an attempt until it is recorded; answers the destination.
    pub(crate) fn end(&mut self, delivery: RecordId, report: &Arc<Report>) -> Option<RecordId> {
        self.finish(delivery, LeaseEnd::Made(Arc::clone(report)))
    }

    /// Gives a lease back whose attempt did not begin.
    pub(crate) fn give_back(&mut self, delivery: RecordId) {
        self.finish(delivery, LeaseEnd::GivenBack);
    }

    fn finish(&mut self, delivery: RecordId, end: LeaseEnd) -> Option<RecordId> {
        let unrecorded = self.unrecorded.get_mut(&delivery)?;
        unrecorded.end = Some(end);
        self.under_way -= 1;
        Some(unrecorded.destination)
    }

    /// Plans to record the ends there are and, when asked to, to lease what is due.
    pub(crate) async fn plan(
        &mut self,
        queues: &mut Queues,
        notices: &Notices,
        leasing: bool,
    ) -> Result<Plan, EngineError> {
        let mut plan = Plan {
            changes: self.store.changes(),
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
        };
        self.plan_ends(&mut plan, queues).await?;
        if leasing {
            self.plan_leases(&mut plan, queues, notices).await?;
        }
        self.plan_budgets(&mut plan, queues).await?;
        plan.hold_back();
        Ok(plan)
    }

    /// Reads the deliveries that ended, which another client may have changed.
    pub(crate) async fn read_again(
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
                && let Some(name) = queues.set_aside(it.destination, **id)
            {
                notices.unreadable(**id, name);
            }
        }
        Ok(())
    }

    /// Takes over into memory what is on disk now; attempts may have ended since it was planned.
    #[expect(clippy::too_many_lines, reason = "each part of a plan in turn")]
    pub(crate) fn adopt(
        &mut self,
        plan: Plan,
        applied: Option<Applied>,
        queues: &mut Queues,
        notices: &mut Notices,
    ) {
        let now_ms = self.clock.now_ms();
        for left in plan.left {
            if left.again
                && let Some(queue) = queues.get_mut(left.destination)
            {
                queue.quick = false;
            }
            let cursor = (!left.is_full).then_some(left.cursor).flatten();
            queues.served(left.destination, left.due_ms, cursor);
        }
        for (delivery, due_ms) in plan.ends {
            let Some(finished) = self.unrecorded.remove(&delivery) else {
                continue;
            };
            if let Some(applied) = applied {
                self.recorded.insert(delivery, applied.position);
            }
            if let Some(queue) = queues.get_mut(finished.destination) {
                queue.unrecorded -= 1;
                if let Some(due_ms) = due_ms {
                    queue.expect(due_ms);
                }
            }
        }
        for health in plan.paused {
            if let Some(queue) = queues.get_mut(health.destination) {
                queue.paused = true;
                notices.paused(&queue.name, &health.last_error);
            }
        }
        for (destination, refused) in plan.refused {
            if let Some(queue) = queues.get(destination) {
                notices.refused(&queue.name, &refused);
            }
        }
        for (destination, last_error) in plan.dead {
            if let Some(queue) = queues.get(destination) {
                notices.dead(destination, &queue.name, &last_error);
            }
        }
        for (delivery, said) in plan.poison {
            notices.poison(delivery, said);
        }
        self.dead_digests.extend(plan.dead_digests);
        for leased in plan.leases {
            // What is leased is changed, so there was something to commit.
            let version = applied.map_or(0, |applied| applied.version);
            let lease = leased.stored(version, &self.store);
            let unrecorded = Unrecorded {
                destination: lease.destination.id,
                number: lease.delivery.value.attempts,
                delivery: Some(Arc::clone(&lease.delivery)),
                attempt: Some(Arc::clone(&lease.attempt)),
                end: None,
            };
            self.unrecorded.insert(lease.delivery.value.id, unrecorded);
            self.under_way += 1;
            queues.hold(lease, now_ms);
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
                *known = Arc::new(Stored::written(
                    applied.version,
                    known.value.clone(),
                    &self.store,
                ));
            }
        }
    }

    /// How many of the first attempts of a delivery were cut off. One that cannot be read was not.
    async fn cut_offs(&self, delivery: RecordId, attempts: u32) -> Result<u32, EngineError> {
        if attempts == 0 {
            return Ok(0);
        }
        let keys = (1..=attempts).map(|number| attempt_key(delivery, number));
        let (found, _) = self.store.get_readable::<Attempt>(keys.collect()).await?;
        let found = found.iter().flatten();
        let cut_off = found.filter(|attempt| decide::is_cut_off(&attempt.value));
        Ok(cut_off.count().try_into().unwrap_or(u32::MAX))
    }

    /// The health of destinations, where it can be read: as it is stored, and as it becomes.
    async fn healths(&self, destinations: HashSet<RecordId>) -> Result<ends::Healths, EngineError> {
        let destinations: Vec<_> = destinations.into_iter().collect();
        let keys = destinations.iter().map(|id| id.to_bytes().into()).collect();
        let (stored, unreadable) = self.store.get_readable::<Health>(keys).await?;
        let both = stored.into_iter().map(|old| {
            let current = old.as_ref().map(|old| old.value.clone());
            (old, current)
        });
        let all = destinations.into_iter().zip(both);
        let is_readable =
            |id: &RecordId| !unreadable.iter().any(|key| key[..] == id.to_bytes()[..]);
        Ok(all.filter(|(id, _)| is_readable(id)).collect())
    }
}

impl leases::Leased {
    /// The lease as the commit that gave it this version has stored it.
    fn stored(self, version: u64, store: &Store) -> Lease {
        Lease {
            delivery: Arc::new(Stored::written(version, self.delivery, store)),
            attempt: Arc::new(Stored::written(version, self.attempt, store)),
            destination: self.destination,
            opening: self.opening,
        }
    }
}
