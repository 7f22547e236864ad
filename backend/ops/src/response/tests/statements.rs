//! Tests that the number of statements does not grow with the number of responses:
//! each statement is a round trip to a database.

use super::*;
use crate::{
    store::{Sealer, engine::memory::MemoryEngine},
    testing::faulty_engine::FaultyEngine,
};

const FEW: usize = 4;
const MANY: usize = 40;
/// Tolerance in statements, since the order in which concurrent tasks run varies.
const MORE: usize = 15;

/// Returns the numbers of statements to run the second step of `count` responses, and to
/// acknowledge them all.
async fn statements(count: usize) -> [usize; 2] {
    let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
    let store = Store::new(
        Arc::clone(&engine) as _,
        Arc::new(Sealer::with_random_key()),
    );
    let steps: [&[Target]; 2] = [&[contact("ana")], &[contact("ben")]];
    let world = world_on(World::on(store).await, &steps, |_| {}).await;
    let hosts: Vec<_> = (0..count).map(|number| format!("db-{number}")).collect();
    for host in &hosts {
        world.event(host, |_| {}).await;
    }
    world.review().await;
    world.wait(4 * MINUTE + 59).await;
    let before = samples::all::<Delivery>(&world.store).await.len();
    engine.take_call_count();
    world.wait(2).await;
    let stepped = engine.take_call_count();
    let after = samples::all::<Delivery>(&world.store).await.len();
    assert_eq!(after - before, count, "each response ran its step");
    let items = hosts.iter().map(|host| StatusItem {
        target: OccurrenceTarget::Newest(samples::event(host).id()),
        change: StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        },
    });
    let items: Vec<_> = items.collect();
    let (node, by) = (world.node(), name("dora"));
    engine.take_call_count();
    let set = set_status((&node.deciding, &node.intake), &items, &by);
    assert!(set.await.unwrap().iter().all(Result::is_ok));
    [stepped, engine.take_call_count()]
}

#[tokio::test]
async fn number_of_statements_does_not_depend_on_the_number_of_responses() {
    let (few, many) = (statements(FEW).await, statements(MANY).await);
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + MORE, "{few} for few, {many} for many");
    }
}
