//! Counts requests and shows them as Prometheus text.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use http::StatusCode;

/// Upper bounds of the histogram's buckets, in milliseconds.
const BUCKETS_MS: [u64; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 2_500, 10_000, 30_000];

/// Statuses that the gateway answers with; any other is counted as the last one.
const STATUSES: [u16; 19] = [
    200, 202, 204, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 431, 499, 501, 503, 504, 500,
];

/// The operation of requests that match no path.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Counters of one operation.
#[derive(Debug, Default)]
struct Counters {
    by_status: [AtomicU64; STATUSES.len()],
    by_duration: [AtomicU64; BUCKETS_MS.len()],
    count: AtomicU64,
    duration_us: AtomicU64,
}

/// Counters of all operations; the set of labels is fixed when it is made.
#[derive(Debug)]
pub(crate) struct Metrics {
    operations: Vec<(Box<str>, Counters)>,
    request_body_bytes: AtomicU64,
    answer_body_bytes: AtomicU64,
    connections: AtomicU64,
    panics: AtomicU64,
}

impl Metrics {
    /// Counts these operations, by their place in the list, and one more for all other requests.
    pub(crate) fn new(operations: impl Iterator<Item = String>) -> Self {
        let names = operations.chain([UNMATCHED.to_owned()]);
        Self {
            operations: names
                .map(|name| (name.into(), Counters::default()))
                .collect(),
            request_body_bytes: AtomicU64::new(0),
            answer_body_bytes: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    /// Counts a request that was answered. `None` stands for no operation.
    pub(crate) fn answered(
        &self,
        operation: Option<usize>,
        status: StatusCode,
        duration: Duration,
        answer_bytes: usize,
    ) {
        let last = self.operations.len() - 1;
        let (_, counters) = &self.operations[operation.unwrap_or(last).min(last)];
        let known = STATUSES.iter().position(|known| *known == status.as_u16());
        counters.by_status[known.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Relaxed);
        let took_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BUCKETS_MS
            .iter()
            .position(|most_ms| took_us <= most_ms * 1_000)
        {
            counters.by_duration[bucket].fetch_add(1, Relaxed);
        }
        counters.count.fetch_add(1, Relaxed);
        counters.duration_us.fetch_add(took_us, Relaxed);
        self.answer_body_bytes
            .fetch_add(answer_bytes as u64, Relaxed);
    }

    /// Counts a part of a body that came in.
    pub(crate) fn received(&self, bytes: usize) {
        self.request_body_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a connection that was opened.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// Counts a request that ended in a panic.
    pub(crate) fn panicked(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// Writes everything in the Prometheus text format. Operations without requests are left out.
    pub(crate) fn text(&self, in_flight: usize) -> String {
        let mut out = String::new();
        self.write(in_flight, &mut out)
            .expect("writing to memory does not fail");
        out
    }

    fn write(&self, in_flight: usize, out: &mut String) -> std::fmt::Result {
        const PREFIX: &str = "bellwether_gateway_";
        let name = format!("{PREFIX}requests_total");
        writeln!(
            out,
            "# HELP {name} Requests answered.\n# TYPE {name} counter"
        )?;
        for (operation, counters) in &self.operations {
            for (status, count) in STATUSES.iter().zip(&counters.by_status) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let labels = format!("operation=\"{operation}\",code=\"{status}\"");
                    writeln!(out, "{name}{{{labels}}} {count}")?;
                }
            }
        }
        let name = format!("{PREFIX}request_duration_seconds");
        writeln!(
            out,
            "# HELP {name} Time to answer.\n# TYPE {name} histogram"
        )?;
        for (operation, counters) in &self.operations {
            counters.write_durations(&name, operation, out)?;
        }
        let in_flight = in_flight as u64;
        let single = [
            (
                "requests_in_flight",
                "gauge",
                "Requests under way.",
                in_flight,
            ),
            (
                "request_body_bytes_total",
                "counter",
                "Bytes of bodies taken in.",
                self.request_body_bytes.load(Relaxed),
            ),
            (
                "answer_body_bytes_total",
                "counter",
                "Bytes of bodies answered.",
                self.answer_body_bytes.load(Relaxed),
            ),
            (
                "connections_total",
                "counter",
                "Connections.",
                self.connections.load(Relaxed),
            ),
            (
                "panics_total",
                "counter",
                "Requests that panicked.",
                self.panics.load(Relaxed),
            ),
        ];
        for (name, kind, help, value) in single {
            writeln!(
                out,
                "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}"
            )?;
            writeln!(out, "{PREFIX}{name} {value}")?;
        }
        Ok(())
    }
}

impl Counters {
    fn write_durations(&self, name: &str, operation: &str, out: &mut String) -> std::fmt::Result {
        let count = self.count.load(Relaxed);
        if count == 0 {
            return Ok(());
        }
        let mut below = 0;
        for (most_ms, bucket) in BUCKETS_MS.iter().zip(&self.by_duration) {
            below += bucket.load(Relaxed);
            let most = Duration::from_millis(*most_ms).as_secs_f64();
            let labels = format!("operation=\"{operation}\",le=\"{most}\"");
            writeln!(out, "{name}_bucket{{{labels}}} {below}")?;
        }
        let sum = Duration::from_micros(self.duration_us.load(Relaxed)).as_secs_f64();
        writeln!(
            out,
            "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {count}"
        )?;
        writeln!(out, "{name}_sum{{operation=\"{operation}\"}} {sum}")?;
        writeln!(out, "{name}_count{{operation=\"{operation}\"}} {count}")
    }
}
