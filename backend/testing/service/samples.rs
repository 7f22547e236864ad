//! Fixtures for tests of operations.

pub(crate) mod world;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bellwether_backend_engine::clock::{Clock, ManualClock};
use bellwether_backend_model::domain::{Destination, Occurrence, Rule, SharedSettings, Trigger};
use bellwether_backend_ops::{
    decision_context::DecisionContext, destination::Tester, intake::Intake, ruleset::Ruleset,
    settings,
};
use bellwether_backend_store::{
    Direction, Lane, Record, Store,
    engine::{Action, Change, Expect, Range},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sending::SenderParts;

pub(crate) use bellwether_backend_testing::samples::plain::*;

/// A clock fixed at [`START_MS`] whose monotonic time advances six seconds per read.
#[derive(Debug, Default)]
pub(crate) struct HurriedClock(AtomicU64);

#[async_trait]
impl Clock for HurriedClock {
    fn now_ms(&self) -> i64 {
        START_MS
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(6, Ordering::Relaxed))
    }

    async fn wait_until(&self, _at_ms: i64) {}
}

/// Returns the dependencies of decisions on a store, with a clock at [`START_MS`].
pub(crate) async fn deciding(store: Store) -> (DecisionContext, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::starting_at(START_MS));
    (deciding_at(store, &clock).await, clock)
}

/// Like [`deciding`], with an existing clock.
pub(crate) async fn deciding_at(store: Store, clock: &Arc<ManualClock>) -> DecisionContext {
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    DecisionContext {
        beats: Arc::default(),
        ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
        store,
        clock,
    }
}

/// Returns an intake that runs until the guard is dropped.
pub(crate) fn intake(deciding: &DecisionContext) -> (Intake, DropGuard) {
    let (intake, workers) = Intake::new(deciding.clone());
    let shutdown = CancellationToken::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime of a test ends with the test"
    )]
    tokio::spawn(workers.run(shutdown.clone()));
    (intake, shutdown.drop_guard())
}

pub(crate) fn tester(store: &Store, sending: &SenderParts) -> Tester {
    let clock = Arc::clone(&sending.clock) as _;
    let config = sending.config.delivery.clone();
    Tester::new(store.clone(), clock, sending.sender(), config)
}

/// Waits for one of the service's own events of the given kind.
pub(crate) async fn said(store: &Store, kind: &str) -> Occurrence {
    for _ in 0..1_000 {
        let mut all = all::<Occurrence>(store).await.into_iter();
        if let Some(said) = all.find(|it| it.kind == kind) {
            return said;
        }
        tokio::task::yield_now().await;
    }
    panic!("the service reported no event of type {kind}")
}

/// Overwrites a record so that it is unreadable.
pub(crate) async fn damage<T: Record>(store: &Store, key: Vec<u8>) {
    let stored = store.get::<T>(key.clone()).await.unwrap();
    let expect = Expect::Version(stored.expect("a record").version);
    let change = Change::new(T::KIND, &key, expect, Action::Put(b"\x01damaged".into()));
    let applied = store.engine().apply(Lane::Admin, vec![change].into());
    applied.await.unwrap();
}

pub(crate) async fn all<T: Record>(store: &Store) -> Vec<T> {
    let range = Range::with_prefix(&[]);
    let page = store.page::<T>(range, Direction::Ascending, 100_000).await;
    page.unwrap().into_iter().map(|it| it.value).collect()
}

/// Stores settings in a store that has none.
pub(crate) async fn save_settings(store: &Store, values: SharedSettings) {
    let mut changes = store.new_changes();
    changes.insert(&settings::initial_settings(values, 0).unwrap());
    store.apply(Lane::Admin, changes).await.unwrap();
}

/// Stores a rule, and its triggers and destinations if they are missing.
pub(crate) async fn save_rule(store: &Store, rule: &Rule) {
    let mut changes = store.new_changes();
    for name in &rule.trigger_names {
        let found = store.get::<Trigger>(name.as_str().into()).await.unwrap();
        if found.is_none() {
            changes.insert(&trigger(name.as_str()));
        }
    }
    for name in &rule.destination_names {
        let found = store
            .get::<Destination>(name.as_str().into())
            .await
            .unwrap();
        if found.is_none() {
            changes.insert(&destination(name.as_str()));
        }
    }
    match store.get::<Rule>(rule.name.as_str().into()).await.unwrap() {
        Some(old) => changes.update(&old, rule),
        None => changes.insert(rule),
    }
    store.apply(Lane::Admin, changes).await.unwrap();
}
