//! A full disk under the real service: new events are rejected, all other work continues, and the
//! service recovers automatically.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    small_disk::SmallDisk,
    world::World,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{journey, samples};

const MEBIBYTE: u64 = 1024 * 1024;
const DISK_MEBIBYTES: u32 = 96;
const SETTINGS: &str = "[store]\nfree_space_floor = \"8MiB\"\n\
                        [delivery]\nschedule = [\"0s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\"]\n";

/// Starts a service on a small disk; `None` if such a disk cannot be mounted.
#[expect(clippy::print_stderr, reason = "a skipped test reports the reason")]
fn world() -> Option<(World, SmallDisk)> {
    let mut disk = None;
    let mount = |data_dir: &Path| disk = SmallDisk::mount(data_dir, DISK_MEBIBYTES);
    let world = World::on(mount, SETTINGS);
    let Some(disk) = disk else {
        eprintln!("skipped: no disk can be mounted on this machine");
        return None;
    };
    Some((world, disk))
}

fn event(host: &str) -> Value {
    samples::event("full", host, "SEVERITY_ERROR", "disk is full")
}

/// Returns whether all events were accepted. Checks that rejections name the lack of space and
/// allow a retry.
pub(crate) async fn send(rest: &Rest, hosts: &[String]) -> bool {
    let events: Vec<_> = hosts.iter().map(|host| event(host)).collect();
    let body = samples::events(&events);
    let answer = rest.post("/v1/data-receiver/events", &body).await;
    if answer.status == 503 {
        assert_ne!(answer.header("retry-after"), "", "{}", answer.text());
        return false;
    }
    let answer = answer.ok();
    if let Some(failed) = answer["failedEvents"].get(0) {
        let why = failed["error"].as_str().expect("a sentence");
        assert!(why.contains("the disk is full"), "{why}");
    }
    answer["succeeded"] == hosts.len()
}

async fn disk_event(rest: &Rest) -> Option<Value> {
    let clause = json!({"equals": {"field": "name", "stringVal": "disk nearly full"}});
    let found = rest
        .post("/v1/events:search", &json!({"query": {"clause": clause}}))
        .await
        .ok();
    let occurrence = found["results"].get(0)?["occurrences"].get(0)?.clone();
    Some(occurrence)
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one journey")]
async fn full_disk_rejects_only_new_events_until_space_is_freed() {
    let Some((world, disk)) = world() else {
        return;
    };
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    receiver.set_default_reply(Reply::status(503));
    assert!(send(&rest, &["before".into()]).await);

    disk.fill(12 * MEBIBYTE);
    let nearly = eventually(
        "the service to report that its disk is nearly full",
        async || disk_event(&rest).await,
    )
    .await;
    assert_eq!(nearly["status"], "STATUS_OPEN", "{nearly}");
    assert!(send(&rest, &["nearly".into()]).await);

    disk.fill(0);
    // Send a new event each time: a repeated event requires no space, so it is accepted.
    let tries = AtomicU32::new(0);
    eventually("intake to be refused", async || {
        let host = format!("full-{}", tries.fetch_add(1, Ordering::Relaxed));
        let is_accepted = send(&rest, &[host]).await;
        (!is_accepted).then_some(())
    })
    .await;

    eventually("readiness to report that events are rejected", async || {
        let ready = rest.get("/readyz").await;
        let is_said = ready.text().contains("events are refused");
        (ready.status == 503 && is_said).then_some(())
    })
    .await;
    let overview = rest.get("/v1/overview").await.ok();
    assert_eq!(overview["store"]["acceptsEvents"], false);
    let full = eventually("the event to be critical", async || {
        let reported = disk_event(&rest).await?;
        (reported["severity"] == "SEVERITY_CRITICAL").then_some(reported)
    })
    .await;
    assert_eq!(full["status"], "STATUS_OPEN", "{full}");
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    let results = found["results"].as_array().expect("results");
    let event_id = results
        .iter()
        .find(|it| it["dimensions"]["host"] == "before")
        .expect("it is read")["id"]
        .clone();
    let status = json!({"statuses": [{"eventId": event_id, "acknowledged": true}]});
    let acknowledged = rest.post("/v1/event-management/status", &status).await.ok();
    assert_eq!(acknowledged["statusResponses"][0]["success"], true);
    receiver.set_default_reply(Reply::status(200));
    eventually("the waiting messages to be delivered", async || {
        let path = "/v1/notification/deliveries?states=DELIVERED";
        let delivered = rest.get(path).await.ok();
        (delivered["deliveries"].as_array()?.len() >= 2).then_some(())
    })
    .await;
    let path = "/v1/notification/rules/disks";
    rest.delete(path).await.ok();
    assert_eq!(rest.get(path).await.status, 404);
    assert!(!send(&rest, &["still full".into()]).await);

    disk.free();
    eventually("intake to go on", async || {
        send(&rest, &["after".into()]).await.then_some(())
    })
    .await;
    eventually(
        "the service to report that its disk has space",
        async || {
            let reported = disk_event(&rest).await?;
            (reported["status"] == "STATUS_CLOSED").then_some(())
        },
    )
    .await;
    eventually("readiness", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    assert!(!world.service().log().contains("panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_filling_under_load_loses_no_acknowledged_event() {
    let Some((mut world, disk)) = world() else {
        return;
    };
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let refused = Arc::new(Mutex::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..3 {
        let (rest, answered) = (world.rest(), Arc::clone(&answered));
        let (refused, is_over) = (Arc::clone(&refused), Arc::clone(&is_over));
        senders.spawn(async move {
            for round in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let host = |number| format!("s{sender}-{round}-{number}");
                let hosts: Vec<_> = (0..20).map(host).collect();
                if send(&rest, &hosts).await {
                    answered.lock().expect("no sender failed").extend(hosts);
                } else {
                    *refused.lock().expect("no sender failed") += 1;
                }
            }
        });
    }
    for _ in 0..5 {
        let answered_before = answered.lock().expect("no sender failed").len();
        let refused_before = *refused.lock().expect("no sender failed");
        eventually("events to be accepted", async || {
            let count = answered.lock().expect("no sender failed").len();
            (count >= answered_before + 100).then_some(())
        })
        .await;
        disk.fill(0);
        eventually("events to be rejected", async || {
            let count = *refused.lock().expect("no sender failed");
            (count > refused_before).then_some(())
        })
        .await;
        disk.free();
    }
    is_over.store(true, Ordering::Relaxed);
    senders.join_all().await;
    // Accepted events are on disk, not only in memory.
    world.kill();
    world.start_again();
    let stored = crate::crash::stored_hosts(&world.rest()).await;
    let answered = answered.lock().expect("no sender failed").clone();
    let lost: Vec<_> = answered.difference(&stored).take(5).collect();
    assert!(lost.is_empty(), "lost events: {lost:?}");
}
