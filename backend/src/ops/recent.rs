//! What happened lately: notifications of the last 24 hours, events of the last hour.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    clock::Clock,
    domain::RecordId,
    error::Error,
    store::{
        Direction, Index, Store,
        engine::Range,
        record::bytes::{Key, id_at},
    },
};

const DAY_MS: i64 = 24 * 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// Minutes that [`Traffic`] remembers.
const MINUTES: usize = 60;
/// Where counting notifications stops.
pub const RECENT_MAX: usize = 10_000;

/// Counts notifications, which the indexes keep in the order of time. Tests are not counted.
#[derive(Debug, Clone)]
pub struct Recent {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Recent {
    /// Counts what that store holds.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Notifications that a rule caused in the last 24 hours, at most [`RECENT_MAX`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of_rule(&self, rule: RecordId) -> Result<usize, Error> {
        self.count(Index::DeliveryByRule, rule).await
    }

    /// Notifications that a trigger caused in the last 24 hours, at most [`RECENT_MAX`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of_trigger(&self, trigger: RecordId) -> Result<usize, Error> {
        self.count(Index::NotificationByTrigger, trigger).await
    }

    /// Notifications for a destination in the last 24 hours, at most [`RECENT_MAX`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of_destination(&self, destination: RecordId) -> Result<usize, Error> {
        self.count(Index::NotificationByDestination, destination)
            .await
    }

    /// When a rule notified last, in milliseconds since 1970; none when nothing of it is kept.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn last_of_rule(&self, rule: RecordId) -> Result<Option<i64>, Error> {
        let range = Range::under(&rule.to_bytes());
        let entries = self
            .store
            .engine()
            .entries(Index::DeliveryByRule, range, Direction::Descending, 1)
            .await?;
        let newest = entries.first().and_then(|(key, _)| id_at(key, 16));
        Ok(newest.and_then(|delivery| i64::try_from(delivery.time_ms()).ok()))
    }

    async fn count(&self, index: Index, of: RecordId) -> Result<usize, Error> {
        let range = self.last_day_of(of);
        Ok(self.store.engine().count(index, range, RECENT_MAX).await?)
    }

    fn last_day_of(&self, of: RecordId) -> Range {
        let day_ago = RecordId::first_at((self.clock.now_ms() - DAY_MS).try_into().unwrap_or(0));
        Range {
            start: Key::new().id(of).id(day_ago).build(),
            end: Range::under(&of.to_bytes()).end,
        }
    }
}

/// Counts accepted events by the minute, since the service started.
#[derive(Debug, Default)]
pub struct Traffic(Mutex<Minutes>);

#[derive(Debug, Default)]
struct Minutes {
    /// The newest minute, counted from 1970.
    newest: i64,
    /// Events a minute, oldest first; ends with the newest.
    counts: VecDeque<u32>,
}

impl Traffic {
    /// Counts events that were accepted at that time.
    pub fn count(&self, now_ms: i64, events: usize) {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        minutes.advance(now_ms);
        if let Some(newest) = minutes.counts.back_mut() {
            *newest = newest.saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
        }
    }

    /// Events a minute over the last 60 minutes, oldest first; the last one has just begun.
    pub fn per_minute(&self, now_ms: i64) -> Vec<u32> {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        minutes.advance(now_ms);
        minutes.counts.iter().copied().collect()
    }
}

impl Minutes {
    fn advance(&mut self, now_ms: i64) {
        let now = now_ms.div_euclid(MINUTE_MS);
        let passed = usize::try_from(now - self.newest).unwrap_or(0).min(MINUTES);
        if self.counts.is_empty() {
            self.counts.resize(MINUTES, 0);
        } else {
            self.counts.drain(..passed);
            self.counts.resize(MINUTES, 0);
        }
        self.newest = self.newest.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_in_their_minute_and_forgotten_after_an_hour() {
        let traffic = Traffic::default();
        let start_ms = 1_700_000_000_000;
        traffic.count(start_ms, 5);
        traffic.count(start_ms + MINUTE_MS, 7);
        let counts = traffic.per_minute(start_ms + 2 * MINUTE_MS);
        assert_eq!(counts.len(), MINUTES);
        assert_eq!(counts[MINUTES - 3..], [5, 7, 0]);
        assert_eq!(
            traffic
                .per_minute(start_ms + 61 * MINUTE_MS)
                .iter()
                .sum::<u32>(),
            0
        );
    }
}
