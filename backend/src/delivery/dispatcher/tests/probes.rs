//! Tests of attributing failures to a message, its destination or the receiver, and of the
//! consequences for other messages.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use super::world::{MINUTE, SECOND, START_MS, World, set, switch};
use crate::{
    domain::{
        DeliverySettings, DeliveryState, Destination, DestinationKind, HealthState, Outcome,
        TemplateLanguage,
    },
    limits::REFUSALS_ALIKE_MAX,
    ops::destination::{Destinations, Test, TestSubject, TestTarget},
    sending::receiver::{Receiver, Reply},
};

/// One attempt at a time, for a total order.
fn one_by_one() -> DeliverySettings {
    DeliverySettings {
        max_in_flight: Some(1),
        ..DeliverySettings::default()
    }
}

fn messages(receiver: &Receiver) -> Vec<String> {
    let received = receiver.received_requests().into_iter();
    received
        .map(|request| request.header("webhook-id").to_owned())
        .collect()
}

#[tokio::test]
async fn rejected_messages_do_not_block_good_ones() {
    for status in [400, 413, 415, 422] {
        let bad = Arc::new(Mutex::new(HashSet::new()));
        let refused = Arc::clone(&bad);
        let receiver = Receiver::start(move |request| {
            let is_bad = refused
                .lock()
                .unwrap()
                .contains(request.header("webhook-id"));
            Reply::status(if is_bad { status } else { 200 })
        })
        .await;
        let mut world = World::new();
        let destination = world.destination("hook", receiver.url("/"), one_by_one());
        let destination = destination.await;
        let ids = world.notify(&destination, 32).await;
        // Twelve in a row, with good ones before and after.
        let is_bad = |at: usize| (4..16).contains(&at);
        for (at, id) in ids.iter().enumerate() {
            if is_bad(at) {
                bad.lock().unwrap().insert(id.to_string());
            }
        }
        world.start();
        world.settled().await;
        for (at, id) in ids.into_iter().enumerate() {
            let delivery = world.delivery(id).await;
            let ended = if is_bad(at) {
                // Full, and reduced.
                (DeliveryState::Dead, 2)
            } else {
                (DeliveryState::Delivered, 1)
            };
            assert_eq!((delivery.state, delivery.attempts), ended, "{status}");
            assert_eq!(delivery.end_ms, Some(START_MS), "no time passed");
        }
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Healthy);
    }
}

#[tokio::test]
async fn failing_destination_is_probed_with_different_messages() {
    for status in [401, 403, 404, 503] {
        let mut world = World::new();
        let (receiver, reply) = switch(Reply::status(status)).await;
        let destination = world.destination("hook", receiver.url("/"), one_by_one());
        let destination = destination.await;
        let ids = world.notify(&destination, 20).await;
        world.start();
        world.live(10 * MINUTE).await;
        let tried = messages(&receiver);
        assert!(tried.len() > 6, "{status}: {} attempts", tried.len());
        for pair in tried.windows(2) {
            assert_ne!(
                pair[0], pair[1],
                "{status}: the same message twice in a row"
            );
        }
        if status == 401 {
            // Probes of a misconfigured destination use recent messages; the old ones wait.
            let young: Vec<_> = ids[10..].iter().map(ToString::to_string).collect();
            let probes = &tried[5..];
            assert!(probes.iter().all(|id| young.contains(id)), "{probes:?}");
        }
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Failing, "{status}");
        set(&reply, 200);
        world.live(60 * MINUTE).await;
        for id in ids {
            let state = world.delivery(id).await.state;
            assert_eq!(state, DeliveryState::Delivered, "{status}");
        }
    }
}

#[tokio::test]
async fn changing_the_address_resets_an_open_breaker() {
    for status in [404, 503] {
        let mut world = World::new();
        let (wrong, _) = switch(Reply::status(status)).await;
        let (right, _) = switch(Reply::status(200)).await;
        let destination = world.destination("hook", wrong.url("/"), one_by_one());
        let destination = destination.await;
        let ids = world.notify(&destination, 12).await;
        world.start();
        world.settled().await;
        let tried = messages(&wrong);
        assert_eq!(tried.len(), 5, "{status}: the breaker is open");
        let describe = |it: &mut Destination| it.description = "a text changes nothing".into();
        world.edit("hook", describe).await;
        world.settled().await;
        assert_eq!((wrong.count(), right.count()), (5, 0), "{status}");
        let lead = |it: &mut Destination| {
            if let DestinationKind::Webhook(webhook) = &mut it.kind {
                webhook.url = right.url("/");
            }
        };
        world.edit("hook", lead).await;
        world.settled().await;
        for id in ids {
            let delivery = world.delivery(id).await;
            if !tried.contains(&id.to_string()) {
                assert_eq!(delivery.state, DeliveryState::Delivered, "{status}");
                assert_eq!(delivery.end_ms, Some(START_MS), "{status}: no time passed");
            }
        }
    }
}

#[tokio::test]
async fn resuming_a_failing_destination_flushes_its_queue() {
    for is_tested_first in [false, true] {
        let mut world = World::new();
        let (receiver, reply) = switch(Reply::status(503)).await;
        let destination = world.destination("hook", receiver.url("/"), one_by_one());
        let destination = destination.await;
        let ids = world.notify(&destination, 12).await;
        world.start();
        world.settled().await;
        assert_eq!(receiver.count(), 5, "the breaker is open");
        set(&reply, 200);
        if is_tested_first {
            let tested = world.tester().run_test(of_sample("hook")).await.unwrap();
            let attempt = tested.opening.attempt;
            assert_eq!(attempt.outcome, Some(Outcome::Delivered));
            world.settled().await;
            assert_eq!(receiver.count(), 6, "a test sends no waiting message");
        }
        let all = Destinations::new(world.store.clone(), Arc::clone(&world.clock) as _);
        all.resume("hook").await.unwrap();
        world.settled().await;
        for id in ids {
            let delivery = world.delivery(id).await;
            assert_eq!(delivery.state, DeliveryState::Delivered);
            assert_eq!(delivery.end_ms, Some(START_MS), "no time passed");
        }
        let health = world.health(&destination).await.unwrap();
        assert_eq!(
            (health.state, health.tried.len()),
            (HealthState::Healthy, 12)
        );
    }
}

fn of_sample(destination: &str) -> Test {
    Test {
        target: TestTarget::Stored(destination.into()),
        message: String::new(),
        message_language: TemplateLanguage::Mustache,
        about: TestSubject::Sample,
        contact: None,
    }
}

#[tokio::test]
async fn single_waiting_message_is_reused_as_probe() {
    let mut world = World::new();
    let steps = [0, 5, 5, 5, 5, 5, 5, 5];
    world.sending.config.delivery.schedule = steps.map(|seconds| seconds * SECOND).into();
    let (receiver, reply) = switch(Reply::status(503)).await;
    let destination = world.destination("hook", receiver.url("/"), one_by_one());
    let destination = destination.await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    world.start();
    world.live(40 * SECOND).await;
    assert!((6..8).contains(&receiver.count()), "{}", receiver.count());
    set(&reply, 200);
    world.live(5 * MINUTE).await;
    assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
}

#[tokio::test]
async fn waiting_deliveries_report_reason_and_next_attempt() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (failing, _) = switch(Reply::status(503)).await;
    let (good, _) = switch(Reply::status(200)).await;
    let failing = world
        .destination("failing", failing.url("/"), one_by_one())
        .await;
    let slow = DeliverySettings {
        max_per_minute: Some(2),
        ..DeliverySettings::default()
    };
    let rated = world.destination("rated", good.url("/"), slow).await;
    let failing = world.notify(&failing, 9).await;
    let rated = world.notify(&rated, 7).await;
    world.start();
    world.settled().await;

    let (reason, next_seconds) = world.waiting(failing[8]).await;
    assert!(reason.contains("circuit breaker open"), "{reason}");
    // Other deliveries are ahead, and without a delivered message there is no rate for an estimate.
    assert_eq!(next_seconds, None);
    let (reason, next_seconds) = world.waiting(rated[2]).await;
    assert_eq!(
        (reason.as_str(), next_seconds),
        ("rate 2/min: 1 delivery ahead", Some(60))
    );
    let (reason, next_seconds) = world.waiting(rated[6]).await;
    assert_eq!(
        (reason.as_str(), next_seconds),
        ("rate 2/min: 5 deliveries ahead", Some(180))
    );
    let ended = world.waiting(rated[0]).await;
    assert_eq!(ended, (String::new(), None));
}

#[tokio::test]
async fn waiting_delivery_reports_a_paused_destination() {
    let mut world = World::new();
    world.sending.config.delivery.pause_after = std::time::Duration::ZERO;
    let (gone, _) = switch(Reply::status(410)).await;
    let gone = world.destination("gone", gone.url("/"), one_by_one()).await;
    let gone = world.notify(&gone, 3).await;
    world.start();
    world.settled().await;
    let waiting = world.waiting(gone[2]).await;
    let reason = "the destination is paused: the receiver returned 410 Gone";
    assert_eq!(waiting, (reason.into(), None));
}

#[tokio::test]
async fn retry_after_holds_all_messages_to_the_receiver() {
    for status in [403, 429, 503] {
        let mut world = World::new();
        world.sending.config.delivery.jitter = 0.0;
        let headers = vec![("retry-after", "89.5".to_owned())];
        let (busy, reply) = switch(Reply::Answer(status, headers, String::new())).await;
        let destination = world.destination("busy", busy.url("/"), one_by_one()).await;
        let first = world.notify(&destination, 3).await;
        world.start();
        world.live(10 * SECOND).await;
        let later = world.notify(&destination, 3).await;
        world.live(79 * SECOND).await;
        assert_eq!(busy.count(), 1, "{status}: one message was sent");
        let (reason, next_seconds) = world.waiting(first[1]).await;
        assert!(reason.contains("`Retry-After`"), "{reason}");
        assert_eq!(next_seconds, Some(89));
        set(&reply, 200);
        world.live(SECOND).await;
        for id in first.into_iter().chain(later) {
            let delivery = world.delivery(id).await;
            assert_eq!(delivery.state, DeliveryState::Delivered, "{status}");
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn retry_after_survives_a_restart() {
    for is_killed in [false, true] {
        let mut world = World::new();
        world.sending.config.delivery.jitter = 0.0;
        let headers = vec![("retry-after", "90".to_owned())];
        let (busy, reply) = switch(Reply::Answer(429, headers, String::new())).await;
        let destination = world.destination("busy", busy.url("/"), one_by_one()).await;
        world.notify(&destination, 1).await;
        world.start();
        world.live(10 * SECOND).await;
        if is_killed {
            world.kill();
        } else {
            world.stop().await;
        }
        world.start();
        let later = world.notify(&destination, 3).await;
        world.live(79 * SECOND).await;
        assert_eq!(
            busy.count(),
            1,
            "nothing is sent before the time that the receiver requested"
        );
        let (reason, next_seconds) = world.waiting(later[0]).await;
        assert!(reason.contains("`Retry-After`"), "{reason}");
        assert_eq!(next_seconds, Some(90));
        set(&reply, 200);
        world.live(2 * SECOND).await;
        assert_eq!(busy.count(), 5);
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.requested_until_ms, None, "it has passed");
        world.stop().await;
    }
}

#[tokio::test]
async fn changing_the_address_clears_retry_after() {
    let mut world = World::new();
    let headers = vec![("retry-after", "3600".to_owned())];
    let (busy, _) = switch(Reply::Answer(429, headers, String::new())).await;
    let (good, _) = switch(Reply::status(200)).await;
    let destination = world.destination("busy", busy.url("/"), one_by_one()).await;
    world.notify(&destination, 2).await;
    world.start();
    world.live(SECOND).await;
    let url = good.url("/");
    world
        .edit("busy", |destination| {
            if let DestinationKind::Webhook(webhook) = &mut destination.kind {
                webhook.url = url;
            }
        })
        .await;
    world.live(SECOND).await;
    assert_eq!(
        (busy.count(), good.count()),
        (1, 1),
        "the untried message is sent"
    );
}

#[tokio::test]
async fn messages_rejected_identically_are_not_lost() {
    for status in [400, 422, 409] {
        let mut world = World::new();
        let (receiver, reply) = switch(Reply::status(status)).await;
        let destination = world.destination("hook", receiver.url("/"), one_by_one());
        let destination = destination.await;
        world.notify(&destination, 60).await;
        world.start();
        world.live(20 * MINUTE).await;
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Failing, "{status}");
        assert!(
            health.last_error.contains("20 consecutive messages"),
            "{health:?}"
        );
        // Each message was tried in full and in reduced form.
        assert!(receiver.count() < 130, "{status}: {}", receiver.count());
        set(&reply, 200);
        world.live(24 * 60 * MINUTE).await;
        let all = world.all().await;
        let arrived = all.iter().filter(|it| it.state == DeliveryState::Delivered);
        assert_eq!(arrived.count(), 60, "{status}");
        let dead = all.iter().filter(|it| it.state == DeliveryState::Dead);
        for dead in dead {
            assert!(dead.retried_as.is_some(), "{status}: {dead:?}");
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn identical_rejections_count_across_restarts_and_messages_are_resent() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::status(400)).await;
    let destination = world.destination("hook", receiver.url("/"), one_by_one());
    let destination = destination.await;
    let mut all = world.notify(&destination, REFUSALS_ALIKE_MAX - 1).await;
    world.start();
    world.settled().await;
    let health = world.health(&destination).await.unwrap();
    assert_eq!(health.alike.messages.len(), REFUSALS_ALIKE_MAX - 1);
    world.stop().await;
    all.extend(world.notify(&destination, 1).await);
    world.start();
    world.settled().await;
    let health = world.health(&destination).await.unwrap();
    assert_eq!(health.state, HealthState::Failing, "{health:?}");
    // A crash before the messages are resent loses none of them.
    world.kill();
    set(&reply, 200);
    world.start();
    world.live(24 * 60 * MINUTE).await;
    for id in all {
        let first = world.delivery(id).await;
        let last = match first.retried_as {
            Some(again) => world.delivery(again).await,
            None => first,
        };
        assert_eq!(last.state, DeliveryState::Delivered, "{last:?}");
    }
    let health = world.health(&destination).await.unwrap();
    assert!(health.alike.messages.is_empty());
}
