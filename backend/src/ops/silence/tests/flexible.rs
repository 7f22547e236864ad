//! Silences that begin by themselves.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    ops::deciding::Deciding,
    store::{Sealer, engine::memory::MemoryEngine},
    testing::faulty_engine::FaultyEngine,
};

const HOUR: u64 = 3_600;

impl World {
    /// From an hour on for three hours, and lasting two from its first event.
    fn flexible(&self) -> SilenceDraft {
        SilenceDraft {
            start_ms: Some(self.clock.now_ms() + 60 * MINUTE_MS),
            flexible_ms: Some(120 * MINUTE_MS),
            ..self.draft("disk swap", "severity>=debug", 4 * 60)
        }
    }

    async fn begin(&self) -> SilenceView {
        let draft = self.flexible();
        let view = self
            .node()
            .silences
            .create(draft, false, true)
            .await
            .unwrap();
        self.look().await;
        view
    }

    /// Reviews automatically, as the service does, until what this answers is dropped.
    fn review(&self) -> JoinSet<()> {
        let reviewer = Reviewer::new(self.node().deciding.clone(), self.node().intake.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(reviewer.run(CancellationToken::new()));
        tasks
    }

    /// Lets time pass while the service continues automatically.
    async fn live(&self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.clock.advance(Duration::from_millis(100));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn it_lasts_from_its_first_event_on_also_past_the_span_and_once() {
    let world = World::under(&[with_updates()]).await;
    let made = world.begin().await;
    assert_eq!(made.state, SilenceState::Scheduled);
    world.event("before", |_| {}).await;
    world.event("before", close).await;
    assert_eq!(world.sent().await.len(), 2, "its span has not begun");
    // Two and a half hours into the three of the span.
    world.wait(7 * HOUR / 2).await;
    let waits = world.view("disk swap").await;
    assert_eq!(
        (waits.state, waits.ends_ms),
        (SilenceState::Scheduled, None)
    );
    assert!(world.own_event("disk swap").await.is_none());
    world.event("a", |_| {}).await;
    assert_eq!(world.sent().await.len(), 2, "what begins it is held by it");
    let began_ms = world.clock.now_ms();
    world.wait(1).await;
    world.wait(0).await;
    let begun = world.view("disk swap").await;
    assert_eq!(begun.state, SilenceState::Active);
    assert_eq!(begun.silence.start_ms, began_ms);
    assert_eq!(begun.ends_ms, Some(began_ms + 120 * MINUTE_MS));
    assert_eq!((begun.covered, begun.pending), (1, 1));
    let event = world.own_event("disk swap").await.unwrap();
    assert_eq!(event.status, Status::Open);
    world.wait(2 * HOUR - 2).await;
    assert_eq!(world.sent().await.len(), 2);
    world.wait(1).await;
    assert_eq!(world.sent().await[2..], [about("a", false)]);
    world.event("later", |_| {}).await;
    assert_eq!(world.sent().await[3..], [about("later", false)]);
    assert_eq!(world.view("disk swap").await.state, SilenceState::Expired);
}

#[tokio::test]
async fn what_is_open_when_its_span_begins_begins_it_also_where_the_service_stopped() {
    let world = World::under(&[with_updates()]).await;
    let start_ms = world.flexible().start_ms.unwrap();
    world.begin().await;
    world.event("a", |_| {}).await;
    world.restart(3 * HOUR / 2).await;
    world.wait(0).await;
    let begun = world.view("disk swap").await;
    assert_eq!(begun.silence.start_ms, start_ms);
    assert_eq!(begun.state, SilenceState::Active);
}

#[tokio::test]
async fn a_stop_between_the_event_and_its_begin_moves_nothing() {
    let world = World::under(&[with_updates()]).await;
    world.begin().await;
    world.wait(HOUR).await;
    world.event("a", |_| {}).await;
    let began_ms = world.clock.now_ms();
    world.restart(HOUR).await;
    world.event("b", |_| {}).await;
    world.wait(0).await;
    assert_eq!(world.view("disk swap").await.silence.start_ms, began_ms);
    world.wait(HOUR).await;
    let mut sent = world.sent().await;
    sent.sort();
    assert_eq!(sent, [about("a", false), about("b", false)]);
}

/// A clock that is a millisecond later with each look at it, as beside a disk that takes that long.
#[derive(Debug)]
struct Passing {
    clock: Arc<ManualClock>,
    looks: AtomicU32,
}

#[async_trait]
impl Clock for Passing {
    fn now_ms(&self) -> i64 {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        assert!(looks < 10_000, "one pass looks on and on");
        self.clock.advance(Duration::from_millis(1));
        self.clock.now_ms()
    }

    fn passed(&self) -> Duration {
        self.clock.passed()
    }

    async fn wait_until(&self, at_ms: i64) {
        self.clock.wait_until(at_ms).await;
    }
}

#[tokio::test]
async fn the_first_pass_of_a_service_ends_although_its_end_is_later_with_each_look() {
    let world = World::under(&[with_updates()]).await;
    world.begin().await;
    world.wait(HOUR).await;
    world.event("a", |_| {}).await;
    let deciding = Deciding {
        clock: Arc::new(Passing {
            clock: Arc::clone(&world.clock),
            looks: AtomicU32::new(0),
        }),
        ..world.node().deciding.clone()
    };
    let reviewer = Reviewer::new(deciding, world.node().intake.clone());
    assert!(reviewer.pass().await);
    let begun = world.view("disk swap").await;
    assert_eq!(begun.state, SilenceState::Active);
}

#[tokio::test]
async fn where_nothing_comes_it_is_over_with_its_span() {
    let world = World::under(&[with_updates()]).await;
    world.begin().await;
    world.wait(4 * HOUR).await;
    assert_eq!(world.view("disk swap").await.state, SilenceState::Expired);
    world.event("a", |_| {}).await;
    assert_eq!(world.sent().await, [about("a", false)]);
    assert!(world.own_event("disk swap").await.is_none());
}

#[tokio::test]
async fn once_begun_its_duration_can_be_edited_and_its_end_moved() {
    let world = World::under(&[with_updates()]).await;
    let draft = world.flexible();
    world.begin().await;
    world.wait(HOUR).await;
    world.event("a", |_| {}).await;
    world.wait(1).await;
    let start_ms = world.view("disk swap").await.silence.start_ms;
    let longer = Extension::By(60 * MINUTE_MS);
    let editor = name("Ana");
    let moved = world
        .node()
        .silences
        .extend("disk swap", longer, &editor)
        .await;
    let end_ms = start_ms + 180 * MINUTE_MS;
    assert_eq!(moved.unwrap().ends_ms, Some(end_ms));
    let same = world
        .node()
        .silences
        .update(draft.clone(), false, true)
        .await;
    assert_eq!(same.unwrap().ends_ms, Some(end_ms), "the moved end stays");
    let shorter = SilenceDraft {
        flexible_ms: Some(60 * MINUTE_MS),
        ..draft.clone()
    };
    let edited = world
        .node()
        .silences
        .update(shorter, false, true)
        .await
        .unwrap();
    assert_eq!(edited.ends_ms, Some(start_ms + 60 * MINUTE_MS));
    let earlier = SilenceDraft {
        start_ms: Some(START_MS),
        ..draft
    };
    let refused = world.node().silences.update(earlier, false, true).await;
    let refused = format!("{:?}", refused.unwrap_err());
    assert!(refused.contains("flexible.startTime"), "{refused}");
}

#[tokio::test]
async fn it_begins_within_seconds_of_its_event_also_where_nobody_would_be_told() {
    let world = World::under(&[]).await;
    world.begin().await;
    world.wait(HOUR).await;
    let _reviewing = world.review();
    world.live(1).await;
    world.event("a", |_| {}).await;
    let began_ms = world.clock.now_ms();
    world.live(2).await;
    let begun = world.view("disk swap").await;
    assert_eq!(begun.state, SilenceState::Active);
    assert_eq!(begun.silence.start_ms, began_ms);
}

#[tokio::test]
async fn it_begins_within_seconds_of_when_the_store_answers_again() {
    let engine = Arc::new(FaultyEngine::slow(MemoryEngine::new(), 7));
    let shared = Arc::clone(&engine);
    let world = World::on(Store::new(shared, Arc::new(Sealer::ephemeral()))).await;
    world.begin().await;
    world.wait(HOUR).await;
    world.event("a", |_| {}).await;
    engine.fail(1.0);
    let _reviewing = world.review();
    world.live(5).await;
    engine.fail(0.0);
    assert_eq!(world.view("disk swap").await.state, SilenceState::Scheduled);
    world.live(5).await;
    assert_eq!(world.view("disk swap").await.state, SilenceState::Active);
}
