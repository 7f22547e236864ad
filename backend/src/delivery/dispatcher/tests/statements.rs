//! Tests that the number of statements does not grow with the number of destinations and
//! deliveries: each statement is a round trip to a database.

use super::*;
use crate::{
    clock::Clock,
    domain::{Delivery, Destination, RecordId},
    message::sample,
    store::Lane,
    testing::faulty_engine::FaultyEngine,
};

const FEW: usize = 4;
const MANY: usize = 60;
/// Tolerance in statements. Attempts end at different times, which causes further passes.
const MORE_PASSES: usize = 30;

/// Decides an opening or a closing for each destination.
async fn notify_all(world: &mut World, destinations: &[Destination], is_closing: bool) {
    let now_ms = world.clock.now_ms();
    let mut changes = world.store.new_changes();
    for destination in destinations {
        let mut occurrence = sample::sample_occurrence(now_ms);
        occurrence.key = RecordId::from_parts(START_MS.try_into().unwrap(), 1);
        occurrence.evaluation = is_closing.then_some(crate::domain::Evaluation {
            at_ms: now_ms,
            rules_ms: 0,
            by_event: true,
        });
        let event = occurrence.event;
        let mut content =
            sample::sample_content(occurrence, destination.kind.clone(), String::new());
        content.clear = is_closing;
        let to = (destination.id, destination.name.to_string());
        changes.insert(&Delivery {
            event: Some(event),
            ..Delivery::new(world.id(), to, content, now_ms)
        });
    }
    world.store.apply(Lane::Bulk, changes).await.unwrap();
}

/// Returns the number of statements from the start until an attempt to each of `count` destinations
/// is in flight: with new messages, with attempts cut off by a crash, and with closings.
async fn statements(count: usize) -> [usize; 3] {
    let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
    let mut world = World::new();
    world.store = Store::new(
        Arc::clone(&engine) as _,
        Arc::new(Sealer::with_random_key()),
    );
    let (receiver, reply) = switch(Reply::Hang).await;
    let mut destinations = Vec::new();
    for number in 0..count {
        let (name, settings) = (format!("hook-{number}"), DeliverySettings::default());
        let destination = world.destination(&name, receiver.url("/"), settings).await;
        destinations.push(destination);
    }
    let in_flight = async |world: &mut World| {
        engine.take_call_count();
        world.start();
        let mut status = world.running.as_ref().unwrap().status.clone();
        let all = status.wait_for(|status| status.in_flight == count);
        tokio::time::timeout(MINUTE, all).await.unwrap().unwrap();
        engine.take_call_count()
    };
    notify_all(&mut world, &destinations, false).await;
    let opened = in_flight(&mut world).await;
    world.kill();
    world.clock.advance(MINUTE);
    let lost = in_flight(&mut world).await;
    world.kill();
    world.clock.advance(MINUTE);
    set(&reply, 200);
    world.start();
    world.live(10 * MINUTE).await;
    world.stop().await;
    *reply.lock().unwrap() = Reply::Hang;
    notify_all(&mut world, &destinations, true).await;
    let closed = in_flight(&mut world).await;
    world.kill();
    [opened, lost, closed]
}

#[tokio::test]
async fn number_of_statements_does_not_depend_on_the_number_of_destinations() {
    let (few, many) = (statements(FEW).await, statements(MANY).await);
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + MORE_PASSES, "{few} for few, {many} for many");
    }
}
