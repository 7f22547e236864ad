//! Notifications of the last 24 hours.

use std::sync::Arc;

use crate::{
    clock::{Clock, DAY_MS},
    domain::RecordId,
    error::Error,
    store::{
        Direction, Index, Store,
        engine::Range,
        record::bytes::{Key, read_id},
    },
};

pub const RECENT_MAX: usize = 10_000;

/// Counts notifications with the time-ordered indexes. Test deliveries are not counted.
#[derive(Debug, Clone)]
pub struct RecentNotifications {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl RecentNotifications {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the number of notifications that a rule caused in the last 24 hours, at most
    /// [`RECENT_MAX`].
    pub async fn count_by_rule(&self, rule: RecordId) -> Result<usize, Error> {
        self.count(Index::DeliveryByRule, rule).await
    }

    /// Returns the number of messages that a shadow rule recorded in the last 24 hours, at most
    /// [`RECENT_MAX`].
    pub async fn count_shadow_messages(&self, rule: RecordId) -> Result<usize, Error> {
        self.count(Index::NotificationByTrigger, rule).await
    }

    /// Returns the number of notifications that a trigger caused in the last 24 hours, at most
    /// [`RECENT_MAX`].
    pub async fn count_by_trigger(&self, trigger: RecordId) -> Result<usize, Error> {
        self.count(Index::NotificationByTrigger, trigger).await
    }

    /// Returns the number of notifications for a destination in the last 24 hours, at most
    /// [`RECENT_MAX`].
    pub async fn count_by_destination(&self, destination: RecordId) -> Result<usize, Error> {
        self.count(Index::NotificationByDestination, destination)
            .await
    }

    /// Returns the time of a rule's last notification, in milliseconds since the epoch; `None` if
    /// none is stored.
    pub async fn last_by_rule(&self, rule: RecordId) -> Result<Option<i64>, Error> {
        let range = Range::with_prefix(&rule.to_bytes());
        let entries = self
            .store
            .engine()
            .entries(Index::DeliveryByRule, range, Direction::Descending, 1)
            .await?;
        let newest = entries.first().and_then(|(key, _)| read_id(key, 16));
        Ok(newest.and_then(|delivery| i64::try_from(delivery.time_ms()).ok()))
    }

    async fn count(&self, index: Index, of: RecordId) -> Result<usize, Error> {
        let range = self.last_day_range(of);
        Ok(self.store.engine().count(index, range, RECENT_MAX).await?)
    }

    fn last_day_range(&self, of: RecordId) -> Range {
        let day_ago =
            RecordId::first_at_time((self.clock.now_ms() - DAY_MS).try_into().unwrap_or(0));
        Range {
            start: Key::new().id(of).id(day_ago).build(),
            end: Range::with_prefix(&of.to_bytes()).end,
        }
    }
}
