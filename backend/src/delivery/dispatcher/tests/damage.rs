//! Tests that corrupted records do not affect other records.

use super::*;
use crate::{
    domain::{Attempt, Delivery, Destination, Health, IncomingEvent, RecordId},
    samples::damage,
};

fn key(id: RecordId) -> Vec<u8> {
    id.to_bytes().into()
}

/// Returns the service's own events of a kind.
pub(super) fn reported_notices(world: &World, kind: &str) -> Vec<IncomingEvent> {
    let events = world
        .sending
        .sink
        .events()
        .into_iter()
        .map(|(event, _)| event);
    events.filter(|event| event.kind == kind).collect()
}

#[tokio::test]
async fn unreadable_deliveries_are_skipped_and_reported() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        max_in_flight: Some(2),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    let ids = world.notify(&destination, 30).await;
    let (damaged, sound): (Vec<_>, Vec<_>) = (0..30).partition(|at| at % 5 == 0);
    for at in &damaged {
        damage::<Delivery>(&world.store, key(ids[*at])).await;
    }
    for life in 1..=2 {
        world.start();
        world.settled().await;
        assert_eq!(receiver.count(), sound.len());
        let notices = reported_notices(&world, "delivery-unreadable");
        assert_eq!(notices.len(), life * damaged.len(), "once per run");
        let first = ids[damaged[0]].to_string();
        assert!(notices[0].body.contains(&first), "{notices:?}");
        world.stop().await;
    }
    for at in sound {
        let delivery = world.delivery(ids[at]).await;
        assert_eq!(delivery.state, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn unreadable_attempt_does_not_block_its_delivery() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::Hang).await;
    let settings = DeliverySettings::default();
    let id = world.start_with_one(&receiver, settings).await;
    world.kill();
    let first = crate::ops::delivery::attempt::attempt_key(id, 1);
    damage::<Attempt>(&world.store, first).await;
    set(&reply, 200);
    world.start();
    world.live(2 * MINUTE).await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Delivered, 2)
    );
}

#[tokio::test]
async fn damaged_health_or_destination_does_not_block_others() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let mut all = Vec::new();
    for name in ["sick", "lost", "well"] {
        let settings = DeliverySettings::default();
        all.push(world.destination(name, receiver.url("/"), settings).await);
    }
    world.notify(&all[0], 1).await;
    world.start();
    world.settled().await;
    world.stop().await;
    damage::<Health>(&world.store, key(all[0].id)).await;
    damage::<Destination>(&world.store, "lost".into()).await;
    let mut ids = Vec::new();
    for destination in &all {
        ids.extend(world.notify(destination, 3).await);
    }
    world.start();
    world.settled().await;
    assert_eq!(receiver.count(), 1 + 6);
    for (at, id) in ids.into_iter().enumerate() {
        let waits = (3..6).contains(&at);
        let state = world.delivery(id).await.state;
        assert_eq!(state.due_ms().is_some(), waits, "{at}: {state:?}");
    }
    assert_eq!(reported_notices(&world, "delivery-unreadable"), []);
}

#[tokio::test]
async fn deleting_a_destination_cancels_its_readable_deliveries() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let ids = world.notify(&destination, 600).await;
    for id in &ids[..300] {
        damage::<Delivery>(&world.store, key(*id)).await;
    }
    world.start();
    world.delete("hook").await;
    world.live(MINUTE).await;
    for id in &ids[300..] {
        let state = world.delivery(*id).await.state;
        let is_over = matches!(state, DeliveryState::Cancelled | DeliveryState::Delivered);
        assert!(is_over, "{state:?}");
    }
}
