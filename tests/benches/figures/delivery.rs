//! Deliveries per second, compared with Alertmanager's.

use std::time::Instant;

use bellwether_tests::world::World;
use serde_json::json;

use crate::{
    hanging,
    load::over_grpc,
    peer::{self, Alertmanager},
    report::{Figure, Goal, Report},
    sink::{Message, Sink, route},
};

/// Number of events in a load, and number per request.
const EVENTS: usize = 20_000;
const BATCH: usize = 100;

pub(crate) async fn measure(report: &mut Report) {
    if report.wants("delivery: rate") {
        rates(report).await;
    }
    if report.wants("delivery: hanging") {
        hanging::measure(report).await;
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
                .goal(Goal::Least(10_000.0))
                .beside("Alertmanager", peer),
        );
        report.add(Figure::new(
            format!("{name}, from first event to last"),
            lasted,
            "s",
        ));
    }
}

/// Returns the durable deliveries per second from the first message to the last, and the whole time
/// in seconds.
async fn drained(destinations: usize) -> (f64, f64) {
    let world = World::start();
    let sink = Sink::start().await;
    for number in 0..destinations {
        // The last digit of the host spreads the events evenly over ten destinations. A single
        // destination receives all events.
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
        "{} of {EVENTS} arrived",
        messages.len()
    );
    (rate(&messages), start.elapsed().as_secs_f64())
}

/// Returns the messages per second, from the first to the last.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn rate(messages: &[Message]) -> f64 {
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
