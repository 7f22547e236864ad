//! The console while the network is bad: it answers keys, tells the truth, loses and doubles nothing
//! and can be left at once.

use std::time::{Duration, Instant};

use bellwether_tests::{
    proxy::{Proxy, Weather},
    rest::Rest,
    terminal::Terminal,
    world::World,
};

use crate::samples;

/// A half-open link is noticed within this time.
const NOTICED: Duration = Duration::from_secs(3);
/// What a machine that does much else at once may add to a time. The promised times are measured
/// by a benchmark.
const PATIENCE: Duration = Duration::from_secs(1);

/// The console behind a network.
fn console(world: &World, proxy: &Proxy) -> Terminal {
    let address = format!("http://{}", proxy.address());
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    Terminal::start(world.folder(), &["--connect", &address, "--key-file", key])
}

fn proxy(world: &World) -> Proxy {
    Proxy::start(world.service().address("grpc"))
}

/// Takes in events whose summaries are these words.
async fn happen(rest: &Rest, words: &[&str]) {
    let events: Vec<_> = words
        .iter()
        .map(|word| samples::event(word, word, "SEVERITY_ERROR", &format!("it is {word}")))
        .collect();
    rest.post("/v1/data-receiver/events", &samples::events(&events))
        .await
        .ok();
}

/// Presses keys and waits until the screen shows a text; says how long that took.
fn answered(console: &mut Terminal, keys: &str, text: &str) -> Duration {
    let pressed = Instant::now();
    console.press(keys);
    while !console.screen().contains(text) {
        assert!(
            pressed.elapsed() < Duration::from_secs(20),
            "{keys:?} does not lead to {text:?}:\n{}",
            console.screen()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    pressed.elapsed()
}

/// Leaves the console; says how long that took.
fn left(mut console: Terminal) -> Duration {
    let pressed = Instant::now();
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.modes_left(), Vec::<String>::new());
    pressed.elapsed()
}

async fn told_survived_and_made_up_for(weather: Weather) {
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
    assert!(answered(&mut console, "?", "Enter do it") < PATIENCE);
    assert!(answered(&mut console, "\x1b", "it is ash") < PATIENCE);
    let screen = console.screen();
    assert!(screen.contains("not connected"), "{screen}");
    assert!(!screen.contains("it is cedar"), "{screen}");

    proxy.set(Weather::Fair);
    console.press("R");
    let screen = console.shows(&["● connected", "it is cedar", "it is dogwood"]);
    for word in ["ash", "birch", "cedar", "dogwood"] {
        let rows = screen.matches(&format!("it is {word}")).count();
        assert_eq!(rows, 1, "{word} stands {rows} times:\n{screen}");
    }

    proxy.set(weather);
    console.shows(&["✗ not connected"]);
    assert!(left(console) < PATIENCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens() {
    told_survived_and_made_up_for(Weather::Refuses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_dropped() {
    told_survived_and_made_up_for(Weather::Drops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_reset() {
    told_survived_and_made_up_for(Weather::Resets).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes_through() {
    told_survived_and_made_up_for(Weather::Stalls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_comes_back() {
    told_survived_and_made_up_for(Weather::HalfOpen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_slow_line_keys_are_answered_and_what_is_loading_arrives() {
    let world = World::start();
    let (rest, proxy) = (world.rest(), proxy(&world));
    happen(&rest, &["ash"]).await;
    let mut console = console(&world, &proxy);
    console.shows(&["Overview", "● connected"]);

    proxy.set(Weather::Slow);
    assert!(answered(&mut console, "2", "Events") < PATIENCE);
    assert!(answered(&mut console, "?", "Enter do it") < PATIENCE);
    console.press("\x1b");
    console.shows(&["it is ash"]);
    assert!(left(console) < PATIENCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_survives_the_loss_of_the_service() {
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
async fn a_key_that_is_revoked_is_told_at_once() {
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
    assert!(left(console) < PATIENCE);
}
