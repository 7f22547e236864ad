//! Tests of full disks, crashes during a check, and two nodes.

use std::{
    future::Future as _,
    pin::pin,
    task::{Context, Waker},
};

use super::*;
use crate::store::{
    Sealer,
    engine::{FreeSpace, memory::MemoryEngine},
};

/// Creates a store that several processes can share, and whose engine can be made full.
fn shared_store() -> (Store, Arc<MemoryEngine>) {
    let engine = Arc::new(MemoryEngine::new_shared());
    let store = Store::new(
        Arc::clone(&engine) as _,
        Arc::new(Sealer::with_random_key()),
    );
    (store, engine)
}

#[tokio::test]
async fn full_disk_neither_raises_nor_hides_alarms() {
    let (store, engine) = shared_store();
    let space = |free_bytes| FreeSpace {
        free_bytes,
        floor_bytes: 10,
    };
    engine.set_free_space(Some(space(11)));
    let mut world = World::of(store).await;
    world.create(every_minute()).await;
    world.pass(15).await;
    world.send("done", "a").await;
    world.pass(50).await;
    engine.set_free_space(Some(space(9)));
    world.pass(3_600).await;
    assert!(!world.is_open(&[]).await);
    engine.set_free_space(Some(space(10)));
    world.pass(19).await;
    assert!(!world.is_open(&[]).await);
    world.pass(3).await;
    assert!(world.is_open(&[]).await);
}

#[tokio::test]
async fn frequent_restarts_do_not_postpone_an_alarm_forever() {
    // Seconds between restarts, and seconds of downtime at each restart.
    for (up, down) in [(6, 1), (8, 2), (20, 8)] {
        let mut world = World::new().await;
        world.create(every_minute()).await;
        world.pass(1).await;
        world.send("done", "a").await;
        world.pass(10).await;
        let mut restarts = 0;
        while !world.is_open(&[]).await {
            world = world.restarted(Duration::from_secs(down)).await;
            world.pass(up).await;
            restarts += 1;
            assert!(restarts < 40, "up {up} s, down {down} s");
        }
        // The outages do not count.
        assert!(restarts * up >= 50, "{restarts} restarts are too early");
    }
}

#[tokio::test]
async fn beat_within_grace_raises_no_alarm() {
    let mut world = World::new().await;
    world.create(every_minute()).await;
    world.pass(1).await;
    for _ in 0..20 {
        world.send("done", "a").await;
        world.pass(61).await;
        assert!(world.alarm("backup", &[]).await.is_none());
    }
}

#[tokio::test]
async fn beat_at_another_node_uses_the_leaders_time() {
    let (store, _engine) = shared_store();
    let mut leader = World::of(store.clone()).await;
    leader.create(every_minute()).await;
    leader.pass(1).await;
    leader.send("done", "a").await;
    leader.pass(73).await;
    assert!(leader.is_open(&[]).await);
    let other = World::at(store, Arc::clone(&leader.clock)).await;
    other.send("done", "a").await;
    let known = |world: &World| {
        world
            .deciding
            .beats
            .service_ms(world.deciding.clock.as_ref())
    };
    assert_eq!(known(&leader), known(&other));
    // Beats received by another node are seen by the next full check.
    leader.pass(11).await;
    assert!(!leader.is_open(&[]).await);
}

/// Polls a check up to `polls` times and then drops it, as a crash would; returns whether it had
/// completed.
async fn poll_check(world: &mut World, polls: usize) -> bool {
    let mut pass = pin!(world.watch.run_once());
    for _ in 0..polls {
        let mut context = Context::from_waker(Waker::noop());
        if pass.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    false
}

#[tokio::test]
async fn kill_during_a_check_neither_loses_nor_repeats_an_alarm() {
    let mut was_whole = false;
    for polls in 0..12 {
        let mut world = World::new().await;
        world.create(every_minute()).await;
        world.pass(1).await;
        world.send("done", "a").await;
        world.pass(70).await;
        assert!(!world.is_open(&[]).await);
        world.clock.advance(Duration::from_secs(2));
        was_whole |= poll_check(&mut world, polls).await;
        let mut world = world.restarted(Duration::from_secs(1)).await;
        world.pass(20).await;
        let alarm = world.alarm("backup", &[]).await.unwrap();
        // If the crash came before the submission was recorded, the event is submitted again, but
        // opens no second occurrence.
        assert_eq!((alarm.status, alarm.number), (Status::Open, 1), "{polls}");
        assert!(alarm.count <= 2, "{polls}: {}", alarm.count);
        world.send("done", "a").await;
        world.clock.advance(Duration::from_secs(1));
        poll_check(&mut world, polls).await;
        let mut world = world.restarted(Duration::from_secs(1)).await;
        world.pass(20).await;
        let alarm = world.alarm("backup", &[]).await.unwrap();
        assert_eq!((alarm.status, alarm.number), (Status::Closed, 1), "{polls}");
        // The next missed beat opens a new occurrence.
        world.pass(60).await;
        let alarm = world.alarm("backup", &[]).await.unwrap();
        assert_eq!((alarm.status, alarm.number), (Status::Open, 2), "{polls}");
    }
    assert!(was_whole, "no check completed");
}

#[tokio::test]
async fn beats_at_other_nodes_count_across_leader_changes() {
    let (store, _) = shared_store();
    let mut leader = World::of(store.clone()).await;
    let mut other = World::at(store, Arc::clone(&leader.clock)).await;
    leader.create(every_minute()).await;
    leader.pass(1).await;
    for round in 0..6 {
        for _ in 0..12 {
            other.send("done", "a").await;
            leader.pass(10).await;
            other.flush.run_once().await.unwrap();
            assert!(leader.alarm("backup", &[]).await.is_none(), "{round}");
        }
        // The leader fails. The other node accepts events throughout, and leads ten seconds later.
        leader.clock.advance(Duration::from_secs(10));
        std::mem::swap(&mut leader, &mut other);
        leader.part = Watches::of(&leader.node());
    }
    leader.pass(75).await;
    let alarm = leader.alarm("backup", &[]).await.unwrap();
    assert_eq!((alarm.status, alarm.number), (Status::Open, 1));
    other.send("done", "a").await;
    leader.pass(12).await;
    assert!(!leader.is_open(&[]).await);
}
