//! Destinations: errors that a circuit breaker counts, deliveries that it holds, and mail threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bellwether_tests::{
    eventually::eventually,
    providers::mail::{Mail, MailRules, StrictMailServer},
    receiver::{Received, Receiver, Reply},
    wire::Wire,
    world::World,
};
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;
use tonic::Code;

use super::{event, send, set_status, with};

/// Maximum delay of an accepted message on a busy machine, in addition to its own attempt. An open
/// breaker would delay it by 10 s.
const HELD_MAX: Duration = Duration::from_secs(8);

async fn set_up(wire: &Wire, name: &str, url: &str, delivery: Value) {
    let destination = json!({
        "name": name, "type": {"webhook": {"url": url}}, "delivery": delivery,
    });
    wire.ok(
        "DestinationService/CreateDestination",
        &json!({"destination": destination}),
    )
    .await;
    let clause = json!({"startsWith": {"field": "dimensions.host", "value": name}});
    let trigger = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
    wire.ok("TriggerService/CreateTrigger", &json!({"trigger": trigger}))
        .await;
    let rule = json!({
        "name": name, "enabled": true, "triggerNames": [name], "destinationNames": [name],
        "sendUpdates": true,
    });
    wire.ok("RuleService/CreateRule", &json!({"rule": rule}))
        .await;
}

async fn deliveries(wire: &Wire, name: &str) -> Vec<Value> {
    let request = json!({"destinationNames": [name], "pageSize": 1_000});
    // All tests here use the same client, whose concurrent list calls are limited.
    let list = eventually("a slot for the list", async || {
        match wire.call("DeliveryService/ListDeliveries", &request).await {
            Ok(list) => Some(list),
            Err(refusal) if refusal.code == Code::Unavailable => None,
            Err(refusal) => panic!("{refusal:?}"),
        }
    })
    .await;
    list["deliveries"].as_array().cloned().unwrap_or_default()
}

async fn delivery(wire: &Wire, id: &Value) -> Value {
    let got = wire
        .ok("DeliveryService/GetDelivery", &json!({"id": id}))
        .await;
    got["delivery"].clone()
}

async fn health(wire: &Wire, name: &str) -> Value {
    let got = wire
        .ok("DestinationService/GetDestination", &json!({"name": name}))
        .await;
    got["destination"]["health"].clone()
}

fn parse_timestamp(value: &Value) -> Timestamp {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("not a time: {value}"));
    text.parse().expect("RFC 3339")
}

fn host(request: &Received) -> String {
    let host = &request.json()["event"]["dimensions"]["host"];
    host.as_str().expect("a host").to_owned()
}

/// Duration of an attempt, and interval between messages. With these, the concurrency limit is
/// never reached.
const ATTEMPT: Duration = Duration::from_millis(500);
const BETWEEN: Duration = Duration::from_millis(120);

#[tokio::test]
async fn rejected_messages_die_without_blocking_valid_ones() {
    let world = World::start();
    let wires = world.wires();
    let runs = wires.iter().flat_map(|wire| {
        let statuses = [400, 413, 415, 422].into_iter();
        statuses.map(move |status| refused_among_good(wire, status))
    });
    join_all(runs).await;
}

async fn refused_among_good(wire: &Wire, status: u16) {
    let receiver = Receiver::with_rule(move |request| {
        let bad = host(request).contains("bad");
        Reply {
            delay: ATTEMPT,
            ..Reply::status(if bad { status } else { 200 })
        }
    })
    .await;
    let name = format!("{} {status}", wire.name());
    set_up(wire, &name, &receiver.url("/"), json!({})).await;
    // The first six are consecutive, which exceeds the breaker's threshold.
    let is_bad = |at: usize| at < 6 || (at.is_multiple_of(3) && at < 24);
    for at in 0..32 {
        let kind = if is_bad(at) { "bad" } else { "good" };
        send(wire, &[event(&format!("{name} {kind} {at}"))]).await;
        sleep(BETWEEN).await;
    }
    let all = eventually("every message to end", async || {
        let all = deliveries(wire, &name).await;
        let ended = all.iter().all(|delivery| delivery["endTime"].is_string());
        (all.len() == 32 && ended).then_some(all)
    })
    .await;
    let by_state = |state: &str| all.iter().filter(|it| it["state"] == state).count();
    let states = (by_state("DELIVERED"), by_state("DEAD"));
    assert_eq!(states, (20, 12), "{name}");
    for one in &all {
        // A rejected message is sent twice, in full and in reduced form.
        let attempts = if one["state"] == "DEAD" { 2 } else { 1 };
        assert_eq!(one["attemptCount"], attempts, "{name}: {one}");
    }
    for good in all.iter().filter(|it| it["state"] == "DELIVERED") {
        let read = delivery(wire, &good["id"]).await;
        let attempt = &read["attempts"][0];
        let held = parse_timestamp(&attempt["startTime"])
            .duration_since(parse_timestamp(&read["createTime"]));
        let held = Duration::try_from(held).unwrap_or_default();
        let duration = attempt["duration"].as_str().expect("a duration");
        let seconds = duration.trim_end_matches('s').parse().expect("seconds");
        let took = Duration::from_secs_f64(seconds);
        assert!(took >= ATTEMPT, "{name}: {took:?}");
        assert!(held < took, "{name}: held for {held:?}, tried for {took:?}");
    }
    let health = health(wire, &name).await;
    assert_ne!(health["state"], "PAUSED", "{name}: {health}");
}

#[tokio::test]
async fn rejections_do_not_delay_a_valid_message() {
    let world = World::start();
    for wire in world.wires() {
        for status in [400, 413, 415, 422] {
            let well = Arc::new(AtomicBool::new(false));
            let reported = Arc::clone(&well);
            let receiver = Receiver::with_rule(move |_| {
                Reply::status(if reported.load(Ordering::Relaxed) {
                    200
                } else {
                    status
                })
            })
            .await;
            let name = format!("{} only {status}", wire.name());
            set_up(&wire, &name, &receiver.url("/"), json!({"maxInFlight": 1})).await;
            for at in 0..12 {
                send(&wire, &[event(&format!("{name} {at}"))]).await;
            }
            eventually("all messages to be rejected", async || {
                let all = deliveries(&wire, &name).await;
                let dead = all.iter().filter(|it| it["state"] == "DEAD").count();
                (dead == 12).then_some(())
            })
            .await;
            let requests = receiver.received().len();
            assert_eq!(requests, 24, "{name}: each in full and reduced");
            well.store(true, Ordering::Relaxed);
            send(&wire, &[event(&format!("{name} good"))]).await;
            let start = std::time::Instant::now();
            eventually("the valid message", async || {
                let good = receiver
                    .received()
                    .iter()
                    .any(|request| host(request).ends_with("good"));
                good.then_some(())
            })
            .await;
            assert!(start.elapsed() < HELD_MAX, "{name}: {:?}", start.elapsed());
        }
    }
}

#[tokio::test]
async fn misconfigured_or_failing_receivers_fail_the_destination() {
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1h\"]\n");
    for wire in world.wires() {
        // The first four statuses mean that the destination is misconfigured, the others that the
        // receiver is failing.
        for status in [401, 403, 404, 410, 408, 429, 500, 502, 503, 504] {
            let receiver = Receiver::with_rule(move |_| Reply::status(status)).await;
            let name = format!("{} unwell {status}", wire.name());
            set_up(&wire, &name, &receiver.url("/"), json!({"maxInFlight": 1})).await;
            let events = (0..12).map(|at| event(&format!("{name} {at}")));
            send(&wire, &events.collect::<Vec<_>>()).await;

            let health = eventually("the destination to be reported as failing", async || {
                let health = health(&wire, &name).await;
                (health["state"] == "FAILING" || health["state"] == "PAUSED").then_some(health)
            })
            .await;
            let text = health["lastError"].as_str().unwrap_or_default();
            assert!(text.contains(&status.to_string()), "{name}: {health}");
            // The breaker is open: the other deliveries wait without using an attempt.
            let waiting = eventually("some deliveries to wait", async || {
                let all = deliveries(&wire, &name).await;
                let waits = |it: &&Value| it["attemptCount"] == 0 && it["endTime"].is_null();
                let waiting = all.iter().filter(waits).count();
                let tried = all.iter().filter(|it| it["attemptCount"] == 1).count();
                (all.len() == 12 && waiting + tried == 12 && (1..12).contains(&tried))
                    .then_some(waiting)
            })
            .await;
            assert!(waiting >= 6, "{name}: {waiting}");
            assert!(receiver.received().len() <= 6, "{name}");
        }
    }
}

#[tokio::test]
async fn probes_alternate_and_one_success_releases_waiting_deliveries() {
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1s\", \"1s\", \"1s\"]\n");
    let [rest, grpc] = world.wires();
    tokio::join!(
        probes(&rest, 404),
        probes(&rest, 503),
        probes(&grpc, 404),
        probes(&grpc, 503),
    );
}

#[tokio::test]
async fn waiting_deliveries_are_sent_when_the_destination_changes() {
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1h\"]\n");
    for wire in world.wires() {
        for status in [404, 503] {
            let wrong = Receiver::with_rule(move |_| Reply::status(status)).await;
            let right = Receiver::with_rule(|_| Reply::status(200)).await;
            let name = format!("{} elsewhere {status}", wire.name());
            set_up(&wire, &name, &wrong.url("/"), json!({"maxInFlight": 1})).await;
            let events = (0..12).map(|at| event(&format!("{name} {at}")));
            send(&wire, &events.collect::<Vec<_>>()).await;
            eventually("the breaker to open", async || {
                let health = health(&wire, &name).await;
                (health["state"] == "FAILING" && wrong.count() >= 5).then_some(())
            })
            .await;

            let destination = json!({
                "name": name, "type": {"webhook": {"url": right.url("/")}},
            });
            let update = "DestinationService/UpdateDestination";
            wire.ok(update, &json!({"destination": destination})).await;
            let start = std::time::Instant::now();
            // Deliveries that were already tried wait for their next attempt. The others are sent
            // immediately.
            let untried = 12 - wrong.count();
            eventually("the deliveries that were not tried", async || {
                (right.count() >= untried).then_some(())
            })
            .await;
            assert!(start.elapsed() < HELD_MAX, "{name}: {:?}", start.elapsed());
            let health = health(&wire, &name).await;
            assert_eq!(health["state"], "HEALTHY", "{name}: {health}");
        }
    }
}

async fn probes(wire: &Wire, status: u16) {
    let well = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&well);
    let receiver = Receiver::with_rule(move |_| {
        Reply::status(if reported.load(Ordering::Relaxed) {
            200
        } else {
            status
        })
    })
    .await;
    let name = format!("{} probes {status}", wire.name());
    set_up(wire, &name, &receiver.url("/"), json!({"maxInFlight": 1})).await;
    let events = (0..12).map(|at| event(&format!("{name} {at}")));
    send(wire, &events.collect::<Vec<_>>()).await;
    eventually("the breaker to open", async || {
        (receiver.received().len() >= 5).then_some(())
    })
    .await;
    let opened = receiver.received().len();
    // A later message is new.
    send(wire, &[event(&format!("{name} young"))]).await;

    // The first probe follows after 10 s, the second 20 s later.
    for probe in 1..=2 {
        eventually("a probe", async || {
            (receiver.received().len() >= opened + probe).then_some(())
        })
        .await;
    }
    let received = receiver.received();
    let ids: Vec<_> = received.iter().map(Received::delivery_id).collect();
    assert_ne!(
        ids[opened],
        ids[opened + 1],
        "{name}: the same message twice in a row"
    );
    if status == 404 {
        let probed: Vec<_> = received[opened..].iter().map(host).collect();
        assert!(
            probed.iter().any(|host| host.ends_with("young")),
            "{name}: {probed:?}"
        );
    }
    well.store(true, Ordering::Relaxed);
}

fn text(mail: &Mail) -> String {
    String::from_utf8_lossy(&mail.data).into_owned()
}

fn header(mail: &str, name: &str) -> Option<String> {
    let mail = mail.replace("\r\n", "\n");
    let head = mail.split("\n\n").next().unwrap_or_default();
    let unfolded = head.replace("\n ", " ").replace("\n\t", " ");
    let start = format!("{}:", name.to_lowercase());
    let line = unfolded
        .lines()
        .find(|line| line.to_lowercase().starts_with(&start));
    line.map(|line| line[start.len()..].trim().to_owned())
}

#[tokio::test]
async fn mails_of_one_occurrence_form_one_thread() {
    let server = StrictMailServer::start(MailRules::default()).await;
    let mut world = World::with_settings(&server.settings());
    let wires = world.wires().len();
    for at in 0..wires {
        let wire = world.wires()[at].clone();
        let name = format!("{} mail", wire.name());
        set_up(&wire, &name, "http://127.0.0.1:9/", json!({})).await;
        let to = format!("{}@example.net", wire.name());
        let email = json!({"name": name, "type": {"email": {"to": to}}});
        wire.ok(
            "DestinationService/UpdateDestination",
            &json!({"destination": email}),
        )
        .await;
        let thing = event(&name);
        let close = with(&thing, &json!({"status": "STATUS_CLOSED"}));
        let mails = async |count: usize| {
            eventually("the mails", async || {
                let mails = server.mails();
                let ours: Vec<_> = mails
                    .into_iter()
                    .filter(|mail| mail.to == [to.clone()])
                    .collect();
                (ours.len() >= count).then_some(ours)
            })
            .await
        };

        send(&wire, std::slice::from_ref(&thing)).await;
        mails(1).await;
        set_status(&wire, &name, &json!({"acknowledged": true})).await;
        mails(2).await;
        // A delivery that ends before the restart is not repeated.
        eventually("both deliveries to end", async || {
            let all = deliveries(&wire, &name).await;
            let ended = all.iter().all(|delivery| delivery["endTime"].is_string());
            (all.len() == 2 && ended).then_some(())
        })
        .await;
        // The thread is also known after a restart.
        world.kill();
        world.start_again();
        let wire = world.wires()[at].clone();
        send(&wire, std::slice::from_ref(&close)).await;
        mails(3).await;
        send(&wire, std::slice::from_ref(&thing)).await;
        let mails = mails(4).await;

        let message_id =
            |at: usize| header(&text(&mails[at]), "Message-ID").expect("every mail has one");
        let opening = message_id(0);
        assert_eq!(
            header(&text(&mails[0]), "In-Reply-To"),
            None,
            "{}",
            text(&mails[0])
        );
        for (at, update) in mails[1..3].iter().enumerate() {
            let reply_to = header(&text(update), "In-Reply-To");
            assert_eq!(
                reply_to.as_deref(),
                Some(opening.as_str()),
                "{}",
                text(update)
            );
            let references = header(&text(update), "References").unwrap_or_default();
            assert!(references.contains(&opening), "{}", text(update));
            assert_ne!(message_id(at + 1), opening);
        }
        // The next occurrence starts a new thread.
        assert_eq!(
            header(&text(&mails[3]), "In-Reply-To"),
            None,
            "{}",
            text(&mails[3])
        );
        assert_ne!(message_id(3), opening);
    }
}
