//! Resource use of the process, and whether it grows.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use bellwether_process::metrics::MetricsSource;

const MIB: u64 = 1024 * 1024;

/// Resource use at one time. The event generator is in the same process, and its use is constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    memory_mib: u64,
    store_mib: u64,
    log_mib: u64,
    descriptors: u64,
    threads: u64,
    /// Number of series on the metrics page.
    series: u64,
    open: i64,
    held: i64,
    waiting: i64,
}

impl Figures {
    pub(super) const HEAD: &str = "hour | events | messages | memory, MiB | store, MiB | log, MiB | \
        descriptors | threads | series | open | held | waiting";

    pub(super) fn now(folder: &Path, page: &str) -> Self {
        // Count allocated blocks, not the length: redb doubles the length up to 4 GiB, and most of
        // the file is a hole.
        let bytes = |name: &str| fs::metadata(folder.join(name)).map_or(0, |it| it.blocks() * 512);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|it| it.split_whitespace().next()?.parse().ok())
                .unwrap()
        };
        let series = page.lines().filter(|line| !line.starts_with('#'));
        Self {
            memory_mib: number("VmRSS:") / 1024,
            store_mib: bytes("store.redb") / MIB,
            log_mib: (bytes("store.log.0") + bytes("store.log.1")) / MIB,
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count() as u64,
            threads: number("Threads:"),
            series: series.count() as u64,
            open: of(page, "bellwether_open_occurrences"),
            held: of(page, "bellwether_pending"),
            waiting: of(page, "bellwether_destination_waiting"),
        }
    }

    pub(super) fn row(&self, minute: u64, events: u64, messages: u64) -> String {
        let Self {
            memory_mib,
            store_mib,
            log_mib,
            descriptors,
            threads,
            series,
            open,
            held,
            waiting,
        } = self;
        format!(
            "{} | {events} | {messages} | {memory_mib} | {store_mib} | {log_mib} | {descriptors} | \
             {threads} | {series} | {open} | {held} | {waiting}",
            minute / 60
        )
    }
}

/// Selects one of the figures.
type FigureFn = fn(&Figures) -> u64;

pub(super) async fn page(source: &dyn MetricsSource) -> String {
    source.render().await
}

/// Returns the sum of a gauge over its labels.
pub(super) fn of(page: &str, name: &str) -> i64 {
    let lines = page.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    });
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<i64>().ok());
    values.sum()
}

/// Prints the maximum of each figure in both periods, and whether it stayed flat.
pub(super) fn compare(first: &[Figures], last: &[Figures], growth_max: f64) {
    let rows: [(&str, FigureFn); 6] = [
        ("memory, MiB", |it| it.memory_mib),
        ("store, MiB", |it| it.store_mib),
        ("log, MiB", |it| it.log_mib),
        ("descriptors", |it| it.descriptors),
        ("threads", |it| it.threads),
        ("series", |it| it.series),
    ];
    for (name, value) in rows {
        let most = |all: &[Figures]| all.iter().map(value).max().unwrap_or_default();
        let (before, after) = (most(first), most(last));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let growth = after as f64 / before.max(1) as f64;
        let verdict = if growth <= growth_max {
            "flat"
        } else {
            "GROWS"
        };
        println!(
            "{name}: {before} on days 2 and 3, {after} on days 6 and 7: {growth:.2} x, {verdict}"
        );
    }
}
