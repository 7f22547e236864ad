//! Pausing and resuming destinations manually, and their health.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use crate::{journey, samples};

/// The second attempt is due long after the end of the test.
const SETTINGS: &str = "[delivery]\nschedule = [\"0s\", \"1h\"]\n";
const HOOK: &str = "/v1/notification/destinations/hook";

async fn send(rest: &Rest, host: &str) {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let events = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &events).await.ok();
}

async fn health(rest: &Rest) -> Value {
    rest.get(HOOK).await.ok()["destination"]["health"].clone()
}

async fn health_is(rest: &Rest, state: &str) -> Value {
    eventually(&format!("the destination to be {state}"), async || {
        let health = health(rest).await;
        (health["state"] == state).then_some(health)
    })
    .await
}

async fn act(rest: &Rest, what: &str) -> Value {
    rest.post(&format!("{HOOK}:{what}"), &json!({})).await.ok()["destination"].clone()
}

async fn notice_is(rest: &Rest, status: &str) {
    let query = json!({"query": {"filter": "name=\"destination paused\""}});
    eventually(&format!("the notice to be {status}"), async || {
        let found = rest.post("/v1/events:search", &query).await.ok();
        let status_now = &found["results"][0]["occurrences"][0]["status"];
        (*status_now == status).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_destination_receives_no_message_until_resumed() {
    let mut world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    let rest = world.rest();
    journey::set_up(&rest, &receiver).await;
    assert_eq!(health(&rest).await["state"], "UNTRIED");
    let operator = world.client("ops", "operator");
    let viewer = world.client("guest", "viewer");
    let refused = rest.with_key(Some(&viewer));
    let refused = refused.post(&format!("{HOOK}:pause"), &json!({})).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let unknown = "/v1/notification/destinations/none:pause";
    assert_eq!(rest.post(unknown, &json!({})).await.status, 404);

    let paused = act(&rest.with_key(Some(&operator)), "pause").await;
    assert_eq!(paused["health"]["state"], "PAUSED");
    assert_eq!(paused["health"]["lastError"], "paused by ops");
    // Pausing again has no effect.
    assert_eq!(act(&rest, "pause").await["health"], paused["health"]);
    send(&rest, "a").await;
    notice_is(&rest, "STATUS_OPEN").await;
    world.kill();
    world.start_again();
    let rest = world.rest();
    send(&rest, "b").await;
    let waiting = health(&rest).await;
    assert_eq!(waiting["state"], "PAUSED");
    assert_eq!(waiting["waitingCount"], 2);
    assert!(waiting["oldestWaitingTime"].is_string(), "{waiting}");
    assert_eq!(receiver.count(), 0);

    act(&rest, "resume").await;
    let healthy = health_is(&rest, "HEALTHY").await;
    eventually("the deliveries that waited", async || {
        (receiver.count() == 2).then_some(())
    })
    .await;
    notice_is(&rest, "STATUS_CLOSED").await;
    assert!(healthy["p50"].is_string() && healthy["p95"].is_string());
    assert!(healthy["lastSuccessTime"].is_string(), "{healthy}");
    let audit = rest.get("/v1/audit?pageSize=1000").await.ok();
    let entries = audit["entries"].as_array().unwrap();
    for (method, client) in [("PauseDestination", "ops"), ("ResumeDestination", "admin")] {
        let method = format!("bellwether.v1.DestinationService/{method}");
        let is_done = |it: &&Value| it["method"] == method && it["action"] != "REFUSED";
        let found: Vec<_> = entries.iter().filter(is_done).collect();
        assert_eq!(found.len(), 1, "{method}: {audit}");
        assert_eq!(found[0]["clientName"], client, "{audit}");
        assert_eq!(found[0]["names"][0], "hook", "{audit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_retries_are_sent_when_the_destination_resumes() {
    let world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    let rest = world.rest();
    journey::set_up(&rest, &receiver).await;
    receiver.reply([Reply::status(503), Reply::status(503)]);
    send(&rest, "a").await;
    send(&rest, "b").await;
    eventually("both to have failed", async || {
        (receiver.count() == 2).then_some(())
    })
    .await;
    let failing = health_is(&rest, "FAILING").await;
    assert!(failing["since"].is_string(), "{failing}");
    act(&rest, "pause").await;
    act(&rest, "resume").await;
    eventually("both messages to be sent again", async || {
        (receiver.count() == 4).then_some(())
    })
    .await;
    health_is(&rest, "HEALTHY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destination_test_updates_health_and_a_new_address_resets_it() {
    let world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    let rest = world.rest();
    journey::set_up(&rest, &receiver).await;
    let test = json!({"name": "hook"});
    let path = "/v1/notification/destinations:test";
    for (status, state) in [(500, "FAILING"), (200, "HEALTHY"), (401, "FAILING")] {
        receiver.reply([Reply::status(status)]);
        rest.post(path, &test).await.ok();
        let health = health(&rest).await;
        assert_eq!(health["state"], state, "{status}: {health}");
    }
    let mut moved = rest.get(HOOK).await.ok()["destination"].clone();
    moved["description"] = json!("as before");
    let moved = rest.put(HOOK, &moved).await.ok()["destination"].clone();
    assert_eq!(
        moved["health"]["state"], "FAILING",
        "its address is unchanged"
    );
    let mut elsewhere = moved.clone();
    elsewhere["type"]["webhook"]["url"] = json!(receiver.url("/elsewhere"));
    let elsewhere = rest.put(HOOK, &elsewhere).await.ok()["destination"].clone();
    assert_eq!(elsewhere["health"]["state"], "UNTRIED", "{elsewhere}");
    assert_eq!(elsewhere["health"]["attemptCount"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_delivery_shows_the_same_reason_and_time_everywhere() {
    let world = World::with_settings(SETTINGS);
    let receiver = Receiver::start().await;
    let rest = world.rest();
    journey::set_up(&rest, &receiver).await;
    let seen = async || {
        let list = rest.get("/v1/notification/deliveries").await.ok();
        let listed = list["deliveries"][0].clone();
        let id = listed["id"].as_str()?.to_owned();
        let path = format!("/v1/notification/deliveries/{id}");
        let shown = rest.get(&path).await.ok()["delivery"].clone();
        let event = listed["eventId"].as_str()?;
        let path = format!("/v1/events/{event}:explain");
        let explained = rest.get(&path).await.ok()["rules"][0]["deliveries"][0].clone();
        Some((listed, shown, explained))
    };
    let same = |(listed, shown, explained): &(Value, Value, Value)| {
        assert_eq!(shown["waitReason"], listed["waitReason"]);
        assert_eq!(explained["waitReason"], listed["waitReason"]);
        assert_eq!(shown["waitCode"], listed["waitCode"]);
        assert_eq!(explained["waitCode"], listed["waitCode"]);
        let moment = listed["nextAttemptTime"].as_str();
        let moment = moment.map(|text| text.parse::<jiff::Timestamp>().expect("a time"));
        let millis = moment.map(|at| at.as_millisecond().to_string());
        assert_eq!(explained["nextAttemptTime"].as_str(), millis.as_deref());
    };
    act(&rest, "pause").await;
    send(&rest, "a").await;
    let paused = eventually("a delivery that waits for a reason", async || {
        let seen = seen().await?;
        // The reason is missing until the dispatcher has seen the new delivery.
        let all = [&seen.0, &seen.1, &seen.2];
        all.iter()
            .all(|it| it["waitReason"].is_string())
            .then_some(seen)
    })
    .await;
    assert_eq!(paused.0["waitReason"], "the destination is paused by admin");
    assert_eq!(paused.0["waitCode"], "WAIT_CODE_PAUSED");
    assert!(paused.0["nextAttemptTime"].is_null(), "{paused:?}");
    same(&paused);
    // The next attempt is in an hour.
    receiver.set_default_reply(Reply::status(500));
    act(&rest, "resume").await;
    let failed = eventually("a failed attempt", async || {
        let seen = seen().await?;
        (seen.0["state"] == "RETRY").then_some(seen)
    })
    .await;
    assert!(failed.0["nextAttemptTime"].is_string(), "{failed:?}");
    same(&failed);
    // The health no longer reports the pause.
    let health = health(&rest).await;
    assert!(
        !health["lastError"].to_string().contains("paused"),
        "{health}"
    );
}
