//! Simulates an hour with misbehaving destinations, checked against a small model.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::world::World;
use crate::{
    domain::{DeliverySettings, DeliveryState},
    sending::receiver::{Receiver, Reply},
};

#[derive(Debug, Clone, Copy)]
enum Mood {
    Good,
    /// Fails the given number of times per message, then accepts it.
    Late(usize),
    Refusing,
    Dead,
    Closing,
}

async fn moody(mood: Mood) -> Receiver {
    let seen = Mutex::new(BTreeMap::<String, usize>::new());
    Receiver::start(move |request| {
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(request.header("webhook-id").into()).or_default();
        *times += 1;
        match mood {
            Mood::Late(failures) if *times <= failures => Reply::status(503),
            Mood::Good | Mood::Late(_) => Reply::status(200),
            Mood::Refusing => Reply::status(400),
            Mood::Dead => Reply::status(500),
            Mood::Closing => Reply::Close,
        }
    })
    .await
}

#[tokio::test]
async fn misbehaving_destinations_match_the_model() {
    let mut world = World::new();
    let steps = [0, 5, 60, 120, 300];
    world.sending.config.delivery.schedule = steps.map(Duration::from_secs).into();
    let moods = [
        Mood::Good,
        Mood::Late(1),
        Mood::Late(2),
        Mood::Refusing,
        Mood::Dead,
        Mood::Closing,
    ];
    let mut receivers = Vec::new();
    let mut destinations = Vec::new();
    for (index, mood) in moods.into_iter().enumerate() {
        let receiver = moody(mood).await;
        let name = format!("destination {index}");
        let destination = world.destination(&name, receiver.url("/"), DeliverySettings::default());
        destinations.push(destination.await);
        receivers.push(receiver);
    }
    world.start();
    let mut random = StdRng::seed_from_u64(42);
    let mut notified = vec![Vec::new(); moods.len()];
    for _ in 0..40 {
        let which = random.random_range(0..moods.len());
        let count = random.random_range(1..=12);
        notified[which].extend(world.notify(&destinations[which], count).await);
        world
            .live(Duration::from_secs(random.random_range(1..60)))
            .await;
        if random.random_bool(0.2) {
            world.stop().await;
            world.start();
        }
    }
    // A dead destination is probed every five minutes, so its queue takes days to drain.
    world.live(Duration::from_secs(10 * 24 * 3600)).await;
    for (which, mood) in moods.into_iter().enumerate() {
        let (state, attempts) = match mood {
            Mood::Good => (DeliveryState::Delivered, 1),
            Mood::Late(failures) => (DeliveryState::Delivered, failures + 1),
            // In full, and reduced.
            Mood::Refusing => (DeliveryState::Dead, 2),
            Mood::Dead | Mood::Closing => (DeliveryState::Dead, steps.len()),
        };
        for &id in &notified[which] {
            let delivery = world.delivery(id).await;
            assert_eq!(
                (delivery.state, delivery.attempts as usize),
                (state, attempts),
                "{mood:?}"
            );
            assert_eq!(world.attempts(id).await.len(), attempts);
        }
        assert_eq!(
            receivers[which].count(),
            notified[which].len() * attempts,
            "{mood:?}"
        );
    }
    assert!(notified.iter().flatten().count() > 200);
}
