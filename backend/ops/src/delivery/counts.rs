//! Counts deliveries that match a filter, by state.

use super::{
    Deliveries,
    list::{BATCH, Filter},
};
use crate::{
    domain::{
        Delivery, DeliveryState,
        counter::{Numbers, Subject, Tally},
    },
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
    pub folded: usize,
    pub shadowed: usize,
    /// Tests of destinations; not included in any other count.
    pub tests: usize,
    pub is_complete: bool,
}

/// States that can be counted in the index: except for tests, all their deliveries count alike.
const ALIKE: [DeliveryState; 7] = [
    DeliveryState::Pending { due_ms: 0 },
    DeliveryState::Leased { until_ms: 0 },
    DeliveryState::Retry { due_ms: 0 },
    DeliveryState::Delivered,
    DeliveryState::Cancelled,
    DeliveryState::Folded,
    DeliveryState::Shadowed,
];

/// Maximum number of tries to read the counters and the index without a change in between.
const READS_MAX: usize = 3;

impl DeliveryTally {
    fn add(&mut self, state: DeliveryState, is_resent: bool, count: usize) {
        *self.count_mut(state, is_resent) += count;
    }

    fn count_mut(&mut self, state: DeliveryState, is_resent: bool) -> &mut usize {
        match state {
            DeliveryState::Pending { .. }
            | DeliveryState::Leased { .. }
            | DeliveryState::Retry { .. } => &mut self.waiting,
            DeliveryState::Delivered => &mut self.delivered,
            DeliveryState::Dead if is_resent => &mut self.resent,
            DeliveryState::Dead => &mut self.dead,
            DeliveryState::Cancelled => &mut self.cancelled,
            DeliveryState::Folded => &mut self.folded,
            DeliveryState::Shadowed => &mut self.shadowed,
        }
    }

    /// Subtracts the tests, which the counters do not include, from the counts by state, and counts
    /// them separately.
    fn subtract_tests(&mut self, counted: &Numbers) {
        let sums = [
            (&mut self.waiting, Tally::Waiting),
            (&mut self.delivered, Tally::Delivered),
            (&mut self.cancelled, Tally::Cancelled),
        ];
        for (sum, tally) in sums {
            let counted = usize::try_from(counted.get(tally)).unwrap_or_default();
            self.tests += sum.saturating_sub(counted);
            *sum = counted.min(*sum);
        }
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
            (tally, is_cut) = self.count_in_index().await?;
            filter.states = vec![DeliveryState::Dead.number()];
        }
        let mut reach = filter.id_range(None);
        let walk = self.choose_walk(&filter).await?;
        let end = self.clock.elapsed() + PAGE_TIME_MAX;
        loop {
            let ids = self.newest_ids(&walk, reach, BATCH).await?;
            reach.below = ids.last().copied().or(reach.below);
            let keys = ids.iter().map(|id| id.to_bytes().into()).collect();
            let found = self.store.get_many::<Delivery>(keys).await?;
            for delivery in found.into_iter().flatten().map(|it| it.value) {
                if filter.matches(&delivery) && delivery.test {
                    tally.tests += 1;
                } else if filter.matches(&delivery) {
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

    /// Counts all deliveries that are not dead, and returns whether there are more than are
    /// counted.
    async fn count_in_index(&self) -> Result<(DeliveryTally, bool), Error> {
        let engine = self.store.engine();
        let counted = async || {
            let counted = self.store.current_counts(&[Subject::Deliveries]).await?;
            Ok::<_, Error>(counted.first().copied().unwrap_or_default())
        };
        let mut before = counted().await?;
        let mut reads = 0;
        loop {
            reads += 1;
            let (mut tally, mut is_cut) = (DeliveryTally::default(), false);
            for state in ALIKE {
                let range = Range::with_prefix(&[state.number()]);
                let count = engine.count(Index::DeliveryByState, range, DELIVERIES_COUNTED_MAX);
                let count = count.await?;
                is_cut |= count == DELIVERIES_COUNTED_MAX;
                tally.add(state, false, count);
            }
            let after = counted().await?;
            if before == after || reads == READS_MAX {
                tally.subtract_tests(&after);
                return Ok((tally, is_cut));
            }
            before = after;
        }
    }
}
