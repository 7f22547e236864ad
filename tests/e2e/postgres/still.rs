//! A database that hangs, as with blocked storage: connections stay open, but the server does not
//! respond.

use std::time::{Duration, Instant};

use bellwether_tests::{eventually::eventually, rest::Rest};
use tokio::time::sleep;

use super::Database;
use crate::samples;

const ANSWERED_MAX: Duration = Duration::from_secs(10);
const NOT_READY_MAX: Duration = Duration::from_secs(6);

async fn send(rest: &Rest, host: &str) -> (u16, String, Duration) {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let begun = Instant::now();
    let answer = rest
        .post("/v1/data-receiver/events", &samples::events(&[event]))
        .await;
    (answer.status.as_u16(), answer.text(), begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_database_is_reported_within_seconds_and_recovers() {
    let Some(database) = Database::start() else {
        return;
    };
    let world = database.world();
    let rest = world.rest();
    assert_eq!(send(&rest, "before").await.0, 200);

    database.server.suspend(true);
    let begun = Instant::now();
    let ready = async {
        while rest.get("/readyz").await.status == 200 {
            sleep(Duration::from_millis(50)).await;
        }
        begun.elapsed()
    };
    let read = async {
        let answer = rest.get("/v1/notification/rules").await;
        (answer.status.as_u16(), begun.elapsed())
    };
    let (first, second, not_ready, read) =
        tokio::join!(send(&rest, "a"), send(&rest, "b"), ready, read);
    assert!(not_ready <= NOT_READY_MAX, "{not_ready:?}");
    assert!(read.0 == 503 && read.1 <= ANSWERED_MAX, "{read:?}");
    for (status, text, after) in [first, second] {
        // A request that was in flight may have been stored; one that was not sent was rejected.
        assert!(status == 503 || text.contains("OUTCOME_UNKNOWN"), "{text}");
        assert!(after <= ANSWERED_MAX, "{after:?}");
    }
    let (status, text, after) = send(&rest, "meanwhile").await;
    assert!(
        status == 503 && after <= Duration::from_secs(1),
        "{after:?}: {text}"
    );
    assert_eq!(rest.get("/healthz").await.status, 200);

    database.server.suspend(false);
    eventually("the node to be ready", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    eventually("events to be accepted again", async || {
        (send(&rest, "after").await.0 == 200).then_some(())
    })
    .await;
    let hosts = "SELECT count(*) FROM bellwether.occurrence";
    let hosts: u8 = database.server.execute(hosts).parse().unwrap();
    assert!(
        (2..=4).contains(&hosts),
        "hosts before, after, and of an unknown outcome: {hosts}"
    );
}
