//! Deliveries as operators see and steer them.

mod again;
pub(crate) mod attempt;
mod bulk;
mod condition;
mod counts;
mod folded;
mod list;
mod obligation;
pub(crate) mod sequencing;
mod shadow;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;

use crate::{
    clock::Clock,
    domain::{Attempt, Delivery, DeliveryState, RecordId},
    error::Error,
    limits::ATTEMPTS_MAX,
    ops::{commit::commit, deciding::new_id, fields::FieldsSeen, tag_scope::own_delivery},
    store::{
        Direction, Index, Lane, Store, Stored,
        engine::Range,
        record::{Ended, bytes::id_at},
    },
};
use again::Templates;

pub use bulk::{BulkAction, BulkTally, Selection, Skip};
pub use condition::Condition;
pub use counts::DeliveryTally;
pub use list::Filter;
pub use obligation::{Obligation, ObligationFilter};
pub use shadow::would_send;
pub use waiting::{Hold, Holds, WaitReasons, Waiting};

/// Reads and steers deliveries.
#[derive(Debug, Clone)]
pub struct Deliveries {
    store: Store,
    clock: Arc<dyn Clock>,
    holds: Holds,
    fields: FieldsSeen,
}

impl Deliveries {
    /// Over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            fields: FieldsSeen::new(store.clone(), Arc::clone(&clock)),
            store,
            clock,
            holds: Holds::default(),
        }
    }

    /// Knows the fields of events from where others do too.
    #[must_use]
    pub fn with_fields(mut self, fields: FieldsSeen) -> Self {
        self.fields = fields;
        self
    }

    /// Tells why deliveries wait by what the dispatcher says of their destinations.
    #[must_use]
    pub fn with_holds(mut self, holds: Holds) -> Self {
        self.holds = holds;
        self
    }

    /// Reads a delivery and its attempts, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none of that identity.
    pub async fn get(&self, id: RecordId) -> Result<(Delivery, Vec<Attempt>), Error> {
        let delivery = self.find(id).await?.value;
        let range = Range::under(&id.to_bytes());
        let attempts = self
            .store
            .page(range, Direction::Ascending, ATTEMPTS_MAX)
            .await?;
        let attempts = attempts.into_iter().map(|attempt| attempt.value).collect();
        Ok((delivery, attempts))
    }

    /// Sends again: what has ended becomes a new delivery with the rule's and the destination's
    /// current templates; what waits is due now. For what died with its digest, the digest is sent again.
    /// Where a later message says otherwise of whether its thread is over, that is sent again after it.
    /// Answers the delivery that will be tried.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::FailedPrecondition`] for tests, for what a shadow rule
    /// recorded and for what a digest includes that did not die, while an attempt is under way, and
    /// when the destination is gone.
    pub async fn retry(&self, id: RecordId) -> Result<Delivery, Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let old = self.find(id).await?;
            let old = self.carrier(old).await?;
            let mut changes = self.store.changes();
            own_delivery((&self.store, &mut changes), &old.value).await?;
            if old.value.test {
                return Err(Error::FailedPrecondition(
                    "a test cannot be resent; test the destination again".into(),
                ));
            }
            if old.value.state == DeliveryState::Shadowed {
                return Err(Error::FailedPrecondition(
                    "it was recorded by a dry run and cannot be sent; preview the rule instead"
                        .into(),
                ));
            }
            if let DeliveryState::Leased { .. } = old.value.state {
                return Err(Error::FailedPrecondition(
                    "an attempt is under way; wait for its end".into(),
                ));
            }
            if let Some(hastened) = hastened(&old.value, now_ms) {
                changes.update(&old, &hastened);
                return Ok((changes, hastened));
            }
            let last_word = sequencing::last_word(&self.store, &old.value).await?;
            let mut templates = Templates::new(&self.store);
            let id = new_id(now_ms);
            let next = templates.again(&mut changes, &old, id, now_ms).await?;
            if let Some(last) = last_word {
                match last.value.state {
                    DeliveryState::Leased { .. } => {
                        return Err(Error::FailedPrecondition(format!(
                            "an attempt of `{}`, a later message of its thread, is in progress; \
                             wait for its end",
                            last.value.id
                        )));
                    }
                    DeliveryState::Delivered | DeliveryState::Dead => {
                        let id = new_id(now_ms);
                        templates.again(&mut changes, &last, id, now_ms).await?;
                    }
                    _ => {}
                }
            }
            Ok((changes, next))
        };
        let (delivery, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(delivery)
    }

    /// Sends a message again that died, unless that was done. What died as a part of a digest stays.
    ///
    /// # Errors
    /// As [`Self::retry`].
    pub(crate) async fn revive(&self, id: RecordId) -> Result<(), Error> {
        let old = self.find(id).await?.value;
        if old.state == DeliveryState::Dead && old.retried_as.is_none() {
            self.retry(id).await?;
        }
        Ok(())
    }

    /// Ends a delivery that has not ended. An attempt under way is not cut off: the delivery ends
    /// as delivered if it succeeds.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::FailedPrecondition`] when it has ended.
    pub async fn cancel(&self, id: RecordId) -> Result<Delivery, Error> {
        let now_ms = self.clock.now_ms();
        let decide = || async {
            let old = self.find(id).await?;
            let mut changes = self.store.changes();
            own_delivery((&self.store, &mut changes), &old.value).await?;
            if old.value.state.due_ms().is_none() {
                let word = word(old.value.state);
                return Err(Error::FailedPrecondition(format!(
                    "the delivery has ended already: it is {word}"
                )));
            }
            let cancelled = cancelled(&old.value, now_ms);
            changes.update(&old, &cancelled);
            Ok((changes, cancelled))
        };
        let (delivery, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(delivery)
    }

    async fn find(&self, id: RecordId) -> Result<Stored<Delivery>, Error> {
        let found = self.store.get(id.to_bytes().into()).await?;
        found.ok_or_else(|| Error::NotFound(format!("there is no delivery `{id}`")))
    }
}

/// Cancels some of the deliveries to a destination that have not ended; answers how many, and the
/// keys of those that cannot be read and stay as they are. An attempt under way is not cut off: its
/// delivery ends as delivered if it succeeds.
///
/// # Errors
/// Those of the store.
pub async fn cancel_waiting(
    store: &Store,
    destination: RecordId,
    now_ms: i64,
    limit: usize,
) -> Result<(usize, Vec<Vec<u8>>), Error> {
    let decide = || async {
        let range = Range::under(&destination.to_bytes());
        let index = Index::DeliveryByDue;
        let engine = store.engine();
        let entries = engine
            .entries(index, range, Direction::Ascending, limit)
            .await?;
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (found, unreadable) = store.get_readable::<Delivery>(keys).await?;
        let mut changes = store.changes();
        let mut count = 0;
        for delivery in found.iter().flatten() {
            changes.update(delivery, &cancelled(&delivery.value, now_ms));
            count += 1;
        }
        let unended = unreadable.iter().filter_map(|key| {
            Some(Ended {
                destination,
                delivery: id_at(key, 0)?,
                at_ms: now_ms,
            })
        });
        let unended = unended.collect();
        store.wake_followers_of(unended, &mut changes).await?;
        Ok((changes, (count, unreadable)))
    };
    let (done, _) = commit(store, Lane::Bulk, decide).await?;
    Ok(done)
}

/// A delivery that waits, due now; none when it does not wait.
pub(super) fn hastened(delivery: &Delivery, now_ms: i64) -> Option<Delivery> {
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

/// A delivery as it is once it is cancelled.
fn cancelled(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        may_have_arrived: delivery.may_have_arrived
            || matches!(delivery.state, DeliveryState::Leased { .. }),
        ..delivery.clone()
    }
}

/// A state for people.
fn word(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending { .. } => "pending",
        DeliveryState::Leased { .. } => "under way",
        DeliveryState::Retry { .. } => "waiting for another attempt",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Dead => "dead",
        DeliveryState::Cancelled => "cancelled",
        DeliveryState::Folded => "folded into a digest",
        DeliveryState::Shadowed => "recorded by a shadow rule",
    }
}
