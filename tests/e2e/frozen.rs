//! Tests that every figure in the console is marked as outdated while the service is frozen.

use bellwether_tests::{
    eventually::eventually_blocking, process, receiver::Receiver, terminal::Terminal, world::World,
};

use crate::{journey, samples};

/// Screens: the keys that open each, and a text that it shows once its data has been read.
const SCREENS: [(&str, &str); 10] = [
    ("1", "Overview"),
    ("2", "1/2"),
    ("3", "disk"),
    ("4", "hook"),
    ("5", "disks"),
    ("6", "delivered 2"),
    ("7", "admin"),
    ("8", "On call"),
    ("4\r", "last success"),
    ("5\r", "decided in 24 h"),
];

/// Whether the screen states that its data is outdated: the service has not responded for a while,
/// or the connection is lost, with the age of the displayed data.
fn is_marked(screen: &str) -> bool {
    let is_stale = screen.contains("○ last heard at ");
    let is_lost = screen.contains("✗ not connected") && screen.contains("data shown is ");
    is_stale || is_lost
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_a_frozen_service_is_marked_as_outdated() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    let events =
        ["db-1", "db-2"].map(|host| samples::event("full", host, "SEVERITY_ERROR", "disk is full"));
    rest.post("/v1/data-receiver/events", &samples::events(&events))
        .await
        .ok();
    receiver.wait_for(2).await;
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key").display().to_string();
    let arguments = ["--connect", &address, "--key-file", &key];
    let mut console = Terminal::start(world.folder(), &arguments);
    console.shows(&["● connected"]);
    for (keys, shown) in SCREENS {
        console.press(keys);
        let screen = console.shows(&[shown]);
        assert!(!is_marked(&screen), "{keys}\n{screen}");
    }
    process::signal("-STOP", world.service().id());
    eventually_blocking("the frozen service to be noticed", || {
        is_marked(&console.screen()).then_some(())
    });
    for (keys, shown) in SCREENS {
        console.press(keys);
        let screen = console.shows(&[shown]);
        let screen = if is_marked(&screen) {
            screen
        } else {
            // The mark changes while the connection is being restored.
            eventually_blocking("the mark", || {
                let screen = console.screen();
                is_marked(&screen).then_some(screen)
            })
        };
        assert!(!screen.contains("reading…"), "{keys}\n{screen}");
        assert!(!screen.contains("● connected"), "{keys}\n{screen}");
    }
    process::signal("-CONT", world.service().id());
    console.shows(&["● connected"]);
    console.press("q");
    assert!(console.ended().success());
}
