//! Recovery of unfinished deliveries at the start.

use crate::{
    clock::Clock,
    delivery::decide,
    domain::{Attempt, Delivery, DeliveryState},
    error::Error,
    ops::{commit::commit, delivery::attempt::attempt_key},
    store::{Changes, Direction, Index, Lane, Store, engine::Range, record::bytes::Key},
};

/// Deliveries recovered in one commit.
const STEP: usize = 100;

/// Ends attempts from before the start with an unknown outcome, and makes their deliveries due
/// immediately. A test ends with its attempt. Returns the number of attempts.
///
/// Must be called before any message is delivered. Has no effect if another process may be
/// delivering as well, because leases have to expire then.
pub async fn recover(store: &Store, clock: &dyn Clock) -> Result<usize, Error> {
    let mut recovered = 0;
    while !store.engine().is_shared() {
        let decide = || recover_batch(store, clock.now_ms());
        let (count, _) = commit(store, Lane::Bulk, decide).await?;
        recovered += count;
        if count < STEP {
            break;
        }
    }
    if recovered > 0 {
        tracing::info!(recovered, "repeating interrupted attempts");
    }
    Ok(recovered)
}

async fn recover_batch(store: &Store, now_ms: i64) -> Result<(Changes, usize), Error> {
    let leased = DeliveryState::Leased { until_ms: 0 }.number();
    let range = Range::with_prefix(&Key::new().byte(leased).build());
    let index = Index::DeliveryByState;
    let found = store
        .page_by_index::<Delivery>(index, range, Direction::Ascending, STEP)
        .await?;
    let keys = found
        .iter()
        .map(|(_, delivery)| attempt_key(delivery.value.id, delivery.value.attempts))
        .collect();
    let attempts = store.get_many::<Attempt>(keys).await?;
    let mut changes = store.new_changes();
    for ((_, delivery), attempt) in found.iter().zip(attempts) {
        let begun = attempt.as_ref().map(|it| &it.value);
        changes.update(
            delivery,
            &decide::delivery_after_interruption(&delivery.value, begun, now_ms),
        );
        if let Some(attempt) = attempt {
            changes.update(&attempt, &decide::lost_attempt(&attempt.value));
        }
    }
    Ok((changes, found.len()))
}

/// Records the thread positions of unsent deliveries from an earlier version.
pub async fn record_thread_states(store: &Store) -> Result<(), Error> {
    let states = [
        DeliveryState::Pending { due_ms: 0 },
        DeliveryState::Leased { until_ms: 0 },
        DeliveryState::Retry { due_ms: 0 },
    ];
    for state in states {
        let decide = || record_thread_positions(store, state);
        // Deliveries without a recorded position are the oldest, so the first one with a position
        // ends the search.
        while commit(store, Lane::Bulk, decide).await?.0 == STEP {}
    }
    Ok(())
}

async fn record_thread_positions(
    store: &Store,
    state: DeliveryState,
) -> Result<(Changes, usize), Error> {
    let range = Range::with_prefix(&Key::new().byte(state.number()).build());
    let (index, ascending) = (Index::DeliveryByState, Direction::Ascending);
    let found = store.page_by_index::<Delivery>(index, range, ascending, STEP);
    let mut found = found.await?;
    found.retain(|(_, it)| !it.value.in_thread);
    let mut changes = store.new_changes();
    for (_, stored) in &found {
        let noted = Delivery {
            in_thread: true,
            ..stored.value.clone()
        };
        changes.update(stored, &noted);
    }
    Ok((changes, found.len()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        clock::ManualClock,
        domain::{Outcome, RecordId},
        message::sample,
        ops::delivery::attempt,
        samples::{self, START_MS},
        store::verify,
    };

    fn sample_delivery(number: u64, state: DeliveryState, test: bool) -> Delivery {
        let kind = samples::destination("hook").kind;
        Delivery {
            state,
            test,
            ..Delivery::new(
                RecordId::from_parts(number, 7),
                (samples::id("hook"), "hook".into()),
                sample::sample_content(sample::sample_occurrence(START_MS), kind, String::new()),
                START_MS,
            )
        }
    }

    #[tokio::test]
    async fn recovery_ends_only_interrupted_attempts() {
        let store = Store::in_memory();
        let clock = ManualClock::starting_at(START_MS + 1_000);
        let waiting = DeliveryState::Pending { due_ms: START_MS };
        let mut changes = store.new_changes();
        let untouched = sample_delivery(1, DeliveryState::Retry { due_ms: 9 }, false);
        changes.insert(&untouched);
        for number in 0..250 {
            let planned = sample_delivery(100 + number, waiting, number == 0);
            let (begun, attempt) =
                attempt::begin_attempt(&planned, Duration::from_secs(15), START_MS);
            changes.insert(&begun);
            changes.insert(&attempt);
        }
        store.apply(Lane::Bulk, changes).await.unwrap();

        assert_eq!(recover(&store, &clock).await.unwrap(), 250);

        let all = samples::all::<Delivery>(&store).await;
        assert_eq!(all[0], untouched);
        let due_ms = START_MS + 1_000;
        assert_eq!(
            (all[1].state, all[1].end_ms),
            (DeliveryState::Dead, Some(due_ms)),
            "the caller cancelled the test"
        );
        for delivery in &all[2..] {
            assert_eq!(delivery.state, DeliveryState::Retry { due_ms });
            assert_eq!(delivery.attempts, 1, "the attempt was started");
            assert!(!delivery.last_error.is_empty());
        }
        for attempt in samples::all::<Attempt>(&store).await {
            assert_eq!(attempt.outcome, Some(Outcome::Unknown));
        }
        assert_eq!(
            verify(&store, &|_| {}).await.descriptions,
            Vec::<String>::new()
        );
        assert_eq!(recover(&store, &clock).await.unwrap(), 0);
    }
}
