//! Counts deliveries that match a filter, by state.

use super::{
    Deliveries,
    list::{BATCH, Filter},
};
use crate::{
    domain::{Delivery, DeliveryState},
    error::Error,
    limits::{DELIVERIES_COUNTED_MAX, PAGE_TIME_MAX},
    scan,
    store::{Index, engine::Range},
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryTally {
    /// Deliveries that have not ended.
    pub waiting: usize,
    pub delivered: usize,
    /// Dead deliveries that were not sent again.
    pub dead: usize,
    /// Dead deliveries that were sent again.
    pub resent: usize,
    pub cancelled: usize,
    /// Deliveries sent as part of a digest.
    pub folded: usize,
    /// Deliveries recorded by shadow rules.
    pub shadowed: usize,
    pub is_complete: bool,
}

/// States that the tally does not subdivide, so that they can be counted in the index.
const ALIKE: [DeliveryState; 7] = [
    DeliveryState::Pending { due_ms: 0 },
    DeliveryState::Leased { until_ms: 0 },
    DeliveryState::Retry { due_ms: 0 },
    DeliveryState::Delivered,
    DeliveryState::Cancelled,
    DeliveryState::Folded,
    DeliveryState::Shadowed,
];

impl DeliveryTally {
    fn add(&mut self, state: DeliveryState, is_resent: bool, count: usize) {
        let sum = match state {
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. } => &mut self.waiting,
            DeliveryState::Delivered => &mut self.delivered,
            DeliveryState::Dead if is_resent => &mut self.resent,
            DeliveryState::Dead => &mut self.dead,
            DeliveryState::Cancelled => &mut self.cancelled,
            DeliveryState::Folded => &mut self.folded,
            DeliveryState::Shadowed => &mut self.shadowed,
        };
        *sum += count;
    }
}

impl Deliveries {
    /// Counts the deliveries that match a filter, for at most [`PAGE_TIME_MAX`]. Without a filter,
    /// counts at most [`DELIVERIES_COUNTED_MAX`] of each state except dead deliveries.
    pub async fn counts(&self, filter: &Filter) -> Result<DeliveryTally, Error> {
        let mut tally = DeliveryTally::default();
        let mut is_cut = false;
        let mut filter = filter.clone();
        if filter == Filter::default() {
            for state in ALIKE {
                let range = Range::with_prefix(&[state.number()]);
                let engine = self.store.engine();
                let count = engine.count(Index::DeliveryByState, range, DELIVERIES_COUNTED_MAX);
                let count = count.await?;
                is_cut |= count == DELIVERIES_COUNTED_MAX;
                tally.add(state, false, count);
            }
            filter.states = vec![DeliveryState::Dead.number()];
        }
        let mut reach = filter.id_range(None);
        let walk = self.walk(&filter).await?;
        let end = self.clock.elapsed() + PAGE_TIME_MAX;
        loop {
            let ids = self.newest_ids(&walk, reach, BATCH).await?;
            reach.below = ids.last().copied().or(reach.below);
            let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
            let found = self.store.get_many::<Delivery>(keys).await?;
            for delivery in found.into_iter().flatten().map(|it| it.value) {
                if filter.matches(&delivery) {
                    tally.add(delivery.state, delivery.retried_as.is_some(), 1);
                }
                scan::yield_if_needed().await;
            }
            let is_end = ids.len() < BATCH;
            tally.is_complete = is_end && !is_cut;
            if is_end || self.clock.elapsed() >= end {
                return Ok(tally);
            }
        }
    }
}
