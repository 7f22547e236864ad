//! Nodes that are suspended, or blocked during a commit: the others continue, and nothing is lost
//! or done twice.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    cutter::{Cutter, Fate},
    eventually::eventually,
    process,
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};

use super::{join_with, leader, put, three, told_of};
use crate::{
    crash::rounds,
    journey,
    postgres::{ANSWERED, Database, Told, answered, none_is_lost, send},
};

/// Longest response time of another node, on an otherwise idle machine.
const OTHERS_WAIT_MAX: Duration = Duration::from_secs(6);

/// Whether the test runs alone, so that its times are meaningful.
fn is_measured() -> bool {
    std::env::var_os("BELLWETHER_TEST_STOPS").is_some()
}

/// Returns how long nodes are suspended: 5 s, or several times with `BELLWETHER_TEST_STOPS`.
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

/// Asserts that accepted events are stored and reported, each by one delivery.
async fn all_is_told(world: &World, receiver: &Receiver, told: &Mutex<Told>) {
    let stored = none_is_lost(&world.rest(), told).await;
    let probes = |it: &&String| !it.starts_with("probe");
    let stored: BTreeSet<String> = stored.iter().filter(probes).cloned().collect();
    told_of(receiver, &stored).await;
    let received = receiver.received();
    let ids: BTreeSet<_> = received.iter().map(Received::delivery_id).collect();
    assert_eq!(ids.len(), stored.len(), "one delivery an event");
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_under_load_delays_nobody_and_duplicates_nothing() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let names = ["one", "two", "three"];
    let receiver = Receiver::start().await;
    journey::set_up(&worlds[0].rest(), &receiver).await;
    let told = Arc::new(Mutex::new(Told::default()));
    for (round, time) in stops().into_iter().enumerate() {
        let leads = leader(&worlds[0]).await;
        let stopped = names.iter().position(|it| *it == leads).unwrap();
        let (stop, ends) = tokio::sync::watch::channel(false);
        let mut senders = Vec::new();
        for (world, name) in worlds.iter().zip(names) {
            let round = format!("{round}-{name}");
            senders.push(send(&world.rest(), &round, &told, &ends));
        }
        answered(&told, ANSWERED).await;
        process::signal("-STOP", worlds[stopped].service().id());
        let other = worlds[(stopped + 1) % 3].rest();
        let took = slowest(&other, &format!("probe-{round}"), time).await;
        process::signal("-CONT", worlds[stopped].service().id());
        answered(&told, ANSWERED).await;
        stop.send_replace(true);
        for senders in senders {
            senders.join_all().await;
        }
        eprintln!("stopped for {time:?}: the slowest answer of another node took {took:?}");
        assert!(!is_measured() || took <= OTHERS_WAIT_MAX, "{took:?}");
    }
    all_is_told(&worlds[1], &receiver, &told).await;
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
    let told = Arc::new(Mutex::new(Told::default()));
    let (stop, ends) = tokio::sync::watch::channel(false);
    let senders = send(&second.rest(), "held", &told, &ends);
    answered(&told, ANSWERED).await;
    // It holds the lock of the commit order, so that others wait for it.
    let is_amid = || {
        let text = "SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid) \
                    WHERE a.state = 'idle in transaction' AND l.mode = 'RowShareLock' \
                    AND l.relation = 'bellwether.head'::regclass";
        tokio::task::block_in_place(|| database.server.execute(text)) != "0"
    };
    let mut worst = Duration::ZERO;
    for round in 0..rounds(2) {
        cutter.set(Fate::StandsBefore("COMMIT"));
        eventually("a commit to be met in the middle", async || {
            // Checked twice, as a commit in progress when the bytes stopped may still end.
            (is_amid() && is_amid()).then_some(())
        })
        .await;
        // The node does not return over another connection either.
        cutter.set(Fate::Stands);
        let named = format!("probe-{round}");
        worst = worst.max(slowest(&first.rest(), &named, OTHERS_WAIT_MAX).await);
        assert!(!is_amid(), "the database gave it up");
        cutter.set(Fate::Arrives);
        answered(&told, ANSWERED).await;
    }
    eprintln!("held amid a commit: the slowest answer of another node took {worst:?}");
    assert!(!is_measured() || worst <= OTHERS_WAIT_MAX, "{worst:?}");

    // A node cut off for long reports it, and recovers automatically.
    cutter.set(Fate::Stands);
    let rest = second.rest();
    eventually("it not to be ready", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    put(&first.rest(), "probe", "probe-meanwhile").await;
    cutter.set(Fate::Arrives);
    eventually("it to be ready", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    answered(&told, ANSWERED).await;
    stop.send_replace(true);
    senders.join_all().await;
    all_is_told(&first, &receiver, &told).await;
}
