//! The service process: its CPU time and startup time.

use std::time::Duration;

use bellwether_tests::process::{self, Service};

use crate::report::{Figure, Goal, Report};

/// Number of starts, of which the median is reported.
const STARTS: usize = 9;
/// Ticks of CPU time per second, as Linux reports them to programs.
const TICKS: f64 = 100.0;

/// Returns the CPU time of a process so far, in microseconds.
pub(crate) fn cpu_us(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let after_name = stat.rsplit(')').next().expect("its name is in brackets");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // User and system time are fields 14 and 15 of the line.
    let ticks = |field: usize| fields[field - 3].parse::<f64>().expect("a number");
    (ticks(14) + ticks(15)) / TICKS * 1e6
}

/// Returns the peak memory of a process, in MiB.
pub(crate) fn peak_mib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.expect("the kernel reports it") / 1024.0
}

pub(crate) fn measure_starts(report: &mut Report) {
    if !report.wants("start") {
        return;
    }
    let mut times: Vec<Duration> = (0..STARTS).map(|_| start_time()).collect();
    times.sort_unstable();
    let median_ms = times[STARTS / 2].as_secs_f64() * 1e3;
    let figure = Figure::new("start: empty service to its ready line", median_ms, "ms");
    report.add(figure.goal(Goal::Most(50.0)));
}

/// Returns the time from the start of the process to its ready line, on an empty data folder.
fn start_time() -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = [
        "serve",
        "--grpc-listen",
        "127.0.0.1:0",
        "--rest-listen",
        "127.0.0.1:0",
    ];
    let mut serve = process::command(folder.path(), listen);
    serve.arg("--data-dir").arg(folder.path().join("data"));
    Service::start(serve, &folder.path().join("log")).start_time
}
