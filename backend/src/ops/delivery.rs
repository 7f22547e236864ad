//! Deliveries as operators see and steer them.

mod list;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    clock::Clock,
    domain::{Attempt, Content, Delivery, DeliveryState, Destination, RecordId, Rule},
    error::Error,
    limits::ATTEMPTS_MAX,
    ops::{commit::commit, notify::rule_content},
    store::{Changes, Direction, Index, Lane, Store, Stored, engine::Range},
};

pub use list::Filter;

/// Reads and steers deliveries.
#[derive(Debug, Clone)]
pub struct Deliveries {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Deliveries {
    /// Over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
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
    /// current templates; what waits is due now. Answers the delivery that will be tried.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::FailedPrecondition`] for tests, while an attempt is under way,
    /// and when the destination is gone.
    pub async fn retry(&self, id: RecordId) -> Result<Delivery, Error> {
        let now_ms = self.clock.now_ms();
        let new_id = RecordId::from_parts(now_ms.unsigned_abs(), rand::random());
        let decide = || async {
            let old = self.find(id).await?;
            if old.value.test {
                return Err(Error::FailedPrecondition(
                    "a test is not sent again; test the destination once more".into(),
                ));
            }
            let state = match old.value.state {
                DeliveryState::Leased { .. } => {
                    return Err(Error::FailedPrecondition(
                        "an attempt is under way; wait for its end".into(),
                    ));
                }
                DeliveryState::Pending { .. } => DeliveryState::Pending { due_ms: now_ms },
                DeliveryState::Retry { .. } => DeliveryState::Retry { due_ms: now_ms },
                DeliveryState::Delivered | DeliveryState::Dead | DeliveryState::Cancelled => {
                    return self.again(&old.value, new_id, now_ms).await;
                }
            };
            let hastened = Delivery {
                state,
                ..old.value.clone()
            };
            let mut changes = self.store.changes();
            changes.update(&old, &hastened);
            Ok((changes, hastened))
        };
        let (delivery, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(delivery)
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
            if old.value.state.due_ms().is_none() {
                let word = word(old.value.state);
                return Err(Error::FailedPrecondition(format!(
                    "the delivery has ended already: it is {word}"
                )));
            }
            let cancelled = cancelled(&old.value, now_ms);
            let mut changes = self.store.changes();
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

    /// A new delivery of what an ended one told, with templates as they are now.
    async fn again(
        &self,
        old: &Delivery,
        id: RecordId,
        now_ms: i64,
    ) -> Result<(Changes, Delivery), Error> {
        let name = old.destination_name.as_bytes().to_vec();
        let destination = self.store.get::<Destination>(name).await?;
        let destination = destination.filter(|found| found.value.id == old.destination);
        let Some(destination) = destination else {
            return Err(Error::FailedPrecondition(format!(
                "the destination `{}` is gone",
                old.destination_name
            )));
        };
        let rule = self
            .store
            .get::<Rule>(old.content.rule.name.as_bytes().to_vec())
            .await?;
        let rule = rule.filter(|found| Some(found.value.id) == old.rule);
        let rule = rule.map_or_else(
            || old.content.rule.clone(),
            |found| rule_content(&found.value),
        );
        let new = Delivery {
            id,
            state: DeliveryState::Pending { due_ms: now_ms },
            attempts: 0,
            last_error: String::new(),
            create_ms: now_ms,
            end_ms: None,
            retry_of: Some(old.id),
            content: Content {
                rule,
                destination_kind: destination.value.kind.clone(),
                ..old.content.clone()
            },
            ..old.clone()
        };
        let mut changes = self.store.changes();
        changes.touch(&destination);
        changes.insert(&new);
        Ok((changes, new))
    }
}

/// Cancels some of the deliveries to a destination that have not ended; answers how many. An
/// attempt under way is not cut off: its delivery ends as delivered if it succeeds.
///
/// # Errors
/// Those of the store.
pub async fn cancel_waiting(
    store: &Store,
    destination: RecordId,
    now_ms: i64,
    limit: usize,
) -> Result<usize, Error> {
    let decide = || async {
        let range = Range::under(&destination.to_bytes());
        let index = Index::DeliveryByDue;
        let waiting = store
            .page_by::<Delivery>(index, range, Direction::Ascending, limit)
            .await?;
        let mut changes = store.changes();
        for (_, delivery) in &waiting {
            changes.update(delivery, &cancelled(&delivery.value, now_ms));
        }
        Ok((changes, waiting.len()))
    };
    let (count, _) = commit(store, Lane::Bulk, decide).await?;
    Ok(count)
}

/// A delivery as it is once it is cancelled.
fn cancelled(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
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
    }
}
