//! Time from `q` to the end of the process, in every state of the connection.

use bellwether_tests::{
    process,
    proxy::{Proxy, Weather},
    world::World,
};

use crate::{
    load::Load,
    pty::{Pty, shows},
    report::Report,
    stage,
    times::Times,
};

/// Number of consoles that are quit in each state, half of them before they can notice the state.
const CONSOLES: usize = 16;
const GOALS: Option<[f64; 2]> = Some([50.0, 100.0]);

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("quit") {
        return;
    }
    let empty: Times = (0..CONSOLES)
        .map(|_| Pty::start(stage::empty_program(), "", |_| true).0.quit())
        .collect();
    let mut add_to_report = |name: &str, times: Times| {
        times.add_to_report(
            report,
            &format!("quit: q -> exit, {name}"),
            GOALS,
            Some(&empty),
        );
    };
    let mut world = World::start();
    stage::fill(&world, 0, 1_000);
    let direct = stage::address(&world);
    let open = |address: &str| stage::console_on_events(&world, address);

    add_to_report(
        "quiet",
        (0..CONSOLES).map(|_| open(&direct).quit()).collect(),
    );

    let load = Load::start(&world);
    let under_load = (0..CONSOLES).map(|_| open(&direct).quit()).collect();
    drop(load);
    add_to_report("5,000 events/s", under_load);

    let proxy = Proxy::start(&direct);
    let through = proxy.address().to_string();
    let consoles = (0..CONSOLES).map(|_| open(&through)).collect();
    proxy.set(Weather::HalfOpen);
    add_to_report("half-open", leave(consoles));

    // Connections are accepted but get no response, so the consoles are still connecting.
    proxy.set(Weather::Stalls);
    let connecting = (0..CONSOLES).map(|_| {
        let command = stage::console(&world, &through);
        Pty::start(command, "", shows("connecting")).0.quit()
    });
    add_to_report("connecting", connecting.collect());

    let consoles = (0..CONSOLES).map(|_| open(&direct)).collect();
    process::signal("-STOP", world.service().id());
    add_to_report("stalled", leave(consoles));
    process::signal("-CONT", world.service().id());

    let consoles = (0..CONSOLES).map(|_| open(&direct)).collect();
    world.kill();
    add_to_report("down", leave(consoles));

    let own = stage::own_service(world.folder());
    let own = (0..CONSOLES).map(|_| Pty::start(own.clone(), "2", shows("happened")).0.quit());
    add_to_report("service of its own", own.collect());
}

/// Quits half of the consoles immediately, and the other half when they show the problem.
fn leave(mut consoles: Vec<Pty>) -> Times {
    let later = consoles.split_off(CONSOLES / 2);
    let mut times: Times = consoles.into_iter().map(Pty::quit).collect();
    for console in &later {
        console.until(shows("not connected"));
    }
    for console in later {
        times.push(console.quit());
    }
    times
}
