//! The page of a heartbeat: removing an expected source, and creating the key for the heartbeat's
//! URL.

use serde_json::{Value, json};

use super::{flows::assert_shows, *};
use crate::backend::Real;

async fn call(real: &Real, method: &str, body: Value) -> Value {
    real.call("HeartbeatService", method, &body).await
}

/// Starts a service that expects heartbeats from two hosts, one of which failed after a run.
async fn expecting() -> Real {
    let real = Real::start().await;
    let heartbeat = json!({"name": "backup", "enabled": true, "every": "86400s",
        "maxRun": "3600s", "by": ["host"]});
    call(&real, "CreateHeartbeat", json!({"heartbeat": heartbeat})).await;
    let beat = |host: &str, more: Value| {
        let mut beat = json!({"name": "backup", "dimensions": {"host": host}});
        let more = more.as_object().cloned().unwrap_or_default();
        beat.as_object_mut().unwrap().extend(more);
        beat
    };
    for (host, more) in [
        ("db-1", json!({})),
        ("db-1", json!({})),
        ("db-2", json!({"start": true})),
        ("db-2", json!({"exit": 3})),
    ] {
        call(&real, "Beat", beat(host, more)).await;
    }
    real
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeat_page_shows_expectations_and_a_key_once() {
    let real = expecting().await;
    let mut console = real.console().await;
    press(&mut console, "<A-h>").await;
    until(&mut console, "backup").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "Expected").await;
    let screen = console.screen_text();
    for part in [
        "longest run",
        "beating  host=db-1",
        "host=db-2",
        "due ",
        "run 0s",
    ] {
        assert_shows(&screen, part);
    }
    press(&mut console, "f").await;
    until(&mut console, "Forget an expectation of backup").await;
    let screen = press(&mut console, "<C-u>host=db-9<Enter>").await;
    assert_shows(&screen, "`host=db-9`: type the values as shown on the page");
    press(&mut console, "<C-u>host=db-2<Enter>").await;
    until(&mut console, "backup no longer expects host=db-2").await;
    let request = json!({"name": "backup"});
    let left = call(&real, "ListExpectations", request.clone()).await;
    let left = left["expectations"].as_array().unwrap();
    assert_eq!(
        (left.len(), &left[0]["values"]["host"]),
        (1, &json!("db-1"))
    );
    press(&mut console, "r").await;
    until(&mut console, "Create a new URL for backup?").await;
    press(&mut console, "y").await;
    until(&mut console, "/v1/data-receiver/heartbeats/").await;
    assert_shows(&console.screen_text(), "It is shown only once.");
    press(&mut console, "<Esc>").await;
    until(&mut console, "has a key").await;
    let shown = call(&real, "GetHeartbeat", request).await;
    assert_eq!(shown["heartbeat"]["hasKey"], true);
}
