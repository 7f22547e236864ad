//! Drills over REST: a run pages a contact through rule, policy and destination, and is acknowledged
//! or missed.

use std::time::Duration;

use bellwether_tests::{
    eventually::{eventually, eventually_within},
    receiver::Receiver,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use crate::on_call::{contact, push};

const NOTIFICATION: &str = "/v1/notification";
const DRILL: &str = "/v1/drills/weekly%20page";

fn drill() -> Value {
    json!({
        "name": "weekly page",
        "enabled": true,
        "cron": "30 10 * * tue",
        "timeZone": "Europe/Berlin",
        "acknowledgeWithin": "60s",
        "event": {"name": "shop down", "dimensions": {"service": "shop"}},
    })
}

/// Creates a rule that pages a contact through a policy, and the drill.
async fn prepare(rest: &Rest, url: &str) {
    let create = async |path: &str, body: &Value| {
        rest.post(&format!("{NOTIFICATION}/{path}"), body)
            .await
            .ok()
    };
    create("destinations", &push(url)).await;
    create("contacts", &contact("ana")).await;
    let policy = json!({"name": "shop", "steps": [{"targets": [{"contactName": "ana"}]}]});
    create("escalation-policies", &policy).await;
    let trigger = json!({"name": "shop", "type": {"event": {"filter": "service=shop"}}});
    create("triggers", &trigger).await;
    let rule = json!({
        "name": "page",
        "enabled": true,
        "triggerNames": ["shop"],
        "escalationPolicyName": "shop",
    });
    create("rules", &rule).await;
    rest.post("/v1/drills", &drill()).await.ok();
}

async fn last_run(rest: &Rest) -> Value {
    let found = rest.get(DRILL).await.ok();
    found["drill"]["runs"][0].clone()
}

async fn start(rest: &Rest) -> String {
    let started = rest.post(&format!("{DRILL}:run"), &json!({})).await.ok();
    let run = &started["drill"]["runs"][0];
    assert_eq!(run["result"], "RUNNING", "{started}");
    run["occurrenceId"].as_str().unwrap().to_owned()
}

async fn acknowledge(rest: &Rest, occurrence: &str) {
    let (event, _) = occurrence.split_once(':').unwrap();
    let status = json!({"statuses": [{"eventId": event, "acknowledged": true}]});
    let set = "/v1/event-management/status";
    rest.post(set, &status).await.ok();
}

async fn wait_for_result(rest: &Rest, result: &str) -> Value {
    // The time for an acknowledgement is at least a minute.
    let limit = Duration::from_secs(120);
    eventually_within(limit, &format!("a run with {result}"), async || {
        let run = last_run(rest).await;
        (run["result"] == result).then_some(run)
    })
    .await
}

async fn statuses(rest: &Rest, name: &str) -> Vec<String> {
    let request = json!({"query": {"filter": format!("name=\"{name}\"")}});
    let found = rest.post("/v1/events:search", &request).await.ok();
    let results = found["results"].as_array().into_iter().flatten();
    let mut statuses: Vec<_> = results
        .map(|it| it["occurrences"][0]["status"].as_str().unwrap().to_owned())
        .collect();
    statuses.sort_unstable();
    statuses
}

#[tokio::test]
async fn acknowledged_drill_survives_a_kill_and_is_not_counted() {
    let receiver = Receiver::start().await;
    let mut world = World::with_settings("link_base = \"https://events.example\"\n");
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let occurrence = start(&rest).await;
    receiver.wait_for(1).await;
    let message = receiver.received()[0].json();
    assert_eq!(message["to"], "ana +ana");
    assert_eq!(statuses(&rest, "shop down").await, ["STATUS_OPEN"]);
    let again = rest.post(&format!("{DRILL}:run"), &json!({})).await;
    assert_eq!(again.status, 400, "{again:?}");

    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(last_run(&rest).await["result"], "RUNNING");
    acknowledge(&rest, &occurrence).await;
    let run = wait_for_result(&rest, "ACKNOWLEDGED").await;
    assert_eq!(run["acknowledgedBy"], "admin", "{run}");
    assert!(run["acknowledgedAfter"].is_string(), "{run}");
    eventually("the event is closed", async || {
        (statuses(&rest, "shop down").await == ["STATUS_CLOSED"]).then_some(())
    })
    .await;
    assert_eq!(statuses(&rest, "drill failed").await, [""; 0]);

    let statistics = rest.get("/v1/statistics?span=3600s").await.ok();
    assert_eq!(
        statistics["events"].as_array().map_or(0, Vec::len),
        0,
        "{statistics}"
    );
    let decided = statistics["deliveries"]["decided"].as_array().unwrap();
    assert!(decided.iter().all(|it| *it == 0), "{statistics}");
    let noise = rest.get("/v1/notification/noise?by=RULE").await.ok();
    assert_eq!(noise["rows"].as_array().map_or(0, Vec::len), 0, "{noise}");
    let rule = rest.get(&format!("{NOTIFICATION}/rules/page")).await.ok();
    assert_eq!(rule["rule"]["enabled"], true);
}

#[tokio::test]
async fn failed_drill_opens_an_event_until_the_next_acknowledgement() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let viewer = rest.with_key(Some(&world.client("viewer", "viewer")));
    assert_eq!(
        viewer
            .post(&format!("{DRILL}:run"), &json!({}))
            .await
            .status,
        403
    );
    start(&rest).await;
    receiver.wait_for(1).await;
    let run = wait_for_result(&rest, "MISSED").await;
    assert!(run["acknowledgedBy"].is_null(), "{run}");
    eventually("the failure is reported", async || {
        (statuses(&rest, "drill failed").await == ["STATUS_OPEN"]).then_some(())
    })
    .await;

    // Without the rule, the run fails at once.
    let rule = format!("{NOTIFICATION}/rules/page");
    let mut disabled = rest.get(&rule).await.ok()["rule"].clone();
    disabled["enabled"] = json!(false);
    let enabled = rest.put(&rule, &disabled).await.ok()["rule"].clone();
    start(&rest).await;
    let run = wait_for_result(&rest, "NOT_ROUTED").await;
    assert_eq!(run["reason"], "no rule with a receiver matched");
    let mut enabled = enabled;
    enabled["enabled"] = json!(true);
    rest.put(&rule, &enabled).await.ok();
    let occurrence = start(&rest).await;
    receiver.wait_for(2).await;
    acknowledge(&rest, &occurrence).await;
    wait_for_result(&rest, "ACKNOWLEDGED").await;
    eventually("the failure is over", async || {
        (statuses(&rest, "drill failed").await == ["STATUS_CLOSED"]).then_some(())
    })
    .await;
    let all = rest.get("/v1/drills").await.ok();
    assert_eq!(all["drills"][0]["runs"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn drills_are_documents_and_senders_cannot_mark_events_as_drills() {
    let world = World::start();
    let rest = world.rest();
    rest.post("/v1/drills", &drill()).await.ok();
    let exported = rest.get("/v1/drills/weekly%20page").await.ok();
    let next = exported["drill"]["nextTime"].clone();
    assert!(next.is_string(), "{exported}");
    let applied = json!({"documents": [{"drill": drill()}]});
    let changes = rest.post("/v1/config:apply", &applied).await.ok();
    assert_eq!(
        changes["changes"][0]["action"], "CONFIG_ACTION_UNCHANGED",
        "{changes}"
    );

    let event = json!({"name": "x", "dimensions": {"bellwether_drill": "weekly page"}});
    let sent = rest
        .post("/v1/data-receiver/events", &json!({"events": [event]}))
        .await
        .refused();
    assert!(
        sent["message"]
            .as_str()
            .unwrap()
            .contains("bellwether_drill"),
        "{sent}"
    );
}
