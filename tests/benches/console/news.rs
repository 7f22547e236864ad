//! Time from the response that an event was accepted to the end of the frame that shows it.

use std::time::{Duration, Instant};

use bellwether_tests::world::World;
use tokio::runtime::Handle;

use crate::{report::Report, stage, times::Times};

const EVENTS: usize = 80;

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("event") {
        return;
    }
    let world = World::start();
    stage::fill(&world, 0, 100);
    let mut pty = stage::console_on_events(&world, &stage::address(&world));
    let channel = world.grpc();
    let mut times = Times::default();
    for number in 0..EVENTS {
        let event = 5_000_000 + number;
        // New events do not move the cursor and the visible rows, so go to the newest one first.
        pty.type_keys("gg");
        stage::pause(number);
        std::thread::sleep(Duration::from_millis(20));
        let words = format!("something {event:07} ");
        pty.want(move |screen| screen.contents().contains(&words));
        Handle::current().block_on(stage::send(channel.clone(), event, 1));
        let accepted = Instant::now();
        times.push(pty.met().saturating_duration_since(accepted));
    }
    pty.quit();
    times.add_to_report(
        report,
        "event accepted -> on screen",
        Some([40.0, 80.0]),
        None,
    );
}
