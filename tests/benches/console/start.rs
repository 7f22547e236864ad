//! Time from the start of the process to its first frame, and to the first rows of the service that
//! it starts.

use bellwether_tests::world::World;
use portable_pty::CommandBuilder;

use crate::{
    pty::{Pty, shows},
    report::Report,
    stage,
    times::Times,
};

const STARTS: usize = 40;
const OWN_STARTS: usize = 20;
/// Number of events in an existing folder.
const EVENTS: usize = 1_000;

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("start") {
        return;
    }
    let world = World::start();
    stage::fill(&world, 0, EVENTS);
    let console = stage::console(&world, &stage::address(&world));
    let mut empty = Times::default();
    let mut first_frame = Times::default();
    for _ in 0..STARTS {
        empty.push(time_start(&stage::empty_program(), "", |_| true));
        first_frame.push(time_start(&console, "", |_| true));
    }
    first_frame.add_to_report(
        report,
        "start -> first frame",
        Some([15.0, 40.0]),
        Some(&empty),
    );

    let rows: Times = (0..OWN_STARTS)
        .map(|_| time_start(&console, "2", shows("happened")))
        .collect();
    rows.add_to_report(
        report,
        "start --connect -> rows of events",
        None,
        Some(&empty),
    );

    let own = Some([150.0, 300.0]);
    let answer: Times = (0..OWN_STARTS)
        .map(|_| {
            let folder = tempfile::tempdir().expect("a folder");
            // A new service has no rows; its overview shows the first steps.
            time_start(&stage::own_service(folder.path()), "", shows("First steps"))
        })
        .collect();
    answer.add_to_report(
        report,
        "start, new folder -> overview read",
        own,
        Some(&empty),
    );

    let mut world = world;
    world.terminate();
    let command = stage::own_service(world.folder());
    let rows: Times = (0..OWN_STARTS)
        .map(|_| time_start(&command, "2", shows("happened")))
        .collect();
    rows.add_to_report(report, "start, 1,000 events -> rows", own, Some(&empty));
}

fn time_start(
    command: &CommandBuilder,
    keys: &str,
    wanted: impl FnMut(&vt100::Screen) -> bool + Send + 'static,
) -> std::time::Duration {
    let (pty, took) = Pty::start(command.clone(), keys, wanted);
    pty.quit();
    took
}
