//! Time from a key press to the end of the frame that reacts to it, in every state of the service.

use std::time::Duration;

use bellwether_tests::{
    process,
    proxy::{Proxy, Weather},
    world::World,
};

use crate::{
    load::{self, Load},
    pty::{Pty, WIDE, selected, shows},
    report::{Figure, Goal, Report},
    stage,
    times::Times,
};

/// Number of keys pressed in each state. At about 30 ms each, a broken connection is noticed
/// meanwhile.
const KEYS: usize = 150;
/// Number of events at the start.
const EVENTS: usize = 2_000;
const GOALS: Option<[f64; 2]> = Some([2.0, 16.0]);

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("key") {
        return;
    }
    let (mut empty, _) = Pty::start(stage::empty_program(), "", |_| true);
    let reference = keys(&mut empty, KEYS);
    empty.quit();
    let mut add_to_report = |name: &str, times: &Times| {
        let name = format!("key -> end of frame, {name}");
        times.add_to_report(report, &name, GOALS, Some(&reference));
    };

    let mut world = World::start();
    stage::fill(&world, 0, EVENTS);
    let mut pty = stage::console_on_events(&world, &stage::address(&world));
    add_to_report("quiet", &keys(&mut pty, KEYS));

    stage::enable_a_rule(&world);
    let console = stage::console(&world, &stage::address(&world));
    let (mut wide, _) = Pty::start_at(WIDE, console, "", shows("Events a minute"));
    let wall = (0..KEYS).map(|number| {
        stage::pause(number);
        let took = wide.press(":", shows("Go to, or do"));
        wide.press("\x1b", |screen| !shows("Go to, or do")(screen));
        took
    });
    add_to_report("200 by 50, over the wall", &wall.collect());
    wide.press("2", shows("\u{25b6}"));
    add_to_report("200 by 50, with the split", &keys(&mut wide, KEYS));
    wide.quit();

    let load = Load::start(&world);
    let times = keys(&mut pty, KEYS);
    let rate = load.rate();
    drop(load);
    add_to_report("5,000 events/s", &times);
    pty.quit();

    let proxy = Proxy::start(&stage::address(&world));
    let mut pty = stage::console_on_events(&world, &proxy.address().to_string());
    proxy.set(Weather::HalfOpen);
    add_to_report("half-open", &keys(&mut pty, KEYS));
    pty.until(shows("not connected"));
    pty.quit();

    let mut pty = stage::console_on_events(&world, &stage::address(&world));
    process::signal("-STOP", world.service().id());
    add_to_report("stalled", &keys(&mut pty, KEYS));
    pty.until(shows("not connected"));
    process::signal("-CONT", world.service().id());
    pty.until(shows("\u{25cf} connected"));

    world.kill();
    add_to_report("down", &keys(&mut pty, KEYS));
    pty.until(shows("not connected"));
    pty.quit();

    let figure = Figure::new("key: events that arrived meanwhile", rate, "/s");
    report.add(figure.goal(Goal::Least(load::PACE * 0.95)));
}

/// Measures pressing keys one by one, in the list or in the empty program.
pub(crate) fn keys(pty: &mut Pty, count: usize) -> Times {
    let paused_step = |number| {
        stage::pause(number);
        step(pty, "j")
    };
    (0..count).map(paused_step).collect()
}

/// Presses a key that moves the cursor, and returns the time until the frame with the new row was
/// complete.
pub(crate) fn step(pty: &mut Pty, key: &str) -> Duration {
    let before = pty.read(selected).expect("a cursor");
    pty.press(key, move |screen| {
        selected(screen).is_some_and(|row| row != before)
    })
}
