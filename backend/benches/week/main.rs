//! A simulated week of an installation: 50 million events, 500 rules, silences, groups, receivers
//! that fail and recover, and a restart each day. Its memory, files, counters and descriptors do
//! not grow once retention has begun.
//!
//! `cargo bench --package bellwether-backend --bench week -- [EVENTS]` sends that many; the
//! simulated time is always a week. A row is printed every six simulated hours, and the verdict at
//! the end: the maximum of the last two days compared with the maximum of the two days after the
//! first.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results and panics on the first failure"
)]

mod definitions;
mod figures;
mod outside;

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use bellwether_backend::{
    Backend, Config,
    clock::{Clock, ManualClock},
    domain::SharedSettings,
};
use bellwether_process::metrics::MetricsSource;
use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use futures_util::{StreamExt as _, stream};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use self::{definitions::Grpc, figures::Figures, outside::Outside};

/// The allocator that the command uses. glibc's would retain 300 MB of fragmented memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MINUTES: u64 = 7 * 24 * 60;
const EVENTS: u64 = 50_000_000;
/// 2026-01-01, in milliseconds since 1970.
const START_MS: i64 = 1_767_225_600_000;
const HOUR: Duration = Duration::from_secs(3600);
/// Number of identities that keep sending.
const STEADY: u64 = 20_000;
/// One in ten events opens a new occurrence, and another closes it a minute later.
const TENTH: u64 = 10;
const BATCH: u64 = 100;
const IN_FLIGHT: usize = 4;
/// Number of services that events are about; every tenth has a rule.
const SERVICES: u64 = 5_000;
/// Retention, short enough that all records expire within a day.
const RETENTION: Duration = HOUR.saturating_mul(6);
/// Maximum number of waiting messages when the next minute begins.
const WAITING_MAX: i64 = 20_000;
const REPORT_EVERY: u64 = 6 * 60;
const DAY: u64 = 24 * 60;
/// Maximum use at the end of the run, as a multiple of the use on the first days.
const GROWTH_MAX: f64 = 1.1;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` also runs this program, which then makes no measurement.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let events = arguments.iter().find_map(|text| text.parse().ok());
    let events = events.unwrap_or(EVENTS);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(pass_a_week(events));
}

async fn pass_a_week(events: u64) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::starting_at(START_MS));
    let outside = Outside::start(Arc::clone(&clock)).await;
    let mut service = Service::start(folder.path(), &clock).await;
    definitions::define(&service.grpc, &outside).await;
    let a_minute = (events / MINUTES / BATCH).max(1);
    println!("{}", Figures::HEAD);
    let (begun, mut all) = (Instant::now(), Vec::new());
    for minute in 0..MINUTES {
        if minute % 60 == 0 {
            definitions::silence(&service.grpc, minute / 60, clock.now_ms()).await;
        }
        send(&service.grpc, minute, a_minute).await;
        for _ in 0..4 {
            clock.advance(Duration::from_secs(15));
            sleep(Duration::from_millis(1)).await;
        }
        if minute % 10 == 0 {
            service.catch_up().await;
        }
        // Restart at midday, when all kinds of work are in progress.
        if minute % DAY == DAY / 2 {
            service.stop().await;
            service = Service::start(folder.path(), &clock).await;
        }
        if (minute + 1) % REPORT_EVERY == 0 {
            let figures = Figures::now(folder.path(), &service.page().await);
            let sent = outside.received.load(Ordering::Relaxed);
            println!(
                "{}",
                figures.row(minute + 1, (minute + 1) * a_minute * BATCH, sent)
            );
            all.push(figures);
        }
    }
    service.stop().await;
    println!(
        "{} s, {} events",
        begun.elapsed().as_secs(),
        MINUTES * a_minute * BATCH
    );
    let a_day = usize::try_from(DAY / REPORT_EVERY).unwrap();
    let (first, last) = (&all[a_day..3 * a_day], &all[5 * a_day..]);
    figures::compare(first, last, GROWTH_MAX);
}

/// Sends batches of repeats, openings and closings.
async fn send(grpc: &Grpc, minute: u64, batches: u64) {
    let batches: Vec<_> = (0..batches).map(|batch| events(minute, batch)).collect();
    let sent = batches.into_iter().map(|events| {
        let mut client = DataReceiverServiceClient::new(grpc.clone());
        async move {
            let request = cloud::Events {
                detailed_response: false,
                events,
            };
            let answer = client.put_events(request).await.unwrap();
            assert_eq!(u64::try_from(answer.into_inner().succeeded), Ok(BATCH));
        }
    });
    let () = stream::iter(sent)
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
}

fn events(minute: u64, batch: u64) -> Vec<cloud::Event> {
    let event = |at: u64| {
        let number = batch * BATCH + at;
        match at % TENTH {
            0 => brief(minute, number, cloud::Status::Open),
            1 if minute > 0 => brief(minute - 1, number - 1, cloud::Status::Closed),
            _ => steady(minute, number),
        }
    };
    (0..BATCH).map(event).collect()
}

/// Returns an event of an identity that sends for a minute.
fn brief(minute: u64, number: u64, status: cloud::Status) -> cloud::Event {
    let service = (minute * 997 + number) % SERVICES;
    // One event in ten is the cause of an inhibition.
    let severity = if number.is_multiple_of(TENTH * TENTH) {
        cloud::Severity::Critical
    } else {
        cloud::Severity::Error
    };
    cloud::Event {
        name: "job failed".into(),
        dimensions: [
            ("service".to_owned(), format!("s{service}")),
            ("job".to_owned(), format!("{minute}-{number}")),
        ]
        .into(),
        summary: "the job ended with an error".into(),
        severity: severity.into(),
        status: status.into(),
        ..cloud::Event::default()
    }
}

fn steady(minute: u64, number: u64) -> cloud::Event {
    let host = (minute * 4_001 + number) % STEADY;
    let severity = if minute.is_multiple_of(2) {
        cloud::Severity::Info
    } else {
        cloud::Severity::Warning
    };
    cloud::Event {
        name: "load".into(),
        dimensions: [("host".to_owned(), format!("h{host}"))].into(),
        summary: "the load is high".into(),
        severity: severity.into(),
        ..cloud::Event::default()
    }
}

/// One run of the service.
struct Service {
    grpc: Grpc,
    metrics: Arc<dyn MetricsSource>,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Service {
    async fn start(folder: &Path, clock: &Arc<ManualClock>) -> Self {
        let mut config = Config::new(folder);
        config.grpc_listen = "127.0.0.1:0".parse().unwrap();
        config.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
        config.shared = SharedSettings {
            event_retention: RETENTION,
            delivery_retention: RETENTION,
            audit_retention: RETENTION,
            ..SharedSettings::default()
        };
        config.given = [
            "lifetime.retention",
            "delivery.retention",
            "audit.retention",
        ]
        .map(String::from)
        .into();
        let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
        let backend = Backend::bind_with_clock(config, clock).await.unwrap();
        let key = std::fs::read_to_string(folder.join("admin.key")).unwrap();
        let channel = Endpoint::from_shared(format!("http://{}", backend.grpc_addr())).unwrap();
        let stop = CancellationToken::new();
        Self {
            grpc: definitions::with_key(channel.connect_lazy(), key.trim()),
            metrics: backend.metrics(),
            serving: {
                let stop = stop.clone();
                JoinSet::from_iter([async move { backend.serve(stop).await.unwrap() }])
            },
            stop,
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        drop(self.grpc);
        self.serving.join_all().await;
    }

    async fn page(&self) -> String {
        figures::page(self.metrics.as_ref()).await
    }

    /// Waits until few messages are queued, not counting those for receivers that are down.
    async fn catch_up(&self) {
        for _ in 0..600 {
            let waiting = figures::of(&self.page().await, "bellwether_destination_waiting");
            if waiting < WAITING_MAX {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
