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
    ops,
    store::{
        Direction, EngineError, Index, Kind, Lane as Queue,
        engine::Range,
        record::bytes::{id_at, moment_at},
    },
};

/// Commits that are read from the change log at once.
const LOG_PAGE: usize = 256;
/// Deliveries to a destination that is gone, that are cancelled at once.
const CANCEL_PAGE: usize = 256;

impl Dispatcher {
    /// Learns what was committed since the last look.
    pub(super) async fn follow(&mut self) -> Result<(), EngineError> {
        loop {
            let Some(cursor) = self.cursor else {
                // What is committed while the index is walked is found in the log afterwards.
                let head = self.store.engine().log_head().await?;
                self.scan().await?;
                self.cursor = Some(head);
                continue;
            };
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
            let Some((entry, key)) = first.pop() else {
                return Ok(());
            };
            let (Some(destination), Some(due_ms)) = (id_at(&entry, 0), moment_at(&entry, 16))
            else {
                return Err(EngineError::Corrupt("an entry of `DeliveryByDue`".into()));
            };
            if self.lanes.contains_key(&destination) {
                self.expect_at(destination, due_ms);
            } else {
                self.expect(vec![key]).await?;
            }
            let Some(next) = Range::under(&destination.to_bytes()).end else {
                return Ok(());
            };
            range = Range {
                start: next,
                end: None,
            };
        }
    }

    /// Takes note of when deliveries are due.
    async fn expect(&mut self, keys: Vec<Vec<u8>>) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        for found in self.store.get_many::<Delivery>(keys).await? {
            let Some(delivery) = found.map(|found| found.value) else {
                continue;
            };
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
        let destination = self.load(id, &name).await?;
        let health = self.store.get::<Health>(id.to_bytes().into()).await?;
        let failures = health.as_ref().map_or(0, |health| health.value.failures);
        let paused = match (&health, &destination) {
            (Some(health), Some(destination)) => health::is_paused(&health.value, destination),
            _ => false,
        };
        let lane = Lane {
            name,
            destination,
            paused,
            due_ms: i64::MAX,
            ahead: VecDeque::new(),
            running: 0,
            unrecorded: 0,
            quick: false,
            breaker: Breaker::after_failures(failures),
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

    /// Reads destinations that were edited or deleted again.
    async fn reload(&mut self, keys: &HashSet<Vec<u8>>) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        let changed = |lane: &Lane| keys.contains(lane.name.as_bytes());
        let lanes = self.lanes.iter().filter(|(_, lane)| changed(lane));
        let names: Vec<_> = lanes.map(|(id, lane)| (*id, lane.name.clone())).collect();
        for (id, name) in names {
            let destination = self.load(id, &name).await?;
            let resumes = match &destination {
                Some(destination) => self.resume(destination).await?,
                None => false,
            };
            let revision = destination.as_ref().map(|found| found.revision);
            if revision != self.destination(id).map(|found| found.revision) {
                self.give_back_ahead(id);
            }
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.destination = destination;
                if resumes {
                    lane.paused = false;
                    lane.breaker = Breaker::default();
                }
            }
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

    /// Whether somebody resumed a paused destination by editing it; records that it is not paused.
    async fn resume(&self, destination: &Destination) -> Result<bool, EngineError> {
        let key = destination.id.to_bytes().into();
        let Some(health) = self.store.get::<Health>(key).await? else {
            return Ok(false);
        };
        let was_paused = health.value.state == HealthState::Paused;
        if !was_paused || health::is_paused(&health.value, destination) {
            return Ok(false);
        }
        let mut changes = self.store.changes();
        changes.update(
            &health,
            &health::resumed(&health.value, self.clock.now_ms()),
        );
        match self.store.apply(Queue::Admin, changes).await {
            // Whoever else changed it meanwhile did so after the edit as well.
            Ok(_) | Err(EngineError::Conflict) => {
                let notice = notice::resumed(destination, self.clock.now_ms());
                self.sender.report(notice);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels some of what waits for destinations that are gone, and forgets those for which
    /// nothing waits.
    pub(super) async fn cancel_for_gone(&mut self) -> Result<(), Error> {
        let lanes = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.destination.is_none());
        let gone: Vec<_> = lanes.map(|(id, lane)| (*id, lane.unrecorded)).collect();
        for (id, unrecorded) in gone {
            let now_ms = self.clock.now_ms();
            let cancelled =
                ops::delivery::cancel_waiting(&self.store, id, now_ms, CANCEL_PAGE).await?;
            if cancelled == 0 && unrecorded == 0 {
                self.lanes.remove(&id);
            } else if let Some(lane) = self.lanes.get_mut(&id) {
                lane.due_ms = if cancelled == 0 { i64::MAX } else { i64::MIN };
            }
        }
        Ok(())
    }
}
