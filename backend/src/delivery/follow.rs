//! Synchronization of the queues with the store: an initial scan, then the change log.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use futures_util::future::try_join;

use crate::{
    clock::{Clock, to_millis},
    delivery::{
        ledger::Ledger,
        notices::Notices,
        ownership::{Ownership, OwnershipChange},
        queue::DestinationQueue,
        queues::Queues,
        refusals,
        resync::{self, Resync},
    },
    domain::{Delivery, Destination, Health, HealthState, RecordId},
    error::Error,
    ops,
    send::verdict::REQUESTED_WAIT_MAX,
    store::{
        Direction, EngineError, Index, Kind, LogPosition, Store, Stored,
        engine::Range,
        follow::{LogFollower, LogUpdate},
        record::bytes::{read_id, read_time_ms},
    },
};

const FOLLOWED: [Kind; 2] = [Kind::Delivery, Kind::Destination];
/// Number of deliveries to deleted destinations that are cancelled in one commit.
const CANCEL_PAGE: usize = 256;
/// Number of deliveries read to find the name of their destination.
const NAMING_PAGE: usize = 4;

#[derive(Debug)]
pub(crate) struct Follower {
    store: Store,
    clock: Arc<dyn Clock>,
    log: LogFollower,
    /// The names of the readable destinations.
    destinations: BTreeMap<RecordId, String>,
    are_all_readable: bool,
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
            are_all_readable: false,
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
                self.scan_destinations(to, |id| owned.owns_destination(id))
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
                        Kind::Delivery if !to.ledger.is_own_change(&key, commit.position) => {
                            deliveries.insert(key);
                        }
                        Kind::Destination => {
                            destinations.insert(key);
                        }
                        _ => {}
                    }
                }
            }
            let are_known = self.are_all_readable && destinations.is_empty();
            let is_any_gone = self.reload_destination(to, destinations).await?;
            // Scanning costs one entry per destination and reads no records. It is the only way to
            // find deliveries for a destination that was created and deleted in between.
            let is_scan_due = is_any_gone && self.store.engine().is_shared();
            if is_scan_due || deliveries.len() > to.queues.len() {
                let owned = to.ownership;
                self.scan_index(to, |id| owned.owns_destination(id), are_known)
                    .await?;
            } else {
                self.record_due_deliveries(to, deliveries.into_iter().collect())
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
        to.ledger.forget_commits_through(self.log.position());
        Ok(())
    }

    async fn scan_destinations(
        &mut self,
        to: &mut FollowedState<'_>,
        holds: impl Fn(RecordId) -> bool,
    ) -> Result<(), EngineError> {
        let mut names = BTreeMap::new();
        let resync = self.resync();
        let all = resync.check_destinations(to.notices, |it| {
            names.insert(it.id, it.name.as_str().to_owned());
            holds(it.id)
        });
        self.are_all_readable = all.await?;
        self.destinations = names;
        self.scan_index(to, holds, false).await
    }

    /// Records the first due time of each matching destination, and opens its queue. Unless all
    /// destinations are known, also finds unknown ones, whose index entries lie between those of
    /// the known ones.
    async fn scan_index(
        &self,
        to: &mut FollowedState<'_>,
        holds: impl Fn(RecordId) -> bool,
        are_known: bool,
    ) -> Result<(), EngineError> {
        let known = self.destinations.keys().copied();
        let known: BTreeSet<RecordId> = known.chain(to.queues.ids()).collect();
        let prefixes = known.iter().map(|id| Range::with_prefix(&id.to_bytes()));
        let held = known.iter().zip(prefixes.clone());
        let held = held.filter(|(id, _)| holds(**id));
        let mut ranges: Vec<_> = held.map(|(_, range)| range).collect();
        if !are_known {
            let mut gap = Range::with_prefix(&[]);
            for prefix in prefixes {
                let end = Some(prefix.start);
                ranges.push(Range { end, ..gap });
                gap = Range {
                    start: prefix.end.unwrap_or_default(),
                    end: None,
                };
            }
            ranges.push(gap);
        }
        let mut waiting = Vec::new();
        while !ranges.is_empty() {
            let (index, ascending) = (Index::DeliveryByDue, Direction::Ascending);
            let firsts = self
                .store
                .engine()
                .read_ranges(index, &ranges, ascending, 1);
            let firsts = firsts.await?;
            let mut rest = Vec::new();
            for (range, first) in ranges.into_iter().zip(firsts) {
                let Some((entry, _)) = first.into_iter().next() else {
                    continue;
                };
                let (id, due_ms) = parse_due_entry(&entry)?;
                if holds(id) {
                    waiting.push((id, self.destinations.get(&id).cloned(), due_ms));
                }
                let next = Range::with_prefix(&id.to_bytes()).end;
                let next = next.filter(|next| range.end.as_ref().is_none_or(|end| next < end));
                rest.extend(next.map(|start| Range { start, ..range }));
            }
            ranges = rest;
        }
        self.record_due_times(to, waiting).await
    }

    /// Records due times of destinations, and opens their queues. An unknown name is found through
    /// the deliveries.
    async fn record_due_times(
        &self,
        to: &mut FollowedState<'_>,
        waiting: Vec<(RecordId, Option<String>, i64)>,
    ) -> Result<(), EngineError> {
        let new = waiting.iter();
        let new = new.filter(|(id, ..)| to.queues.get(*id).is_none());
        let new: BTreeMap<_, _> = new.map(|(id, name, _)| (*id, name.clone())).collect();
        self.open_queues(to, new).await?;
        for (id, _, due_ms) in waiting {
            to.queues.add_waiting(id, due_ms);
        }
        Ok(())
    }

    async fn record_due_deliveries(
        &self,
        to: &mut FollowedState<'_>,
        keys: Vec<Vec<u8>>,
    ) -> Result<(), EngineError> {
        // Unreadable deliveries are set aside when they are due.
        let (deliveries, _) = self.store.get_readable::<Delivery>(keys).await?;
        let deliveries = deliveries.into_iter().flatten().map(|it| it.value);
        let owned =
            deliveries.filter(|it| !it.test && to.ownership.owns_destination(it.destination));
        let waiting = owned.filter_map(|it| {
            let due_ms = it.due_ms()?;
            Some((it.destination, Some(it.destination_name), due_ms))
        });
        self.record_due_times(to, waiting.collect()).await
    }

    async fn open_queues(
        &self,
        to: &mut FollowedState<'_>,
        new: BTreeMap<RecordId, Option<String>>,
    ) -> Result<(), EngineError> {
        let read = |store: Store, (id, name)| async move {
            let name = match name {
                Some(name) => name,
                None => find_name_in_deliveries(&store, id).await?,
            };
            let loaded = load_destination(&store, id, &name);
            let (loaded, health) = try_join(loaded, resync::read_health(&store, id)).await?;
            Ok::<_, EngineError>((id, name, loaded, health))
        };
        for (id, name, loaded, mut health) in self.store.read_each(new, read).await? {
            let (destination, unreadable) = loaded;
            if let Some(destination) = &destination {
                // The destination may have been edited while no process followed the change log.
                let resync = self.resync();
                if resync
                    .resume(destination, health.as_ref(), to.notices)
                    .await?
                {
                    health = resync::read_health(&self.store, id).await?;
                }
            }
            let mut queue = self.new_queue((id, name), destination, health, to.ownership);
            queue.unreadable = unreadable;
            to.queues.insert(id, queue);
        }
        Ok(())
    }

    fn new_queue(
        &self,
        (id, name): (RecordId, String),
        destination: Option<Arc<Destination>>,
        health: Option<Stored<Health>>,
        ownership: &Ownership,
    ) -> DestinationQueue {
        let health = health.map(|stored| stored.value);
        let failures = health.as_ref().map_or(0, |health| health.failures);
        let mut queue = DestinationQueue::new(name, destination, failures);
        queue.owner = ownership.owner(id);
        queue.paused = is_paused(health.as_ref());
        if let Some(health) = health {
            queue.refusals = health.alike;
            if refusals::exceeds_rejection_limit(&queue.refusals) {
                // Some of these messages were possibly not resent before the restart.
                queue.to_resend.clone_from(&queue.refusals.messages);
            }
            if let Some(until_ms) = health.requested_until_ms {
                // A clock step never extends a wait beyond the longest that a receiver can request.
                let now_ms = self.clock.now_ms();
                let latest_ms = now_ms.saturating_add(to_millis(REQUESTED_WAIT_MAX));
                queue.requested_until_ms = until_ms.min(latest_ms);
            }
        }
        let settings = queue.destination.as_ref().map(|found| found.delivery);
        let per_minute = settings.and_then(|found| found.max_per_minute);
        if let (Some(since_ms), Some(per_minute)) = (ownership.owned_since_ms(id), per_minute)
            && id < RecordId::first_at_time((since_ms + 1).try_into().unwrap_or(0))
        {
            // The previous owner may have used up the limit of the last minute.
            queue.rate.record_start(per_minute, since_ms);
        }
        queue
    }

    /// Reloads destinations that were edited or deleted. Returns whether any was deleted.
    async fn reload_destination(
        &mut self,
        to: &mut FollowedState<'_>,
        keys: HashSet<Vec<u8>>,
    ) -> Result<bool, EngineError> {
        let keys: Vec<_> = keys.into_iter().collect();
        let (found, unreadable) = self.store.get_readable::<Destination>(keys.clone()).await?;
        let found = found.into_iter().map(|it| it.map(|it| Arc::new(it.value)));
        let mut edited: Vec<_> = keys.into_iter().zip(found).collect();
        // Keep the known version of an unreadable destination.
        edited.retain(|(key, _)| !unreadable.contains(key));
        let existing = edited.iter().filter_map(|(_, found)| found.as_deref());
        for destination in existing.clone() {
            let name = destination.name.as_str().to_owned();
            self.destinations.insert(destination.id, name);
        }
        let owned = existing.filter(|it| to.ownership.owns_destination(it.id));
        let statuses = self.resync().statuses(owned.clone()).await?;
        for (destination, mut status) in owned.zip(statuses) {
            let is_known =
                |queue: &DestinationQueue| queue.paused && queue.name == destination.name.as_str();
            if status.is_paused() && !to.queues.ids_where(is_known).is_empty() {
                status.is_pause_reported = true;
            }
            self.resync()
                .check_destination(destination, &status, to.notices)
                .await?;
        }
        let gone = edited.iter().filter(|(_, found)| found.is_none());
        let gone: Vec<_> = gone.map(|(key, _)| &key[..]).collect();
        let owned = gone.iter().filter(|it| to.ownership.owns_name(it));
        self.resync()
            .close_for_deleted(owned.copied(), to.notices)
            .await?;
        let is_any_gone = !gone.is_empty();
        let replaced = edited.iter().flat_map(|(key, found)| {
            let ids = to.queues.ids_where(|queue| queue.name.as_bytes() == key);
            let of = |id| (id, found.clone().filter(|found| found.id == id));
            ids.into_iter().map(of)
        });
        let replaced: Vec<_> = replaced.collect();
        let read = |store: Store, id| async move { resync::read_health(&store, id).await };
        let ids = replaced.iter().map(|(id, _)| *id);
        let healths = self.store.read_each(ids, read).await?;
        for ((id, destination), health) in replaced.into_iter().zip(healths) {
            replace_destination(to, id, destination, health.map(|stored| stored.value));
        }
        Ok(is_any_gone)
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
            for delivery in unreadable.iter().filter_map(|key| read_id(key, 0)) {
                if let Some(name) = queues.set_aside_delivery(id, delivery) {
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

fn replace_destination(
    to: &mut FollowedState<'_>,
    id: RecordId,
    destination: Option<Arc<Destination>>,
    health: Option<Health>,
) {
    let before = to.queues.destination(id).map(|found| found.kind.clone());
    let now = destination.as_ref().map(|found| found.kind.clone());
    let revision = destination.as_ref().map(|found| found.revision);
    if revision != to.queues.destination(id).map(|found| found.revision) {
        // Attempts that have not begun must use the new version.
        for delivery in to.queues.release_ended_leases(Some(id)) {
            to.ledger.return_lease(delivery);
        }
    }
    if destination.is_none() {
        to.notices.forget_destination(id);
    }
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
}

async fn load_destination(
    store: &Store,
    id: RecordId,
    name: &str,
) -> Result<(Option<Arc<Destination>>, bool), EngineError> {
    match store.get::<Destination>(name.into()).await {
        Err(EngineError::Corrupt(why)) => {
            tracing::error!(destination = name, why, "a damaged record blocks messages");
            Ok((None, true))
        }
        found => {
            let destination = found?.map(|found| found.value);
            let destination = destination.filter(|found| found.id == id);
            Ok((destination.map(Arc::new), false))
        }
    }
}

/// Finds the name of a destination, first in its deliveries. Returns the id if the destination is
/// not stored, so that it counts as deleted.
async fn find_name_in_deliveries(
    store: &Store,
    destination: RecordId,
) -> Result<String, EngineError> {
    let range = Range::with_prefix(&destination.to_bytes());
    let (index, ascending) = (Index::DeliveryByDue, Direction::Ascending);
    let entries = store.engine().entries(index, range, ascending, NAMING_PAGE);
    let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
    let (found, _) = store.get_readable::<Delivery>(keys).await?;
    let name = match found.into_iter().flatten().next() {
        Some(delivery) => Some(delivery.value.destination_name),
        None => resync::destination_name(store, destination).await?,
    };
    Ok(name.unwrap_or_else(|| destination.to_string()))
}

fn parse_due_entry(entry: &[u8]) -> Result<(RecordId, i64), EngineError> {
    let read = read_id(entry, 0).zip(read_time_ms(entry, 16));
    read.ok_or_else(|| EngineError::Corrupt("an entry in `DeliveryByDue`".into()))
}

fn is_paused(health: Option<&Health>) -> bool {
    health.is_some_and(|health| health.state == HealthState::Paused)
}
