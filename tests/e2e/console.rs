//! The console on a terminal: what REST changed is seen, a destination is tested, and every mode of
//! the terminal is taken back on every way out.

use std::time::Duration;

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, terminal::Terminal, world::World,
};
use serde_json::json;

use crate::{journey, samples};

/// The console on the service of a world.
fn console(world: &World) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    Terminal::start(world.folder(), &["--connect", &address, "--key-file", key])
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_and_status_set_over_rest_are_seen() {
    let world = World::start();
    let rest = world.rest();
    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk is full to the brim");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    let mut console = console(&world);
    console.shows(&["Overview"]);
    console.press("2");
    console.shows(&["disk is full to the brim"]);

    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    let id = &found["results"][0]["id"];
    let note = json!({"annotations": [{"eventId": id, "annotation": "called the owner"}]});
    rest.post("/v1/event-management/annotate", &note).await.ok();
    let status = json!({"statuses": [
        {"eventId": id, "status": "STATUS_SUPPRESSED", "acknowledged": true}]});
    rest.post("/v1/event-management/status", &status).await.ok();

    console.shows(&["muted"]);
    console.press("\r");
    console.shows(&["suppressed", "db-1"]);
    console.press("\t");
    console.shows(&["called the owner"]);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.modes_left(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_destination_is_tested_from_the_list() {
    let world = World::start();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let mut console = console(&world);
    console.shows(&["Overview"]);
    console.press("4");
    console.shows(&["hook"]);

    console.press("t");

    eventually("the test message", async || receiver.received().pop()).await;
    console.shows(&["200"]);
    console.press("q");
    assert!(console.ended().success());
}

#[test]
fn alone_it_brings_a_service_of_its_own() {
    let home = tempfile::tempdir().expect("a folder");
    let data_dir = home.path().join("data");
    let arguments = [
        "--data-dir",
        data_dir.to_str().expect("a path"),
        "--grpc-listen",
        "127.0.0.1:0",
        "--rest-listen",
        "127.0.0.1:0",
    ];
    let mut console = Terminal::start(home.path(), &arguments);
    console.shows(&["Overview"]);
    console.press("7");
    console.shows(&["admin"]);

    let mut second = Terminal::start(home.path(), &arguments);
    assert_eq!(second.ended().exit_code(), 1);
    assert!(
        second
            .screen()
            .contains("bellwether --connect http://127.0.0.1:"),
        "{}",
        second.screen()
    );

    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.modes_left(), Vec::<String>::new());
    assert!(data_dir.join("console.log").exists());
}

#[test]
fn every_mode_of_the_terminal_is_taken_back_on_every_way_out() {
    let world = World::start();
    for way in ["q", "\x03", "-TERM", "-HUP", "-INT"] {
        let mut console = console(&world);
        console.shows(&["Overview"]);
        assert!(!console.modes_left().is_empty(), "a console sets modes");
        match way {
            "q" | "\x03" => console.press(way),
            signal => process::signal(signal, console.process()),
        }
        console.ended();
        assert_eq!(console.modes_left(), Vec::<String>::new(), "after {way:?}");
    }
}

#[test]
fn it_can_be_left_at_once_while_the_service_is_away() {
    let mut world = World::start();
    let mut console = console(&world);
    console.shows(&["Overview"]);
    world.kill();
    console.press("2");
    console.press("4");

    let left = std::time::Instant::now();
    console.press("q");
    assert!(console.ended().success());

    assert!(
        left.elapsed() < Duration::from_secs(2),
        "{:?}",
        left.elapsed()
    );
}
