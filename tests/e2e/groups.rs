//! Groups over REST: several events in one message, even if the service is killed in the meantime.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

const RULES: &str = "/v1/notification/rules";
const GROUPS: &str = "/v1/notification/groups";
const RECEIVE: &str = "/v1/data-receiver/events";

async fn set_up(rest: &Rest, receiver: &Receiver) {
    let mut trigger = samples::trigger("disk", "disk");
    trigger["type"] = json!({"event": {"filter": "severity>=info -source=bellwether"}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
}

fn gathering(wait: &str) -> Value {
    let mut rule = samples::rule("page", "disk", "hook", "");
    rule["sendUpdates"] = json!(true);
    rule["group"] = json!({"by": ["name"], "wait": wait, "interval": "10s"});
    rule
}

#[tokio::test]
async fn group_settings_are_validated_returned_and_previewed() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    let mut rule = gathering("30s");
    rule["group"] = json!({"by": ["", "host", "host", "count"], "wait": "3601s", "interval": "9s"});
    let refused = rest.post(RULES, &rule).await;
    assert_eq!(refused.status, 400);
    let text = refused.json().to_string();
    for part in [
        "group.by[0]",
        "group.by[2]",
        "group.by[3]",
        "group.wait",
        "0 to 3600 s",
        "group.interval",
        "10 to 86400 s",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    rule["group"] = json!({"by": ["host"]});
    let made = rest.post(RULES, &rule).await.ok();
    let wanted = json!({"by": ["host"], "wait": "30s", "interval": "300s"});
    assert_eq!(made["rule"]["group"], wanted);
    let preview = rest.post(&format!("{RULES}:preview"), &rule).await.ok();
    let shown = preview["previews"][0]["rendered"].to_string();
    assert!(shown.contains("joined_count"), "{shown}");
    assert_eq!(rest.get(&format!("{GROUPS}/group-1")).await.status, 400);
    let unknown = format!("{GROUPS}/group-01KG9H1S000000000000000007");
    assert_eq!(rest.get(&unknown).await.status, 404);
    let listed = rest.get(GROUPS).await.ok();
    assert!(listed["groups"].is_null(), "{listed}");
}

#[tokio::test]
async fn group_survives_a_kill_and_closes_as_one_thread() {
    let mut world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    // The wait is long enough to send three events and kill the service on a slow machine.
    rest.post(RULES, &gathering("20s")).await.ok();
    for host in ["a", "b", "c"] {
        let event = samples::event("disk", host, "SEVERITY_ERROR", "the disk is full");
        let answer = rest.post(RECEIVE, &samples::events(&[event])).await.ok();
        assert_eq!(answer["succeeded"], 1);
    }
    let waiting = rest.get("/v1/notification/pending").await.ok();
    let waiting = waiting["pending"].as_array().unwrap();
    assert_eq!(waiting.len(), 3);
    assert_eq!(waiting[0]["holds"][0]["kind"], "HOLD_KIND_GROUP");
    world.kill();
    assert_eq!(receiver.count(), 0, "it waits");
    world.start_again();
    let rest = world.rest();
    let first = eventually("the first message", async || {
        receiver.received().first().map(Received::json)
    })
    .await;
    assert_eq!(first["clear"], false);
    assert_eq!(first["group"]["joined_count"], 3);
    assert_eq!(first["group"]["by"], json!({"name": "disk"}));
    assert_eq!(first["group"]["events"].as_array().unwrap().len(), 3);
    let id = first["thread_id"].as_str().unwrap();
    assert_eq!(first["group"]["id"], id);
    let read = rest.get(&format!("{GROUPS}/{id}?pageSize=2")).await.ok();
    assert_eq!(read["group"]["openCount"], 3);
    assert_eq!(read["group"]["state"], "OPEN");
    assert_eq!(read["members"].as_array().unwrap().len(), 2);
    let token = read["nextPageToken"].as_str().unwrap();
    let path = format!("{GROUPS}/{id}?pageSize=2&pageToken={token}");
    let rest_of_them = rest.get(&path).await.ok();
    assert_eq!(rest_of_them["members"].as_array().unwrap().len(), 1);
    assert!(rest_of_them["nextPageToken"].is_null());
    let owed = rest.get("/v1/notification/obligations").await.ok();
    assert_eq!(owed["obligations"][0]["groupId"], id);
    is_closed_as_one(&rest, &receiver, id).await;
}

async fn is_closed_as_one(rest: &Rest, receiver: &Receiver, id: &str) {
    let path = format!("{GROUPS}/{id}:status");
    let refused = rest.post(&path, &json!({"status": "STATUS_OPEN"})).await;
    assert_eq!(refused.status, 400);
    let done = rest.post(&path, &json!({"acknowledged": true})).await.ok();
    assert_eq!(done["changedCount"], 3);
    let read = rest.get(&format!("{GROUPS}/{id}")).await.ok();
    assert_eq!(read["group"]["acknowledged"], true);
    let done = rest.post(&path, &json!({"status": "STATUS_CLOSED"})).await;
    assert_eq!(done.ok()["changedCount"], 3);
    let last = eventually("the closing", async || {
        let all = receiver.received();
        let mut over = all.iter().map(Received::json);
        over.rfind(|it| it["group"]["is_over"] == true)
    })
    .await;
    assert_eq!(last["clear"], true);
    assert_eq!(last["thread_id"], id);
    let closed: i64 = receiver
        .received()
        .iter()
        .map(|it| it.json()["group"]["closed_count"].as_i64().unwrap())
        .sum();
    assert_eq!(closed, 3, "each once");
    let read = rest.get(&format!("{GROUPS}/{id}")).await.ok();
    assert_eq!(read["group"]["state"], "OVER");
    let listed = rest
        .get(&format!("{GROUPS}?states=OVER&ruleNames=page"))
        .await;
    assert_eq!(listed.ok()["groups"][0]["id"], id);
    let listed = rest.get(&format!("{GROUPS}?states=OPEN")).await.ok();
    assert!(listed["groups"].is_null(), "{listed}");
    let sent = rest.get("/v1/notification/deliveries").await.ok();
    let sent = sent["deliveries"].as_array().unwrap();
    assert!(
        sent.iter()
            .all(|it| it["groupId"] == id && it["threadId"] == id)
    );
}
