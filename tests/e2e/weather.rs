//! Tests of the console on a bad network: it responds to keys, shows accurate data, loses and
//! duplicates no input, and can be quit immediately.

mod answers;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use bellwether_tests::{
    process,
    proxy::{Proxy, Weather},
    receiver::Receiver,
    rest::Rest,
    terminal::Terminal,
    world::World,
};

use crate::samples;

const NOTICED: Duration = Duration::from_secs(3);
/// Time limits for responding to all but the slowest keys, and for quitting.
const KEY: Duration = Duration::from_millis(16);
const LEAVING: Duration = Duration::from_millis(100);
/// Time limit for builds other than a release build, for which the promised times are checked.
const PATIENCE: Duration = Duration::from_secs(60);
const KEYS: usize = 40;

fn console(world: &World, proxy: &Proxy) -> Terminal {
    console_at(world, &proxy.address().to_string())
}

fn console_at(world: &World, address: &str) -> Terminal {
    let address = format!("http://{address}");
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    Terminal::start(world.folder(), &["--connect", &address, "--key-file", key])
}

fn proxy(world: &World) -> Proxy {
    Proxy::start(world.service().address("grpc"))
}

async fn happen(rest: &Rest, words: &[&str]) {
    let events: Vec<_> = words
        .iter()
        .map(|word| samples::event(word, word, "SEVERITY_ERROR", &format!("it is {word}")))
        .collect();
    rest.post("/v1/data-receiver/events", &samples::events(&events))
        .await
        .ok();
}

/// Presses keys and waits until the screen shows a text; returns the time taken.
fn time_until_text(console: &mut Terminal, keys: &str, text: &str) -> Duration {
    time_until(console, keys, |screen| screen.contains(text))
}

/// Presses keys and waits until the screen satisfies a condition; returns the time taken.
fn time_until(console: &mut Terminal, keys: &str, is_so: impl Fn(&str) -> bool) -> Duration {
    let pressed = Instant::now();
    console.press(keys);
    while !is_so(&console.screen()) {
        assert!(
            pressed.elapsed() < Duration::from_secs(20),
            "{keys:?} does not open that screen:\n{}",
            console.screen()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    pressed.elapsed()
}

/// Returns the promised time for a release build, and [`PATIENCE`] for other builds.
fn at_most(promised: Duration) -> Duration {
    let path = process::binary().components();
    let is_release = path.into_iter().any(|part| part.as_os_str() == "release");
    if is_release { promised } else { PATIENCE }
}

fn log_line(words: &str) {
    drop(writeln!(std::io::stderr(), "{words}"));
}

fn assert_left(mut console: Terminal) {
    let pressed = Instant::now();
    console.press("q");
    assert!(console.ended().success());
    let took = pressed.elapsed();
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
    log_line(&format!("left within {took:?}"));
    assert!(took < at_most(LEAVING), "{took:?}");
}

/// Opens and closes the help of a screen repeatedly, and checks the 95th percentile of the times.
fn assert_keys_respond(console: &mut Terminal, screen: &str) {
    let mut took: Vec<_> = (0..KEYS / 2)
        .flat_map(|_| {
            let opened = time_until_text(console, "?", "Available actions");
            let left = time_until(console, "\x1b", |screen| {
                !screen.contains("Available actions")
            });
            [opened, left]
        })
        .collect();
    took.sort_unstable();
    let (half, most) = (took[KEYS / 2], took[KEYS * 95 / 100]);
    log_line(&format!(
        "keys on screen {screen}: half within {half:?}, 95 % within {most:?}"
    ));
    assert!(most < at_most(KEY), "{took:?}");
}

fn assert_stands_once(screen: &str, words: &[&str]) {
    for word in words {
        let rows = screen.matches(&format!("it is {word}")).count();
        assert_eq!(rows, 1, "{word} appears {rows} times:\n{screen}");
    }
}

async fn console_shows_and_survives_an_outage(weather: Weather) {
    let world = World::start();
    let (rest, proxy) = (world.rest(), proxy(&world));
    happen(&rest, &["ash", "birch"]).await;
    let mut console = console(&world, &proxy);
    console.shows(&["Overview", "● connected"]);
    console.press("2");
    console.shows(&["it is ash", "it is birch"]);

    let broke = Instant::now();
    proxy.set(weather);
    console.shows(&["✗ not connected", "old"]);
    assert!(
        broke.elapsed() < NOTICED + PATIENCE,
        "{:?}",
        broke.elapsed()
    );
    happen(&rest, &["cedar", "dogwood"]).await;
    assert_keys_respond(&mut console, "2");
    let screen = console.shows(&["it is ash"]);
    assert!(screen.contains("not connected"), "{screen}");
    assert!(!screen.contains("it is cedar"), "{screen}");
    console.press("4n");
    console.shows(&["New destination", "nothing is lost"]);
    console.press("while-away");

    proxy.set(Weather::Fair);
    console.shows(&["● connected", "while-away", "unsaved"]);
    console.press("\x1b");
    console.shows(&["Typed text will be lost"]);
    console.press("y");
    console.shows(&["No destinations yet"]);
    console.press("2");
    let words = ["ash", "birch", "cedar", "dogwood"];
    let screen = console.shows(&["● connected", "it is cedar", "it is dogwood"]);
    assert_stands_once(&screen, &words);

    proxy.set(weather);
    console.shows(&["✗ not connected"]);
    assert_left(console);
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_refused_connections() {
    console_shows_and_survives_an_outage(Weather::Refuses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_dropped_connections() {
    console_shows_and_survives_an_outage(Weather::Drops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_reset_connections() {
    console_shows_and_survives_an_outage(Weather::Resets).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_stalled_connections() {
    console_shows_and_survives_an_outage(Weather::Stalls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_survives_half_open_connections() {
    console_shows_and_survives_an_outage(Weather::HalfOpen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_stays_responsive_on_a_slow_connection() {
    let world = World::start();
    let (rest, proxy) = (world.rest(), proxy(&world));
    happen(&rest, &["ash"]).await;
    let mut console = console(&world, &proxy);
    console.shows(&["Overview", "● connected"]);

    proxy.set(Weather::Slow);
    assert!(time_until_text(&mut console, "2", "Events") < PATIENCE);
    assert_keys_respond(&mut console, "2");
    console.shows(&["it is ash"]);
    assert_left(console);
}

#[tokio::test(flavor = "multi_thread")]
async fn form_input_survives_losing_the_service() {
    let world = World::start();
    let proxy = proxy(&world);
    let mut console = console(&world, &proxy);
    console.shows(&["● connected"]);
    console.press("4n");
    console.shows(&["Name"]);
    console.press("night-shift");
    console.shows(&["night-shift"]);

    proxy.set(Weather::Refuses);
    console.shows(&["✗ not connected"]);
    console.press("-two");
    console.shows(&["night-shift-two"]);
    proxy.set(Weather::Fair);
    console.shows(&["● connected", "night-shift-two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn console_reports_a_revoked_key_immediately() {
    let world = World::start();
    let key = world.client("guest", "viewer");
    let file = world.folder().join("guest.key");
    std::fs::write(&file, key).expect("a key file");
    let address = format!("http://{}", world.service().address("grpc"));
    let file = file.to_str().expect("a path");
    let arguments = ["--connect", &address, "--key-file", file];
    let console = Terminal::start(world.folder(), &arguments);
    console.shows(&["● connected", "guest (viewer)"]);

    let output = world.command(&["client", "revoke", "guest"]).output();
    assert!(output.expect("the command").status.success());

    console.shows(&["✗ not connected", "key"]);
    assert_left(console);
}
