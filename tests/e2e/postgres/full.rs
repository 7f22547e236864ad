//! A full database (error 53100), here a tablespace on a small disk. It rejects new events,
//! continues all work that requires no space, and accepts events within seconds once there is
//! space.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::eventually,
    process,
    receiver::{Receiver, Reply},
    small_disk::SmallDisk,
    world::World,
};
use serde_json::json;

use super::{Database, init};
use crate::{disk::send, journey};

const DISK_MEBIBYTES: u32 = 128;
const ACCEPTED_MAX: Duration = Duration::from_secs(10);

/// Makes a database create its tables on a small disk. Returns `None` if no disk can be mounted.
#[expect(clippy::print_stderr, reason = "a skipped test reports the reason")]
fn on_small_disk(database: &Database) -> Option<SmallDisk> {
    let data = database.server.execute("SHOW data_directory");
    let folder = Path::new(&data).with_file_name("small");
    let Some(disk) = SmallDisk::mount(&folder, DISK_MEBIBYTES) else {
        eprintln!("skipped: no disk can be mounted on this machine");
        return None;
    };
    let owned = Command::new("chown")
        .arg("--reference")
        .arg(&data)
        .arg(&folder)
        .status();
    assert!(owned.unwrap().success());
    let folder = folder.display();
    database
        .server
        .execute(&format!("CREATE TABLESPACE small LOCATION '{folder}'"));
    database
        .server
        .execute("ALTER DATABASE postgres SET default_tablespace = small");
    Some(disk)
}

fn status(world: &World) -> (Option<i32>, String) {
    let address = format!("http://{}", world.service().address("grpc"));
    let mut command = world.command(&["status", "--connect", &address]);
    command.env("BELLWETHER_KEY", world.admin_key());
    let output = process::run(command);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one journey")]
async fn full_database_rejects_only_events_until_space_is_freed() {
    let Some(database) = Database::start() else {
        return;
    };
    let Some(disk) = on_small_disk(&database) else {
        return;
    };
    let retries = r#"["0s", "1s", "1s", "1s", "2s", "2s", "5s", "5s", "10s", "10s"]"#;
    let lines = database.settings().replace(r#"["0s"]"#, retries);
    let world = World::on(init, &lines);
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    receiver.set_default_reply(Reply::status(503));
    assert!(send(&rest, &["before".into()]).await);

    disk.fill(0);
    // Send new events each time: a repeated one may be updated in place.
    let tries = AtomicU32::new(0);
    eventually("events to be rejected", async || {
        let number = tries.fetch_add(1, Ordering::Relaxed);
        let hosts: Vec<_> = (0..20).map(|it| format!("full-{number}-{it}")).collect();
        let is_accepted = send(&rest, &hosts).await;
        (!is_accepted).then_some(())
    })
    .await;
    eventually("readiness to report that events are rejected", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    let overview = rest.get("/v1/overview").await.ok();
    assert_eq!(overview["store"]["acceptsEvents"], false, "{overview}");
    let (code, said) = status(&world);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("full"), "{said}");
    assert_eq!(rest.get("/healthz").await.status, 200);

    // Reads succeed, and so do other writes while the pages of the tables have room.
    let query = json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "full"}}}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let event_id = &found["results"][0]["id"];
    assert!(event_id.is_string(), "{found}");
    let status = json!({"statuses": [{"eventId": event_id, "acknowledged": true}]});
    let acknowledged = rest.post("/v1/event-management/status", &status).await;
    let is_reported = matches!(acknowledged.status.as_u16(), 200 | 503);
    assert!(is_reported, "{}", acknowledged.text());
    receiver.set_default_reply(Reply::status(200));
    let many: Vec<_> = (0..200).map(|it| format!("still-{it}")).collect();
    assert!(!send(&rest, &many).await);

    disk.free();
    let freed = Instant::now();
    eventually("events to be accepted again", async || {
        let number = tries.fetch_add(1, Ordering::Relaxed);
        send(&rest, &[format!("after-{number}")])
            .await
            .then_some(())
    })
    .await;
    assert!(freed.elapsed() <= ACCEPTED_MAX, "{:?}", freed.elapsed());
    eventually("readiness", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    eventually("every message to be delivered", async || {
        let list = rest
            .get("/v1/notification/deliveries?pageSize=1000")
            .await
            .ok();
        let deliveries = list["deliveries"].as_array()?.clone();
        deliveries
            .iter()
            .all(|it| it["state"] == "DELIVERED")
            .then_some(())
    })
    .await;
    assert!(!world.service().log().contains("panicked"));
}
