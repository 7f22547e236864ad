//! Inhibitions over REST: creation, previews, errors, and state that survives a kill.

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use serde_json::{Value, json};

use crate::samples;

const INHIBITIONS: &str = "/v1/notification/inhibitions";
const PENDING: &str = "/v1/notification/pending";

fn inhibition() -> Value {
    json!({
        "name": "dead host",
        "enabled": true,
        "sourceFilter": "name=host-down",
        "targetFilter": "name=full",
        "equal": [{"source": "host"}],
        "linger": "1s",
    })
}

async fn set_up(rest: &Rest, receiver: &Receiver) {
    let mut trigger = samples::trigger("all", "disk");
    trigger["type"] = json!({"event": {"filter": "severity>=info"}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let rule = samples::rule("page", "all", "hook", "{{event.name}}");
    rest.post("/v1/notification/rules", &rule).await.ok();
}

async fn send(rest: &Rest, name: &str, status: Option<&str>) {
    let mut event = samples::event(name, "a", "SEVERITY_ERROR", "something is wrong");
    if let Some(status) = status {
        event["status"] = json!(status);
    }
    let body = samples::events(&[event]);
    let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
    assert_eq!(answer["succeeded"], 1);
}

#[tokio::test]
async fn inhibited_event_survives_kill_and_notifies_when_cause_closes() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let made = rest.post(INHIBITIONS, &inhibition()).await.ok();
    let made = &made["inhibition"];
    assert_eq!(made["equal"], json!([{"source": "host", "target": "host"}]));
    assert_eq!(made["sourceFilter"], "name=host-down");
    eventually("the inhibition to be active", async || {
        let read = rest.get(&format!("{INHIBITIONS}/dead%20host")).await.ok();
        (read["inhibition"]["state"] == "ACTIVE").then_some(())
    })
    .await;

    send(&rest, "host-down", None).await;
    receiver.wait_for(1).await;
    send(&rest, "full", None).await;
    let tried = rest
        .post(&format!("{INHIBITIONS}:preview"), &inhibition())
        .await
        .ok();
    assert_eq!(
        (
            &tried["sourceCount"],
            &tried["targetCount"],
            &tried["heldCount"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(tried["pairs"][0]["source"]["name"], "host-down");
    let waits = rest.get(PENDING).await.ok();
    let hold = &waits["pending"][0]["holds"][0];
    assert_eq!(
        (&hold["kind"], &hold["name"]),
        (&json!("HOLD_KIND_INHIBITION"), &json!("dead host"))
    );

    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(
        rest.get(PENDING).await.ok()["pending"][0]["holds"][0],
        *hold
    );
    assert_eq!(receiver.count(), 1);
    send(&rest, "host-down", Some("STATUS_CLOSED")).await;
    receiver.wait_for(2).await;
    eventually("no notification to be held", async || {
        let waits = rest.get(PENDING).await.ok();
        waits["pending"]
            .as_array()
            .is_none_or(Vec::is_empty)
            .then_some(())
    })
    .await;
    let output = process::run(world.command(&["check", "--json"]));
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{reported}");
    world.terminate();
}

#[tokio::test]
async fn invalid_inhibition_fields_are_all_reported() {
    let world = World::start();
    let rest = world.rest();
    let refused = rest
        .post(
            INHIBITIONS,
            &json!({"name": "bad", "sourceFilter": "name=", "equal": [{"source": "dimensions."}], "linger": "7200s"}),
        )
        .await;
    assert_eq!(refused.status, 400);
    let text = refused.json().to_string();
    for part in ["sourceFilter", "target", "equal[0].source", "linger"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut without = inhibition();
    without["equal"] = json!([]);
    let text = rest.post(INHIBITIONS, &without).await.json().to_string();
    assert!(text.contains("1 to 8"), "{text}");
}

#[tokio::test]
async fn draft_inhibition_reports_messages_it_would_have_held() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    // Send an effect before its cause, while the cause is open, and on another host.
    send(&rest, "full", None).await;
    send(&rest, "full", Some("STATUS_CLOSED")).await;
    receiver.wait_for(1).await;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    send(&rest, "host-down", None).await;
    send(&rest, "full", None).await;
    let other = samples::event("full", "b", "SEVERITY_ERROR", "something is wrong");
    let body = samples::events(&[other]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    receiver.wait_for(4).await;
    // At the time of the preview the cause is closed, but it was open when the effects arrived.
    send(&rest, "host-down", Some("STATUS_CLOSED")).await;
    let path = format!("{INHIBITIONS}:preview");
    let tried = rest.post(&path, &inhibition()).await.ok();
    assert_eq!(tried["heldCount"], 0);
    let wanted = json!({
        "days": 7,
        "messageCount": 1,
        "byRule": [{"ruleName": "page", "messageCount": 1}],
    });
    assert_eq!(tried["lastDays"], wanted);
}

#[tokio::test]
async fn draft_inhibition_warns_of_cycles_and_unknown_fields() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    rest.post(INHIBITIONS, &inhibition()).await.ok();
    send(&rest, "host-down", None).await;
    send(&rest, "full", None).await;
    let path = format!("{INHIBITIONS}:preview");
    let turned = json!({
        "sourceFilter": "name=full",
        "targetFilter": "name=host-down",
        "equal": [{"source": "host"}],
    });
    let tried = rest.post(&path, &turned).await.ok();
    assert_eq!(tried["heldCount"], 1);
    let warning = tried["warnings"][0].as_str().unwrap();
    let wanted = [
        "`full`",
        "is already held by `host-down`",
        "the first to open notifies",
    ];
    assert!(wanted.iter().all(|it| warning.contains(it)), "{warning}");
    let mut without = inhibition();
    without["equal"] = json!([{"source": "host", "target": "dimensions.rack"}]);
    let tried = rest.post(&path, &without).await.ok();
    let warning =
        "no stored event among the targets has the field `dimensions.rack`, so nothing is held";
    assert_eq!(tried["warnings"], json!([warning]));
}
