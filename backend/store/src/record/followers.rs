//! Deliveries that wait for the end of another delivery. The commit that ends the other delivery
//! makes them due, regardless of the author of the commit.

use crate::{
    domain::{Delivery, DeliveryState, RecordId},
    engine::{Action, Change, Direction, EngineError, Index, Kind, Range},
    record::{Changes, EndedDelivery, Record, Store, waiting_prefix},
};

const PAGE: usize = 256;

impl Changes {
    pub fn ends_delivery(&self, delivery: RecordId) -> bool {
        self.ended.iter().any(|it| it.delivery == delivery)
    }
}

impl Store {
    /// Makes due the deliveries that wait for deliveries that end with these changes. A commit that
    /// makes a delivery wait for another one raises the version of the other one. It therefore
    /// conflicts with a commit that ends the other delivery, and no waiting delivery is missed.
    pub(super) async fn wake_followers(&self, changes: &mut Changes) -> Result<(), EngineError> {
        let ended = std::mem::take(&mut changes.ended);
        if ended.is_empty() {
            return Ok(());
        }
        self.wake_followers_after(ended, changes).await
    }

    /// Makes due the deliveries that wait for these deliveries.
    pub async fn wake_followers_after(
        &self,
        ended: Vec<EndedDelivery>,
        changes: &mut Changes,
    ) -> Result<(), EngineError> {
        let range = |it: &EndedDelivery| {
            Range::with_prefix(&waiting_prefix(it.destination, it.delivery).build())
        };
        let mut left: Vec<_> = ended.iter().map(|it| (it.at_ms, range(it))).collect();
        let (index, ascending) = (Index::DeliveryByThread, Direction::Ascending);
        while !left.is_empty() {
            let ranges: Vec<_> = left.iter().map(|(_, range)| range.clone()).collect();
            let all = self.engine.read_ranges(index, &ranges, ascending, PAGE);
            let all = all.await?;
            let times = left.iter().zip(&all);
            let times = times.flat_map(|((at_ms, _), found)| vec![*at_ms; found.len()]);
            let times: Vec<_> = times.collect();
            let mut pages = all.iter();
            left.retain_mut(|(_, range)| {
                let found = pages.next().filter(|found| found.len() == PAGE);
                let last = found.and_then(|found| found.last());
                last.is_some_and(|(last, _)| {
                    range.exclude_through(last);
                    true
                })
            });
            let keys = all.into_iter().flatten().map(|(_, key)| key).collect();
            let (followers, _) = self.get_readable::<Delivery>(keys).await?;
            for (follower, at_ms) in followers.into_iter().zip(times) {
                let Some(follower) = follower else { continue };
                let is_same =
                    |it: &Change| it.kind == Kind::Delivery && it.key == follower.value.key();
                let is_read = |it: &Change| matches!(it.action, Action::Touch | Action::Check);
                if changes.list.iter().any(|it| is_same(it) && !is_read(it)) {
                    continue;
                }
                changes.list.retain(|it| !is_same(it));
                // The client of the original change did not cause this one.
                let audited = changes.audited.take();
                changes.update(&follower, &make_due(&follower.value, at_ms));
                changes.audited = audited;
            }
        }
        Ok(())
    }
}

/// Returns a delivery that no longer waits for another one: it is due at `at_ms`, or at its next
/// attempt if that is later.
fn make_due(delivery: &Delivery, at_ms: i64) -> Delivery {
    let due_ms = delivery.state.due_ms().map_or(at_ms, |it| it.max(at_ms));
    let state = match delivery.state {
        DeliveryState::Pending { .. } => DeliveryState::Pending { due_ms },
        DeliveryState::Retry { .. } => DeliveryState::Retry { due_ms },
        other => other,
    };
    Delivery {
        state,
        behind: None,
        ..delivery.clone()
    }
}
