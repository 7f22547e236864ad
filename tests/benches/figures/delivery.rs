//! Deliveries a second beside Alertmanager's, and what a hanging destination does to the others.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Value, json};

use crate::{
    load::{over_grpc, percentile_99},
    peer::{self, Alertmanager},
    report::{Figure, Goal, Report},
    sink::{Message, Sink},
};

/// Events of a load, and of a request of it.
const EVENTS: usize = 20_000;
const BATCH: usize = 100;
/// Destinations among which one hangs.
const DESTINATIONS: usize = 100;
/// Events a second for those destinations, and how long.
const PACE: usize = 400;
const PACED_SPAN: Duration = Duration::from_secs(10);

pub(crate) async fn measure(report: &mut Report) {
    if report.wants("delivery: rate") {
        rates(report).await;
    }
    if report.wants("delivery: hanging") {
        hanging(report).await;
    }
}

async fn rates(report: &mut Report) {
    let peer = alertmanager().await;
    if let Some(peer) = peer {
        report.add(Figure::new("delivery: rate of Alertmanager", peer, "/s"));
    }
    for (destinations, name) in [
        (1, "delivery: rate to one destination"),
        (10, "delivery: rate to ten destinations"),
    ] {
        let (rate, lasted) = drained(destinations).await;
        let figure = Figure::new(name, rate, "/s");
        report.add(
            figure
                .goal(Goal::Least(4_000.0))
                .beside("Alertmanager", peer),
        );
        report.add(Figure::new(
            format!("{name}, from first event to last"),
            lasted,
            "s",
        ));
    }
}

/// A destination and an enabled rule for everything of one kind.
async fn route(rest: &Rest, name: &str, url: &str, clause: &Value) {
    let trigger = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let destination = json!({"name": name, "type": {"webhook": {"url": url}}});
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    let rule = json!({"name": name, "enabled": true, "triggerNames": [name],
        "destinationNames": [name], "message": "{{event.summary}}"});
    rest.post("/v1/notification/rules", &rule).await.ok();
}

/// Durable deliveries a second from the first message to the last, and the whole time in seconds.
async fn drained(destinations: usize) -> (f64, f64) {
    let world = World::start();
    let sink = Sink::start().await;
    for number in 0..destinations {
        // The last digit of the host spreads events evenly over ten; one takes all.
        let clause = if destinations == 1 {
            json!({"equals": {"field": "name", "stringVal": "bench"}})
        } else {
            json!({"endsWith": {"field": "dimensions.host", "value": number.to_string()}})
        };
        let url = sink.url(&format!("/{number}"));
        route(&world.rest(), &format!("d{number}"), &url, &clause).await;
    }
    let start = Instant::now();
    for first in (0..EVENTS).step_by(BATCH) {
        over_grpc(world.grpc(), first, BATCH).await;
    }
    sink.wait_for(EVENTS).await;
    let messages = sink.take();
    assert!(
        messages.len() >= EVENTS,
        "{} of {EVENTS} came",
        messages.len()
    );
    (rate(&messages), start.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn rate(messages: &[Message]) -> f64 {
    let first = messages.iter().map(|message| message.at).min();
    let last = messages.iter().map(|message| message.at).max();
    let span = last.expect("a message") - first.expect("a message");
    messages.len() as f64 / span.as_secs_f64()
}

async fn alertmanager() -> Option<f64> {
    let sink = Sink::start().await;
    let peer = Alertmanager::start(Some(&sink.url("/"))).await?;
    for first in (0..EVENTS).step_by(BATCH) {
        peer::send(peer.rest(), first, BATCH).await;
    }
    sink.wait_for(EVENTS).await;
    Some(rate(&sink.take()))
}

async fn hanging(report: &mut Report) {
    let mut healthy = Vec::new();
    let mut beside = Vec::new();
    // In turns, so that what else the machine does meets both.
    for _ in 0..3 {
        healthy.push(latency(false).await);
        beside.push(latency(true).await);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (healthy, beside) = (median(healthy), median(beside));
    let name = "delivery: hanging one among 100, p99 of the others";
    report.add(
        Figure::new(name, beside, "ms")
            .goal(Goal::Most(healthy * 1.1))
            .beside("all healthy", Some(healthy)),
    );
}

/// The 99th percentile from sending an event to its message, of all destinations but the first.
async fn latency(first_hangs: bool) -> Duration {
    let world = World::start();
    let sink = Sink::start().await;
    for number in 0..DESTINATIONS {
        let path = if first_hangs && number == 0 {
            "/hang"
        } else {
            "/take"
        };
        let clause =
            json!({"equals": {"field": "dimensions.part", "stringVal": number.to_string()}});
        route(
            &world.rest(),
            &format!("d{number}"),
            &sink.url(path),
            &clause,
        )
        .await;
    }
    let mut sent = HashMap::new();
    let start = Instant::now();
    let mut number = 0_usize;
    let rest = world.rest();
    let mut calls = tokio::task::JoinSet::new();
    while start.elapsed() < PACED_SPAN {
        let due = start
            + Duration::from_secs(1) / u32::try_from(PACE).expect("small")
                * u32::try_from(number).expect("small");
        tokio::time::sleep_until(due.into()).await;
        let part = number % DESTINATIONS;
        let event = json!({"events": [{"name": "bench", "summary": format!("number {number} "),
            "dimensions": {"host": number.to_string(), "part": part.to_string()}}]});
        if part != 0 {
            sent.insert(number.to_string(), Instant::now());
        }
        let rest = rest.clone();
        calls.spawn(async move {
            rest.post("/v1/data-receiver/events", &event).await.ok();
        });
        number += 1;
    }
    calls.join_all().await;
    sink.wait_for(sent.len()).await;
    let times: Vec<Duration> = sink
        .take()
        .iter()
        .filter_map(|message| {
            let body: Value = serde_json::from_slice(&message.body).expect("a document");
            let host = body["event"]["dimensions"]["host"]
                .as_str()
                .expect("its host")
                .to_owned();
            sent.get(&host).map(|sent| message.at - *sent)
        })
        .collect();
    assert!(
        times.len() >= sent.len(),
        "{} of {} came",
        times.len(),
        sent.len()
    );
    percentile_99(times)
}
