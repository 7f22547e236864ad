//! Cost of an idle console: CPU time, wake-ups, bytes.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    time::{Duration, Instant},
};

use bellwether_tests::world::World;

use crate::{
    pty::{Pty, shows},
    report::{Figure, Goal, Report},
    stage,
};

/// Length of the measurement.
const SPAN: Duration = Duration::from_secs(60);
/// Settling time before the measurement: startup work finishes, idle threads exit, and the console
/// assumes that no one is present.
const REST: Duration = Duration::from_secs(45);

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("idle") {
        return;
    }
    let (empty, _) = Pty::start(stage::empty_program(), "", |_| true);
    let world = World::start();
    stage::fill(&world, 0, 100);
    stage::enable_a_rule(&world);
    let events = stage::console_on_events(&world, &stage::address(&world));
    let command = stage::console(&world, &stage::address(&world));
    let (overview, _) = Pty::start(command, "", shows("up since"));
    let folder = tempfile::tempdir().expect("a folder");
    let (mut own, _) = Pty::start(stage::own_service(folder.path()), "", shows("First steps"));
    own.press("2", shows("No events"));

    // The programs can be measured concurrently: all are idle, and the counts are per process.
    let consoles = [
        ("events", events),
        ("overview", overview),
        ("own service", own),
    ];
    std::thread::sleep(REST);
    let start = Instant::now();
    let reference = Counts::of(&empty);
    let before: Vec<Counts> = consoles.iter().map(|(_, pty)| Counts::of(pty)).collect();
    std::thread::sleep(SPAN);
    let seconds = start.elapsed().as_secs_f64();
    let reference = Counts::of(&empty).since(&reference, seconds);
    for ((name, pty), before) in consoles.iter().zip(before) {
        let spent = Counts::of(pty).since(&before, seconds);
        for (what, goal, unit, value, beside) in [
            ("CPU", 0.05, "%", spent.cpu, reference.cpu),
            ("wake-ups", 0.5, "/s", spent.wake_ups, reference.wake_ups),
            ("written", 0.0, "B/s", spent.bytes, reference.bytes),
        ] {
            let figure = Figure::new(format!("idle, {name}: {what}"), value, unit);
            let beside = Some(beside).filter(|beside| *beside > 0.0);
            report.add(
                figure
                    .goal(Goal::Most(goal))
                    .beside("empty program", beside),
            );
        }
    }
}

/// CPU time and wake-ups of each thread of a process, and the bytes it has written.
struct Counts {
    cpu_seconds: Threads,
    wake_ups: Threads,
    bytes: f64,
}

type Threads = BTreeMap<OsString, f64>;

/// Percent of a core, wake-ups and bytes, each per second.
struct Spent {
    cpu: f64,
    wake_ups: f64,
    bytes: f64,
}

impl Counts {
    fn of(pty: &Pty) -> Self {
        Self {
            cpu_seconds: stage::of_threads(pty.process(), "schedstat", stage::cpu_seconds),
            wake_ups: stage::of_threads(pty.process(), "status", wake_ups),
            bytes: f64::from(pty.bytes()),
        }
    }

    fn since(&self, before: &Self, seconds: f64) -> Spent {
        Spent {
            cpu: more(&self.cpu_seconds, &before.cpu_seconds) * 100.0 / seconds,
            wake_ups: more(&self.wake_ups, &before.wake_ups) / seconds,
            bytes: (self.bytes - before.bytes) / seconds,
        }
    }
}

/// Returns the sum of the increases of all threads that still exist.
fn more(now: &Threads, before: &Threads) -> f64 {
    let each = now
        .iter()
        .map(|(thread, now)| now - before.get(thread).unwrap_or(&0.0));
    each.sum()
}

/// Parses the number of times that a thread went to sleep from its `status`. It was woken as often.
fn wake_ups(status: &str) -> Option<f64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}
