//! Tests of the events about destinations, and their closing.

use super::*;
use crate::{
    clock::Clock,
    decide::NO_ENRICHMENTS,
    domain::{Health, RecordId},
    lifecycle::{Arrival, EventEffect, apply_event},
    store::Lane,
};

/// Returns the events reported since the last call, as name and status.
fn new_notices(world: &World, seen: &mut usize) -> Vec<(String, Status)> {
    let events = world.sending.sink.events();
    let new = events[*seen..].iter();
    let reported = new.map(|(event, _)| (event.name.clone(), event.status.unwrap()));
    let reported = reported.collect();
    *seen = events.len();
    reported
}

/// Stores the occurrence that a reported event opens, as intake does in the service.
async fn store_opened(world: &mut World, at: usize) {
    let (event, _) = world.sending.sink.events().swap_remove(at);
    let arrival = Arrival {
        enrichments: &NO_ENRICHMENTS,
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: world.clock.now_ms(),
    };
    let key = RecordId::from_parts(world.clock.now_ms().unsigned_abs(), 77);
    let EventEffect::Opened(opened) = apply_event(None, &arrival, &SharedSettings::default(), key)
    else {
        panic!("nothing existed before");
    };
    let mut changes = world.store.new_changes();
    changes.insert(&*opened);
    world.store.apply(Lane::Admin, changes).await.unwrap();
}

/// Creates a destination that rejects all messages, with `count` dead letters.
async fn dead(world: &mut World, count: usize) -> crate::domain::Destination {
    let (receiver, _) = switch(Reply::status(500)).await;
    let settings = DeliverySettings {
        max_attempts: Some(1),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    for _ in 0..count {
        world.notify_of(&destination, Severity::Warning).await;
    }
    world.start();
    world.live(10 * MINUTE).await;
    destination
}

#[tokio::test]
async fn dead_letter_report_is_repeated_on_doubling_and_later_closed() {
    let mut world = World::new();
    let grow = || ("dead letters growing".to_owned(), Status::Open);
    let over = || ("dead letters growing".to_owned(), Status::Closed);
    let mut seen = 0;
    let destination = dead(&mut world, 2).await;
    assert_eq!(
        new_notices(&world, &mut seen),
        [],
        "a few more are not growth"
    );
    for _ in 0..4 {
        world.notify_of(&destination, Severity::Warning).await;
    }
    world.live(10 * MINUTE).await;
    assert_eq!(new_notices(&world, &mut seen), [grow(), grow()]);
    let (last, _) = world.sending.sink.events().pop().unwrap();
    assert!(
        last.summary.starts_with("6 messages to hook"),
        "{}",
        last.summary
    );
    world.live(61 * MINUTE).await;
    assert_eq!(new_notices(&world, &mut seen), [over()]);
}

#[tokio::test]
async fn restart_closes_dead_letter_report_of_previous_run() {
    let mut world = World::new();
    let destination = dead(&mut world, 3).await;
    store_opened(&mut world, 0).await;
    world.stop().await;
    let mut seen = 1;
    world.start();
    world.live(59 * MINUTE).await;
    assert_eq!(new_notices(&world, &mut seen), []);
    world.live(2 * MINUTE).await;
    let over = || ("dead letters growing".to_owned(), Status::Closed);
    assert_eq!(new_notices(&world, &mut seen), [over()]);
    world.delete("hook").await;
    world.live(MINUTE).await;
    assert_eq!(
        new_notices(&world, &mut seen),
        [over()],
        "it closes with its destination"
    );
    drop(destination);
}

#[tokio::test]
async fn destination_edited_during_downtime_is_resumed() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = Duration::ZERO;
    let (receiver, reply) = switch(Reply::status(410)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    world.start();
    world.live(MINUTE).await;
    world.stop().await;
    set(&reply, 200);
    world.clock.advance(MINUTE);
    world.edit("hook", |_| {}).await;
    world.start();
    world.live(MINUTE).await;
    let health = world.health(&destination).await.unwrap();
    assert_eq!(health.state, HealthState::Healthy);
    assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
    let last = world.sending.sink.events().pop().unwrap().0;
    assert_eq!(last.status, Some(Status::Closed), "{last:?}");
}

#[tokio::test]
async fn edit_resumes_a_paused_destination_with_empty_queue() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = Duration::ZERO;
    let (receiver, _) = switch(Reply::status(410)).await;
    let settings = DeliverySettings {
        max_attempts: Some(1),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    world.notify(&destination, 1).await;
    world.start();
    world.live(MINUTE).await;
    world.stop().await;
    world.start();
    world.settled().await;
    world.clock.advance(MINUTE);
    world.edit("hook", |_| {}).await;
    world.settled().await;
    let health: Health = world.health(&destination).await.unwrap();
    assert_eq!(
        health.state,
        HealthState::Failing,
        "its recovery is not yet proven"
    );
}
