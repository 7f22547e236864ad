//! The console on a terminal without the focus, and the programs that it starts.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use bellwether_tests::{
    eventually::eventually_blocking, process, terminal::Terminal, world::World,
};
use serde_json::json;

use crate::samples;

const RESTORED: &str = "\x1b]2;\x1b\\\x1b[23;2t";

fn console(world: &World, more: &[&str], environment: &[(&str, &str)]) -> Terminal {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key").display().to_string();
    let mut arguments = vec!["--connect", &address, "--key-file", &key];
    arguments.extend(more);
    Terminal::with_environment(world.folder(), &arguments, environment)
}

/// Sends critical events of new hosts until the terminal has a notice. An event that opens before
/// the console has read the open ones gives no notice.
async fn send_until(world: &World, hosts: &str, is_noticed: impl Fn() -> bool) {
    for number in 0.. {
        assert!(number < 60, "no notice about {hosts}");
        let host = format!("{hosts}-{number}");
        let event = samples::event("full", &host, "SEVERITY_CRITICAL", "disk \u{7} is full");
        let body = samples::events(&[event]);
        let rest = world.rest();
        rest.post("/v1/data-receiver/events", &body).await.ok();
        for _ in 0..20 {
            if is_noticed() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfocused_terminal_gets_bell_notification_and_title() {
    let world = World::start();
    let mut console = console(&world, &[], &[("BELLWETHER_ESCAPE_DELAY", "1s")]);
    console.shows(&["● connected"]);
    assert!(!console.output().contains('\x07'));
    console.press("\x1b[O");
    let title = "\x1b[22;2t\x1b]2;▲1 Bellwether\x1b\\";
    send_until(&world, "db", || console.output().contains(title)).await;
    let output = console.output();
    let notification = "\x1b]9;Bellwether: critical: full on db-";
    assert!(output.contains(notification), "{output}");
    assert!(output.contains("disk ␇ is full\x1b\\\x07"), "{output}");
    for piece in ["\x1b", "[", "I"] {
        console.press(piece);
    }
    eventually_blocking("the title to be restored", || {
        console.output().contains(RESTORED).then_some(())
    });

    let before = console.output().len();
    console.press("\x1b[O");
    let has_title = || console.output()[before..].contains("\x1b]2;▲1 Bellwether");
    send_until(&world, "web", has_title).await;
    process::signal("-TSTP", console.process());
    console.stopped();
    eventually_blocking("the title to be restored again", || {
        console.output()[before..].contains(RESTORED).then_some(())
    });
    process::signal("-CONT", console.process());
    console.shows(&["● connected"]);
    console.press("q");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn link_and_command_start_programs_without_a_shell() {
    let world = World::start();
    let mut event = samples::event("full", "db-1 $(id)", "SEVERITY_ERROR", "disk is full");
    event["metadataFields"] = json!({"runbook": "https://runbooks.example/disk?a=1&b=$(id)"});
    let body = samples::events(&[event]);
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &body).await.ok();

    let opened = world.folder().join("opened");
    let script = format!("#!/bin/sh\nprintf '%s' \"$*\" > {}\n", opened.display());
    let browser = world.folder().join("xdg-open");
    std::fs::write(&browser, script).expect("a script");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&browser, mode).expect("a mode");
    let config = world.folder().join("console.toml");
    let command = "[commands.greet]\nkey = \"X\"\nrun = [\"sh\", \"-c\", \"echo \\\"<$1>\\\"; echo \
                   done >&2; sleep 600\", \"sh\", \"{dimensions.host}\"]\n";
    std::fs::write(&config, command).expect("a file");
    let path = format!("{}:/usr/bin:/bin", world.folder().display());
    let environment = [("PATH", path.as_str()), ("DISPLAY", ":9")];
    let more = ["--config", config.to_str().expect("a path")];
    let mut console = console(&world, &more, &environment);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["db-1"]);
    console.press("L");
    console.shows(&["opening https://runbooks.example/disk"]);
    let url = eventually_blocking("the browser", || {
        let url = std::fs::read_to_string(&opened).unwrap_or_default();
        (!url.is_empty()).then_some(url)
    });
    assert_eq!(url, "https://runbooks.example/disk?a=1&b=$(id)");

    console.press("X");
    console.shows(&["Run greet?", "'db-1 $(id)'"]);
    console.press("y");
    console.shows(&["running · Esc stops it"]);
    console.press("\x1b");
    console.shows(&["stopped the command", "db-1"]);
    console.press("q");
    assert!(console.ended().success());
}
