//! Tests with connections broken at any point, a running dump, and a killed database: all accepted
//! events are stored, and the change log has no gap.

use std::{
    process::{Child, Stdio},
    sync::{Arc, Mutex},
};

use bellwether_tests::{
    cutter::{Cutter, Treatment},
    eventually::eventually,
    postgres::Postgres,
    receiver::Receiver,
};

use super::{
    ANSWERED, Database, SendOutcomes, each_has_one_delivery, none_is_lost, send, wait_answered,
};
use crate::{
    crash::{notified_hosts, rounds},
    journey,
};

/// Maximum bytes per connection and direction: a few dozen commits.
const CUT_WITHIN_BYTES: usize = 100_000;
const ANSWERED_MEANWHILE: usize = 40;

/// A database dump that holds a snapshot, and never ends because its output is not read.
struct Dump(Child);

impl Dump {
    fn begin(server: &Postgres) -> Self {
        let mut dump = server.client("pg_dump");
        dump.stdout(Stdio::piped()).stderr(Stdio::null());
        Self(dump.spawn().unwrap())
    }

    fn is_running(server: &Postgres) -> bool {
        let text = "SELECT count(*) FROM pg_stat_activity \
                    WHERE application_name = 'pg_dump' AND xact_start IS NOT NULL";
        server.execute(text) == "1"
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_survive_connection_cuts_dump_and_kills() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let cutter = Cutter::start(database.server.port());
    let mut world = database.world_over(cutter.port());
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    for round in 0..rounds(2) {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let senders = send(&world.rest(), &format!("cut-{round}"), &reported, &stopped);
        wait_answered(&reported, ANSWERED).await;
        let dump = Dump::begin(&database.server);
        eventually("the dump to be in progress", async || {
            Dump::is_running(&database.server).then_some(())
        })
        .await;
        cutter.set(Treatment::IsCut {
            within_bytes: CUT_WITHIN_BYTES,
        });
        wait_answered(&reported, ANSWERED_MEANWHILE).await;
        if round % 2 == 0 {
            assert!(
                Dump::is_running(&database.server),
                "the dump runs throughout"
            );
        } else {
            tokio::task::block_in_place(|| {
                database.server.kill();
                database.server.run();
            });
            wait_answered(&reported, ANSWERED_MEANWHILE).await;
        }
        cutter.set(Treatment::Arrives);
        wait_answered(&reported, ANSWERED).await;
        stop.send_replace(true);
        senders.join_all().await;
        drop(dump);
    }
    let unknown = reported.lock().unwrap().unknown.len();
    let stored = none_is_lost(&world.rest(), &reported).await;
    let text = "SELECT max(place) - min(place) + 1 = count(*) FROM bellwether.log";
    assert_eq!(database.server.execute(text), "t", "the log has a gap");
    eventually("notifications of every stored event", async || {
        stored.is_subset(&notified_hosts(&receiver)).then_some(())
    })
    .await;
    each_has_one_delivery(&receiver, &stored, unknown);
    assert!(world.terminate().success());
}
