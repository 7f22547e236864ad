//! Durable intake beside the raw rate of the disk, and the time from start to the ready line.
//!
//! Prints one line a figure: what, its rate, its 99th percentile, and its ratio to the number of
//! times a second that the same folder takes an append and an fdatasync.

use std::{
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tests::{
    grpc::Grpc,
    process::{self, Service},
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

/// How long each figure is measured.
const SPAN: Duration = Duration::from_secs(5);
/// Requests under way at once, for single events and for batches.
const SINGLES_IN_FLIGHT: usize = 256;
const BATCHES_IN_FLIGHT: usize = 32;
/// Events of a batch.
const BATCH: usize = 100;
/// Starts, of which the median is told.
const STARTS: usize = 9;

fn main() {
    // `cargo test --benches` builds and starts this, too: then there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    tokio::runtime::Runtime::new()
        .expect("threads")
        .block_on(measure());
}

async fn measure() {
    let world = World::start();
    let syncs = raw_syncs(world.folder());
    let mut table = vec![format!(
        "{:<34}{:>12}{:>12}{:>12}",
        "", "per second", "p99", "x syncs"
    )];
    line(&mut table, "append + fdatasync", syncs, None, syncs);

    let grpc = world.grpc();
    let rest = world.rest();
    let numbers = Arc::new(AtomicUsize::new(0));
    for (name, events, in_flight) in [
        ("single", 1, SINGLES_IN_FLIGHT),
        ("batches of 100", BATCH, BATCHES_IN_FLIGHT),
    ] {
        let next = Arc::clone(&numbers);
        let channel = grpc.clone();
        let (rate, p99) = load(in_flight, events, move || {
            let (channel, first) = (channel.clone(), next.fetch_add(events, Ordering::Relaxed));
            async move { over_grpc(channel, first, events).await }
        })
        .await;
        line(
            &mut table,
            &format!("gRPC, {name}, {in_flight} in flight"),
            rate,
            Some(p99),
            syncs,
        );

        let next = Arc::clone(&numbers);
        let client = rest.clone();
        let (rate, p99) = load(in_flight, events, move || {
            let (client, first) = (client.clone(), next.fetch_add(events, Ordering::Relaxed));
            async move { over_rest(client, first, events).await }
        })
        .await;
        line(
            &mut table,
            &format!("REST, {name}, {in_flight} in flight"),
            rate,
            Some(p99),
            syncs,
        );
    }
    let start = start_time();
    table.push(format!(
        "start to the ready line, median of {STARTS}: {start:.1?}\n"
    ));
    std::io::stdout()
        .write_all(table.join("\n").as_bytes())
        .expect("standard output");
}

fn line(table: &mut Vec<String>, what: &str, rate: f64, p99: Option<Duration>, syncs: f64) {
    let p99 = p99.map_or_else(String::new, |p99| format!("{p99:.1?}"));
    let ratio = rate / syncs;
    table.push(format!("{what:<34}{rate:>12.0}{p99:>12}{ratio:>12.2}"));
}

/// How often a second an event's worth of bytes is appended and synced, one after the other.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn raw_syncs(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("raw")).expect("a file");
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < SPAN {
        file.write_all(&[7; 256]).expect("an append");
        file.sync_data().expect("a sync");
        count += 1;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

/// Keeps that many requests under way; gives events a second and the 99th percentile.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
async fn load<F>(
    in_flight: usize,
    events: usize,
    request: impl Fn() -> F + Clone + Send + 'static,
) -> (f64, Duration)
where
    F: Future<Output = ()> + Send + 'static,
{
    let start = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..in_flight {
        let request = request.clone();
        senders.spawn(async move {
            let mut times = Vec::new();
            while start.elapsed() < SPAN {
                let sent = Instant::now();
                request().await;
                times.push(sent.elapsed());
            }
            times
        });
    }
    let mut times: Vec<Duration> = senders.join_all().await.into_iter().flatten().collect();
    let rate = (times.len() * events) as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    (rate, times[times.len() * 99 / 100])
}

async fn over_grpc(channel: Grpc, first: usize, events: usize) {
    let event = |number: usize| cloud::Event {
        name: "bench".into(),
        dimensions: [("host".to_owned(), format!("h{number}"))].into(),
        summary: "something happened that somebody may want to know".into(),
        severity: cloud::Severity::Warning.into(),
        ..cloud::Event::default()
    };
    let request = cloud::Events {
        detailed_response: false,
        events: (first..first + events).map(event).collect(),
    };
    let answer = DataReceiverServiceClient::new(channel)
        .put_events(request)
        .await
        .expect("an answer");
    assert_eq!(usize::try_from(answer.into_inner().succeeded), Ok(events));
}

async fn over_rest(client: Rest, first: usize, events: usize) {
    let event = |number: usize| {
        json!({
            "name": "bench",
            "dimensions": {"host": format!("h{number}")},
            "summary": "something happened that somebody may want to know",
            "severity": "SEVERITY_WARNING",
        })
    };
    let events: Vec<_> = (first..first + events).map(event).collect();
    let body = json!({"events": events}).to_string();
    client
        .send(Method::POST, "/v1/data-receiver/events", body)
        .await
        .ok();
}

/// From the start of the process to its ready line, on an empty data folder.
fn start_time() -> Duration {
    let mut times: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let folder = tempfile::tempdir().expect("a folder");
            let mut serve = process::command(
                folder.path(),
                [
                    "serve",
                    "--grpc-listen",
                    "127.0.0.1:0",
                    "--rest-listen",
                    "127.0.0.1:0",
                ],
            );
            serve.arg("--data-dir").arg(folder.path().join("data"));
            Service::start(serve, &folder.path().join("log")).start_time
        })
        .collect();
    times.sort_unstable();
    times[STARTS / 2]
}
