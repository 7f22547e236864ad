//! Tests that the number of statements does not grow with the number of heartbeats:
//! each statement is a round trip to a database.

use super::*;
use crate::{
    store::{Sealer, engine::memory::MemoryEngine},
    testing::faulty_engine::FaultyEngine,
};

const FEW: usize = 4;
const MANY: usize = 60;
/// Tolerance in statements, since the order in which concurrent tasks run varies.
const MORE: usize = 15;

/// Returns the number of statements that a check of `count` heartbeats takes.
async fn statements(count: usize) -> usize {
    let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
    let store = Store::new(
        Arc::clone(&engine) as _,
        Arc::new(Sealer::with_random_key()),
    );
    let mut world = World::of(store).await;
    for number in 0..count {
        let draft = v1::Heartbeat {
            name: format!("backup-{number}"),
            filter: format!("name=done-{number}"),
            ..every_minute()
        };
        world.create(draft).await;
    }
    world.pass(2).await;
    world.send("done-1", "db-1").await;
    engine.take_call_count();
    world.pass(1).await;
    engine.take_call_count()
}

#[tokio::test]
async fn number_of_statements_does_not_depend_on_the_number_of_heartbeats() {
    let (few, many) = (statements(FEW).await, statements(MANY).await);
    assert!(many <= few + MORE, "{few} for few, {many} for many");
}
