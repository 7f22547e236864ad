//! Heartbeats over REST: beats by events, calls and addresses, and what a missing one opens.

use bellwether_tests::{eventually::eventually, receiver::Receiver, rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const HEARTBEATS: &str = "/v1/notification/heartbeats";

/// A heartbeat whose beats are distinguished by host.
fn backup() -> Value {
    json!({
        "name": "nightly backup",
        "enabled": true,
        "filter": "name=backup-done",
        "by": ["host"],
        "every": "86400s",
        "event": {"name": "backup missing", "severity": "SEVERITY_CRITICAL"},
    })
}

async fn expectations(rest: &Rest) -> Vec<Value> {
    let path = format!("{HEARTBEATS}/nightly%20backup/expectations");
    let found = rest.get(&path).await.ok();
    found["expectations"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// The state of the event that the heartbeat opened, as the list of events has it.
async fn status(rest: &Rest) -> Option<String> {
    let asked = json!({"query": {"filter": "name=\"backup missing\""}});
    let found = rest.post("/v1/events:search", &asked).await.ok();
    let status = &found["results"][0]["occurrences"][0]["status"];
    Some(status.as_str()?.to_owned())
}

#[tokio::test]
async fn beats_come_by_events_calls_and_addresses_and_a_failure_opens_an_event() {
    let mut world = World::start();
    let rest = world.rest();
    let created = rest.post(HEARTBEATS, &backup()).await.ok();
    assert_eq!(created["heartbeat"]["grace"], "8640s");
    for host in ["db-1", "db-2"] {
        let done = samples::event("backup-done", host, "SEVERITY_INFO", "done");
        let body = samples::events(&[done]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    }
    let hosts: Vec<_> = expectations(&rest).await;
    let hosts: Vec<_> = hosts
        .iter()
        .map(|it| it["values"]["host"].clone())
        .collect();
    assert_eq!(hosts, ["db-1", "db-2"]);

    let sender = world.client("cron", "ingest");
    let beat = "/v1/data-receiver/heartbeats/nightly%20backup:beat";
    let failed = json!({"dimensions": {"host": "db-3"}, "exit": 1});
    let cron = rest.with_key(Some(&sender));
    cron.post(beat, &failed).await.ok();
    // What was answered survives the process.
    world.kill();
    world.start_again();
    let (rest, cron) = (world.rest(), world.rest().with_key(Some(&sender)));
    let wanted = async || status(&rest).await.filter(|it| it == "STATUS_OPEN");
    eventually("the event is open", wanted).await;
    let found = expectations(&rest).await;
    assert_eq!((found.len(), &found[0]["state"]), (3, &json!("FAILED")));
    let shown = rest
        .get(&format!("{HEARTBEATS}/nightly%20backup"))
        .await
        .ok();
    assert_eq!(shown["heartbeat"]["expectedCount"], 3);
    assert_eq!(shown["heartbeat"]["lateCount"], 1);
    cron.post(beat, &json!({"dimensions": {"host": "db-3"}}))
        .await
        .ok();
    let wanted = async || status(&rest).await.filter(|it| it == "STATUS_CLOSED");
    eventually("the event is closed", wanted).await;

    let key = found[0]["key"].clone();
    let forget = format!("{HEARTBEATS}/nightly%20backup:forget");
    rest.post(&forget, &json!({"key": key})).await.ok();
    assert_eq!(expectations(&rest).await.len(), 2);
    let again = rest.post(&forget, &json!({"key": key})).await;
    assert_eq!(again.status, 404);
}

#[tokio::test]
async fn an_address_needs_its_key_alone_and_no_other_key_opens_it() {
    let world = World::start();
    let rest = world.rest();
    let draft = json!({"name": "cron", "enabled": true, "every": "3600s"});
    rest.post(HEARTBEATS, &draft).await.ok();
    let made = rest
        .post(&format!("{HEARTBEATS}/cron:rotateKey"), &json!({}))
        .await
        .ok();
    let path = made["path"].as_str().unwrap();
    let anyone = rest.with_key(None);
    for method in [Method::GET, Method::POST, Method::HEAD] {
        let answer = anyone.send(method.clone(), path, "").await;
        assert_eq!(answer.status, 200, "{method} {answer:?}");
    }
    let shown = rest.get(&format!("{HEARTBEATS}/cron")).await.ok();
    assert_eq!(shown["heartbeat"]["hasKey"], true);
    assert!(shown["heartbeat"]["lastBeatTime"].is_string(), "{shown}");
    // Neither a list nor an export nor the audit log shows it.
    let key = made["key"].as_str().unwrap();
    for shows in [HEARTBEATS, "/v1/audit"] {
        let answer = rest.send(Method::GET, shows, "").await;
        assert!(!answer.text().contains(key), "{shows}");
    }
    for wrong in [
        format!("/v1/data-receiver/heartbeats/cron/{}", "A".repeat(48)),
        format!("/v1/data-receiver/heartbeats/other/{key}"),
    ] {
        assert_eq!(
            anyone.send(Method::GET, &wrong, "").await.status,
            401,
            "{wrong}"
        );
    }
    assert_eq!(anyone.send(Method::GET, HEARTBEATS, "").await.status, 401);
    rest.post(&format!("{HEARTBEATS}/cron:rotateKey"), &json!({}))
        .await
        .ok();
    assert_eq!(anyone.send(Method::GET, path, "").await.status, 401);
}

#[tokio::test]
async fn a_run_is_started_measured_and_ended_by_its_address() {
    let world = World::start();
    let rest = world.rest();
    let draft = json!({"name": "cron", "enabled": true, "every": "3600s", "maxRun": "600s"});
    rest.post(HEARTBEATS, &draft).await.ok();
    let made = rest
        .post(&format!("{HEARTBEATS}/cron:rotateKey"), &json!({}))
        .await
        .ok();
    let path = made["path"].as_str().unwrap();
    let anyone = rest.with_key(None);
    let shown = async || {
        let shown = rest.get(&format!("{HEARTBEATS}/cron")).await.ok();
        shown["heartbeat"]["expectations"][0].clone()
    };
    for (method, query) in [
        (Method::HEAD, "start"),
        (Method::GET, "start"),
        (Method::POST, "start=true"),
    ] {
        let answer = anyone.send(method, &format!("{path}?{query}"), "").await;
        assert_eq!(answer.status, 200, "{query}");
    }
    let running = shown().await;
    assert!(running["runStartTime"].is_string(), "{running}");
    assert!(running["lastBeatTime"].is_null() && running["lastRun"].is_null());
    for wrong in ["start&exit=0", "start=perhaps"] {
        let answer = anyone
            .send(Method::GET, &format!("{path}?{wrong}"), "")
            .await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    let answer = anyone
        .send(Method::GET, &format!("{path}?exit=2"), "")
        .await;
    assert_eq!(answer.status, 200);
    let ended = shown().await;
    assert_eq!(ended["state"], "FAILED");
    assert!(
        ended["lastRun"].is_string() && ended["runStartTime"].is_null(),
        "{ended}"
    );
}

#[tokio::test]
async fn a_preview_answers_what_stored_events_would_have_made() {
    let world = World::start();
    let rest = world.rest();
    for host in ["db-1", "db-2"] {
        let done = samples::event("backup-done", host, "SEVERITY_INFO", "done");
        let body = samples::events(&[done]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    }
    let mut draft = backup();
    draft["name"] = json!("");
    let preview = format!("{HEARTBEATS}:preview");
    let found = rest.post(&preview, &draft).await.ok();
    assert_eq!(found["expectationCount"], 2);
    assert_eq!(found["alarmCount"], 0);
    let hosts = found["expectations"].as_array().unwrap().iter();
    let hosts: Vec<_> = hosts.map(|it| it["values"]["host"].clone()).collect();
    assert_eq!(hosts, ["db-1", "db-2"]);
    let stored = rest.get(HEARTBEATS).await.ok();
    assert_eq!(stored["totalSize"], 0);
    draft["every"] = json!("1s");
    assert_eq!(rest.post(&preview, &draft).await.status, 400);
}

#[tokio::test]
async fn an_external_monitor_is_pinged_while_the_service_works_and_its_address_is_nowhere() {
    let monitor = Receiver::start().await;
    let settings = format!(
        "log_filter = \"trace\"\n[heartbeat]\nurl = \"{}\"\n",
        monitor.url("/ping/canary")
    );
    let world = World::with_settings(&settings);
    eventually("a ping", async || (monitor.count() > 0).then_some(())).await;
    let received = monitor.received();
    assert_eq!(
        (&*received[0].method, &*received[0].path),
        ("GET", "/ping/canary")
    );
    eventually("it is counted", async || {
        let metrics = world.rest().with_key(None).get("/metrics").await.text();
        let counted = "bellwether_pings_total{outcome=\"accepted\"} 1";
        metrics.contains(counted).then_some(())
    })
    .await;
    assert!(!world.service().log().contains("canary"));
}
