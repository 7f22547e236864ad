//! Tests of the dispatcher with a store in memory, real sockets, and a manual clock.

mod budget;
mod clock;
mod damage;
mod kills;
mod limits;
mod notices;
mod order;
mod probes;
mod simulation;
mod statements;
mod world;

use std::{sync::Arc, time::Duration};

use world::{MINUTE, SECOND, START_MS, World, set, switch};

use crate::{
    domain::{
        DeliverySettings, DeliveryState, HealthState, Outcome, Severity, SharedSettings, Status,
    },
    ops::settings::InstallationSettings,
    samples,
    sending::receiver::Reply,
    store::{Sealer, Store, engine::memory::MemoryEngine},
};

#[tokio::test]
async fn notifications_are_delivered_and_attempts_recorded() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let before = world.notify(&destination, 3).await;
    world.start();
    world.settled().await;
    let after = world.notify(&destination, 3).await;
    world.settled().await;
    assert_eq!(receiver.count(), 6);
    for id in before.into_iter().chain(after) {
        let delivery = world.delivery(id).await;
        assert_eq!(delivery.state, DeliveryState::Delivered);
        assert_eq!((delivery.attempts, delivery.end_ms), (1, Some(START_MS)));
        let [attempt] = world.attempts(id).await.try_into().unwrap();
        assert_eq!(attempt.outcome, Some(Outcome::Delivered));
        assert!(attempt.duration.is_some());
        assert_eq!(attempt.transcript.response.unwrap().status, 200);
    }
    assert_eq!(
        world.health(&destination).await.unwrap().state,
        HealthState::Healthy
    );
    world.stop().await;
}

#[tokio::test]
async fn quiet_mode_holds_deliveries_until_it_ends() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let quiet = |since_ms| SharedSettings {
        quiet_since_ms: since_ms,
        ..SharedSettings::default()
    };
    samples::save_settings(&world.store, quiet(Some(START_MS))).await;
    let before = world.notify(&destination, 3).await;
    world.start();
    world.live(10 * MINUTE).await;
    let during = world.notify(&destination, 3).await;
    world.live(10 * MINUTE).await;
    assert_eq!(receiver.count(), 0);
    let all = InstallationSettings::new(world.store.clone(), Arc::clone(&world.clock) as _);
    all.set_quiet(false).await.unwrap();
    world.settled().await;
    assert_eq!(receiver.count(), 6);
    for id in before.into_iter().chain(during) {
        let delivery = world.delivery(id).await;
        assert_eq!(
            (delivery.state, delivery.attempts),
            (DeliveryState::Delivered, 1)
        );
    }
    all.set_quiet(true).await.unwrap();
    world.notify(&destination, 1).await;
    world.live(MINUTE).await;
    assert_eq!(receiver.count(), 6);
    world.stop().await;
}

#[tokio::test]
async fn failed_deliveries_retry_on_schedule_until_dead() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (receiver, _) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let id = world.notify_of(&destination, Severity::Warning).await;
    world.start();
    world.live(Duration::from_secs(5 * 24 * 3600)).await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Dead, 8)
    );
    assert!(
        delivery.last_error.contains("500"),
        "{}",
        delivery.last_error
    );
    let starts: Vec<_> = world
        .attempts(id)
        .await
        .iter()
        .map(|attempt| attempt.start_ms)
        .collect();
    let waits: Vec<_> = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1000)
        .collect();
    assert_eq!(waits, [5, 300, 1800, 7200, 18_000, 36_000, 36_000]);
    let ids: Vec<_> = receiver.received_requests();
    assert!(
        ids.iter()
            .all(|request| request.header("webhook-id") == id.to_string())
    );
}

#[tokio::test]
async fn delivery_dies_after_three_conflicts_and_retry_after_is_honored() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (refusing, _) = switch(Reply::status(409)).await;
    let headers = vec![("retry-after", "90".to_owned())];
    let (busy, reply) = switch(Reply::Answer(429, headers, String::new())).await;
    let first = world
        .destination("refusing", refusing.url("/"), DeliverySettings::default())
        .await;
    let second = world
        .destination("busy", busy.url("/"), DeliverySettings::default())
        .await;
    let [refused] = world.notify(&first, 1).await.try_into().unwrap();
    let [waiting] = world.notify(&second, 1).await.try_into().unwrap();
    world.start();
    world.live(89 * SECOND).await;
    assert_eq!(busy.count(), 1);
    set(&reply, 200);
    world.live(SECOND).await;
    assert_eq!(
        world.delivery(waiting).await.state,
        DeliveryState::Delivered
    );
    world.live(10 * MINUTE).await;
    let delivery = world.delivery(refused).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Dead, 3)
    );
}

#[tokio::test]
async fn destination_returning_410_is_paused_until_edited() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = 10 * MINUTE;
    let (receiver, reply) = switch(Reply::status(410)).await;
    let settings = DeliverySettings {
        max_in_flight: Some(1),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    let ids = world.notify(&destination, 3).await;
    world.start();
    world.live(60 * MINUTE).await;
    let count = receiver.count();
    assert!(count > 1, "one rejection is not enough");
    assert_eq!(
        world.health(&destination).await.unwrap().state,
        HealthState::Paused
    );
    // A pause survives a restart.
    world.stop().await;
    world.start();
    world.live(60 * MINUTE).await;
    assert_eq!(receiver.count(), count);
    set(&reply, 200);
    world
        .edit("hook", |destination| {
            destination.description = "mended".into();
        })
        .await;
    world.live(10 * 60 * MINUTE).await;
    for id in ids {
        assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
    }
    assert_eq!(
        world.health(&destination).await.unwrap().state,
        HealthState::Healthy
    );
    let notices: Vec<_> = world
        .sending
        .sink
        .events()
        .into_iter()
        .map(|(event, _)| event)
        .collect();
    let reported: Vec<_> = notices
        .iter()
        .map(|event| (event.name.as_str(), event.status))
        .collect();
    let paused = "destination paused";
    let open = (paused, Some(Status::Open));
    // No intake stores the event here, so the dispatcher reports it again after the restart.
    assert_eq!(reported, [open, open, (paused, Some(Status::Closed))]);
    assert_eq!(notices[0].id(), notices[2].id());
}

#[tokio::test]
async fn prolonged_failures_pause_a_destination() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = 60 * MINUTE;
    let (receiver, _) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    world.notify(&destination, 1).await;
    world.start();
    world.live(24 * 60 * MINUTE).await;
    let health = world.health(&destination).await.unwrap();
    assert_eq!(health.state, HealthState::Paused);
    assert!(health.last_error.contains("500"));
    let waiting = world.all().await;
    assert!(
        matches!(waiting[0].state, DeliveryState::Retry { .. }),
        "its queue stays"
    );
}

#[tokio::test]
async fn open_breaker_limits_attempts_until_a_probe_succeeds() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    let ids = world.notify(&destination, 100).await;
    world.start();
    world.live(60 * SECOND).await;
    assert!(
        receiver.count() < 20,
        "{} requests to an unreachable receiver",
        receiver.count()
    );
    set(&reply, 200);
    world.live(6 * 60 * MINUTE).await;
    for id in ids {
        let delivery = world.delivery(id).await;
        assert_eq!(delivery.state, DeliveryState::Delivered);
        assert!(delivery.attempts <= 3, "{}", delivery.attempts);
    }
}

#[tokio::test]
async fn attempt_interrupted_by_crash_is_unknown_and_retried() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::Hang).await;
    let settings = DeliverySettings {
        timeout: Some(30 * SECOND),
        ..DeliverySettings::default()
    };
    let id = world.start_with_one(&receiver, settings).await;
    world.kill();
    assert!(matches!(
        world.delivery(id).await.state,
        DeliveryState::Leased { .. }
    ));
    assert_eq!(world.attempts(id).await[0].outcome, None);
    set(&reply, 200);
    world.start();
    world.live(39 * SECOND).await;
    assert_eq!(
        world.delivery(id).await.attempts,
        1,
        "the lease has not expired"
    );
    world.live(10 * SECOND).await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Delivered, 2)
    );
    let outcomes: Vec<_> = world
        .attempts(id)
        .await
        .iter()
        .map(|attempt| attempt.outcome)
        .collect();
    assert_eq!(outcomes, [Some(Outcome::Unknown), Some(Outcome::Delivered)]);
    assert!(
        receiver
            .received_requests()
            .iter()
            .all(|request| request.header("webhook-id") == id.to_string())
    );
}

#[tokio::test]
async fn deliveries_to_a_deleted_destination_are_cancelled() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(500)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    world.notify(&destination, 600).await;
    world.start();
    world.live(SECOND).await;
    world.delete("hook").await;
    // A recreated destination is a new destination.
    world
        .destination("hook", receiver.url("/new"), DeliverySettings::default())
        .await;
    world.live(MINUTE).await;
    let all = world.all().await;
    assert!(
        all.iter()
            .all(|delivery| delivery.state == DeliveryState::Cancelled)
    );
    assert!(
        receiver
            .received_requests()
            .iter()
            .all(|request| request.path == "/")
    );
}

#[tokio::test]
async fn rate_limit_is_never_exceeded() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        max_per_minute: Some(10),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    let ids = world.notify(&destination, 45).await;
    world.start();
    world.live(10 * MINUTE).await;
    let mut starts = Vec::new();
    for id in ids {
        starts.push(world.attempts(id).await[0].start_ms);
    }
    starts.sort_unstable();
    for from in &starts {
        let within = starts
            .iter()
            .filter(|at| (*from..*from + 60_000).contains(*at))
            .count();
        assert!(within <= 10, "{within} in a minute");
    }
    assert_eq!(receiver.count(), 45);
}

#[tokio::test]
async fn rate_limit_counts_possible_sends_of_other_nodes() {
    let mut world = World::new();
    let engine = Arc::new(MemoryEngine::new_shared());
    world.store = Store::new(engine, Arc::new(Sealer::with_random_key()));
    let (receiver, _) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        max_per_minute: Some(10),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    world.notify(&destination, 3).await;
    world.start();
    assert!(world.settled().await >= START_MS + 59_000);
    assert_eq!(receiver.count(), 0);
    world.live(MINUTE + 15 * SECOND).await;
    assert_eq!(receiver.count(), 3);
    // No other process can have sent messages to a destination created after the start.
    let new = world.destination("new", receiver.url("/"), settings).await;
    world.notify(&new, 3).await;
    world.live(SECOND).await;
    assert_eq!(receiver.count(), 4);
}

#[tokio::test]
async fn hanging_destination_does_not_delay_others() {
    let mut world = World::new();
    let (hanging, _) = switch(Reply::Hang).await;
    let (good, _) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        timeout: Some(30 * SECOND),
        ..DeliverySettings::default()
    };
    let slow = world.destination("slow", hanging.url("/"), settings).await;
    let quick = world
        .destination("quick", good.url("/"), DeliverySettings::default())
        .await;
    world.notify(&slow, 500).await;
    world.notify(&quick, 500).await;
    world.start();
    let mut status = world.running.as_ref().unwrap().status.clone();
    let done = status.wait_for(|status| status.in_flight == 8 && good.count() == 500);
    tokio::time::timeout(MINUTE, done)
        .await
        .expect("the fast delivery has ended")
        .unwrap();
    assert_eq!(hanging.count(), 8, "no more than its share is in flight");
    world.kill();
}

#[tokio::test]
async fn graceful_shutdown_waits_for_in_flight_attempts() {
    let mut world = World::new();
    world.sending.config.delivery.timeout = Duration::from_millis(300);
    let (receiver, _) = switch(Reply::Hang).await;
    let settings = DeliverySettings::default();
    let id = world.start_with_one(&receiver, settings).await;
    world.stop().await;
    let [attempt] = world.attempts(id).await.try_into().unwrap();
    assert_eq!(attempt.outcome, Some(Outcome::Unknown), "{attempt:?}");
    assert!(matches!(
        world.delivery(id).await.state,
        DeliveryState::Retry { .. }
    ));
}

#[tokio::test]
async fn prefetched_deliveries_that_never_start_cost_no_attempt() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = Duration::ZERO;
    let (receiver, reply) = switch(Reply::status(200)).await;
    let destination = world
        .destination("hook", receiver.url("/"), DeliverySettings::default())
        .await;
    world.notify(&destination, 20).await;
    world.start();
    world.settled().await;
    // The receiver is fast, so more deliveries are leased than can be in flight when it responds
    // 410.
    set(&reply, 410);
    let ids = world.notify(&destination, 60).await;
    world.settled().await;
    let tried = receiver.count() - 20;
    assert!((1..=16).contains(&tried), "{tried} requests");
    let mut attempts = 0;
    for id in ids {
        let delivery = world.delivery(id).await;
        attempts += delivery.attempts as usize;
        assert_eq!(world.attempts(id).await.len(), delivery.attempts as usize);
        assert!(delivery.state.due_ms().is_some());
        assert!(!matches!(delivery.state, DeliveryState::Leased { .. }));
    }
    assert_eq!(attempts, tried);
}
