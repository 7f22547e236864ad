//! Tests of late holds, on a service whose clock only moves when the test moves it.

use std::time::Duration;

use super::*;
use crate::{
    domain::{Rule, Status},
    samples::{DISK_TRIGGER, rule, world::World},
};

fn delayed() -> Rule {
    Rule {
        delay_ms: 60_000,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    }
}

fn watch_of(world: &World) -> HoldWatch {
    let (node, clock) = (world.node(), Arc::clone(&world.clock));
    HoldWatch::new(world.store.clone(), clock as _, node.intake.clone())
}

async fn is_reported(world: &World) -> bool {
    let newest = find::newest_occurrence(&world.store, late_holds_event(true, 0, 0).id()).await;
    newest
        .unwrap()
        .is_some_and(|it| it.status != Status::Closed)
}

#[tokio::test]
async fn late_hold_is_reported_then_makes_the_service_unready() {
    let world = World::under(&[delayed()]).await;
    let mut watch = watch_of(&world);
    let is_late = watch.watch_lateness();
    world.event("a", |_| {}).await;
    // Seconds since the event, whose notification is delayed by a minute, and the expected state.
    for (seconds, reported, late) in [
        (59, false, false),
        (60, false, false),
        (119, false, false),
        (120, true, false),
        (359, true, false),
        (360, true, true),
    ] {
        let passed = crate::samples::START_MS + 1 + seconds * 1_000;
        let left = passed - world.clock.now_ms();
        world
            .clock
            .advance(Duration::from_millis(left.unsigned_abs()));
        watch.check().await.unwrap();
        let found = (is_reported(&world).await, *is_late.borrow());
        assert_eq!(found, (reported, late), "after {seconds} s");
    }
    world.review().await;
    watch.check().await.unwrap();
    assert_eq!(
        (is_reported(&world).await, *is_late.borrow()),
        (false, false)
    );
}

#[tokio::test]
async fn hold_due_during_downtime_is_not_late() {
    let world = World::under(&[delayed()]).await;
    world.event("a", |_| {}).await;
    world.restart(3_600).await;
    let mut watch = watch_of(&world);
    watch.check().await.unwrap();
    assert!(!is_reported(&world).await && !*watch.watch_lateness().borrow());
    let oldest_ms = oldest_due_ms(&world.store, world.clock.now_ms()).await;
    let due_ms = crate::samples::START_MS + 1 + 60_000;
    assert_eq!(oldest_ms.unwrap(), Some(due_ms), "the metric shows it");
}

#[tokio::test]
async fn suppressed_event_past_its_delay_is_not_late() {
    let world = World::under(&[delayed()]).await;
    world.event("a", |_| {}).await;
    world
        .event("a", |it| it.status = Some(Status::Suppressed))
        .await;
    world.wait(600).await;
    let oldest_ms = oldest_due_ms(&world.store, world.clock.now_ms()).await;
    assert_eq!(oldest_ms.unwrap(), None);
}
