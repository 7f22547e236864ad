//! Latency of single events over REST while the number of open events grows.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_tests::{rest::Rest, world::World};
use serde_json::json;
use tokio::task::JoinSet;

use super::{milliseconds, page, say};

/// Concurrent requests.
const IN_FLIGHT: usize = 64;
/// Length of a window for which the 99th percentile is computed.
const WINDOW: Duration = Duration::from_secs(5);

pub(super) async fn grow(counts: &[usize]) {
    say(
        "| open events | REST, single events, 64 in flight, events/s | p50, ms | p99, ms | worst p99 of 5 s, ms | slowest, ms |",
    );
    say("|---|---|---|---|---|---|");
    let world = World::start();
    let mut stored = 0;
    for &count in counts {
        let begun = Instant::now();
        let mut times = fill(&world.rest(), stored, count, begun).await;
        let rate = (count - stored) as u128 * 1_000 / begun.elapsed().as_millis().max(1);
        stored = count;
        let worst = windows(&times).into_iter().max().unwrap_or_default();
        times.sort_unstable_by_key(|(_, took)| *took);
        let part = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100].1);
        say(&format!(
            "| {stored} | {rate} | {:.1} | {:.1} | {:.1} | {:.1} |",
            part(50),
            part(99),
            milliseconds(worst),
            part(100)
        ));
    }
}

/// Returns the 99th percentile of each window.
fn windows(times: &[(Duration, Duration)]) -> Vec<Duration> {
    let mut windows: Vec<Vec<Duration>> = Vec::new();
    for (at, took) in times {
        let window = usize::try_from(at.as_millis() / WINDOW.as_millis()).expect("a short run");
        if windows.len() <= window {
            windows.resize_with(window + 1, Vec::new);
        }
        windows[window].push(*took);
    }
    let mut found = Vec::new();
    for mut window in windows.into_iter().filter(|window| !window.is_empty()) {
        window.sort_unstable();
        found.push(window[(window.len() - 1) * 99 / 100]);
    }
    found
}

/// Sends events, and returns the time at which each request ended, and its duration.
async fn fill(client: &Rest, from: usize, to: usize, begun: Instant) -> Vec<(Duration, Duration)> {
    let next = Arc::new(AtomicUsize::new(from));
    let mut senders = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (client, next) = (client.clone(), Arc::clone(&next));
        senders.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= to {
                    return times;
                }
                let sent = Instant::now();
                send(&client, number).await;
                times.push((begun.elapsed(), sent.elapsed()));
            }
        });
    }
    senders.join_all().await.into_iter().flatten().collect()
}

async fn send(client: &Rest, number: usize) {
    let body = json!({"events": [{
        "name": page::NAME,
        "dimensions": {"host": format!("host-{number}")},
        "summary": "something happened that somebody may want to know",
        "severity": "SEVERITY_WARNING",
    }]});
    client.post("/v1/data-receiver/events", &body).await.ok();
}
