//! Deliveries: reading, retrying and cancelling.

pub mod attempt;
mod bulk;
mod condition;
mod counts;
mod folded;
mod list;
mod obligation;
mod resend;
pub mod sequencing;
mod shadow;
#[cfg(test)]
mod tests;
mod waiting;

use std::{collections::HashMap, sync::Arc};

use crate::{
    clock::Clock,
    commit::commit,
    decision_context::new_id,
    domain::{Attempt, Delivery, DeliveryState, RecordId},
    error::Error,
    fields::FieldCache,
    limits::ATTEMPTS_MAX,
    store::{
        Direction, Index, Lane, Store, Stored,
        engine::Range,
        record::{EndedDelivery, bytes::read_id},
    },
    tag_scope::check_delivery_owner,
};
use resend::Templates;

pub use bulk::{BulkAction, BulkTally, Selection, SkipReason};
pub use condition::Condition;
pub use counts::DeliveryTally;
pub use list::Filter;
pub use obligation::{Obligation, ObligationFilter};
pub use shadow::render_shadow_message;
pub use waiting::{QueueHold, QueueHolds, WaitReason, WaitReasons};

#[derive(Debug, Clone)]
pub struct Deliveries {
    store: Store,
    clock: Arc<dyn Clock>,
    holds: QueueHolds,
    fields: FieldCache,
}

impl Deliveries {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            fields: FieldCache::new(store.clone(), Arc::clone(&clock)),
            store,
            clock,
            holds: QueueHolds::default(),
        }
    }

    #[must_use]
    pub fn with_fields(mut self, fields: FieldCache) -> Self {
        self.fields = fields;
        self
    }

    #[must_use]
    pub fn with_holds(mut self, holds: QueueHolds) -> Self {
        self.holds = holds;
        self
    }

    /// Reads a delivery and its attempts, oldest first.
    pub async fn get(&self, id: RecordId) -> Result<(Delivery, Vec<Attempt>), Error> {
        let delivery = self.find(id).await?.value;
        let range = Range::with_prefix(&id.to_bytes());
        let attempts = self
            .store
            .page(range, Direction::Ascending, ATTEMPTS_MAX)
            .await?;
        let attempts = attempts.into_iter().map(|attempt| attempt.value).collect();
        Ok((delivery, attempts))
    }

    /// Returns the newest retry of each delivery by the id of the delivery; for one that was not
    /// retried, the delivery itself. Deleted deliveries are omitted.
    pub async fn newest_retries(
        &self,
        ids: Vec<RecordId>,
    ) -> Result<HashMap<RecordId, Delivery>, Error> {
        let read = async |ids: Vec<RecordId>| {
            let keys = ids.iter().map(|it| it.to_bytes().into()).collect();
            let found = self.store.get_many::<Delivery>(keys).await?;
            let found = found.into_iter().flatten().map(|it| it.value);
            Ok::<HashMap<_, _>, Error>(found.map(|it| (it.id, it)).collect())
        };
        let mut found = read(ids).await?;
        let retries = found.values().filter_map(|it| it.retried_as);
        let mut retries = read(retries.collect()).await?;
        for delivery in found.values_mut() {
            let retry = delivery.retried_as.and_then(|it| retries.remove(&it));
            *delivery = retry.unwrap_or_else(|| delivery.clone());
        }
        Ok(found)
    }

    /// Sends a delivery again, and returns the delivery that will be attempted. For an ended
    /// delivery, a new one is created with the current templates of the rule and the destination; a
    /// waiting one becomes due now. For a dead message of a digest, the digest is sent again. If a
    /// later message of the thread contradicts this one about whether the thread is over, the later
    /// one is then sent again too.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such delivery. Returns
    /// [`Error::FailedPrecondition`] for tests, shadow deliveries, and messages in a digest that is
    /// not dead; also while an attempt is in flight, and if the destination was deleted.
    pub async fn retry(&self, id: RecordId) -> Result<Delivery, Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let old = self.find(id).await?;
            let old = self.find_digest(old).await?;
            let mut changes = self.store.new_changes();
            check_delivery_owner((&self.store, &mut changes), &old.value).await?;
            if old.value.test {
                return Err(Error::FailedPrecondition(
                    "a test cannot be resent; test the destination again".into(),
                ));
            }
            if old.value.state == DeliveryState::Shadowed {
                return Err(Error::FailedPrecondition(
                    "a dry run's record cannot be sent; preview the rule instead".into(),
                ));
            }
            if let DeliveryState::Leased { .. } = old.value.state {
                return Err(Error::FailedPrecondition(
                    "an attempt is in progress; wait for it to finish".into(),
                ));
            }
            if let Some(hastened) = make_due(&old.value, now_ms) {
                changes.update(&old, &hastened);
                return Ok((changes, hastened));
            }
            let last_word = sequencing::newest_message(&self.store, &old.value).await?;
            let mut templates = Templates::new(&self.store);
            let id = new_id(now_ms);
            let next = templates.resend(&mut changes, &old, id, now_ms).await?;
            if let Some(last) = last_word {
                match last.value.state {
                    DeliveryState::Leased { .. } => {
                        return Err(Error::FailedPrecondition(format!(
                            "an attempt of `{}`, a later message of its thread, is in progress; \
                             wait until it ends",
                            last.value.id
                        )));
                    }
                    DeliveryState::Delivered | DeliveryState::Dead => {
                        let id = new_id(now_ms);
                        templates.resend(&mut changes, &last, id, now_ms).await?;
                    }
                    _ => {}
                }
            }
            Ok((changes, next))
        };
        let (delivery, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(delivery)
    }

    /// Sends a dead message again unless that was already done. Messages that died with their
    /// digest are skipped.
    pub async fn resend_dead(&self, id: RecordId) -> Result<(), Error> {
        let old = self.find(id).await?.value;
        if old.state == DeliveryState::Dead && old.retried_as.is_none() {
            self.retry(id).await?;
        }
        Ok(())
    }

    /// Cancels a delivery that has not ended. An attempt in flight is not interrupted; if the
    /// attempt succeeds, the delivery ends as delivered.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such delivery, and [`Error::FailedPrecondition`]
    /// if it has ended.
    pub async fn cancel(&self, id: RecordId) -> Result<Delivery, Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let old = self.find(id).await?;
            let mut changes = self.store.new_changes();
            check_delivery_owner((&self.store, &mut changes), &old.value).await?;
            if old.value.state.due_ms().is_none() {
                let word = state_name(old.value.state);
                return Err(Error::FailedPrecondition(format!(
                    "the delivery has already ended: it is {word}"
                )));
            }
            let cancelled = cancelled_delivery(&old.value, now_ms);
            changes.update(&old, &cancelled);
            Ok((changes, cancelled))
        };
        let (delivery, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(delivery)
    }

    async fn find(&self, id: RecordId) -> Result<Stored<Delivery>, Error> {
        let found = self.store.get(id.to_bytes().into()).await?;
        found.ok_or_else(|| Error::NotFound(format!("delivery `{id}` not found")))
    }
}

/// Cancels some of the waiting deliveries to a destination. Returns how many were cancelled, and
/// the keys of unreadable deliveries, which are left unchanged. An attempt in flight is not
/// interrupted; if the attempt succeeds, its delivery ends as delivered.
pub async fn cancel_waiting(
    store: &Store,
    destination: RecordId,
    now_ms: i64,
    limit: usize,
) -> Result<(usize, Vec<Vec<u8>>), Error> {
    let decide = || async {
        let range = Range::with_prefix(&destination.to_bytes());
        let index = Index::DeliveryByDue;
        let engine = store.engine();
        let entries = engine
            .entries(index, range, Direction::Ascending, limit)
            .await?;
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (found, unreadable) = store.get_readable::<Delivery>(keys).await?;
        let mut changes = store.new_changes();
        let mut count = 0;
        for delivery in found.iter().flatten() {
            changes.update(delivery, &cancelled_delivery(&delivery.value, now_ms));
            count += 1;
        }
        let unended = unreadable.iter().filter_map(|key| {
            Some(EndedDelivery {
                destination,
                delivery: read_id(key, 0)?,
                at_ms: now_ms,
            })
        });
        let unended = unended.collect();
        store.wake_followers_after(unended, &mut changes).await?;
        Ok((changes, (count, unreadable)))
    };
    let (done, _) = commit(store, Lane::Bulk, decide).await?;
    Ok(done)
}

/// Returns a waiting delivery made due now; `None` if it is not waiting.
pub(super) fn make_due(delivery: &Delivery, now_ms: i64) -> Option<Delivery> {
    let state = match delivery.state {
        DeliveryState::Pending { .. } => DeliveryState::Pending { due_ms: now_ms },
        DeliveryState::Retry { .. } => DeliveryState::Retry { due_ms: now_ms },
        _ => return None,
    };
    Some(Delivery {
        state,
        ..delivery.clone()
    })
}

fn cancelled_delivery(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        may_have_arrived: delivery.may_have_arrived
            || matches!(delivery.state, DeliveryState::Leased { .. }),
        ..delivery.clone()
    }
}

fn state_name(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending { .. } => "pending",
        DeliveryState::Leased { .. } => "in progress",
        DeliveryState::Retry { .. } => "waiting for a retry",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Dead => "dead",
        DeliveryState::Cancelled => "cancelled",
        DeliveryState::Folded => "folded into a digest",
        DeliveryState::Shadowed => "recorded by a dry run",
    }
}
