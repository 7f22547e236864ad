//! Effect of hostile clients: memory, and the latency of a well-behaved client.

use std::time::{Duration, Instant};

use bellwether_tests::{rest::Rest, world::World};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    load::{Numbers, over_rest, percentile_99},
    process::peak_mib,
    report::{Figure, Goal, Report},
};

#[path = "../../e2e/overload/attack.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "end-to-end tests use more of this module"
)]
mod attack;

use attack::{Http2, hold_open, post_head};

/// Events that the well-behaved client sends without, and again with, the hostile clients.
const ROUNDS: usize = 3_000;
/// Number of connections of each kind that never complete a request.
const HELD: usize = 500;
/// Number of incomplete bodies, and the bytes of each that are sent.
const BODIES: usize = 80;
const BODY_BYTES: usize = 1024 * 1024;
/// Number of clients that reset their calls, and of clients that search all events.
const RESETTING: usize = 4;
const SEARCHING: usize = 16;
/// Number of large events that are searched.
const LARGE: usize = 300;

const INGEST: &str = "/v1/data-receiver/events";

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("hostile") {
        return;
    }
    let world = World::start();
    let rest = world.rest();
    for at in (0..LARGE).step_by(25) {
        let event = |host: usize| {
            json!({"name": "large", "dimensions": {"host": host.to_string()},
                "body": "x".repeat(60_000)})
        };
        let events: Vec<_> = (at..at + 25).map(event).collect();
        rest.post(INGEST, &json!({"events": events})).await.ok();
    }
    let numbers = Numbers::default();
    let quiet = rounds(&rest, &numbers).await;
    let before = peak_mib(world.service().id());
    let viewer = rest.with_key(Some(&world.client("viewer", "viewer")));
    let address = |part: &str| world.service().address(part).to_owned();
    let held = hold(&address("rest"), &address("grpc")).await;
    let mut attack = JoinSet::new();
    for _ in 0..RESETTING {
        let grpc = address("grpc");
        attack.spawn(async move {
            loop {
                Http2::connect(&grpc).await.rapid_reset(1_000).await;
            }
        });
    }
    for _ in 0..SEARCHING {
        let viewer = viewer.clone();
        attack.spawn(async move {
            let all = json!({"query": {"pageInput": {"limit": 1000}}}).to_string();
            loop {
                let page = viewer.try_send(Method::POST, "/v1/events:search", &[], all.clone());
                drop(page.await);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    let beside = rounds(&rest, &numbers).await;
    attack.shutdown().await;
    drop(held);
    let peak = peak_mib(world.service().id());
    let figure = Figure::new("hostile: memory at most", peak, "MiB").goal(Goal::Most(300.0));
    report.add(figure.beside("quiet", Some(before)));
    let ms = |times| percentile_99(times).as_secs_f64() * 1e3;
    let figure = Figure::new("hostile: p99 of ingest of another client", ms(beside), "ms");
    report.add(figure.beside("quiet", Some(ms(quiet))));
}

/// Opens connections that send endless headers and bodies, and read no response.
async fn hold(rest: &str, grpc: &str) -> Vec<tokio::net::TcpStream> {
    let slow = b"GET /v1/notification/rules HTTP/1.1\r\nhost: a\r\nx-slow: ";
    let mut begun = post_head(INGEST, "content-length: 4000000");
    begun.resize(begun.len() + BODY_BYTES, b' ');
    let mut held = Vec::new();
    for address in [rest, grpc] {
        held.extend(hold_open(address, slow, HELD).await);
        held.extend(hold_open(address, b"", HELD).await);
    }
    held.extend(hold_open(grpc, b"PRI * HTTP/2.0\r\n", HELD).await);
    held.extend(hold_open(rest, &begun, BODIES).await);
    held
}

/// Returns the time that each event of one client took to be stored.
async fn rounds(rest: &Rest, numbers: &Numbers) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        over_rest(rest.clone(), numbers.take(1), 1).await;
        times.push(start.elapsed());
    }
    times
}
