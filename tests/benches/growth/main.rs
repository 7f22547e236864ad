//! The behaviour of the service as the number of open events grows: intake, the file, memory, the
//! start after `kill -9`, and the first page of each kind of search.
//!
//! `cargo bench --package bellwether-tests --bench growth -- [EVENTS…]` grows to each number in
//! turn; without numbers, to 1,000, 10,000, 100,000 and 1,000,000. With the word `singles`, it
//! sends single events over REST, and reports the latency of the slowest. With the word `minutes`,
//! it sends for that many minutes near the maximum rate, and reports the resource use per minute.

mod minutes;
mod page;
mod singles;

use std::{
    io::Write,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tests::{grpc::Grpc, world::World};
use tokio::task::JoinSet;

use page::Page;

/// Events per batch, and batches in flight.
const BATCH: usize = 100;
const IN_FLIGHT: usize = 32;
/// Number of times each page is read; the median is reported.
const PAGES: usize = 21;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` also runs this program, which then makes no measurement.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let requested: Vec<usize> = arguments
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let requested_minutes = requested.first().copied();
    let counts = if requested.is_empty() {
        vec![1_000, 10_000, 100_000, 1_000_000]
    } else {
        requested
    };
    tokio::runtime::Runtime::new()
        .expect("threads")
        .block_on(async {
            let has = |word: &str| arguments.iter().any(|argument| argument == word);
            if has("singles") {
                singles::grow(&counts).await;
            } else if has("minutes") {
                minutes::pass(requested_minutes.unwrap_or(30)).await;
            } else {
                grow(&counts).await;
            }
        });
}

async fn grow(counts: &[usize]) {
    let pages = Page::all();
    let names: Vec<_> = pages.iter().map(|page| page.name).collect();
    say(&format!(
        "| open events | intake, events/s | store, MB | memory, MB | at most, MB | start after kill -9, ms | {} |",
        names.join(" | ")
    ));
    say(&format!("|{}", "---|".repeat(6 + pages.len())));
    let mut world = World::start();
    let mut stored = 0;
    for &count in counts {
        let begun = Instant::now();
        fill(&world.grpc(), stored, count).await;
        let rate =
            (count.saturating_sub(stored)) as u128 * 1_000 / begun.elapsed().as_millis().max(1);
        stored = stored.max(count);
        let mut times = Vec::with_capacity(pages.len());
        for page in &pages {
            let limit = stored.min(100);
            let (channel, rest) = (world.grpc(), world.rest());
            let grpc = median(async || page.over_grpc(channel.clone(), limit).await).await;
            let rest = median(async || page.over_rest(&rest, limit).await).await;
            times.push(format!(
                "{:.1} / {:.1}",
                milliseconds(grpc),
                milliseconds(rest)
            ));
        }
        let process = world.service().id();
        let (memory, most) = (memory_mb(process, "VmRSS:"), memory_mb(process, "VmHWM:"));
        world.kill();
        let files =
            ["store.redb", "store.log.0", "store.log.1"].map(|it| world.data_dir().join(it));
        let store: u64 = files.iter().map(|file| disk_mb(file)).sum();
        world.start_again();
        let start = world.service().start_time.as_millis();
        let pages = times.join(" | ");
        say(&format!(
            "| {stored} | {rate} | {store} | {memory} | {most} | {start} | {pages} |"
        ));
    }
}

async fn fill(channel: &Grpc, from: usize, to: usize) {
    let mut sending = JoinSet::new();
    for first in (from..to).step_by(BATCH) {
        if sending.len() >= IN_FLIGHT {
            sending.join_next().await;
        }
        sending.spawn(send(channel.clone(), first, (first + BATCH).min(to)));
    }
    sending.join_all().await;
}

async fn send(channel: Grpc, first: usize, end: usize) {
    let severities = [
        cloud::Severity::Info,
        cloud::Severity::Warning,
        cloud::Severity::Error,
    ];
    let event = |number: usize| cloud::Event {
        name: page::NAME.into(),
        dimensions: [("host".to_owned(), format!("host-{number}"))].into(),
        summary: "something happened that somebody may want to know".into(),
        severity: severities[number % severities.len()].into(),
        ..cloud::Event::default()
    };
    let request = cloud::Events {
        detailed_response: false,
        events: (first..end).map(event).collect(),
    };
    let answer = DataReceiverServiceClient::new(channel)
        .put_events(request)
        .await;
    let succeeded = answer.expect("an answer").into_inner().succeeded;
    assert_eq!(usize::try_from(succeeded), Ok(end - first));
}

/// Returns the median time of reading a page.
async fn median(mut page: impl AsyncFnMut()) -> Duration {
    let mut times = Vec::with_capacity(PAGES);
    for _ in 0..PAGES {
        let begun = Instant::now();
        page().await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[PAGES / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn memory_mb(process: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("its memory is reported") / 1_000
}

/// Returns the space that a file occupies; its length includes parts that are not yet written. Zero
/// if the file is missing: earlier releases have no log.
fn disk_mb(file: &Path) -> u64 {
    let metadata = file.metadata();
    metadata.map_or(0, |it| it.blocks() * 512 / 1_000_000)
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("standard output");
    output.flush().expect("standard output");
}
