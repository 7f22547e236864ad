//! Silences over REST and gRPC: holds, errors and responses, and pending notifications that survive
//! a kill.

use bellwether_tests::{eventually::eventually, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

use crate::samples;

const SILENCES: &str = "/v1/notification/silences";
const PENDING: &str = "/v1/notification/pending";
const DELIVERED: &str = "/v1/notification/deliveries?states=DELIVERED";

fn silence(name: &str, host: &str, seconds: i64) -> Value {
    json!({
        "name": name,
        "reason": "kernel update",
        "filter": format!("host={host}"),
        "span": {"endTime": samples::in_seconds(seconds)},
    })
}

async fn set_up(rest: &Rest, receiver: &Receiver) {
    samples::disks_to_hook(rest, receiver).await;
    let mut rule = samples::rule("page", "disk", "hook", "{{event.summary}}");
    rule["sendUpdates"] = json!(true);
    rest.post("/v1/notification/rules", &rule).await.ok();
}

async fn send(rest: &Rest, host: &str, more: Value) -> String {
    let mut event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    for (key, value) in more.as_object().unwrap() {
        event[key] = value.clone();
    }
    let body = samples::events(&[event]);
    let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
    assert_eq!(answer["succeeded"], 1);
    let search = json!({"query": {"filter": format!("host={host}")}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    found["results"][0]["id"].as_str().unwrap().to_owned()
}

async fn pending(rest: &Rest) -> Vec<Value> {
    let found = rest.get(PENDING).await.ok();
    found["pending"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn silence_of_a_destination_leaves_out_only_its_messages() {
    let (chat, hook) = (Receiver::start().await, Receiver::start().await);
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &hook).await;
    let destination = samples::webhook("chat", &chat.url("/"));
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    let mut rule = samples::rule("page", "disk", "hook", "{{event.summary}}");
    rule["sendUpdates"] = json!(true);
    rule["destinationNames"] = json!(["hook", "chat"]);
    rest.put("/v1/notification/rules/page", &rule).await.ok();
    let mut quiet = silence("chat", "a", 3_600);
    quiet["destinationNames"] = json!(["chat"]);
    quiet["annotations"] = json!({"ticket": "OPS-1"});
    let made = rest.post(SILENCES, &quiet).await.ok();
    assert_eq!(made["silence"]["destinationNames"], json!(["chat"]));
    assert_eq!(made["silence"]["annotations"], json!({"ticket": "OPS-1"}));
    send(&rest, "a", json!({})).await;
    hook.wait_for(1).await;
    let waits = pending(&rest).await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0]["destinationNames"], json!(["chat"]));
    assert_eq!(chat.count(), 0);
    let path = format!("{SILENCES}/chat:expire");
    rest.post(&path, &json!({})).await.ok();
    chat.wait_for(1).await;
    assert_eq!((chat.count(), hook.count()), (1, 1));
    let unknown = json!({"name": "x", "reason": "r", "filter": "host=a",
        "destinationNames": ["gone"], "span": quiet["span"]});
    let refused = rest.post(SILENCES, &unknown).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("destinationNames[0]"));
}

#[tokio::test]
async fn silenced_notification_survives_kill_and_is_sent_at_the_end() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let made = rest
        .post(SILENCES, &silence("db-patch", "a", 3_600))
        .await
        .ok();
    let made = &made["silence"];
    assert_eq!(
        (&made["state"], &made["author"]),
        (&json!("ACTIVE"), &json!("admin"))
    );
    assert_eq!(made["filter"], "host=a");
    let event = send(&rest, "a", json!({})).await;
    send(&rest, "b", json!({})).await;
    receiver.wait_for(1).await;
    let waits = pending(&rest).await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0]["kind"], "OPENING");
    assert_eq!(waits[0]["holds"][0]["name"], "db-patch");
    assert_eq!(waits[0]["destinationNames"], json!(["hook"]));
    // Wait, since a delivery that is not recorded yet is sent again after the kill.
    eventually("the other message to be recorded", async || {
        let found = rest.get(DELIVERED).await.ok();
        (found["deliveries"].as_array()?.len() == 1).then_some(())
    })
    .await;

    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(pending(&rest).await, waits);
    let explained = rest.get(&format!("/v1/events/{event}:explain")).await.ok();
    let rule = &explained["rules"][0];
    let reason = rule["reason"].as_str().unwrap();
    let begins = "Held: silence `db-patch` (admin, «kernel update»), until ";
    assert!(reason.starts_with(begins), "{reason}");
    assert_eq!(rule["holds"][0]["kind"], "HOLD_KIND_SILENCE");
    assert_eq!(rule["next"][0]["destinationNames"], json!(["hook"]));
    let found = rest
        .post("/v1/events:search", &json!({"query": {"filter": "host=a"}}))
        .await
        .ok();
    let shown = &found["results"][0]["occurrences"][0]["holds"][0];
    assert_eq!(shown["name"], "db-patch");

    let path = format!("{SILENCES}/db-patch:expire");
    let over = rest.post(&path, &json!({})).await.ok();
    assert_eq!(over["silence"]["state"], "EXPIRED");
    receiver.wait_for(2).await;
    assert!(pending(&rest).await.is_empty());
    let again = rest.post(&path, &json!({})).await;
    assert_eq!((again.status.as_u16(), again.code()), (400, 9));
    assert_eq!(again.json()["details"][0]["reason"], "SILENCE_EXPIRED");
}

#[tokio::test]
async fn silence_ends_on_time_within_a_second() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let made = rest.post(SILENCES, &silence("short", "a", 4)).await.ok();
    send(&rest, "a", json!({})).await;
    let ends: jiff::Timestamp = made["silence"]["endsTime"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(receiver.count(), 0);
    receiver.wait_for(1).await;
    let late = jiff::Timestamp::now().duration_since(ends);
    assert!(late.as_secs_f64() > 0.0, "it was sent before the end");
    assert!(
        late.as_secs_f64() < 3.0,
        "it was sent {late:?} after the end"
    );
    let decided = rest.get("/v1/notification/deliveries").await.ok();
    let decided = &decided["deliveries"][0]["createTime"];
    let decided: jiff::Timestamp = decided.as_str().unwrap().parse().unwrap();
    let late = decided.duration_since(ends);
    assert!(
        late.as_secs_f64() <= 1.0,
        "it was decided {late:?} after the end"
    );
}

#[tokio::test]
async fn close_under_a_silence_skips_unsent_and_closes_sent_notifications() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    send(&rest, "told", json!({})).await;
    receiver.wait_for(1).await;
    for host in ["told", "a"] {
        rest.post(SILENCES, &silence(host, host, 3_600)).await.ok();
    }
    let event = send(&rest, "a", json!({})).await;
    let close = json!({"status": "STATUS_CLOSED"});
    send(&rest, "a", close.clone()).await;
    send(&rest, "told", close).await;
    receiver.wait_for(2).await;
    assert_eq!(receiver.received()[1].json()["clear"], true);
    for host in ["told", "a"] {
        rest.delete(&format!("{SILENCES}/{host}")).await.ok();
    }
    let explained = rest.get(&format!("/v1/events/{event}:explain")).await.ok();
    let rule = &explained["rules"][0];
    let skipped = rule["skippedReason"].as_str().unwrap();
    assert!(
        skipped.starts_with("the occurrence was already closed, while held by silence `a`"),
        "{skipped}"
    );
    assert_eq!(rule["holdSteps"][1]["kind"], "skipped");
    assert_eq!(receiver.count(), 2);
}

#[tokio::test]
async fn silence_supports_every_operation_and_rejects_invalid_ones() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    for at in 0..20 {
        send(&rest, &format!("h{at}"), json!({})).await;
    }
    // A single response reports all invalid fields.
    let wrong = json!({"name": "a/b", "tags": [""], "warnBefore": "1s",
        "span": {"endTime": samples::in_seconds(-5)}, "ruleNames": ["nothing"]});
    let refused = rest.post(SILENCES, &wrong).await;
    assert_eq!(refused.status, 400);
    let fields = refused.json()["details"][1]["fieldViolations"].clone();
    let fields: Vec<_> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["field"].clone())
        .collect();
    assert_eq!(
        json!(fields),
        json!(["name", "tags[0]", "reason", "ruleNames[0]", "span.endTime"])
    );
    let broad = json!({"name": "all", "reason": "storm", "filter": "name=full",
        "span": {"endTime": samples::in_seconds(60)}});
    let refused = rest.post(SILENCES, &broad).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (400, 9));
    assert_eq!(refused.json()["details"][0]["reason"], "SILENCE_TOO_BROAD");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("20 of 20 open events"), "{message}");
    let preview = rest.post(&format!("{SILENCES}:preview"), &broad).await.ok();
    assert_eq!(
        (&preview["coveredCount"], &preview["tooBroad"]),
        (&json!(20), &json!(true))
    );
    assert_eq!(preview["lastDays"]["messageCount"], 20);
    assert_eq!(preview["lastDays"]["byRule"][0]["ruleName"], "page");
    let meant = format!("{SILENCES}?allowBroad=true&validateOnly=true");
    let tried = rest.post(&meant, &broad).await.ok();
    assert_eq!(tried["silence"]["name"], "all");
    assert_eq!(rest.get(&format!("{SILENCES}/all")).await.status, 404);
}

#[tokio::test]
async fn event_silence_is_extended_commented_and_found() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let event = send(&rest, "h3", json!({})).await;
    let from = json!({"reason": "known", "fromEventId": event,
        "span": {"endTime": samples::in_seconds(600)}});
    let made = rest.post(SILENCES, &from).await.ok()["silence"].clone();
    assert_eq!(made["filter"], "name=full dimensions.host=h3");
    let name = made["name"].as_str().unwrap();
    assert!(name.starts_with("silence-") && name.len() == 16, "{name}");
    let path = format!("{SILENCES}/{name}");
    let text = json!({"text": "half done"});
    let commented = rest.post(&format!("{path}:comment"), &text).await.ok();
    assert_eq!(commented["silence"]["comments"][0]["author"], "admin");
    let longer = json!({"duration": "3600s"});
    let extended = rest.post(&format!("{path}:extend"), &longer).await.ok();
    let extended = extended["silence"].clone();
    assert!(extended["endsTime"].as_str() > made["endsTime"].as_str());
    let by_event = rest
        .get(&format!("{SILENCES}?eventId={event}&states=ACTIVE"))
        .await
        .ok();
    assert_eq!(
        (&by_event["totalSize"], &by_event["silences"][0]["name"]),
        (&json!(1), &json!(name))
    );
    let none = rest.get(&format!("{SILENCES}?states=EXPIRED")).await.ok();
    assert_eq!(none["totalSize"], 0);
    // A silence can be read and written back, unless it was changed in between.
    let mut stored = rest.get(&path).await.ok()["silence"].clone();
    stored["description"] = json!("by hand");
    rest.put(&path, &stored).await.ok();
    assert_eq!(rest.put(&path, &stored).await.status, 409);
    eventually("the silence to cover its event", async || {
        let now = rest.get(&path).await.ok();
        (now["silence"]["coveredCount"] == 1).then_some(())
    })
    .await;
    let own = rest.get(&path).await.ok()["silence"]["eventId"].clone();
    let own = format!("/v1/events/{}", own.as_str().unwrap());
    let own = eventually("the event about the silence", async || {
        let answer = rest.get(&own).await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(own["result"]["dimensions"]["silence"], name);
}

#[tokio::test]
async fn operators_create_silences_and_viewers_read_them() {
    let world = World::start();
    let rest = world.rest();
    let viewer = world.client("looks", "viewer");
    let operator = world.client("works", "operator");
    let refused = rest
        .with_key(Some(&viewer))
        .post(SILENCES, &silence("v", "x", 9))
        .await;
    assert_eq!(refused.status, 403);
    let made = rest
        .with_key(Some(&operator))
        .post(SILENCES, &silence("o", "x", 9))
        .await;
    assert_eq!(made.ok()["silence"]["author"], "works");
    let listed = rest.with_key(Some(&viewer)).get(SILENCES).await.ok();
    assert_eq!(listed["totalSize"], 1);
}

#[tokio::test]
async fn operator_releases_a_waiting_notification() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    rest.post(SILENCES, &silence("quiet", "a", 3_600))
        .await
        .ok();
    let event = send(&rest, "a", json!({})).await;
    for wire in world.wires() {
        let request = json!({"silenceName": "quiet", "kinds": ["OPENING"]});
        let listed = wire
            .call("PendingService/ListPending", &request)
            .await
            .unwrap();
        assert_eq!(listed["pending"][0]["ruleName"], "page", "{listed}");
        let none = json!({"silenceName": "other"});
        let none = wire
            .call("PendingService/ListPending", &none)
            .await
            .unwrap();
        assert_eq!(none["pending"], Value::Null);
    }
    let release = format!("{PENDING}:release");
    let refused = rest
        .post(&release, &json!({"ruleName": "page", "eventId": "x"}))
        .await;
    assert_eq!(refused.status, 400);
    let request = json!({"ruleName": "page", "eventId": event});
    let sent = rest.post(&release, &request).await.ok();
    assert_eq!(sent["deliveryIds"].as_array().unwrap().len(), 1);
    receiver.wait_for(1).await;
    assert_eq!(rest.post(&release, &request).await.status, 404);
}

#[tokio::test]
async fn rule_delay_notifies_only_of_lasting_events() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let rest = world.rest();
    set_up(&rest, &receiver).await;
    let path = "/v1/notification/rules/page";
    let mut rule = rest.get(path).await.ok()["rule"].clone();
    rule["delay"] = json!("90000s");
    let refused = rest.put(path, &rule).await;
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "delay: is 90000 s; expected 0 s to 24 h");
    rule["delay"] = json!("3600s");
    let stored = rest.put(path, &rule).await.ok()["rule"].clone();
    assert_eq!(stored["delay"], "3600s");
    let event = send(&rest, "a", json!({})).await;
    let waits = pending(&rest).await;
    assert_eq!(waits[0]["holds"][0]["kind"], "HOLD_KIND_DELAY");
    let until: jiff::Timestamp = waits[0]["holds"][0]["until"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let shown = until.strftime("%Y-%m-%d %H:%M:%S");
    for wire in world.wires() {
        let method = "EventQueryService/ExplainEvent";
        let explained = wire.call(method, &json!({"id": event})).await.unwrap();
        let rule = &explained["rules"][0];
        let detail = json!({
            "code": "REASON_CODE_HELD",
            "until": until.as_millisecond().to_string(),
            "destinationNames": ["hook"],
            "detail": "delay (the event must match for 1 h)",
            "outcome": "NOTIFICATION_OUTCOME_WAITING",
        });
        assert_eq!(rule["reasonDetail"], detail, "{}", wire.name());
        let text = format!(
            "Held: delay (the event must match for 1 h), until {shown} UTC. Then notifies hook, if \
             still open and matching."
        );
        assert_eq!(rule["reason"], text, "{}", wire.name());
    }
    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(pending(&rest).await, waits);
    rule = stored;
    rule["delay"] = json!("1s");
    rest.put(path, &rule).await.ok();
    receiver.wait_for(1).await;
    send(&rest, "b", json!({})).await;
    send(&rest, "b", json!({"status": "STATUS_CLOSED"})).await;
    send(&rest, "c", json!({})).await;
    receiver.wait_for(2).await;
    assert_eq!(
        receiver.received()[1].json()["event"]["dimensions"]["host"],
        "c"
    );
}
