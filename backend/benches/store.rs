//! Records that the store writes per second, compared with the maximum of the disk.
//!
//! A record is an occurrence of 500 bytes with four index entries; each record is a separate set.
//! The disk's maximum is measured in the same folder, by appending 512 bytes and syncing,
//! repeatedly. The argument is the folder to use; the default is a temporary one.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results and panics on the first failure"
)]

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_backend::{
    config::Location,
    store::{
        self, Index, Kind, Lane,
        engine::{Action, Change, Entry, Expect},
    },
};
use tokio::{runtime::Runtime, task::JoinSet};

const RUN: Duration = Duration::from_secs(2);
const VALUE_BYTES: usize = 500;
const IN_FLIGHT: [u64; 4] = [1, 64, 256, 1024];

fn main() {
    let parent = match std::env::args_os()
        .skip(1)
        .find(|argument| argument != "--bench")
    {
        Some(folder) => tempfile::tempdir_in(PathBuf::from(folder)).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let runtime = Runtime::new().unwrap();
    println!("in flight | records/s | p50 ms | p99 ms | syncs/s of the disk | ratio");
    for in_flight in IN_FLIGHT {
        let config = Location::folder(parent.path().join(in_flight.to_string()));
        let disk_before = syncs_per_second(parent.path());
        let mut took = runtime.block_on(write(&config, in_flight));
        let disk = disk_before.midpoint(syncs_per_second(parent.path()));
        took.sort_unstable();
        let at = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1e3;
        let (p50_ms, p99_ms) = (at(50), at(99));
        let rate = per_second(took.len(), RUN);
        println!(
            "{in_flight:9} | {rate:9.0} | {p50_ms:6.2} | {p99_ms:6.2} | {disk:19.0} | {:5.2}",
            rate / disk
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Returns the maximum of the disk: consecutive appends and syncs per second.
fn syncs_per_second(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("raw")).unwrap();
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < RUN / 4 {
        file.write_all(&[1; 512]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    per_second(count, start.elapsed())
}

/// Writes for the measured time, and returns the duration of each record.
async fn write(config: &Location, in_flight: u64) -> Vec<Duration> {
    let store = store::open(config).await.unwrap();
    let next = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        let (engine, next) = (Arc::clone(store.engine()), Arc::clone(&next));
        callers.spawn(async move {
            let mut took = Vec::new();
            while start.elapsed() < RUN {
                let change = occurrence(next.fetch_add(1, Ordering::Relaxed));
                let begun = Instant::now();
                engine.apply(Lane::Bulk, vec![change].into()).await.unwrap();
                took.push(begun.elapsed());
            }
            took
        });
    }
    callers.join_all().await.concat()
}

fn occurrence(number: u64) -> Change {
    let key = [[0; 8], number.to_be_bytes()].concat();
    // Spread like the id of an event.
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let entry = |index, lead: &[u8]| Entry {
        index,
        key: [lead, &key].concat(),
    };
    let put = Action::Put(vec![7; VALUE_BYTES]);
    Change {
        add: vec![
            entry(Index::OccurrenceByEvent, &spread),
            entry(Index::OccurrenceByState, &[1, spread[0] % 5]),
            entry(Index::OccurrenceByStart, &[1]),
            entry(Index::OccurrenceByReview, &[2]),
            entry(Index::OccurrenceBySeverity, &[1, spread[0] % 5]),
        ],
        adds: true,
        ..Change::new(Kind::Occurrence, &key, Expect::Absent, put)
    }
}
