//! Retention: finished deliveries and their attempts are deleted after a while.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::{join_all, try_join_all};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, to_millis},
    domain::{Attempt, Delivery, DeliveryState, Group, RecordId, SharedSettings, Status},
    error::{Error, log_failure},
    limits::{ATTEMPTS_MAX, SET_ASIDE_MAX},
    ops::{commit::commit, find, settings},
    store::{
        Direction, EngineError, Index, Lane, Store, Stored,
        engine::Range,
        record::bytes::{Key, read_id},
    },
};

const INTERVAL: Duration = Duration::from_secs(3600);
/// Deliveries deleted in one commit.
const STEP: usize = 100;

#[derive(Debug)]
pub struct Retention {
    store: Store,
    clock: Arc<dyn Clock>,
    settings: watch::Receiver<Arc<SharedSettings>>,
    /// The keys of deliveries that are unreadable, or whose attempts are unreadable.
    set_aside: BTreeSet<Vec<u8>>,
}

struct SweepResult {
    forgotten: usize,
    last: Vec<u8>,
    unreadable: Vec<Vec<u8>>,
}

impl Retention {
    /// Creates the retention task. The stored settings determine the age; `settings` signals their
    /// changes.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        settings: watch::Receiver<Arc<SharedSettings>>,
    ) -> Self {
        Self {
            store,
            clock,
            settings,
            set_aside: BTreeSet::new(),
        }
    }

    /// Sweeps hourly, and when the settings change, until shutdown.
    pub async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let next_ms = self.clock.now_ms().saturating_add(to_millis(INTERVAL));
            let (clock, mut settings) = (Arc::clone(&self.clock), self.settings.clone());
            settings.mark_unchanged();
            let scan = async {
                match self.delete_old().await {
                    Ok(0) => tracing::debug!("no deliveries have expired"),
                    Ok(forgotten) => tracing::info!(forgotten, "deleted expired deliveries"),
                    Err(error) => log_failure("failed to delete expired deliveries", &error),
                }
                tokio::select! {
                    () = clock.wait_until(next_ms) => {}
                    Ok(()) = settings.changed() => {}
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = scan => {}
            }
        }
    }

    /// Deletes old deliveries in small steps, and returns their number. Unreadable deliveries are
    /// kept, and reported once.
    ///
    /// # Errors
    ///
    /// Returns an error if the store fails; earlier steps remain in effect.
    pub async fn delete_old(&mut self) -> Result<usize, Error> {
        let mut forgotten = 0;
        for number in 1..=DeliveryState::NUMBER_MAX {
            let mut start = Key::new().byte(number).build();
            while let Some(next) = self.process_batch(&mut start, number).await? {
                forgotten += next;
            }
        }
        Ok(forgotten)
    }

    /// Processes some deliveries of a state from an index position on, and advances the position.
    /// Returns `None` if no more are old enough.
    async fn process_batch(
        &mut self,
        start: &mut Vec<u8>,
        number: u8,
    ) -> Result<Option<usize>, Error> {
        let settings = settings::read_stored(&self.store).await?;
        let keep = settings::values_or_defaults(settings.as_ref()).delivery_retention;
        let ended_by_ms = self.clock.now_ms().saturating_sub(to_millis(keep));
        // A delivery is created before it ends, so later ids need no check.
        let newest = RecordId::first_at_time(ended_by_ms.try_into().unwrap_or(0));
        let range = Range {
            start: start.clone(),
            end: Some(Key::new().byte(number).id(newest).build()),
        };
        let decide = || async {
            let index = Index::DeliveryByState;
            let engine = self.store.engine();
            let entries = engine.entries(index, range.clone(), Direction::Ascending, STEP);
            let entries = entries.await?;
            let last = entries.last().map(|(entry, _)| entry.clone());
            let keys = entries.into_iter().map(|(_, key)| key);
            let keys = keys.filter(|key| !self.set_aside.contains(key)).collect();
            let mut changes = self.store.new_changes();
            let mut forgotten = 0;
            let (found, mut unreadable) = self.store.get_readable::<Delivery>(keys).await?;
            let mut over: Vec<_> = found.into_iter().flatten().collect();
            over.retain(|delivery| has_ended_before(&delivery.value, ended_by_ms));
            let in_use: Vec<_> = over.iter().map(|it| self.is_in_use(&it.value)).collect();
            let mut in_use = try_join_all(in_use).await?.into_iter();
            over.retain(|_| !in_use.next().unwrap_or_default());
            // Read concurrently: sequentially, each would take a round trip to a database.
            let attempts: Vec<_> = over.iter().map(|it| self.attempts(&it.value)).collect();
            for (delivery, attempts) in over.iter().zip(join_all(attempts).await) {
                match attempts {
                    Ok(attempts) => {
                        for attempt in &attempts {
                            changes.delete(attempt);
                        }
                        changes.delete(delivery);
                        forgotten += 1;
                    }
                    Err(EngineError::Corrupt(_)) => {
                        unreadable.push(delivery.value.id.to_bytes().into());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            // If the settings changed, the commit conflicts, and the next sweep uses the new
            // settings.
            if let Some(settings) = settings.as_ref().filter(|_| forgotten > 0) {
                changes.check(settings);
            }
            let step = last.map(|last| SweepResult {
                forgotten,
                last,
                unreadable,
            });
            Ok((changes, step))
        };
        let (step, _) = commit(&self.store, Lane::Bulk, decide).await?;
        let Some(step) = step else {
            return Ok(None);
        };
        for key in step.unreadable {
            self.set_aside_record(key);
        }
        *start = Key::new().remainder(&step.last).byte(0).build();
        Ok(Some(step.forgotten))
    }

    /// Whether later messages of a thread that is not over use values kept by this one.
    async fn is_in_use(&self, delivery: &Delivery) -> Result<bool, EngineError> {
        if delivery.kept.values.is_empty() {
            return Ok(false);
        }
        if let Some(group) = &delivery.content.group {
            let group = self.store.get::<Group>(group.id.to_bytes().into()).await?;
            return Ok(group.is_some_and(|it| it.value.end_ms.is_none()));
        }
        let Some(event) = delivery.event else {
            return Ok(false);
        };
        let newest = find::newest_occurrence(&self.store, event).await?;
        Ok(newest.is_some_and(|it| it.status != Status::Closed))
    }

    fn set_aside_record(&mut self, key: Vec<u8>) {
        if self.set_aside.len() < SET_ASIDE_MAX {
            let delivery = read_id(&key, 0)
                .map(|id| id.to_string())
                .unwrap_or_default();
            tracing::error!(delivery, "kept an unreadable expired delivery");
            self.set_aside.insert(key);
        }
    }

    async fn attempts(&self, delivery: &Delivery) -> Result<Vec<Stored<Attempt>>, EngineError> {
        let range = Range::with_prefix(&delivery.id.to_bytes());
        let (direction, limit) = (Direction::Ascending, ATTEMPTS_MAX);
        self.store.page::<Attempt>(range, direction, limit).await
    }
}

/// Whether a delivery ended long ago. A test interrupted by a crash never ends otherwise.
fn has_ended_before(delivery: &Delivery, ended_by_ms: i64) -> bool {
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
        domain::{
            DestinationKind, Occurrence, Secret, Transcript,
            destination::{Email, KeptValue, KeptValues},
        },
        message::sample,
        ops::delivery::attempt::attempt_key,
        samples,
        store::Record as _,
    };

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn sample_settings() -> watch::Receiver<Arc<SharedSettings>> {
        watch::Sender::default().subscribe()
    }

    fn sample_delivery(number: i64, state: DeliveryState, end_ms: Option<i64>) -> Delivery {
        let create_ms = samples::START_MS + number;
        let kind = DestinationKind::Email(Email {
            to: "ops@example.com".into(),
            ..Email::default()
        });
        Delivery {
            state,
            attempts: 1,
            end_ms,
            ..Delivery::new(
                RecordId::from_parts(create_ms.unsigned_abs(), 7),
                (samples::id("mail"), "mail".into()),
                sample::sample_content(sample::sample_occurrence(create_ms), kind, String::new()),
                create_ms,
            )
        }
    }

    fn sample_attempt(delivery: &Delivery) -> Attempt {
        Attempt {
            delivery: delivery.id,
            number: 1,
            start_ms: 0,
            duration: None,
            outcome: None,
            is_reduced: false,
            explanation: String::new(),
            transcript: Transcript::default(),
        }
    }

    #[tokio::test]
    async fn ended_deliveries_expire_with_their_attempts() {
        let store = Store::in_memory();
        let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
        let mut retention =
            Retention::new(store.clone(), Arc::clone(&clock) as _, sample_settings());
        let late_ms = Some(samples::START_MS + to_millis(20 * DAY));
        for number in 0..250 {
            let (state, end_ms) = match number % 5 {
                0 => (DeliveryState::Delivered, Some(samples::START_MS + number)),
                1 => (DeliveryState::Dead, late_ms),
                2 => (DeliveryState::Cancelled, Some(samples::START_MS + number)),
                3 => (DeliveryState::Pending { due_ms: 1 }, None),
                _ => (DeliveryState::Retry { due_ms: 1 }, None),
            };
            let delivery = sample_delivery(number, state, end_ms);
            let mut changes = store.new_changes();
            changes.insert(&delivery);
            changes.insert(&sample_attempt(&delivery));
            store.apply(Lane::Bulk, changes).await.unwrap();
        }
        assert_eq!(retention.delete_old().await.unwrap(), 0);
        clock.advance(31 * DAY);
        assert_eq!(retention.delete_old().await.unwrap(), 100);
        clock.advance(20 * DAY);
        assert_eq!(retention.delete_old().await.unwrap(), 50);
        assert_eq!(retention.delete_old().await.unwrap(), 0);
        let all = || Range::with_prefix(&[]);
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

    #[tokio::test]
    async fn kept_values_are_stored_while_their_event_is_open() {
        let store = Store::in_memory();
        let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
        let mut retention =
            Retention::new(store.clone(), Arc::clone(&clock) as _, sample_settings());
        let ended = sample_delivery(1, DeliveryState::Delivered, Some(samples::START_MS));
        let occurrence = ended.content.occurrence.clone();
        let keeping = Delivery {
            event: Some(occurrence.event),
            kept: KeptValues {
                origin: "https://example.com".into(),
                values: vec![KeptValue {
                    name: "issue".into(),
                    text: Secret::new("OPS-1"),
                    is_secret: false,
                }],
            },
            ..ended
        };
        let mut changes = store.new_changes();
        changes.insert(&occurrence);
        changes.insert(&keeping);
        store.apply(Lane::Bulk, changes).await.unwrap();
        clock.advance(31 * DAY);
        assert_eq!(retention.delete_old().await.unwrap(), 0);
        let open = store.get::<Occurrence>(occurrence.key()).await.unwrap();
        let closed = Occurrence {
            status: Status::Closed,
            ..occurrence
        };
        let mut changes = store.new_changes();
        changes.update(&open.unwrap(), &closed);
        store.apply(Lane::Bulk, changes).await.unwrap();
        assert_eq!(retention.delete_old().await.unwrap(), 1);
    }

    #[tokio::test]
    async fn unreadable_deliveries_do_not_stop_retention() {
        let store = Store::in_memory();
        let clock = Arc::new(ManualClock::starting_at(samples::START_MS));
        let mut retention =
            Retention::new(store.clone(), Arc::clone(&clock) as _, sample_settings());
        let mut changes = store.new_changes();
        let mut ids = Vec::new();
        for number in 0..250 {
            let delivery =
                sample_delivery(number, DeliveryState::Delivered, Some(samples::START_MS));
            changes.insert(&delivery);
            changes.insert(&sample_attempt(&delivery));
            ids.push(delivery.id);
        }
        store.apply(Lane::Bulk, changes).await.unwrap();
        for id in &ids[..120] {
            samples::damage::<Delivery>(&store, id.to_bytes().into()).await;
        }
        samples::damage::<Attempt>(&store, attempt_key(ids[130], 1)).await;
        clock.advance(31 * DAY);
        assert_eq!(retention.delete_old().await.unwrap(), 250 - 121);
        assert_eq!(retention.set_aside.len(), 121);
        assert_eq!(retention.delete_old().await.unwrap(), 0);
        let left = store
            .get::<Delivery>(ids[130].to_bytes().into())
            .await
            .unwrap();
        assert!(
            left.is_some(),
            "the delivery was deleted although its attempt is unreadable"
        );
    }
}
