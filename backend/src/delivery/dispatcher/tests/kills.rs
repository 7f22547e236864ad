//! Tests of repeated crashes: they cost unrelated messages no attempts, and a message that causes
//! them is given up.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{damage::reported_notices, *};
use crate::{
    delivery::{
        decide::{is_interrupted, rendering_attempt},
        recovery::recover,
    },
    domain::Attempt,
    limits::CUT_OFFS_MAX,
    ops::delivery::attempt::attempt_key,
    sending::receiver::Receiver,
    store::Lane,
};

const PATIENT: DeliverySettings = DeliverySettings {
    timeout: Some(Duration::from_secs(30)),
    max_in_flight: Some(2),
    max_per_minute: None,
    max_attempts: None,
    budget: None,
};

/// Runs the dispatcher until `requests` requests have arrived in total, kills it, and recovers the
/// interrupted deliveries.
async fn live_until(world: &mut World, receiver: &Receiver, requests: usize) {
    world.start();
    let came = async {
        while receiver.count() < requests {
            tokio::task::yield_now().await;
        }
    };
    let came = tokio::time::timeout(MINUTE, came).await;
    came.expect("the requests arrive");
    world.kill();
    recover(&world.store, world.clock.as_ref()).await.unwrap();
}

#[tokio::test]
async fn kills_do_not_use_up_attempts() {
    let mut world = World::new();
    world.sending.config.delivery.schedule = vec![Duration::ZERO, 5 * SECOND, 5 * SECOND];
    let (receiver, reply) = switch(Reply::Hang).await;
    let destination = world.destination("hook", receiver.url("/"), PATIENT).await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    for life in 1..=7 {
        live_until(&mut world, &receiver, life).await;
    }
    set(&reply, 404);
    world.start();
    world.live(MINUTE).await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Dead, 7 + 3),
        "it had all attempts of a rejected message"
    );
    let attempts = world.attempts(id).await;
    assert!(attempts[..7].iter().all(is_interrupted), "{attempts:?}");
    assert!(!attempts[7..].iter().any(is_interrupted), "{attempts:?}");
    let seconds = |at: usize| (attempts[at + 1].start_ms - attempts[at].start_ms) / 1000;
    assert_eq!(
        seconds(6),
        0,
        "the interrupted attempt is repeated immediately"
    );
    assert!((4..=6).contains(&seconds(7)), "and costs no step");
}

#[tokio::test]
async fn message_interrupted_too_often_is_given_up() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::Hang).await;
    let destination = world.destination("hook", receiver.url("/"), PATIENT).await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    let most = CUT_OFFS_MAX as usize;
    for life in 1..=most {
        assert!(world.delivery(id).await.state.due_ms().is_some());
        live_until(&mut world, &receiver, life).await;
    }
    set(&reply, 200);
    let [next] = world.notify(&destination, 1).await.try_into().unwrap();
    world.start();
    world.settled().await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Dead, CUT_OFFS_MAX)
    );
    let error = delivery.last_error;
    assert!(error.contains("stopped during 16 attempts"), "{error}");
    assert_eq!(world.delivery(next).await.state, DeliveryState::Delivered);
    assert_eq!(receiver.count(), most + 1);
}

#[tokio::test]
async fn message_whose_rendering_crashes_twice_becomes_dead_letter() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::Hang).await;
    let destination = world.destination("hook", receiver.url("/"), PATIENT).await;
    let [id] = world.notify(&destination, 1).await.try_into().unwrap();
    for life in 1..=3 {
        live_until(&mut world, &receiver, life).await;
    }
    let attempts = world.attempts(id).await;
    assert!(world.delivery(id).await.state.due_ms().is_some());
    assert!(
        !attempts
            .iter()
            .any(|it| it.explanation.contains("rendered")),
        "its message was rendered before it was sent: {attempts:?}"
    );
    // Simulate a process that ended during the trial rendering. A single crash may be a
    // coincidence.
    for (number, count) in [(4, 4), (5, 5)] {
        assert!(world.delivery(id).await.state.due_ms().is_some());
        world.start();
        let came = async {
            while receiver.count() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(10 * SECOND, came).await.unwrap();
        world.kill();
        let key = attempt_key(id, number);
        let begun = world.store.get::<Attempt>(key).await.unwrap().unwrap();
        let mut changes = world.store.new_changes();
        changes.update(&begun, &rendering_attempt(&begun.value, false));
        world.store.apply(Lane::Bulk, changes).await.unwrap();
        recover(&world.store, world.clock.as_ref()).await.unwrap();
    }

    set(&reply, 200);
    let [next] = world.notify(&destination, 1).await.try_into().unwrap();
    world.start();
    world.settled().await;
    let delivery = world.delivery(id).await;
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Dead, 5)
    );
    let error = delivery.last_error;
    assert!(
        error.contains("stopped twice while rendering the message"),
        "{error}"
    );
    assert_eq!(world.delivery(next).await.state, DeliveryState::Delivered);
    assert_eq!(receiver.count(), 6);
    let notices = reported_notices(&world, "delivery-poison");
    assert_eq!(notices.len(), 1);
    assert!(notices[0].body.contains(&id.to_string()), "{notices:?}");
}

#[tokio::test]
async fn unstarted_attempt_is_interrupted_at_most_once() {
    let mut world = World::new();
    // The receiver responds to the first message of each run, so that more deliveries are leased
    // than can be in flight.
    let is_first = Arc::new(AtomicBool::new(true));
    let is_mended = Arc::new(AtomicBool::new(false));
    let (first, mended) = (Arc::clone(&is_first), Arc::clone(&is_mended));
    let receiver = Receiver::start(move |_| {
        if mended.load(Ordering::Relaxed) || first.swap(false, Ordering::Relaxed) {
            Reply::status(200)
        } else {
            Reply::Hang
        }
    })
    .await;
    let destination = world.destination("hook", receiver.url("/"), PATIENT).await;
    let ids = world.notify(&destination, 40).await;
    for _ in 0..6 {
        is_first.store(true, Ordering::Relaxed);
        let requests = receiver.count() + 3;
        live_until(&mut world, &receiver, requests).await;
    }
    is_mended.store(true, Ordering::Relaxed);
    world.start();
    world.settled().await;
    let mut never_began = 0;
    for id in ids {
        assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
        let attempts = world.attempts(id).await;
        let received = receiver.received_requests();
        let begun = received
            .iter()
            .filter(|it| it.header("webhook-id") == id.to_string());
        let without = attempts.len() - begun.count();
        assert!(without <= 1, "{attempts:?}");
        never_began += without;
    }
    assert!(never_began > 10, "only {never_began} were leased ahead");
}
