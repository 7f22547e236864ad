//! Memory, files and descriptors of the service in each minute near the maximum rate.
//!
//! Of ten events, eight repeat open occurrences, one opens an occurrence and one closes it again.
//! Retention is a minute, so after a few minutes occurrences are deleted as fast as they are
//! created.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tests::{grpc::Grpc, world::World};
use tokio::task::JoinSet;

use super::{BATCH, IN_FLIGHT, disk_mb, memory_mb, say};

const SETTINGS: &str = "[lifetime]\nretention = \"1m\"\n";
/// Time for which the maximum rate is measured.
const MAXIMUM_SPAN: Duration = Duration::from_secs(20);
/// The rate after that, as a fraction of the maximum.
const SHARE: f64 = 0.8;
/// Number of minutes after which growth is limited.
const SETTLED: usize = 5;
/// Maximum growth from then on, as a factor, with room for normal variation.
const GROWTH_MAX: f64 = 1.05;
/// Number of identities that keep sending.
const STEADY: usize = 100_000;

pub(super) async fn pass(minutes: usize) {
    let world = World::with_settings(SETTINGS);
    let next = Arc::new(AtomicUsize::new(0));
    let maximum = send_for(&world, &next, MAXIMUM_SPAN, None).await;
    let rate = SHARE * maximum;
    say(&format!(
        "{maximum:.0} batches of {BATCH} a second at most, {rate:.0} from now on"
    ));
    say("| minute | batches/s | memory, MB | store, MB | log, MB | descriptors |");
    say("|---|---|---|---|---|---|");
    let mut all = Vec::new();
    for minute in 1..=minutes {
        let sent = send_for(&world, &next, Duration::from_secs(60), Some(rate)).await;
        let figures = measure(&world);
        let [memory, store, log, descriptors] = figures;
        say(&format!(
            "| {minute} | {sent:.0} | {memory} | {store} | {log} | {descriptors} |"
        ));
        all.push(figures);
    }
    let Some((first, last)) = all.split_at_checked(SETTLED) else {
        return;
    };
    for (at, name) in ["memory, MB", "store, MB", "log, MB", "descriptors"]
        .iter()
        .enumerate()
    {
        let most = |all: &[[u64; 4]]| all.iter().map(|it| it[at]).max().unwrap_or_default();
        let (before, after) = (most(first), most(last));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let growth = after as f64 / before.max(1) as f64;
        let verdict = if growth <= GROWTH_MAX {
            "flat"
        } else {
            "GROWS"
        };
        say(&format!(
            "{name}: at most {before} in the first {SETTLED} minutes, {after} after them: {growth:.2} x, {verdict}"
        ));
    }
}

fn measure(world: &World) -> [u64; 4] {
    let process = world.service().id();
    let file = |name: &str| disk_mb(&world.data_dir().join(name));
    let descriptors = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("fd"));
    [
        memory_mb(process, "VmRSS:"),
        file("store.redb"),
        file("store.log.0") + file("store.log.1"),
        descriptors.expect("the process runs").count() as u64,
    ]
}

/// Sends batches for the given time, at the given rate or as fast as possible, and returns the
/// rate.
async fn send_for(
    world: &World,
    next: &Arc<AtomicUsize>,
    span: Duration,
    rate: Option<f64>,
) -> f64 {
    let begun = Instant::now();
    let turn = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (channel, next, turn) = (world.grpc(), Arc::clone(next), Arc::clone(&turn));
        senders.spawn(async move {
            while begun.elapsed() < span {
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                if let Some(rate) = rate {
                    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                    let due = begun + Duration::from_secs_f64(turn as f64 / rate);
                    tokio::time::sleep_until(due.min(begun + span).into()).await;
                }
                send(channel.clone(), next.fetch_add(BATCH, Ordering::Relaxed)).await;
            }
        });
    }
    senders.join_all().await;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let sent = turn.load(Ordering::Relaxed) as f64;
    sent / begun.elapsed().as_secs_f64()
}

async fn send(channel: Grpc, first: usize) {
    let request = cloud::Events {
        detailed_response: false,
        events: (first..first + BATCH).map(event).collect(),
    };
    let answer = DataReceiverServiceClient::new(channel)
        .put_events(request)
        .await;
    let succeeded = answer.expect("an answer").into_inner().succeeded;
    assert_eq!(usize::try_from(succeeded), Ok(BATCH));
}

fn event(number: usize) -> cloud::Event {
    let (host, status) = match number % 10 {
        0 => (format!("brief-{number}"), cloud::Status::Open),
        // Close an event of an earlier batch.
        1 => (
            format!(
                "brief-{}",
                (number - 1).saturating_sub(IN_FLIGHT * BATCH * 10)
            ),
            cloud::Status::Closed,
        ),
        _ => (format!("steady-{}", number % STEADY), cloud::Status::Open),
    };
    // The severity of an event never changes, since each change would add an entry to its history.
    let severity = if number.is_multiple_of(2) {
        cloud::Severity::Warning
    } else {
        cloud::Severity::Error
    };
    cloud::Event {
        name: "soak".into(),
        dimensions: [("host".to_owned(), host)].into(),
        summary: "something happened that somebody may want to know".into(),
        severity: severity.into(),
        status: status.into(),
        ..cloud::Event::default()
    }
}
