//! The console on a terminal: it shows changes made over REST, tests a destination, and restores
//! all modes of the terminal on exit.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use bellwether_tests::{
    eventually::{eventually, eventually_blocking},
    process,
    receiver::Receiver,
    terminal::{SECRET, Terminal},
    world::World,
};
use serde_json::json;

use crate::{journey, samples};

fn console(world: &World) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    Terminal::start(world.folder(), &["--connect", &address, "--key-file", key])
}

/// Asserts that the modes to be restored are set: alternate screen, bracketed paste and mouse.
fn assert_modes_are_set(console: &Terminal) {
    let modes = console.remaining_modes();
    for mode in ["1049", "2004", "1000", "1006"] {
        assert!(modes.iter().any(|set| set == mode), "{mode}: {modes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_and_status_set_over_rest_are_shown() {
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

    console.shows(&["suppr"]);
    console.press("\r");
    console.shows(&["suppressed", "db-1"]);
    console.press("\t");
    console.shows(&["called the owner"]);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn event_test_confirms_lists_receivers_and_closes_its_event() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    let echo = json!({"name": "echo", "type": {"event": {
        "nameTemplate": "echo", "typeTemplate": "echo", "summaryTemplate": "a disk is tested",
        "severity": "SEVERITY_CRITICAL",
    }}});
    rest.post("/v1/notification/destinations", &echo).await.ok();
    // Only the rule with the matching trigger notifies.
    for name in ["echo", "other"] {
        let filter = format!("name={name}");
        let trigger = json!({"name": name, "type": {"event": {"filter": filter}}});
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        let rule = samples::rule(&format!("{name}-rule"), name, "hook", "");
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
    let mut console = console(&world);
    console.shows(&["● connected"]);
    console.press("4");
    console.shows(&["echo", "hook"]);
    console.press("t");
    let screen = console.shows(&[
        "Test echo with a real event?",
        "an event of severity critical in this service",
        "echo-rule to hook",
    ]);
    assert!(!screen.contains("other-rule"), "{screen}");
    // The default is No.
    console.press("\r");
    eventually_blocking("the question to disappear", || {
        (!console.screen().contains("Test echo with")).then_some(())
    });
    let search = json!({"query": {"filter": "name=echo"}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    assert_eq!(
        found["results"].as_array().map_or(0, Vec::len),
        0,
        "{found}"
    );
    console.press("t");
    console.shows(&["Test echo with a real event?", "echo-rule to hook"]);
    console.press("y");
    console.shows(&["verdict", "closed the test event"]);
    let found = rest.post("/v1/events:search", &search).await.ok();
    let occurrence = &found["results"][0]["occurrences"][0];
    assert_eq!(occurrence["status"], "STATUS_CLOSED", "{found}");
    console.press("q");
    assert!(console.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_helper_rejects_a_screen_with_a_secret() {
    let world = World::start();
    let event = samples::event("full", SECRET, "SEVERITY_ERROR", "disk is full");
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&[SECRET]);
    console.press("q");
    assert!(console.ended().success());
    let check = AssertUnwindSafe(|| console.assert_no_secrets());
    assert!(catch_unwind(check).is_err());
}

fn row_under_the_cursor(console: &Terminal) -> String {
    let screen = console.screen();
    let rows = screen.lines().filter(|line| line.starts_with('▶'));
    rows.map(str::to_owned).next().unwrap_or_default()
}

fn follows_to(console: &Terminal, host: &str) {
    eventually_blocking("the list to follow", || {
        row_under_the_cursor(console).contains(host).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn key_press_applies_to_the_displayed_event_and_names_it() {
    let world = World::start();
    let rest = world.rest();
    let send = async |host: &str| {
        let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
        let body = samples::events(&[event]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    };
    let acknowledged = async |host: &str| {
        let search = json!({"query": {"filter": format!("host={host}")}});
        let found = rest.post("/v1/events:search", &search).await.ok();
        found["results"][0]["occurrences"][0]["acknowledged"] == true
    };
    send("db-0").await;
    let mut console = console(&world);
    console.shows(&["● connected"]);
    console.press("2");
    follows_to(&console, "db-0");
    // In each round, the next event arrives before the key, and pushes the row down.
    for round in 1..=3 {
        let (read, next) = (format!("db-{}", round - 1), format!("db-{round}"));
        send(&next).await;
        console.shows(&[&next, "▲ 1 new"]);
        console.press("a");
        console.shows(&[&format!("acknowledged full on {read}")]);
        assert!(acknowledged(&read).await, "{read}");
        assert!(!acknowledged(&next).await, "{next}");
        console.press("gg");
        follows_to(&console, &next);
    }
    // After `f`, the newest event stays selected until the next key.
    console.press("f");
    console.shows(&["live, following"]);
    send("db-90").await;
    follows_to(&console, "db-90");
    console.press("j");
    follows_to(&console, "db-3");
    send("db-91").await;
    console.shows(&["db-91", "▲ 1 new"]);
    console.press("i");
    console.shows(&["assigned to admin: full on db-3"]);
    console.press("q");
    assert!(console.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_destination_is_tested_from_the_list() {
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
fn console_without_a_service_starts_its_own() {
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

    // A second console uses the service of the first one.
    let mut second = Terminal::start(home.path(), &arguments);
    second.shows(&["Overview", "admin"]);
    second.press("q");
    assert!(second.ended().success());

    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
    assert!(data_dir.join("console.log").exists());
}

#[test]
fn terminal_modes_are_restored_on_every_exit() {
    let world = World::start();
    for way in ["q", "\x03", "-TERM", "-HUP", "-INT"] {
        let mut console = console(&world);
        console.shows(&["Overview"]);
        assert_modes_are_set(&console);
        match way {
            "q" | "\x03" => console.press(way),
            signal => process::signal(signal, console.process()),
        }
        console.ended();
        assert_eq!(
            console.remaining_modes(),
            Vec::<String>::new(),
            "after {way:?}"
        );
    }
}

#[test]
fn mouse_capture_can_be_toggled_and_is_released_on_exit() {
    let world = World::start();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    console.press("M");
    console.shows(&["the mouse selects text"]);
    assert!(!console.remaining_modes().iter().any(|mode| mode == "1000"));
    console.press("M");
    console.shows(&["selects, opens and scrolls"]);
    assert_modes_are_set(&console);
    console.press("4");
    console.shows(&["No destinations yet"]);
    console.press("\x1b[<0;3;1M");
    console.shows(&["› Overview"]);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[test]
fn console_quits_at_once_while_the_service_is_unreachable() {
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
        left.elapsed() < Duration::from_secs(20),
        "{:?}",
        left.elapsed()
    );
}

#[test]
fn panic_restores_the_terminal_and_is_reported() {
    let world = World::start();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    assert_modes_are_set(&console);

    process::signal("-USR2", console.process());

    assert!(!console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
    let last = console
        .output()
        .rsplit("\x1b[?1049l")
        .next()
        .map(str::to_owned);
    let last = last.expect("the screen was left");
    assert!(
        last.contains("panic in the console, requested by a test"),
        "{last}"
    );
}

#[test]
fn task_panic_is_logged_without_touching_the_screen() {
    let world = World::start();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    assert_modes_are_set(&console);

    process::signal("-USR1", console.process());

    console.press("4");
    console.shows(&["Destinations"]);
    assert!(!console.output().contains("panic in a task"));
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[test]
fn suspend_restores_the_terminal_and_resume_reclaims_it() {
    let world = World::start();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    for stop in ["key", "signal"] {
        match stop {
            "key" => console.press("\x1a"),
            _ => process::signal("-TSTP", console.process()),
        }
        console.stopped();
        eventually_blocking("the terminal to be restored", || {
            console.remaining_modes().is_empty().then_some(())
        });

        process::signal("-CONT", console.process());
        eventually_blocking(
            "the terminal to be taken over again without a key press",
            || (!console.remaining_modes().is_empty()).then_some(()),
        );
        console.shows(&["● connected"]);
        console.press("4");
        console.shows(&["Destinations"]);
        console.press("1");
        console.shows(&["Overview"]);
    }
    assert_modes_are_set(&console);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn editor_gets_exclusive_use_of_the_terminal() {
    let world = World::start();
    let receiver = Receiver::start().await;
    journey::set_up(&world.rest(), &receiver).await;
    let editor = world.folder().join("editor");
    let script = "#!/bin/sh\necho EDITING\nread line\n";
    std::fs::write(&editor, script).expect("an editor");
    let run = std::process::Command::new("chmod")
        .arg("+x")
        .arg(&editor)
        .status();
    assert!(run.expect("chmod").success());
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let arguments = [
        "--connect",
        &address,
        "--key-file",
        key.to_str().expect("a path"),
    ];
    let editor = [("EDITOR", editor.to_str().expect("a path"))];
    let mut console = Terminal::with_environment(world.folder(), &arguments, &editor);
    console.shows(&["● connected"]);
    console.press("4");
    console.shows(&["hook"]);

    console.press("E");
    console.shows(&["EDITING"]);
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
    // Input that follows the key to the editor reaches the console, without another key press.
    console.press("\r1");

    console.shows(&["› Overview"]);
    assert_modes_are_set(&console);
    console.press("q");
    console.ended();
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[test]
fn no_key_is_lost_during_a_resize() {
    let world = World::start();
    let mut console = console(&world);
    console.shows(&["● connected"]);
    for round in 0..20_u16 {
        let (key, shown) =
            [("4", "No destinations yet"), ("5", "No rules yet")][usize::from(round % 2)];
        console.resize((100 + round, 30));
        console.press(key);
        console.shows(&[shown]);
    }
    console.press("q");
    assert!(console.ended().success());
}

#[test]
fn contexts_are_shown_in_the_header_and_can_be_switched() {
    let worlds = [World::start(), World::start()];
    let contexts = ["prod", "lab"].into_iter().zip(&worlds);
    let sections = contexts.map(|(name, world)| {
        let address = world.service().address("grpc");
        let key = world.data_dir().join("admin.key");
        let key = key.display();
        format!(
            "[contexts.{name}]\nconnect = \"http://{address}\"\nkey_file = \"{key}\"\ncolour = \"red\"\n"
        )
    });
    let file: String = sections.collect();
    let path = worlds[0].folder().join("contexts.toml");
    std::fs::write(&path, file).expect("a file");
    let arguments = [
        "--config",
        path.to_str().expect("a path"),
        "--context",
        "prod",
    ];
    let mut console = Terminal::start(worlds[0].folder(), &arguments);
    let [prod, lab] = [0, 1].map(|at: usize| worlds[at].service().address("grpc"));
    console.shows(&["◆ prod", prod, "● connected"]);
    console.press(":context lab\r");
    console.shows(&["◆ lab", lab, "● connected"]);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}
