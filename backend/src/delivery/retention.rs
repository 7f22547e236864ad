//! Forgets ended deliveries and their attempts when they have been kept long enough.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    delivery::schedule::millis,
    domain::{Attempt, Delivery, DeliveryState, RecordId},
    error::Error,
    limits::ATTEMPTS_MAX,
    ops::commit::commit,
    store::{Changes, Direction, Index, Lane, Store, Stored, engine::Range, record::bytes::Key},
};

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Deliveries that one commit forgets.
const STEP: usize = 100;

/// Keeps the delivery log from growing for ever.
#[derive(Debug)]
pub struct Retention {
    store: Store,
    clock: Arc<dyn Clock>,
    keep: Duration,
}

impl Retention {
    /// Forgets deliveries in a store so long after they ended.
    pub fn new(store: Store, clock: Arc<dyn Clock>, keep: Duration) -> Self {
        Self { store, clock, keep }
    }

    /// Looks once an hour until shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        loop {
            let next_ms = self.clock.now_ms().saturating_add(millis(INTERVAL));
            let look = async {
                match self.forget().await {
                    Ok(0) => {}
                    Ok(forgotten) => tracing::info!(forgotten, "old deliveries are forgotten"),
                    Err(error) => tracing::warn!(%error, "old deliveries are still there"),
                }
                self.clock.wait_until(next_ms).await;
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = look => {}
            }
        }
    }

    /// Forgets what is old enough now, in small steps; answers how many deliveries.
    ///
    /// # Errors
    /// Those of the store; what was forgotten before stays forgotten.
    pub async fn forget(&self) -> Result<usize, Error> {
        let mut forgotten = 0;
        for number in 1..=DeliveryState::Cancelled.number() {
            let mut start = Key::new().byte(number).build();
            while let Some(next) = self.step(&mut start, number).await? {
                forgotten += next;
            }
        }
        Ok(forgotten)
    }

    /// Looks at some deliveries of a state from a place in the index on, and moves that place;
    /// none when there are no more that are old enough.
    async fn step(&self, start: &mut Vec<u8>, number: u8) -> Result<Option<usize>, Error> {
        let ended_by_ms = self.clock.now_ms().saturating_sub(millis(self.keep));
        // What ended before was decided before.
        let newest = RecordId::first_at(ended_by_ms.try_into().unwrap_or(0));
        let range = Range {
            start: start.clone(),
            end: Some(Key::new().byte(number).id(newest).build()),
        };
        let decide = || async {
            let index = Index::DeliveryByState;
            let found = self
                .store
                .page_by::<Delivery>(index, range.clone(), Direction::Ascending, STEP)
                .await?;
            let mut changes = self.store.changes();
            let mut forgotten = 0;
            for (_, delivery) in &found {
                if is_over(&delivery.value, ended_by_ms) {
                    self.delete(&mut changes, delivery).await?;
                    forgotten += 1;
                }
            }
            let last = found.last().map(|(entry, _)| entry.clone());
            Ok((changes, (forgotten, last)))
        };
        let ((forgotten, last), _) = commit(&self.store, Lane::Bulk, decide).await?;
        let Some(last) = last else {
            return Ok(None);
        };
        *start = Key::new().rest(&last).byte(0).build();
        Ok(Some(forgotten))
    }

    async fn delete(
        &self,
        changes: &mut Changes,
        delivery: &Stored<Delivery>,
    ) -> Result<(), Error> {
        let range = Range::under(&delivery.value.id.to_bytes());
        let attempts = self
            .store
            .page::<Attempt>(range, Direction::Ascending, ATTEMPTS_MAX)
            .await?;
        for attempt in &attempts {
            changes.delete(attempt);
        }
        changes.delete(delivery);
        Ok(())
    }
}

/// Whether a delivery ended long ago. A test that a crash cut off never ends by itself.
fn is_over(delivery: &Delivery, ended_by_ms: i64) -> bool {
    let end_ms = match delivery.state.due_ms() {
        Some(due_ms) if delivery.test => Some(due_ms),
        Some(_) => None,
        None => delivery.end_ms.or(Some(delivery.create_ms)),
    };
    end_ms.is_some_and(|end_ms| end_ms <= ended_by_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::ManualClock,
        delivery::sample,
        domain::{DestinationKind, Transcript, destination::Email},
        ops::samples,
    };

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn delivery(number: i64, state: DeliveryState, end_ms: Option<i64>) -> Delivery {
        let create_ms = samples::START_MS + number;
        let kind = DestinationKind::Email(Email {
            to: "ops@example.com".into(),
            subject: String::new(),
            body: String::new(),
        });
        Delivery {
            id: RecordId::from_parts(create_ms.unsigned_abs(), 7),
            rule: None,
            destination: samples::id("mail"),
            destination_name: "mail".into(),
            event: None,
            state,
            test: false,
            attempts: 1,
            last_error: String::new(),
            create_ms,
            end_ms,
            retry_of: None,
            retried_as: None,
            content: sample::content(sample::occurrence(create_ms), kind, String::new()),
        }
    }

    #[tokio::test]
    async fn ended_deliveries_go_with_their_attempts_and_waiting_ones_stay() {
        let store = samples::store();
        let clock = Arc::new(ManualClock::at(samples::START_MS));
        let retention = Retention::new(store.clone(), Arc::clone(&clock) as _, 30 * DAY);
        let late_ms = Some(samples::START_MS + millis(20 * DAY));
        for number in 0..250 {
            let (state, end_ms) = match number % 5 {
                0 => (DeliveryState::Delivered, Some(samples::START_MS + number)),
                1 => (DeliveryState::Dead, late_ms),
                2 => (DeliveryState::Cancelled, Some(samples::START_MS + number)),
                3 => (DeliveryState::Pending { due_ms: 1 }, None),
                _ => (DeliveryState::Retry { due_ms: 1 }, None),
            };
            let delivery = delivery(number, state, end_ms);
            let mut changes = store.changes();
            changes.insert(&delivery);
            changes.insert(&Attempt {
                delivery: delivery.id,
                number: 1,
                start_ms: 0,
                duration: None,
                outcome: None,
                explanation: String::new(),
                transcript: Transcript::default(),
            });
            store.apply(Lane::Bulk, changes).await.unwrap();
        }
        assert_eq!(retention.forget().await.unwrap(), 0);
        clock.advance(31 * DAY);
        assert_eq!(retention.forget().await.unwrap(), 100);
        clock.advance(20 * DAY);
        assert_eq!(retention.forget().await.unwrap(), 50);
        assert_eq!(retention.forget().await.unwrap(), 0);
        let all = || Range::under(&[]);
        let left = store
            .page::<Delivery>(all(), Direction::Ascending, 1000)
            .await
            .unwrap();
        let attempts = store
            .page::<Attempt>(all(), Direction::Ascending, 1000)
            .await
            .unwrap();
        assert_eq!((left.len(), attempts.len()), (100, 100));
        assert!(
            left.iter()
                .all(|delivery| delivery.value.state.due_ms().is_some())
        );
    }
}
