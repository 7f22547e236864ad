//! Nodes that are suspended, or blocked during a commit. The other nodes continue, and no work is
//! lost or done twice.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    cutter::{Cutter, Treatment},
    eventually::eventually,
    process,
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};

use super::{join_with, leader, put, three, wait_until_notified};
use crate::{
    crash::rounds,
    journey,
    postgres::{ANSWERED, Database, SendOutcomes, none_is_lost, send, wait_answered},
};

const OTHERS_WAIT_MAX: Duration = Duration::from_secs(6);

/// Whether no other test runs at the same time, so that times are meaningful.
fn is_measured() -> bool {
    std::env::var_os("BELLWETHER_TEST_STOPS").is_some()
}

/// Returns the durations for which to suspend nodes: 5 s, or several with `BELLWETHER_TEST_STOPS`.
fn stops() -> Vec<Duration> {
    let seconds = if is_measured() {
        &[5, 15, 60][..]
    } else {
        &[5]
    };
    seconds.iter().copied().map(Duration::from_secs).collect()
}

async fn slowest(rest: &Rest, named: &str, within: Duration) -> Duration {
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    for number in 0.. {
        if begin.elapsed() >= within {
            break;
        }
        let sent = Instant::now();
        put(rest, "probe", &format!("{named}-{number}")).await;
        slowest = slowest.max(sent.elapsed());
    }
    slowest
}

/// Asserts that every accepted event is stored, and reported by exactly one delivery.
async fn assert_all_notified(world: &World, receiver: &Receiver, reported: &Mutex<SendOutcomes>) {
    let stored = none_is_lost(&world.rest(), reported).await;
    let probes = |it: &&String| !it.starts_with("probe");
    let stored: BTreeSet<String> = stored.iter().filter(probes).cloned().collect();
    wait_until_notified(receiver, &stored).await;
    let received = receiver.received();
    let ids: BTreeSet<_> = received.iter().map(Received::delivery_id).collect();
    assert_eq!(ids.len(), stored.len(), "one delivery per event");
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_causes_no_delay_and_no_duplicates() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let names = ["one", "two", "three"];
    let receiver = Receiver::start().await;
    journey::set_up(&worlds[0].rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    for (round, time) in stops().into_iter().enumerate() {
        let leads = leader(&worlds[0]).await;
        let stopped = names.iter().position(|it| *it == leads).unwrap();
        let (stop, ends) = tokio::sync::watch::channel(false);
        let mut senders = Vec::new();
        for (world, name) in worlds.iter().zip(names) {
            let round = format!("{round}-{name}");
            senders.push(send(&world.rest(), &round, &reported, &ends));
        }
        wait_answered(&reported, ANSWERED).await;
        process::signal("-STOP", worlds[stopped].service().id());
        let other = worlds[(stopped + 1) % 3].rest();
        let took = slowest(&other, &format!("probe-{round}"), time).await;
        process::signal("-CONT", worlds[stopped].service().id());
        wait_answered(&reported, ANSWERED).await;
        stop.send_replace(true);
        for senders in senders {
            senders.join_all().await;
        }
        eprintln!("stopped for {time:?}: the slowest answer of another node took {took:?}");
        assert!(!is_measured() || took <= OTHERS_WAIT_MAX, "{took:?}");
    }
    assert_all_notified(&worlds[1], &receiver, &reported).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_paused_in_a_commit_delays_others_briefly() {
    let Some(database) = Database::start() else {
        return;
    };
    let cutter = Cutter::start(database.server.port());
    let first = database.world();
    let second = join_with(&first, &database.settings_over(cutter.port(), "two"));
    let receiver = Receiver::start().await;
    journey::set_up(&first.rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    let (stop, ends) = tokio::sync::watch::channel(false);
    let senders = send(&second.rest(), "held", &reported, &ends);
    wait_answered(&reported, ANSWERED).await;
    // The node holds the lock of the commit order, for which the other nodes wait.
    let is_amid = || {
        let text = "SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid) \
                    WHERE a.state = 'idle in transaction' AND l.mode = 'RowShareLock' \
                    AND l.relation = 'bellwether.head'::regclass";
        tokio::task::block_in_place(|| database.server.execute(text)) != "0"
    };
    let mut worst = Duration::ZERO;
    for round in 0..rounds(2) {
        cutter.set(Treatment::StandsBefore("COMMIT"));
        eventually("a commit to be interrupted", async || {
            // Check twice, since a commit may still end after the bytes stopped.
            (is_amid() && is_amid()).then_some(())
        })
        .await;
        // The node cannot open another connection either.
        cutter.set(Treatment::Stands);
        let named = format!("probe-{round}");
        worst = worst.max(slowest(&first.rest(), &named, OTHERS_WAIT_MAX).await);
        assert!(!is_amid(), "the database ended the transaction");
        cutter.set(Treatment::Arrives);
        wait_answered(&reported, ANSWERED).await;
    }
    eprintln!("held amid a commit: the slowest answer of another node took {worst:?}");
    assert!(!is_measured() || worst <= OTHERS_WAIT_MAX, "{worst:?}");

    // A node that was cut off for a long time reports it, and recovers automatically.
    cutter.set(Treatment::Stands);
    let rest = second.rest();
    eventually("the node not to be ready", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    put(&first.rest(), "probe", "probe-meanwhile").await;
    cutter.set(Treatment::Arrives);
    eventually("the node to be ready", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    wait_answered(&reported, ANSWERED).await;
    stop.send_replace(true);
    senders.join_all().await;
    assert_all_notified(&first, &receiver, &reported).await;
}
