//! Tests of clock steps while deliveries wait: none is lost, stuck, or early.

use std::time::Duration;

use super::world::{MINUTE, SECOND, World, set, switch};
use crate::{
    domain::{DeliverySettings, DeliveryState},
    ops::delivery::Deliveries,
    sending::receiver::Reply,
};

const HOUR_MS: i64 = 3_600_000;

fn world() -> World {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    world
}

#[tokio::test]
async fn clock_steps_do_not_change_retry_delays() {
    for by_ms in [-HOUR_MS, HOUR_MS, -24 * HOUR_MS, 24 * HOUR_MS] {
        let mut world = world();
        let (receiver, reply) = switch(Reply::status(500)).await;
        let destination = world
            .destination("hook", receiver.url("/"), DeliverySettings::default())
            .await;
        let [id] = world.notify(&destination, 1).await.try_into().unwrap();
        world.start();
        // The second attempt fails after five seconds; the third is five minutes later.
        world.live(10 * SECOND).await;
        assert_eq!(receiver.count(), 2);
        set(&reply, 200);
        world.set_clock(by_ms).await;
        world.live(4 * MINUTE).await;
        assert_eq!(receiver.count(), 2, "{by_ms}: it arrived early");
        world.live(MINUTE).await;
        let delivery = world.delivery(id).await;
        assert_eq!(delivery.state, DeliveryState::Delivered, "{by_ms}");
        assert_eq!(delivery.attempts, 3);
    }
}

#[tokio::test]
async fn correcting_a_clock_years_behind_delays_no_delivery() {
    let mut world = world();
    let (receiver, reply) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    world.notify(&destination, 1).await;
    world.start();
    world.live(10 * SECOND).await;
    set(&reply, 200);
    // The machine starts with a wrong clock, which is then corrected.
    world.stop().await;
    world.reboot(-10_000 * HOUR_MS).await;
    world.start();
    world.live(SECOND).await;
    world.set_clock(10_000 * HOUR_MS).await;
    world.live(5 * MINUTE).await;
    assert_eq!(receiver.count(), 3);
}

#[tokio::test]
async fn rate_limit_and_breaker_survive_backward_clock_steps() {
    let mut world = world();
    let (receiver, reply) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        max_per_minute: Some(10),
        ..DeliverySettings::default()
    };
    let limited = world
        .destination("limited", receiver.url("/"), settings)
        .await;
    world.notify(&limited, 30).await;
    world.start();
    world.live(SECOND).await;
    assert_eq!(receiver.count(), 1);
    world.set_clock(-HOUR_MS).await;
    world.live(30 * SECOND).await;
    assert_eq!(receiver.count(), 6, "one every six seconds");
    world.live(3 * MINUTE).await;
    assert_eq!(receiver.count(), 30);

    set(&reply, 500);
    let failing = world
        .destination("failing", receiver.url("/"), DeliverySettings::default())
        .await;
    let ids = world.notify(&failing, 8).await;
    world.live(SECOND).await;
    set(&reply, 200);
    world.set_clock(-HOUR_MS).await;
    world.live(MINUTE).await;
    for id in ids {
        assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn clock_step_does_not_repeat_an_in_flight_attempt() {
    for by_ms in [-HOUR_MS, HOUR_MS] {
        let mut world = world();
        world.sending.config.delivery.timeout = Duration::from_secs(2);
        let (receiver, reply) = switch(Reply::Hang).await;
        let destination = world
            .destination("hook", receiver.url("/"), DeliverySettings::default())
            .await;
        let [id] = world.notify(&destination, 1).await.try_into().unwrap();
        world.start();
        while receiver.count() == 0 {
            tokio::task::yield_now().await;
        }
        set(&reply, 200);
        world.set_clock(by_ms).await;
        assert_eq!(receiver.count(), 1, "{by_ms}");
        world.live(5 * SECOND).await;
        let delivery = world.delivery(id).await;
        assert_eq!(delivery.state, DeliveryState::Delivered, "{by_ms}");
        assert_eq!((delivery.attempts, receiver.count()), (2, 2));
    }
}

#[tokio::test]
async fn manual_retry_after_a_clock_step_is_immediate() {
    let mut world = world();
    let (receiver, reply) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    world.start();
    world.live(10 * SECOND).await;
    set(&reply, 200);
    world.settled().await;
    // The operator acts before the service notices the clock step.
    world.clock.step(HOUR_MS);
    let clock = world.watch().clock();
    let deliveries = Deliveries::new(world.store.clone(), clock);
    deliveries.retry(id).await.unwrap();
    world.watch().apply(&world.store).await.unwrap();
    world.settled().await;
    assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
}
