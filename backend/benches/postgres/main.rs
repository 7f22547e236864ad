//! The engine in a PostgreSQL database, compared with the database itself and with the embedded
//! engine.
//!
//! Prints one line of JSON per figure; `just bench postgres` shows them as a table. An event is an
//! occurrence of 500 bytes with five index entries, one of which moves. `BELLWETHER_BENCH_SECONDS`
//! sets the duration of each measurement, `BELLWETHER_BENCH_SNAPSHOT_SECONDS` the duration of the
//! one during which a snapshot is held.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results and panics on the first failure"
)]

mod bare;
mod events;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_backend::{
    config::Location,
    store::{
        self,
        engine::{
            Engine, Lane,
            postgres::{Address, PostgresEngine, migrate},
        },
    },
};
use serde_json::json;
use tokio::{runtime::Runtime, task::JoinSet};

use self::{
    bare::{Bare, Form},
    events::Event,
};

#[path = "../../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "end-to-end tests use more of this module"
)]
mod server;

/// Events per batch.
const BATCH: usize = 100;
/// Single events in flight.
const IN_FLIGHT: usize = 256;
const NODES: usize = 3;
/// Sequential single events.
const SINGLES: usize = 200;

fn main() {
    // `cargo test --benches` also runs this program, which then makes no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if let Some(server) = server::Postgres::start() {
        Runtime::new().unwrap().block_on(measure(&server));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "options of a benchmark run, not configuration"
)]
fn seconds(variable: &str, unless: u64) -> Duration {
    let value = std::env::var(variable).ok();
    Duration::from_secs(value.map_or(unless, |value| value.parse().unwrap()))
}

fn span() -> Duration {
    seconds("BELLWETHER_BENCH_SECONDS", 5)
}

/// Goal of a figure, relative to its reference.
#[derive(Clone, Copy)]
enum Goal {
    /// At least this multiple of the reference.
    Least(f64),
    Most(f64),
}

fn report(name: &str, value: f64, unit: &str, goal: Option<Goal>, reference: Option<(&str, f64)>) {
    let goal = goal.map(|goal| match goal {
        Goal::Least(least) => json!({"least": least}),
        Goal::Most(most) => json!({"most": most}),
    });
    let reference = reference.map(|(name, value)| json!({"name": name, "value": value}));
    let name = format!("postgres engine: {name}");
    println!(
        "{}",
        json!({"name": name, "value": value, "unit": unit, "goal": goal, "reference": reference})
    );
}

async fn measure(server: &server::Postgres) {
    let place = Place(server);
    batches(&place).await;
    singles(&place).await;
    one_by_one(&place).await;
}

/// The server on which stores are created.
struct Place<'a>(&'a server::Postgres);

impl Place<'_> {
    /// Creates a store, and returns its address.
    async fn store(&self) -> (Address, String) {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let schema = format!("store_{}", STORES.fetch_add(1, Ordering::Relaxed));
        let password = server::PASSWORD;
        let address = Address::parse(&self.0.url(), Some(password), &schema).unwrap();
        migrate(&address).await.unwrap();
        (address, schema)
    }

    async fn bare(&self, form: Form) -> Bare {
        Bare::make(self.0.port(), form).await
    }
}

async fn open(address: &Address) -> Arc<dyn Engine> {
    Arc::new(PostgresEngine::open(address.clone(), None).await.unwrap())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_second(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

/// Inserts new events in consecutive batches, and returns the rate and the events with their
/// versions.
async fn new_events(engine: &Arc<dyn Engine>, time: Duration) -> (f64, Vec<(Event, u64)>) {
    let (begin, mut stored) = (Instant::now(), Vec::new());
    while begin.elapsed() < time {
        let first = stored.len() as u64;
        let batch: Vec<_> = (first..first + BATCH as u64).map(Event::numbered).collect();
        let set: Vec<_> = batch.iter().map(Event::appears).collect();
        let version = engine.apply(Lane::Bulk, set.into()).await.unwrap().version;
        stored.extend(batch.into_iter().map(|event| (event, version)));
    }
    (per_second(stored.len() as u64, begin), stored)
}

/// Repeats existing events in batches, and returns the rate.
async fn repeats(engine: &Arc<dyn Engine>, stored: &mut [(Event, u64)]) -> f64 {
    let (begin, mut count) = (Instant::now(), 0);
    'all: loop {
        for batch in stored.chunks_mut(BATCH) {
            if begin.elapsed() >= span() {
                break 'all;
            }
            let set: Vec<_> = batch
                .iter_mut()
                .map(|(event, version)| event.repeats(*version))
                .collect();
            let version = engine.apply(Lane::Bulk, set.into()).await.unwrap().version;
            for it in batch.iter_mut() {
                it.1 = version;
            }
            count += BATCH as u64;
        }
    }
    per_second(count, begin)
}

async fn batches(place: &Place<'_>) {
    let of_columns = place.bare(Form::Columns).await.new_events(span()).await.0;
    let mut without_log = place.bare(Form::Layout).await;
    let (new_without_log, mut there) = without_log.new_events(span()).await;
    let repeats_without_log = without_log.repeats(&mut there, span()).await;
    let folder = tempfile::tempdir().unwrap();
    let embedded = store::open(&Location::folder(folder.path().join("data")))
        .await
        .unwrap();
    let of_redb = new_events(embedded.engine(), span()).await.0;
    drop(embedded);

    let (address, schema) = place.store().await;
    let engine = open(&address).await;
    let (new, mut stored) = new_events(&engine, span()).await;
    let insert = Some(("bare INSERT", of_columns));
    report(
        "new events, batches of 100",
        new,
        "/s",
        Some(Goal::Least(0.8)),
        insert,
    );
    let redb = Some(("redb", of_redb));
    report(
        "new events, batches of 100, beside redb",
        new,
        "/s",
        Some(Goal::Least(1.5)),
        redb,
    );
    let without = Some(("without log", new_without_log));
    report(
        "log and order, one writer",
        new,
        "/s",
        Some(Goal::Least(0.85)),
        without,
    );
    size(place, &schema, stored.len());
    let again = repeats(&engine, &mut stored).await;
    let without = Some(("without log", repeats_without_log));
    report(
        "repeats, batches of 100",
        again,
        "/s",
        Some(Goal::Least(0.8)),
        without,
    );

    // Dead rows remain while a snapshot is held, so the rate at its end is compared with the rate
    // before it.
    let snapshot = bare::Snapshot::hold(place.0.port()).await;
    let held = seconds("BELLWETHER_BENCH_SNAPSHOT_SECONDS", 60);
    let begin = Instant::now();
    let mut beside = again;
    while begin.elapsed() < held {
        beside = repeats(&engine, &mut stored).await;
    }
    drop(snapshot);
    let name = format!("repeats, a snapshot held for {} s", held.as_secs());
    report(
        &name,
        beside,
        "/s",
        Some(Goal::Least(0.9)),
        Some(("before", again)),
    );
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn size(place: &Place<'_>, schema: &str, events: usize) {
    let text = format!(
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' \
         AND relnamespace = to_regnamespace('{schema}') AND relname LIKE 'occurrence%'"
    );
    let bytes: f64 = place.0.execute(&text).parse().unwrap();
    let each = bytes / events as f64;
    report(
        "disk, an event of 500 bytes",
        each,
        "B",
        Some(Goal::Most(1_500.0)),
        None,
    );
}

/// Measures single events sent to three nodes concurrently. The reference is the same number of
/// connections that commit batches of the same size without a log.
async fn singles(place: &Place<'_>) {
    let (address, _) = place.store().await;
    let next = Arc::new(AtomicU64::new(0));
    let mut engines = Vec::new();
    for _ in 0..NODES {
        engines.push(open(&address).await);
    }
    let (begin, mut callers) = (Instant::now(), JoinSet::new());
    for caller in 0..IN_FLIGHT {
        let engine = Arc::clone(&engines[caller % NODES]);
        let next = Arc::clone(&next);
        callers.spawn(async move {
            while begin.elapsed() < span() {
                let event = Event::numbered(next.fetch_add(1, Ordering::Relaxed));
                let set = vec![event.appears()];
                engine.apply(Lane::Bulk, set.into()).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let events = next.load(Ordering::Relaxed);
    let rate = per_second(events, begin);
    let commits = engines[0].log_head().await.unwrap().to_number();
    let batch = ((events + commits / 2) / commits).max(1);

    let (first, all) = (Arc::new(Mutex::new(0)), Instant::now());
    let mut writers = JoinSet::new();
    let shared = place.bare(Form::Layout).await;
    for _ in 0..NODES {
        let (mut bare, first) = (shared.another(place.0.port()).await, Arc::clone(&first));
        writers.spawn(async move {
            let mut count = 0;
            while all.elapsed() < span() {
                let from = {
                    let mut first = first.lock().unwrap();
                    *first += batch;
                    *first - batch
                };
                let events: Vec<_> = (from..from + batch).map(Event::numbered).collect();
                bare.insert(&events).await;
                count += batch;
            }
            count
        });
    }
    let count = writers.join_all().await.into_iter().sum();
    let without = per_second(count, all);
    let name = format!("log and order, three nodes, single events, batches of {batch} came about");
    report(
        &name,
        rate,
        "/s",
        Some(Goal::Least(0.65)),
        Some(("without log", without)),
    );
}

/// Measures a single event on an idle store. The reference is the time of its round trips and of a
/// commit.
async fn one_by_one(place: &Place<'_>) {
    let (address, _) = place.store().await;
    let engine = open(&address).await;
    let mut times = Vec::new();
    for number in 0..SINGLES as u64 {
        let begin = Instant::now();
        let set = vec![Event::numbered(number).appears()];
        engine.apply(Lane::Bulk, set.into()).await.unwrap();
        times.push(begin.elapsed());
    }
    let bare = place.bare(Form::Layout).await;
    let (trip, commit) = bare.trip_and_commit(SINGLES).await;
    let took = median(times).as_secs_f64() * 1e3;
    let needed = (2 * trip + commit).as_secs_f64() * 1e3;
    let most = Some(Goal::Most((needed + 1.0) / needed));
    let reference = Some(("two round trips and a commit", needed));
    report(
        "a single event, nothing else under way",
        took,
        "ms",
        most,
        reference,
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
