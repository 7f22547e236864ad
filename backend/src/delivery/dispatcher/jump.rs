//! A clock that somebody set: what waits goes on waiting as long as it was to.
//!
//! Due times are kept as times of day, since they outlive the process. When the clock is set, the
//! waits that were begun before are moved along; what is decided afterwards is in the new time
//! already. Which is which is told by the change log.

use std::time::Duration;

use super::Dispatcher;
use crate::{
    clock::{STEP_MIN_MS, millis},
    domain::{Delivery, DeliveryState},
    error::Error,
    ops::commit::commit,
    store::{
        Direction, Index, Lane as Queue, Stored,
        engine::Range,
        record::bytes::{id_at, moment_at},
    },
};

/// Deliveries that are looked at in one commit.
const PAGE: usize = 256;
/// A clock that is set forward by more than this was plainly wrong before: what is due by the new
/// time is due.
const FORWARD_MAX: Duration = Duration::from_secs(24 * 3600);

/// What the clock was like when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Heed {
    /// How far it was ahead of the time that has passed; none before the first look.
    offset_ms: Option<i64>,
    /// The newest place in the change log then.
    sequence: u64,
}

impl Dispatcher {
    /// Moves what waits along with a clock that was set since the last look.
    pub(super) async fn heed_clock(&mut self) -> Result<(), Error> {
        let offset_ms = self.clock.offset_ms();
        let by_ms = offset_ms - self.heed.offset_ms.unwrap_or(offset_ms);
        if by_ms.abs() >= STEP_MIN_MS {
            tracing::warn!(by_ms, "the clock was set; what waits is moved along");
            for lane in self.lanes.values_mut() {
                lane.breaker.shift(by_ms);
                lane.rate.shift(by_ms);
                lane.due_ms = i64::MIN;
            }
            if by_ms <= millis(FORWARD_MAX) {
                self.move_along(by_ms).await?;
            }
        }
        self.heed = Heed {
            offset_ms: Some(offset_ms),
            sequence: self.store.engine().log_head().await?,
        };
        Ok(())
    }

    async fn move_along(&self, by_ms: i64) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let before_ms = now_ms.saturating_sub(by_ms);
        let mut range = Range::under(&[]);
        loop {
            let engine = self.store.engine();
            let index = Index::DeliveryByDue;
            let page = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.start = [last, &[0][..]].concat();
            let waiting = page.into_iter().filter(|(entry, _)| {
                let is_later =
                    moment_at(entry, 16).is_some_and(|due_ms| due_ms > before_ms.min(now_ms));
                let id = id_at(entry, 24);
                is_later && id.is_some_and(|id| !self.unrecorded.contains_key(&id))
            });
            let keys: Vec<_> = waiting.map(|(_, key)| key).collect();
            if keys.is_empty() {
                continue;
            }
            let decide = || async {
                let mut changes = self.store.changes();
                let found = self.store.get_many::<Delivery>(keys.clone()).await?;
                for delivery in found.into_iter().flatten() {
                    if let Some(state) = self.moved(&delivery, by_ms, now_ms) {
                        let moved = Delivery {
                            state,
                            ..delivery.value.clone()
                        };
                        changes.update(&delivery, &moved);
                    }
                }
                Ok((changes, ()))
            };
            commit(&self.store, Queue::Bulk, decide).await?;
        }
    }

    /// The state of a delivery after the clock was set; none when it stays as it is.
    fn moved(&self, delivery: &Stored<Delivery>, by_ms: i64, now_ms: i64) -> Option<DeliveryState> {
        if delivery.version > self.heed.sequence {
            return None;
        }
        let shift = |due_ms: i64| due_ms.saturating_add(by_ms);
        match delivery.value.state {
            DeliveryState::Retry { due_ms } => Some(DeliveryState::Retry {
                due_ms: shift(due_ms),
            }),
            // The first attempt is due when it is decided.
            DeliveryState::Pending { due_ms } if due_ms > now_ms => {
                Some(DeliveryState::Pending { due_ms: now_ms })
            }
            _ => None,
        }
    }
}
