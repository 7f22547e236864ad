//! Heartbeats over REST: beats from events, calls and addresses, and the event that opens when a
//! beat is missed.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use bellwether_language::text::percent_encode;
use bellwether_tests::{
    eventually::eventually, receiver::Receiver, rest::Rest, tree, world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const HEARTBEATS: &str = "/v1/notification/heartbeats";

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

async fn status(rest: &Rest) -> Option<String> {
    let request = json!({"query": {"filter": "name=\"backup missing\""}});
    let found = rest.post("/v1/events:search", &request).await.ok();
    let status = &found["results"][0]["occurrences"][0]["status"];
    Some(status.as_str()?.to_owned())
}

#[tokio::test]
async fn heartbeats_accept_events_calls_and_urls_and_report_failures() {
    let mut world = World::start();
    let rest = world.rest();
    let created = rest.post(HEARTBEATS, &backup()).await.ok();
    assert_eq!(created["heartbeat"]["grace"], "8640s");
    for host in ["db-1", "db-2"] {
        let done = samples::event("backup-done", host, "SEVERITY_INFO", "done");
        let body = samples::events(&[done]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    }
    // A beat that waits for another writer is stored after the response to its event.
    let both = async || {
        let found = expectations(&rest).await.into_iter();
        let hosts: Vec<_> = found.map(|it| it["values"]["host"].clone()).collect();
        (hosts == ["db-1", "db-2"]).then_some(())
    };
    eventually("both hosts are expected", both).await;

    let sender = world.client("cron", "ingest");
    let beat = "/v1/data-receiver/heartbeats/nightly%20backup:beat";
    let failed = json!({"dimensions": {"host": "db-3"}, "exit": 1});
    let cron = rest.with_key(Some(&sender));
    cron.post(beat, &failed).await.ok();
    // All accepted beats and signals survive a kill.
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
async fn heartbeat_url_accepts_only_its_own_key() {
    let world = World::start();
    let rest = world.rest();
    let draft = json!({"name": "cron", "enabled": true, "every": "3600s"});
    rest.post(HEARTBEATS, &draft).await.ok();
    let made = rest
        .post(&format!("{HEARTBEATS}/cron:rotateKey"), &json!({}))
        .await
        .ok();
    let path = made["path"].as_str().unwrap();
    let with_name = path.replace("heartbeats/", "heartbeats/cron/");
    let anyone = rest.with_key(None);
    for method in [Method::GET, Method::POST, Method::HEAD] {
        for path in [path, &with_name] {
            let answer = anyone.send(method.clone(), path, "").await;
            assert_eq!(answer.status, 200, "{method} {answer:?}");
            assert_eq!(answer.text(), "", "{method}");
        }
    }
    let shown = rest.get(&format!("{HEARTBEATS}/cron")).await.ok();
    assert_eq!(shown["heartbeat"]["hasKey"], true);
    assert!(shown["heartbeat"]["lastBeatTime"].is_string(), "{shown}");
    // Lists, exports and the audit log do not contain the key.
    let key = made["key"].as_str().unwrap();
    for shows in [HEARTBEATS, "/v1/audit"] {
        let answer = rest.send(Method::GET, shows, "").await;
        assert!(!answer.text().contains(key), "{shows}");
    }
    for wrong in [
        format!("/v1/data-receiver/heartbeats/cron/{}", "A".repeat(48)),
        format!("/v1/data-receiver/heartbeats/{}", "A".repeat(48)),
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
async fn run_is_started_measured_and_ended_by_url() {
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
async fn every_heartbeat_url_form_reports_its_signal() {
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
    let state = async || {
        let shown = rest.get(&format!("{HEARTBEATS}/cron")).await.ok();
        let expected = &shown["heartbeat"]["expectations"][0];
        let is_running = expected["runStartTime"].is_string();
        (expected["state"].as_str().unwrap().to_owned(), is_running)
    };
    let (good, failed) = ("BEATING", "FAILED");
    // Each signal follows a failure or a beat, so that its loss would be noticed.
    for (before, form, expected) in [
        ("", "/1", (failed, false)),
        ("", "/0", (good, false)),
        ("", "/fail", (failed, false)),
        ("/0", "/255", (failed, false)),
        ("", "?status=up", (good, false)),
        ("", "?status=down", (failed, false)),
        ("/0", "?fail", (failed, false)),
        ("/fail", "?rid=5a3d", (good, false)),
        ("/fail", "/log", (failed, false)),
        ("/0", "/log", (good, false)),
        ("/0", "/start", (good, true)),
        ("/start", "/log", (good, true)),
        ("/start", "?exit=3", (failed, false)),
        ("/fail", "/start?rid=1", (failed, true)),
    ] {
        for form in [before, form] {
            let answer = anyone
                .send(Method::POST, &format!("{path}{form}"), "x")
                .await;
            assert_eq!(answer.status, 200, "{form} {answer:?}");
        }
        let (state, is_running) = state().await;
        assert_eq!((&*state, is_running), expected, "{before} {form}");
    }
    let before = state().await;
    for wrong in [
        "/256",
        "/-1",
        "/failed",
        "/start/1",
        "?status=bad",
        "?fial",
        "?exit=1&start",
        "/fail?exit=0",
        "/0?status=down",
        "?start&fail",
    ] {
        let answer = anyone
            .send(Method::GET, &format!("{path}{wrong}"), "")
            .await;
        assert!(
            [400, 404].contains(&answer.status.as_u16()),
            "{wrong} {answer:?}"
        );
    }
    assert_eq!(state().await, before);
    for wrong in ["/0", "/start", "/log"] {
        let path = format!("/v1/data-receiver/heartbeats/{}{wrong}", "A".repeat(48));
        let answer = anyone.send(Method::GET, &path, "").await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
}

/// Runs a line of a crontab as cron does, and returns the output that cron would mail. The command
/// ends at the first `%` without a backslash; the rest of the line is the command's input.
fn run_by_cron(crontab: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("PATH", "/usr/bin:/bin");
    let lines = crontab.lines().filter(|line| !line.is_empty());
    let (settings, jobs): (Vec<_>, Vec<_>) = lines.partition(|line| {
        let name = line.split('=').next().unwrap_or_default();
        name.chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
    });
    for (name, value) in settings.iter().filter_map(|line| line.split_once('=')) {
        shell.env(name, value);
    }
    let [job] = &*jobs else {
        panic!("one job, not {jobs:?}");
    };
    let command = job.splitn(6, ' ').nth(5).unwrap().trim_start();
    let (command, input) = command.replace("\\%", "\0").split_once('%').map_or_else(
        || (command.replace("\\%", "\0"), String::new()),
        |(command, input)| (command.to_owned(), input.replace('%', "\n")),
    );
    let [command, input] = [command, input].map(|text| text.replace('\0', "%"));
    let mut child = shell
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may have exited.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8(printed).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_crontab_runs_the_job_without_output() {
    let page = fs::read_to_string(tree::root().join("docs/start.md")).unwrap();
    let crontab = page.split("```crontab\n").last().unwrap();
    let crontab = crontab.split("```").next().unwrap();
    assert!(crontab.contains("heartbeats/KEY"), "{crontab}");
    let world = World::start();
    let rest = world.rest();
    for name in ["nightly-backup", "nightly backup", "größe.1_2"] {
        let draft = json!({"name": name, "enabled": true, "every": "86400s"});
        rest.post(HEARTBEATS, &draft).await.ok();
        let of = format!("{HEARTBEATS}/{}", percent_encode(name));
        let made = rest.post(&format!("{of}:rotateKey"), &json!({})).await.ok();
        let path = made["path"].as_str().unwrap();
        assert!(!path.contains('%'), "{path}");
        let address = format!("http://{}{path}", world.service().address("rest"));
        for (job, state) in [("false", "FAILED"), ("true", "BEATING")] {
            let folder = tempfile::tempdir().unwrap();
            let ran = folder.path().join("ran");
            let crontab = crontab
                .replace(
                    "http://127.0.0.1:8480/v1/data-receiver/heartbeats/KEY",
                    &address,
                )
                .replace(
                    "/usr/local/bin/backup",
                    &format!("touch {}; {job}", ran.display()),
                );
            assert_eq!(run_by_cron(&crontab), "", "{crontab}");
            assert!(ran.exists(), "{crontab}");
            let shown = rest.get(&of).await.ok();
            let expectation = &shown["heartbeat"]["expectations"][0];
            assert_eq!(expectation["state"], state, "{name}: {shown}");
            assert!(expectation["lastRun"].is_string(), "{name}: {shown}");
        }
    }
}

#[tokio::test]
async fn heartbeat_preview_evaluates_stored_events() {
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
async fn external_monitor_is_pinged_and_its_address_is_not_logged() {
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
