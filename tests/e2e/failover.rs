//! A database of three servers whose primary is repeatedly killed or isolated. No accepted event is
//! lost, and another server soon accepts writes.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    patroni::{Patroni, TTL},
    receiver::Receiver,
    world::World,
};

use crate::{
    crash::notified_hosts,
    journey,
    postgres::{
        ANSWERED, SendOutcomes, each_has_one_delivery, init, none_is_lost, send, settings,
        wait_answered,
    },
};

/// Time limit for a failover, in addition to the TTL after which the primary counts as dead.
const BEYOND_TTL: Duration = Duration::from_secs(5);
const GIVEN_UP_AFTER: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the number of rounds requested; each takes half a minute.
fn rounds() -> Option<usize> {
    let value = std::env::var_os("BELLWETHER_TEST_FAILOVERS");
    let value = value.and_then(|value| value.to_str()?.parse().ok());
    if value.is_none() {
        // Write to standard error directly, so that a skipped test is visible.
        let notice = "skipped: another server takes over when `just failovers` asks for it\n";
        drop(std::io::stderr().write_all(notice.as_bytes()));
    }
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn database_failover_loses_no_acknowledged_event() {
    let Some(rounds) = rounds() else { return };
    let Some(mut servers) = tokio::task::block_in_place(Patroni::start) else {
        return;
    };
    let keys = tempfile::tempdir().unwrap();
    let key_file = keys.path().join("secret.key");
    let world = World::on(init, &settings(&servers.url(), &key_file, "one"));
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    let mut took = Vec::new();
    for round in 0..rounds {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let senders = send(
            &world.rest(),
            &format!("failover-{round}"),
            &reported,
            &stopped,
        );
        wait_answered(&reported, ANSWERED).await;
        let begin = Instant::now();
        let first = tokio::task::block_in_place(|| {
            let first = servers.primary().unwrap();
            match round % 2 {
                0 => servers.kill(first),
                _ => servers.cut_off(first),
            }
            first
        });
        loop {
            let primary = tokio::task::block_in_place(|| servers.primary());
            if primary.is_some_and(|it| it != first) {
                break;
            }
            assert!(begin.elapsed() < GIVEN_UP_AFTER, "no node takes over");
            tokio::time::sleep(PAUSE).await;
        }
        let other = begin.elapsed();
        let before = reported.lock().unwrap().answered.len();
        while reported.lock().unwrap().answered.len() == before {
            assert!(begin.elapsed() < GIVEN_UP_AFTER, "no request is answered");
            tokio::time::sleep(PAUSE).await;
        }
        took.push(begin.elapsed());
        eprintln!(
            "round {round}: another server after {other:?}, writes again after {:?}",
            begin.elapsed()
        );
        wait_answered(&reported, ANSWERED).await;
        stop.send_replace(true);
        senders.join_all().await;
        tokio::task::block_in_place(|| {
            servers.revive(first);
            servers.wait_healthy();
        });
    }
    let unknown = reported.lock().unwrap().unknown.len();
    let stored = none_is_lost(&world.rest(), &reported).await;
    let begin = Instant::now();
    while !stored.is_subset(&notified_hosts(&receiver)) {
        assert!(
            begin.elapsed() < GIVEN_UP_AFTER,
            "not all events are notified"
        );
        tokio::time::sleep(PAUSE).await;
    }
    each_has_one_delivery(&receiver, &stored, unknown);
    let late: Vec<_> = took.iter().filter(|it| **it > TTL + BEYOND_TTL).collect();
    assert!(late.is_empty(), "{took:?}");
}
