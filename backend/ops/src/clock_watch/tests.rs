//! Tests of clock steps with crashes, restarts and two nodes.

use std::{
    future::Future as _,
    pin::pin,
    task::{Context, Waker},
};

use super::*;
use crate::{
    clock::ManualClock,
    domain::{BudgetWindow, DeliveryState, Group, Health, HoldKind, silence::NEVER_MS},
    samples::{self, START_MS, id},
    store::{Engine, Sealer, engine::memory::MemoryEngine, record::bytes::read_time_ms, verify},
    testing::{faulty_engine::FaultyEngine, samples as records},
};

const HOUR_MS: i64 = 3_600_000;

/// A process with a store that other processes may share.
struct Process {
    store: Store,
    watch: ClockWatch,
}

struct World {
    engine: Arc<dyn Engine>,
    sealer: Arc<Sealer>,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        Self::on(Arc::new(MemoryEngine::new_shared()))
    }

    fn on(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            sealer: Arc::new(Sealer::with_random_key()),
            clock: Arc::new(ManualClock::starting_at(START_MS)),
        }
    }

    fn store(&self) -> Store {
        Store::new(Arc::clone(&self.engine), Arc::clone(&self.sealer))
    }

    async fn start(&self) -> Process {
        let store = self.store();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let watch = ClockWatch::open(store.clone(), clock).await.unwrap();
        Process { store, watch }
    }
}

impl Process {
    async fn apply(&self) {
        self.watch.apply(&self.store).await.unwrap();
    }

    fn now_ms(&self) -> i64 {
        self.watch.clock().now_ms()
    }

    /// Stores one waiting record of each kind, due in an hour.
    async fn wait_an_hour(&self) {
        let until_ms = self.now_ms() + HOUR_MS;
        let mut changes = self.store.new_changes();
        changes.insert(&Delivery {
            test: false,
            ..records::delivery(1, DeliveryState::Retry { due_ms: until_ms })
        });
        let mut held = records::held_occurrence();
        held.pending.truncate(1);
        for hold in &mut held.pending[0].held_by {
            hold.kind = HoldKind::Delay;
            hold.until_ms = Some(until_ms);
        }
        held.review_ms = until_ms;
        held.causes.clear();
        changes.insert(&held);
        changes.insert(&BudgetWindow {
            until_ms,
            ..records::budget_window()
        });
        changes.insert(&Health {
            requested_until_ms: Some(until_ms),
            ..Health::new_unattempted(id("hook"), START_MS)
        });
        changes.insert(&Group {
            last_ms: until_ms,
            ..records::group()
        });
        changes.insert(&Receipt {
            create_ms: until_ms,
            ..records::receipt()
        });
        let mut silence = Silence {
            end_ms: NEVER_MS,
            calendar: None,
            rule_names: Vec::new(),
            ..records::silence("idle")
        };
        silence.progress.idle_since_ms = Some(until_ms);
        changes.insert(&silence);
        self.store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn left_ms(&self) -> Vec<i64> {
        let held = &samples::all::<Occurrence>(&self.store).await[0];
        let silences = samples::all::<Silence>(&self.store).await;
        let until_ms = [
            samples::all::<Delivery>(&self.store).await[0]
                .state
                .due_ms(),
            held.due_ms(),
            Some(held.review_ms),
            Some(samples::all::<BudgetWindow>(&self.store).await[0].until_ms),
            samples::all::<Health>(&self.store).await[0].requested_until_ms,
            Some(samples::all::<Group>(&self.store).await[0].last_ms),
            Some(samples::all::<Receipt>(&self.store).await[0].create_ms),
            silences[0].progress.idle_since_ms,
        ];
        let until_ms = until_ms.into_iter().map(Option::unwrap);
        until_ms.map(|it| it - self.now_ms()).collect()
    }

    /// Returns the due times in the indexes, relative to now.
    async fn indexed_ms(&self) -> Vec<i64> {
        let mut indexed = Vec::new();
        for (index, at) in [
            (Index::DeliveryByDue, 16),
            (Index::OccurrenceByDue, 0),
            (Index::OccurrenceByReview, 0),
            (Index::ReceiptByTime, 0),
        ] {
            let engine = self.store.engine();
            let all = engine.entries(index, Range::with_prefix(&[]), Direction::Ascending, 9);
            let all = all.await.unwrap().into_iter();
            let moments = all.map(|(key, _)| read_time_ms(&key, at));
            indexed.extend(moments.map(|it| it.unwrap() - self.now_ms()));
        }
        indexed
    }

    async fn check(&self) {
        let findings = verify(&self.store, &|_| {}).await;
        let failures: Vec<_> = findings
            .descriptions
            .iter()
            .filter(|it| it.contains("index"))
            .collect();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

#[tokio::test]
async fn clock_steps_preserve_remaining_waits() {
    for by_ms in [
        -24 * HOUR_MS,
        -HOUR_MS,
        -5_000,
        5_000,
        HOUR_MS,
        24 * HOUR_MS,
    ] {
        let world = World::new();
        let process = world.start().await;
        process.apply().await;
        process.wait_an_hour().await;
        world.clock.step(by_ms);
        world.clock.advance(Duration::from_secs(60));
        let left_ms = vec![HOUR_MS - 60_000; 8];
        assert_eq!(
            process.left_ms().await,
            left_ms,
            "before it is applied: {by_ms}"
        );
        process.apply().await;
        assert_eq!(process.now_ms(), world.clock.now_ms());
        assert_eq!(process.left_ms().await, left_ms, "{by_ms}");
        assert_eq!(process.indexed_ms().await, left_ms[..4], "{by_ms}");
        process.check().await;
        // A new process that reads only the stored data sees the same state.
        assert_eq!(world.start().await.left_ms().await, left_ms, "{by_ms}");
    }
}

#[tokio::test]
async fn forward_and_backward_step_leaves_no_outdated_index_entry() {
    for by_ms in [-HOUR_MS, HOUR_MS] {
        let world = World::new();
        let (leader, other) = (world.start().await, world.start().await);
        leader.apply().await;
        leader.wait_an_hour().await;
        for (seconds, step_ms) in [(0, by_ms), (30, -by_ms)] {
            world.clock.advance(Duration::from_secs(seconds));
            world.clock.step(step_ms);
            leader.apply().await;
            other.watch.apply_recorded().await.unwrap();
        }
        let left_ms = vec![HOUR_MS - 30_000; 8];
        assert_eq!(leader.left_ms().await, left_ms, "{by_ms}");
        assert_eq!(leader.indexed_ms().await, left_ms[..4], "{by_ms}");
        leader.check().await;
    }
}

#[tokio::test]
async fn oversized_clock_step_leaves_waits_unshifted() {
    let world = World::new();
    let process = world.start().await;
    process.apply().await;
    process.wait_an_hour().await;
    world.clock.step(24 * HOUR_MS + 5_000);
    process.apply().await;
    assert_eq!(process.now_ms(), world.clock.now_ms());
    assert_eq!(process.left_ms().await, [-23 * HOUR_MS - 5_000; 8]);
}

#[tokio::test]
async fn killed_service_never_applies_a_clock_step_twice_or_partially() {
    for by_ms in [-HOUR_MS, HOUR_MS] {
        for polls in 0.. {
            let world = World::on(Arc::new(FaultyEngine::with_delays(
                MemoryEngine::new_shared(),
                7,
            )));
            let process = world.start().await;
            process.apply().await;
            process.wait_an_hour().await;
            world.clock.step(by_ms);
            let is_whole = is_applied(&process, polls);
            drop(process);
            let process = world.start().await;
            assert_eq!(process.left_ms().await, [HOUR_MS; 8], "{by_ms} {polls}");
            process.apply().await;
            assert_eq!(process.now_ms(), world.clock.now_ms());
            assert_eq!(process.left_ms().await, [HOUR_MS; 8], "{by_ms} {polls}");
            assert_eq!(process.indexed_ms().await, [HOUR_MS; 4], "{by_ms} {polls}");
            process.check().await;
            if is_whole {
                assert!(polls > 20, "{polls}");
                break;
            }
        }
    }
}

/// Polls the future up to `polls` times and then drops it, as a crash would; returns whether it had
/// completed.
fn is_applied(process: &Process, polls: usize) -> bool {
    let mut applies = pin!(process.watch.apply(&process.store));
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| applies.as_mut().poll(&mut context).is_ready())
}

#[tokio::test]
async fn step_during_downtime_is_detected_unless_the_machine_reboots() {
    for (reboots, expected_ms) in [(false, HOUR_MS), (true, 2 * HOUR_MS)] {
        let world = World::new();
        let process = world.start().await;
        process.apply().await;
        process.wait_an_hour().await;
        drop(process);
        world.clock.step(-HOUR_MS);
        if reboots {
            world.clock.reboot();
        }
        let process = world.start().await;
        process.apply().await;
        assert_eq!(process.now_ms(), world.clock.now_ms());
        assert_eq!(process.left_ms().await, [expected_ms; 8], "{reboots}");
    }
}

#[tokio::test]
async fn nodes_that_detect_a_clock_step_at_different_times_agree() {
    for by_ms in [-HOUR_MS, HOUR_MS] {
        let world = World::new();
        let (leader, other) = (world.start().await, world.start().await);
        leader.apply().await;
        other.watch.apply_recorded().await.unwrap();
        leader.wait_an_hour().await;
        world.clock.step(by_ms);
        leader.apply().await;
        assert_eq!(
            other.left_ms().await,
            [HOUR_MS; 8],
            "in its own time: {by_ms}"
        );
        // A time that this node decides by its own clock is correct by the leader's clock.
        let mut changes = other.store.new_changes();
        let stored = other
            .store
            .get::<BudgetWindow>(records::budget_window().key());
        let stored = stored.await.unwrap().unwrap();
        let until_ms = other.now_ms() + 2 * HOUR_MS;
        changes.update(
            &stored,
            &BudgetWindow {
                until_ms,
                ..stored.value.clone()
            },
        );
        other.store.apply(Lane::Bulk, changes).await.unwrap();
        assert_eq!(leader.left_ms().await[3], 2 * HOUR_MS, "{by_ms}");
        other.watch.apply_recorded().await.unwrap();
        assert_eq!(other.now_ms(), world.clock.now_ms());
        assert_eq!(other.left_ms().await[3], 2 * HOUR_MS, "{by_ms}");
        // A new leader finds nothing left to shift.
        other.apply().await;
        assert_eq!(leader.left_ms().await, other.left_ms().await);
    }
}

#[tokio::test]
async fn step_on_one_node_does_not_shift_stored_times() {
    let world = World::new();
    let leader = world.start().await;
    leader.apply().await;
    leader.wait_an_hour().await;
    // Another machine with a wrong clock.
    let own = Arc::new(ManualClock::starting_at(START_MS));
    own.reboot();
    let store = world.store();
    let watch = ClockWatch::open(store.clone(), Arc::clone(&own) as _)
        .await
        .unwrap();
    own.step(HOUR_MS);
    for seconds in [0, 59, 1] {
        own.advance(Duration::from_secs(seconds));
        assert_eq!(watch.clock().step_ms(), HOUR_MS);
        watch.apply_recorded().await.unwrap();
    }
    assert_eq!(watch.clock().now_ms(), own.now_ms());
    assert_eq!(leader.left_ms().await, [HOUR_MS; 8]);
}

#[tokio::test]
async fn decisions_that_span_a_clock_step_conflict() {
    let world = World::new();
    let process = world.start().await;
    process.apply().await;
    process.wait_an_hour().await;
    let get = || async {
        let key = records::budget_window().key();
        process
            .store
            .get::<BudgetWindow>(key)
            .await
            .unwrap()
            .unwrap()
    };
    let (read, mut decided) = (get().await, process.store.new_changes());
    decided.update(&read, &read.value);
    world.clock.step(HOUR_MS);
    process.apply().await;
    let refused = process.store.apply(Lane::Bulk, decided).await;
    assert!(matches!(refused, Err(EngineError::Conflict(_))));
    // The update also conflicts if it is decided after the step, from a record read before.
    let mut decided = process.store.new_changes();
    decided.update(&read, &read.value);
    let refused = process.store.apply(Lane::Bulk, decided).await;
    assert!(matches!(refused, Err(EngineError::Conflict(_))));
    let read = get().await;
    let mut decided = process.store.new_changes();
    decided.update(&read, &read.value);
    process.store.apply(Lane::Bulk, decided).await.unwrap();
    assert_eq!(process.left_ms().await, [HOUR_MS; 8]);
}

#[tokio::test]
async fn clock_drift_is_not_treated_as_a_step() {
    let world = World::new();
    let mut process = world.start().await;
    process.apply().await;
    process.wait_an_hour().await;
    for _ in 0..20 {
        world.clock.step(900);
        process.apply().await;
        process = world.start().await;
        assert_eq!(process.watch.clock().step_ms(), 0);
    }
    assert_eq!(process.left_ms().await, [HOUR_MS - 20 * 900; 8]);
}

#[tokio::test]
async fn clock_step_waits_for_decisions_in_progress() {
    let world = World::new();
    let process = world.start().await;
    process.apply().await;
    world.clock.step(HOUR_MS);
    let decides = process.store.lock_clock_shared().await;
    let before_ms = process.now_ms();
    let mut applied = pin!(process.watch.apply(&process.store));
    tokio::select! {
        biased;
        done = applied.as_mut() => panic!("{done:?}"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(process.now_ms(), before_ms);
    drop(decides);
    applied.await.unwrap();
    assert_eq!(process.now_ms(), before_ms + HOUR_MS);
}
