//! Keeps the lanes in step with the store: a look at all that waits, then the change log.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use super::Dispatcher;
use crate::{
    delivery::{breaker::Breaker, health, lane::Lane, notice, rate::Rate},
    domain::{Delivery, Destination, Health, HealthState, RecordId},
    error::Error,
    limits::SET_ASIDE_MAX,
    ops,
    store::{
        Direction, EngineError, Index, Kind, Lane as Queue, Stored,
        engine::Range,
        record::bytes::{id_at, moment_at},
    },
};

/// The kinds whose changes matter here.
const FOLLOWED: [Kind; 2] = [Kind::Delivery, Kind::Destination];
/// Commits that are read from the change log at once.
const LOG_PAGE: usize = 256;
/// Deliveries to a destination that is gone, that are cancelled at once.
const CANCEL_PAGE: usize = 256;
/// Deliveries that are looked at for the name of their destination.
const NAMING_PAGE: usize = 4;

impl Dispatcher {
    /// Learns what was committed since the last look.
    pub(super) async fn follow(&mut self) -> Result<(), EngineError> {
        loop {
            let Some(cursor) = self.cursor else {
                // What is committed while the index is walked is found in the log afterwards.
                let head = self.store.engine().log_head().await?;
                self.survey().await?;
                self.scan().await?;
                self.cursor = Some(head);
                continue;
            };
            let head = self.store.engine().log_head().await?;
            if self.store.engine().last_changed(&FOLLOWED) <= cursor {
                self.recorded.retain(|_, sequence| *sequence > head);
                self.cursor = Some(cursor.max(head));
                return Ok(());
            }
            let Some(commits) = self.store.engine().log_after(cursor, LOG_PAGE).await? else {
                self.cursor = None;
                continue;
            };
            let Some(last) = commits.last().map(|commit| commit.sequence) else {
                return Ok(());
            };
            let mut deliveries = HashSet::new();
            let mut destinations = HashSet::new();
            for commit in commits {
                for (kind, key) in commit.changed {
                    match kind {
                        Kind::Delivery if !self.is_own_doing(&key, commit.sequence) => {
                            deliveries.insert(key);
                        }
                        Kind::Destination => {
                            destinations.insert(key);
                        }
                        _ => {}
                    }
                }
            }
            self.reload(&destinations).await?;
            self.expect(deliveries.into_iter().collect()).await?;
            self.recorded.retain(|_, sequence| *sequence > last);
            self.cursor = Some(last);
        }
    }

    fn is_own_doing(&self, key: &[u8], sequence: u64) -> bool {
        id_at(key, 0).is_some_and(|id| {
            self.unrecorded.contains_key(&id)
                || self
                    .recorded
                    .get(&id)
                    .is_some_and(|until| sequence <= *until)
        })
    }

    /// Walks from destination to destination that something waits for.
    async fn scan(&mut self) -> Result<(), EngineError> {
        let mut range = Range::under(&[]);
        loop {
            let engine = self.store.engine();
            let index = Index::DeliveryByDue;
            let mut first = engine
                .entries(index, range, Direction::Ascending, 1)
                .await?;
            let Some((entry, _)) = first.pop() else {
                return Ok(());
            };
            let (Some(destination), Some(due_ms)) = (id_at(&entry, 0), moment_at(&entry, 16))
            else {
                return Err(EngineError::Corrupt("an entry of `DeliveryByDue`".into()));
            };
            if !self.lanes.contains_key(&destination) {
                self.open_by_deliveries(destination).await?;
            }
            self.expect_at(destination, due_ms);
            let Some(next) = Range::under(&destination.to_bytes()).end else {
                return Ok(());
            };
            range = Range {
                start: next,
                end: None,
            };
        }
    }

    /// Opens the lane of a destination that only deliveries tell of.
    async fn open_by_deliveries(&mut self, destination: RecordId) -> Result<(), EngineError> {
        let range = Range::under(&destination.to_bytes());
        let index = Index::DeliveryByDue;
        let engine = self.store.engine();
        let entries = engine.entries(index, range, Direction::Ascending, NAMING_PAGE);
        let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
        let (found, _) = self.store.get_readable::<Delivery>(keys).await?;
        let name = match found.into_iter().flatten().next() {
            Some(delivery) => Some(delivery.value.destination_name),
            None => self.name_of(destination).await?,
        };
        // Nothing is stored under an id: such a destination counts as gone.
        let name = name.unwrap_or_else(|| destination.to_string());
        self.open(destination, name).await
    }

    /// Takes note of when deliveries are due.
    async fn expect(&mut self, keys: Vec<Vec<u8>>) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        // What cannot be read is set aside when it is due.
        let (deliveries, _) = self.store.get_readable::<Delivery>(keys).await?;
        for delivery in deliveries.into_iter().flatten() {
            let delivery = delivery.value;
            let Some(due_ms) = delivery.state.due_ms().filter(|_| !delivery.test) else {
                continue;
            };
            if !self.lanes.contains_key(&delivery.destination) {
                self.open(delivery.destination, delivery.destination_name)
                    .await?;
            }
            self.expect_at(delivery.destination, due_ms);
        }
        Ok(())
    }

    fn expect_at(&mut self, destination: RecordId, due_ms: i64) {
        if let Some(lane) = self.lanes.get_mut(&destination) {
            lane.expect(due_ms);
        }
    }

    async fn open(&mut self, id: RecordId, name: String) -> Result<(), EngineError> {
        let (destination, unreadable) = match self.load(id, &name).await {
            Ok(destination) => (destination, false),
            Err(EngineError::Corrupt(why)) => {
                tracing::error!(
                    destination = name,
                    why,
                    "messages wait for a damaged record"
                );
                (None, true)
            }
            Err(error) => return Err(error),
        };
        if let Some(destination) = &destination {
            // Somebody may have edited it while nobody followed the change log.
            self.resume(destination).await?;
        }
        let health = self.health(id).await?;
        let lane = Lane {
            name,
            unreadable,
            paused: health
                .as_ref()
                .is_some_and(|health| health.value.state == HealthState::Paused),
            destination,
            due_ms: i64::MAX,
            ahead: VecDeque::new(),
            running: 0,
            unrecorded: 0,
            set_aside: 0,
            quick: false,
            breaker: Breaker::after_failures(health.map_or(0, |health| health.value.failures)),
            rate: Rate::default(),
        };
        self.lanes.insert(id, lane);
        Ok(())
    }

    /// The destination of that identity, unless it is gone.
    async fn load(
        &self,
        id: RecordId,
        name: &str,
    ) -> Result<Option<Arc<Destination>>, EngineError> {
        let found = self.store.get::<Destination>(name.into()).await?;
        let destination = found
            .map(|found| found.value)
            .filter(|found| found.id == id);
        Ok(destination.map(Arc::new))
    }

    /// The health of a destination; one that cannot be read counts as none.
    async fn health(&self, id: RecordId) -> Result<Option<Stored<Health>>, EngineError> {
        let key = id.to_bytes().into();
        let (mut found, _) = self.store.get_readable::<Health>(vec![key]).await?;
        Ok(found.pop().flatten())
    }

    /// Reads destinations that were edited or deleted again.
    async fn reload(&mut self, keys: &HashSet<Vec<u8>>) -> Result<(), EngineError> {
        for key in keys {
            let (mut found, unreadable) = self
                .store
                .get_readable::<Destination>(vec![key.clone()])
                .await?;
            if !unreadable.is_empty() {
                // What is known of it goes on.
                continue;
            }
            let found = found.pop().flatten().map(|found| Arc::new(found.value));
            match &found {
                Some(destination) => self.resume(destination).await?,
                None => self.close_for_deleted(key).await?,
            }
            let lanes = self.lanes.iter();
            let named = lanes.filter(|(_, lane)| lane.name.as_bytes() == key);
            for id in named.map(|(id, _)| *id).collect::<Vec<_>>() {
                let destination = found.clone().filter(|found| found.id == id);
                self.replace(id, destination).await?;
            }
        }
        Ok(())
    }

    /// Goes on with a destination as it is now.
    async fn replace(
        &mut self,
        id: RecordId,
        destination: Option<Arc<Destination>>,
    ) -> Result<(), EngineError> {
        let revision = destination.as_ref().map(|found| found.revision);
        if revision != self.destination(id).map(|found| found.revision) {
            self.give_back_ahead(id);
        }
        if destination.is_none() {
            self.dead_letters.forget(id);
        }
        let health = self.health(id).await?;
        let paused = health.is_some_and(|health| health.value.state == HealthState::Paused);
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.destination = destination;
            lane.unreadable = false;
            if lane.paused && !paused {
                lane.breaker = Breaker::default();
            }
            lane.paused = paused;
        }
        Ok(())
    }

    /// Gives back what has not begun: it is to go to the destination as it is now.
    fn give_back_ahead(&mut self, destination: RecordId) {
        let lane = self.lanes.get_mut(&destination);
        let ahead = lane.map_or_else(VecDeque::new, |lane| std::mem::take(&mut lane.ahead));
        for lease in ahead {
            self.give_back(lease.delivery.id);
        }
    }

    /// Records that a paused destination is not paused any more when somebody edited it.
    pub(super) async fn resume(&self, destination: &Destination) -> Result<(), EngineError> {
        let Some(health) = self.health(destination.id).await? else {
            return Ok(());
        };
        let was_paused = health.value.state == HealthState::Paused;
        if !was_paused || health::is_paused(&health.value, destination) {
            return Ok(());
        }
        let now_ms = self.clock.now_ms();
        let mut changes = self.store.changes();
        changes.update(&health, &health::resumed(&health.value, now_ms));
        match self.store.apply(Queue::Admin, changes).await {
            // Whoever else changed it meanwhile did so after the edit as well.
            Ok(_) | Err(EngineError::Conflict) => {
                self.sender
                    .report(notice::resumed(destination.name.as_str(), now_ms));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels some of what waits for destinations that are gone, and forgets those for which
    /// nothing waits.
    pub(super) async fn cancel_for_gone(&mut self) -> Result<(), Error> {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.is_gone());
        let gone: Vec<_> = lanes.map(|(id, _)| *id).collect();
        for id in gone {
            let set_aside = self.lanes.get(&id).map_or(0, |lane| lane.set_aside);
            let now_ms = self.clock.now_ms();
            let limit = CANCEL_PAGE + set_aside;
            let (cancelled, unreadable) =
                ops::delivery::cancel_waiting(&self.store, id, now_ms, limit).await?;
            for key in unreadable {
                self.set_aside(id, &key);
            }
            let Some(lane) = self.lanes.get_mut(&id) else {
                continue;
            };
            let is_done = cancelled == 0 && lane.set_aside == set_aside;
            lane.due_ms = if is_done { i64::MAX } else { i64::MIN };
            if is_done && lane.unrecorded == 0 {
                self.lanes.remove(&id);
            }
        }
        Ok(())
    }

    /// Leaves a delivery that cannot be read alone until the next start, and says so.
    pub(super) fn set_aside(&mut self, destination: RecordId, key: &[u8]) {
        let Some(id) = id_at(key, 0).filter(|_| self.set_aside.len() < SET_ASIDE_MAX) else {
            return;
        };
        let Some(lane) = self.lanes.get_mut(&destination) else {
            return;
        };
        if self.set_aside.insert(id) {
            lane.set_aside += 1;
            tracing::error!(delivery = %id, "a delivery that cannot be read is left aside");
            let now_ms = self.clock.now_ms();
            self.sender
                .report(notice::unreadable(id, &lane.name, now_ms));
        }
    }
}
