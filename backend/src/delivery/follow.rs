//! Synchronization of the queues with the store: an initial scan, then the change log.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use crate::{
    clock::{Clock, millis},
    delivery::{
        ledger::Ledger,
        notices::Notices,
        ownership::{Ownership, OwnershipChange},
        queue::DestinationQueue,
        queues::Queues,
        refusals,
        resync::Resync,
    },
    destination::verdict::REQUESTED_WAIT_MAX,
    domain::{Delivery, Destination, Health, HealthState, RecordId},
    error::Error,
    ops,
    store::{
        Direction, EngineError, Index, Kind, LogPosition, Store, Stored,
        engine::Range,
        follow::{LogFollower, LogUpdate},
        record::bytes::{id_at, time_ms_at},
    },
};

const FOLLOWED: [Kind; 2] = [Kind::Delivery, Kind::Destination];
/// Deliveries to deleted destinations cancelled in one commit.
const CANCEL_PAGE: usize = 256;
/// Deliveries read to find the name of their destination.
const NAMING_PAGE: usize = 4;

#[derive(Debug)]
pub(crate) struct Follower {
    store: Store,
    clock: Arc<dyn Clock>,
    log: LogFollower,
    /// The names of all destinations, if other processes deliver too.
    destinations: BTreeMap<RecordId, String>,
    moved: OwnershipChange,
}

pub(crate) struct FollowedState<'a> {
    pub(crate) queues: &'a mut Queues,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) notices: &'a mut Notices,
    pub(crate) ownership: &'a Ownership,
}

impl Follower {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            log: LogFollower::new(Arc::clone(store.engine()), &FOLLOWED),
            moved: OwnershipChange::default(),
            destinations: BTreeMap::new(),
            store,
            clock,
        }
    }

    pub(crate) fn position(&self) -> LogPosition {
        self.log.position()
    }

    fn resync(&self) -> Resync<'_> {
        Resync {
            store: &self.store,
            clock: &*self.clock,
        }
    }

    /// Schedules a scan of the slots that this process gained.
    pub(crate) fn take_over(&mut self, moved: OwnershipChange) {
        self.moved.extend(moved);
    }

    pub(crate) async fn apply_changes(
        &mut self,
        to: &mut FollowedState<'_>,
    ) -> Result<(), EngineError> {
        while let Some(news) = self.log.next().await? {
            let LogUpdate::Changed(commits) = news else {
                let owned = to.ownership;
                self.scan_destinations(to, |id| owned.delivers_to(id))
                    .await?;
                self.moved = OwnershipChange::default();
                self.log.advance();
                continue;
            };
            let mut deliveries = HashSet::new();
            let mut destinations = HashSet::new();
            for commit in commits {
                for (kind, key) in commit.changed {
                    match kind {
                        Kind::Delivery if !to.ledger.is_own_doing(&key, commit.position) => {
                            deliveries.insert(key);
                        }
                        Kind::Destination => {
                            destinations.insert(key);
                        }
                        _ => {}
                    }
                }
            }
            let is_any_gone = self.reload(to, &destinations).await?;
            // Scanning costs one entry per destination and reads no records. It is the only way to
            // find deliveries for a destination that was created and deleted in between.
            let is_scan_due = is_any_gone && self.store.engine().is_shared();
            if is_scan_due || deliveries.len() > to.queues.len() {
                self.scan_owned(to, destinations.is_empty()).await?;
            } else {
                self.record_due(to, deliveries.into_iter().collect())
                    .await?;
            }
            self.log.advance();
        }
        if self.moved.is_gain() {
            let moved = std::mem::take(&mut self.moved);
            let scanned = self.scan_destinations(to, |id| moved.has_gained(id)).await;
            if scanned.is_err() {
                self.moved = moved;
            }
            scanned?;
        }
        to.ledger.forget_through(self.log.position());
        Ok(())
    }

    async fn scan_destinations(
        &mut self,
        to: &mut FollowedState<'_>,
        holds: impl Fn(RecordId) -> bool,
    ) -> Result<(), EngineError> {
        let is_shared = self.store.engine().is_shared();
        let mut names = BTreeMap::new();
        let resync = self.resync();
        let all = resync.check_all(to.notices, |it| {
            if is_shared {
                names.insert(it.id, it.name.as_str().to_owned());
            }
            holds(it.id)
        });
        all.await?;
        self.destinations = names;
        self.scan_all(to, holds).await
    }

    /// Records the due times of deliveries to owned destinations. If other nodes deliver too and
    /// all destinations are known, one query is sufficient, and destinations of other nodes cost
    /// nothing.
    async fn scan_owned(
        &self,
        to: &mut FollowedState<'_>,
        are_known: bool,
    ) -> Result<(), EngineError> {
        let owned = to.ownership;
        if !are_known || self.destinations.is_empty() {
            return self.scan_all(to, |id| owned.delivers_to(id)).await;
        }
        let known = self.destinations.keys().copied();
        let known: BTreeSet<RecordId> = known.chain(to.queues.ids()).collect();
        let ids = known.into_iter().filter(|id| owned.delivers_to(*id));
        let ranges: Vec<_> = ids.map(|id| Range::with_prefix(&id.to_bytes())).collect();
        let engine = self.store.engine();
        let index = Index::DeliveryByDue;
        let firsts = engine.entries_in(index, &ranges, Direction::Ascending, 1);
        for (entry, _) in firsts.await?.into_iter().flatten() {
            let (destination, due_ms) = read(&entry)?;
            self.wait_for(to, destination, due_ms).await?;
        }
        Ok(())
    }

    async fn wait_for(
        &self,
        to: &mut FollowedState<'_>,
        destination: RecordId,
        due_ms: i64,
    ) -> Result<(), EngineError> {
        if to.queues.get(destination).is_none() {
            match self.destinations.get(&destination) {
                Some(name) => self.open(to, destination, name.clone()).await?,
                None => self.open_by_deliveries(to, destination).await?,
            }
        }
        to.queues.add_waiting(destination, due_ms);
        Ok(())
    }

    /// Walks over the destinations with waiting deliveries, and opens the queues of those that
    /// match.
    async fn scan_all(
        &self,
        to: &mut FollowedState<'_>,
        holds: impl Fn(RecordId) -> bool,
    ) -> Result<(), EngineError> {
        let mut range = Range::with_prefix(&[]);
        loop {
            let engine = self.store.engine();
            let index = Index::DeliveryByDue;
            let mut first = engine
                .entries(index, range, Direction::Ascending, 1)
                .await?;
            let Some((entry, _)) = first.pop() else {
                return Ok(());
            };
            let (destination, due_ms) = read(&entry)?;
            if holds(destination) {
                self.wait_for(to, destination, due_ms).await?;
            }
            let Some(next) = Range::with_prefix(&destination.to_bytes()).end else {
                return Ok(());
            };
            range = Range {
                start: next,
                end: None,
            };
        }
    }

    /// Opens the queue of a destination known only from its deliveries.
    async fn open_by_deliveries(
        &self,
        to: &mut FollowedState<'_>,
        destination: RecordId,
    ) -> Result<(), EngineError> {
        let range = Range::with_prefix(&destination.to_bytes());
        let index = Index::DeliveryByDue;
        let engine = self.store.engine();
        let entries = engine.entries(index, range, Direction::Ascending, NAMING_PAGE);
        let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
        let (found, _) = self.store.get_readable::<Delivery>(keys).await?;
        let name = match found.into_iter().flatten().next() {
            Some(delivery) => Some(delivery.value.destination_name),
            None => self.resync().name_of(destination).await?,
        };
        // No destination is stored under an id, so it counts as deleted.
        let name = name.unwrap_or_else(|| destination.to_string());
        self.open(to, destination, name).await
    }

    async fn record_due(
        &self,
        to: &mut FollowedState<'_>,
        keys: Vec<Vec<u8>>,
    ) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        // Unreadable deliveries are set aside when they are due.
        let (deliveries, _) = self.store.get_readable::<Delivery>(keys).await?;
        for delivery in deliveries.into_iter().flatten() {
            let delivery = delivery.value;
            let Some(due_ms) = delivery.due_ms().filter(|_| !delivery.test) else {
                continue;
            };
            if !to.ownership.delivers_to(delivery.destination) {
                continue;
            }
            if to.queues.get(delivery.destination).is_none() {
                self.open(to, delivery.destination, delivery.destination_name)
                    .await?;
            }
            to.queues.add_waiting(delivery.destination, due_ms);
        }
        Ok(())
    }

    async fn open(
        &self,
        to: &mut FollowedState<'_>,
        id: RecordId,
        name: String,
    ) -> Result<(), EngineError> {
        let (destination, unreadable) = match self.load(id, &name).await {
            Ok(destination) => (destination, false),
            Err(EngineError::Corrupt(why)) => {
                tracing::error!(
                    destination = name,
                    why,
                    "messages are blocked by a damaged record"
                );
                (None, true)
            }
            Err(error) => return Err(error),
        };
        if let Some(destination) = &destination {
            // The destination may have been edited while no process followed the change log.
            self.resync().resume(destination, to.notices).await?;
        }
        let health = self.resync().health(id).await?.map(|stored| stored.value);
        let failures = health.as_ref().map_or(0, |health| health.failures);
        let mut queue = DestinationQueue::new(name, destination, failures);
        queue.unreadable = unreadable;
        queue.owner = to.ownership.owner(id);
        queue.paused = is_paused(health.as_ref());
        if let Some(health) = &health {
            queue.refusals = health.alike.clone();
            if refusals::is_judged(&queue.refusals) {
                // Some of these messages were possibly not resent before the restart.
                queue.wronged.clone_from(&queue.refusals.messages);
            }
        }
        if let Some(until_ms) = health.as_ref().and_then(|health| health.requested_until_ms) {
            // A clock step never extends a wait beyond the longest that a receiver can request.
            let latest_ms = self
                .clock
                .now_ms()
                .saturating_add(millis(REQUESTED_WAIT_MAX));
            queue.requested_until_ms = until_ms.min(latest_ms);
        }
        let settings = queue.destination.as_ref().map(|found| found.delivery);
        let per_minute = settings.and_then(|found| found.max_per_minute);
        if let (Some(since_ms), Some(per_minute)) = (to.ownership.since_ms(id), per_minute)
            && id < RecordId::first_at((since_ms + 1).try_into().unwrap_or(0))
        {
            // The previous owner may have used up the last minute.
            queue.rate.record_started(per_minute, since_ms);
        }
        to.queues.insert(id, queue);
        Ok(())
    }

    async fn load(
        &self,
        id: RecordId,
        name: &str,
    ) -> Result<Option<Arc<Destination>>, EngineError> {
        let found = self.store.get::<Destination>(name.into()).await?;
        let destination = found.map(|found| found.value);
        Ok(destination.filter(|found| found.id == id).map(Arc::new))
    }

    /// Reloads destinations that were edited or deleted. Returns whether any was deleted.
    async fn reload(
        &mut self,
        to: &mut FollowedState<'_>,
        keys: &HashSet<Vec<u8>>,
    ) -> Result<bool, EngineError> {
        let mut is_any_gone = false;
        for key in keys {
            let read = self.store.get_readable(vec![key.clone()]);
            let (mut found, unreadable): (Vec<Option<Stored<Destination>>>, _) = read.await?;
            if !unreadable.is_empty() {
                // Keep the known version of an unreadable destination.
                continue;
            }
            let found = found.pop().flatten().map(|found| Arc::new(found.value));
            is_any_gone |= found.is_none();
            match &found {
                Some(destination) if !to.ownership.delivers_to(destination.id) => {
                    self.remember_name(destination);
                }
                Some(destination) => {
                    self.remember_name(destination);
                    let known = to
                        .queues
                        .ids_where(|queue| queue.paused && queue.name.as_bytes() == key);
                    let health = self.resync().health(destination.id).await?;
                    let paused = is_paused(health.as_ref().map(|stored| &stored.value));
                    if paused && !known.is_empty() {
                        self.resync().resume(destination, to.notices).await?;
                    } else {
                        self.resync().pause(destination, to.notices).await?;
                    }
                    self.resync()
                        .check_rejected(destination, to.notices)
                        .await?;
                }
                None if to.ownership.owns_name(key) => {
                    self.resync().close_for_deleted(key, to.notices).await?;
                }
                None => {}
            }
            for id in to.queues.ids_where(|queue| queue.name.as_bytes() == key) {
                let destination = found.clone().filter(|found| found.id == id);
                self.replace(to, id, destination).await?;
            }
        }
        Ok(is_any_gone)
    }

    fn remember_name(&mut self, destination: &Destination) {
        if self.store.engine().is_shared() {
            let name = destination.name.as_str().to_owned();
            self.destinations.insert(destination.id, name);
        }
    }

    async fn replace(
        &self,
        to: &mut FollowedState<'_>,
        id: RecordId,
        destination: Option<Arc<Destination>>,
    ) -> Result<(), EngineError> {
        let before = to.queues.destination(id).map(|found| found.kind.clone());
        let now = destination.as_ref().map(|found| found.kind.clone());
        let revision = destination.as_ref().map(|found| found.revision);
        if revision != to.queues.destination(id).map(|found| found.revision) {
            // Attempts that have not begun must use the new version.
            for delivery in to.queues.release_leases(Some(id)) {
                to.ledger.return_lease(delivery);
            }
        }
        if destination.is_none() {
            to.notices.forget(id);
        }
        let health = self.resync().health(id).await?.map(|stored| stored.value);
        let paused = is_paused(health.as_ref());
        let is_resumed = health.is_some_and(|it| it.is_resumed());
        if let Some(queue) = to.queues.get_mut(id) {
            queue.destination = destination;
            queue.unreadable = false;
            // Failures with another address or other secrets no longer apply.
            if queue.paused && !paused || before != now || is_resumed {
                queue.reset_failures();
            }
            queue.paused = paused;
        }
        Ok(())
    }

    /// Cancels some deliveries to deleted destinations, and forgets destinations without waiting
    /// deliveries.
    pub(crate) async fn cancel_deleted(
        &self,
        queues: &mut Queues,
        notices: &Notices,
    ) -> Result<(), Error> {
        for id in queues.ids_where(DestinationQueue::is_deleted) {
            let set_aside = queues.get(id).map_or(0, |queue| queue.set_aside);
            let now_ms = self.clock.now_ms();
            let limit = CANCEL_PAGE + set_aside;
            let (cancelled, unreadable) =
                ops::delivery::cancel_waiting(&self.store, id, now_ms, limit).await?;
            for delivery in unreadable.iter().filter_map(|key| id_at(key, 0)) {
                if let Some(name) = queues.set_aside(id, delivery) {
                    notices.report_unreadable(delivery, name);
                }
            }
            let Some(queue) = queues.get_mut(id) else {
                continue;
            };
            let is_done = cancelled == 0 && queue.set_aside == set_aside;
            queue.due_ms = if is_done { i64::MAX } else { i64::MIN };
            if is_done && queue.unrecorded == 0 {
                queues.remove(id);
            }
        }
        Ok(())
    }
}

/// Returns the destination of an index entry, and the due time of its delivery.
fn read(entry: &[u8]) -> Result<(RecordId, i64), EngineError> {
    let read = id_at(entry, 0).zip(time_ms_at(entry, 16));
    read.ok_or_else(|| EngineError::Corrupt("an entry of `DeliveryByDue`".into()))
}

fn is_paused(health: Option<&Health>) -> bool {
    health.is_some_and(|health| health.state == HealthState::Paused)
}
