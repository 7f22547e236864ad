//! How many events intake takes in a second, each on disk with its state before it is answered.
//!
//! Events come one by one and in lists of 100, as new ones and as repeats. Takes a folder as
//! argument; without one it makes a temporary one.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its findings and stops at the first fault"
)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_backend::{
    clock::{Clock, SystemClock},
    config::Config,
    domain::{IncomingEvent, Severity},
    ops::{deciding::Deciding, intake::Intake, recent::Traffic, ruleset::Ruleset},
    store,
};
use tokio::{runtime::Runtime, task::JoinSet};
use tokio_util::sync::CancellationToken;

const RUN: Duration = Duration::from_secs(2);
/// Identities among which repeats are spread.
const REPEATED: u64 = 10_000;

fn main() {
    let arguments = std::env::args_os().skip(1);
    let parent = match { arguments }.find(|argument| argument != "--bench") {
        Some(folder) => tempfile::tempdir_in(PathBuf::from(folder)).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let runtime = Runtime::new().unwrap();
    println!("events | in a list | lists in flight | events/s | p50 ms | p99 ms");
    for (identities, kind) in [(u64::MAX, "new"), (REPEATED, "repeats")] {
        for (length, in_flight) in [(1, 256), (100, 16)] {
            let folder = parent.path().join(format!("{kind}-{length}"));
            let load = Load {
                identities,
                length,
                in_flight,
            };
            let mut took = runtime.block_on(load.run(&folder));
            took.sort_unstable();
            let at = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1e3;
            let (p50_ms, p99_ms) = (at(50), at(99));
            let rate = took.len() as u64 * length / RUN.as_secs();
            println!("{kind} | {length} | {in_flight} | {rate} | {p50_ms:.1} | {p99_ms:.1}");
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Load {
    identities: u64,
    length: u64,
    in_flight: u64,
}

impl Load {
    /// Sends for a while; answers how long each list took.
    async fn run(self, folder: &Path) -> Vec<Duration> {
        let store = store::open(&Config::new(folder)).await.unwrap();
        let deciding = Deciding {
            ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
            store,
            clock: Arc::new(SystemClock),
            lifetime: Config::new(folder).lifetime,
            traffic: Arc::new(Traffic::default()),
        };
        let (intake, workers) = Intake::new(deciding);
        let stop = CancellationToken::new();
        let mut working = JoinSet::from_iter([workers.run(stop.clone())]);
        let next = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + RUN;
        let mut senders = JoinSet::new();
        for _ in 0..self.in_flight {
            senders.spawn(self.send(intake.clone(), Arc::clone(&next), end));
        }
        let took = senders.join_all().await.concat();
        stop.cancel();
        while working.join_next().await.is_some() {}
        took
    }

    async fn send(self, intake: Intake, next: Arc<AtomicU64>, end: Instant) -> Vec<Duration> {
        let mut took = Vec::new();
        while Instant::now() < end {
            let first = next.fetch_add(self.length, Ordering::Relaxed);
            let events = (first..first + self.length).map(|at| event(at % self.identities));
            let events = events.collect();
            let start = Instant::now();
            let submitted = intake.submit(events, None).await.unwrap();
            took.push(start.elapsed());
            assert!(submitted.failed.is_empty());
        }
        took
    }
}

fn event(number: u64) -> IncomingEvent {
    IncomingEvent {
        name: "disk-full".into(),
        kind: "disk".into(),
        dimensions: BTreeMap::from([("host".into(), format!("host-{number}"))]),
        metadata: BTreeMap::new(),
        summary: "the disk is full".into(),
        body: String::new(),
        severity: Some(Severity::Error),
        status: None,
        acknowledged: None,
        timestamp_ms: SystemClock.now_ms(),
    }
}
