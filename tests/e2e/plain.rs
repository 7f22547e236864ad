//! Plain mode: a complete operator task through a pipe, and on a dumb terminal.

use std::{
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, terminal::Terminal, world::World,
};
use serde_json::json;

use crate::{journey, samples};

fn typed(home: &Path, address: &str, key: &Path, lines: &str) -> Output {
    let mut command = process::command(home, ["--plain", "--connect", address, "--key-file"]);
    command.arg(key).env("EDITOR", "sed -i s/is/was/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("a console");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("its end")
}

fn run_plain(world: &World, lines: &str) -> String {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let output = typed(world.folder(), &address, &key, lines);
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{said}");
    assert_is_plain(&said);
    said
}

fn assert_is_plain(said: &str) {
    let is_odd =
        |char: char| char.is_control() && char != '\n' || ('\u{2500}'..='\u{259f}').contains(&char);
    let is_odd = |char: char| is_odd(char) || "✓✗→·‖☾".contains(char);
    let odd: Vec<_> = said.lines().filter(|line| line.contains(is_odd)).collect();
    assert!(odd.is_empty(), "{odd:?}");
}

fn assert_in_order(said: &str, texts: &[&str]) {
    let mut rest = said;
    for text in texts {
        let Some(at) = rest.find(text) else {
            panic!("`{text}` does not follow in\n{said}");
        };
        rest = &rest[at + text.len()..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_mode_covers_all_operator_tasks_through_a_pipe() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    // No server listens at the address of the second destination.
    let nowhere = samples::webhook("nowhere", "http://127.0.0.1:9/");
    rest.post("/v1/notification/destinations", &nowhere)
        .await
        .ok();
    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk is full");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    eventually("the message", async || receiver.received().pop()).await;

    let said = run_plain(
        &world,
        "events\nack 1\nno\nack 1\nyes\nnote 1 called the owner\nyes\nexplain 1\nclose\nyes\n\
         test hook\ndestinations\ntest nowhere\ndeliveries\nfilter state=dead\n1\nsend again\nyes\n\
         rules\nedit disks\nMessage = {{event.summary}}, twice\nsave\nyes\nquit\n",
    );

    assert_in_order(
        &said,
        &[
            "Connected as admin, with the role admin.",
            "> events\nEvents: 1 to 1 of 1, open only, live.\n1. error; full; db-1; disk is full",
            "> ack 1\nAcknowledge this occurrence?\n",
            "> no\nCancelled. Nothing was changed.",
            "> yes\nok: acknowledged",
            "Add this note?",
            "> yes\nok: note added",
            "> explain 1\nEvents, full. Explain",
            "ok: disks decided to notify",
            "ok: summary contains",
            "> close\nClose this occurrence?",
            "> yes\nok: closed",
            "> test hook\n",
            "ok: DELIVERED",
            "> test nowhere\n",
            "not ok: UNREACHABLE",
            "> filter state=dead\nDeliveries: 1 to 1 of 1, filter state=dead.\n1. ",
            "; dead; (test); nowhere;",
            "> send again\nResend this delivery?",
            "> edit disks\nEdit rule disks.\n",
            "Message = {{event.summary}}, twice",
            "> save\nChange rule disks?\n",
            "Message  ",
            " to {{event.summary}}, twice",
            "> yes\nok: rule disks changed",
        ],
    );
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    let occurrence = &found["results"][0]["occurrences"][0];
    assert_eq!(occurrence["status"], "STATUS_CLOSED", "{found}");
    assert_eq!(occurrence["acknowledged"], true, "{found}");
    let rule = rest.get("/v1/notification/rules/disks").await.ok();
    let rule = rule.to_string();
    assert!(rule.contains("{{event.summary}}, twice"), "{rule}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_mode_confirms_changes_and_reports_errors_in_one_line() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    for host in ["db-1", "db-2"] {
        let event = samples::event("full", host, "SEVERITY_ERROR", "disk \u{1b}[2J is full");
        rest.post("/v1/data-receiver/events", &samples::events(&[event]))
            .await
            .ok();
    }

    let said = run_plain(
        &world,
        "events\nack 3\nack\nackk 1\nack 1-2\nclose 1\nfilter severity>=\ntriggers\nnew\n\
         Query = severity>=error summary=*disk*\nName = a\\b\nsave\nName =\nleave\nquit\nyes\n\
         destinations\ndelete hook\n",
    );

    assert_in_order(
        &said,
        &[
            "> ack 3\nerror: `3`: unknown row; only rows 1 to 2 were printed",
            "> ack\nerror: ack: specify a row, such as `ack 1`",
            "> ackk 1\nerror: unknown command `ackk 1`; did you mean `ack`",
            "> ack 1-2\nAcknowledge these 2 occurrences?",
            // A command in answer to a question counts as No, and is not executed.
            "> close 1\nCancelled. Nothing was changed.",
            "> filter severity>=\nerror: at character 11: a value is missing",
            "> new\nNew trigger.\nName (needed) = nothing\n",
            "Query = severity>=error summary=*disk*",
            "> leave\nLeave «New trigger»?\n",
            "> quit\nCancelled. Nothing is lost.",
            "> destinations\n",
            // The input ends at the question.
            "> delete hook\nDelete destination hook?\n",
        ],
    );
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    for result in found["results"].as_array().expect("results") {
        assert_ne!(result["occurrences"][0]["acknowledged"], true, "{found}");
    }
    rest.get("/v1/notification/destinations/hook").await.ok();
}

#[test]
fn plain_mode_without_a_service_exits_with_its_code() {
    let home = tempfile::tempdir().expect("a folder");
    let key = home.path().join("key");
    std::fs::write(&key, "bw_key").expect("a file");
    let output = typed(home.path(), "http://127.0.0.1:9", &key, "events\nack 1\n");
    let said = String::from_utf8(output.stdout).expect("text");
    assert_is_plain(&said);
    assert_in_order(
        &said,
        &[
            "Not connected: ",
            "> events\nEvents: nothing",
            "> ack 1\nerror: ack: not connected; changes are not possible now",
        ],
    );
    assert_eq!(output.status.code(), Some(3), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dumb_terminal_gets_plain_lines_with_updates() {
    let world = World::start();
    let rest = world.rest();
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key");
    let key = key.to_str().expect("a path");
    let arguments = ["--connect", &address, "--key-file", key];
    let mut console = Terminal::with_environment(world.folder(), &arguments, &[("TERM", "dumb")]);
    console.shows(&["Connected as admin", "Overview."]);
    console.press("events\r");
    console.shows(&["Events: nothing, open only, live."]);

    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk is full");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    console.shows(&["new: error; full; db-1; disk is full"]);
    console.press("events\r");
    console.shows(&["1. error"]);
    console.press("ack 1\r");
    console.shows(&["Acknowledge this occurrence?", "yes or no>"]);
    console.press("yes\r");
    console.shows(&["ok: acknowledged", "changed: 1. error; acknowledged"]);

    console.press("q\r");
    assert!(console.ended().success());
    assert_eq!(console.remaining_modes(), Vec::<String>::new());
    assert!(!console.output().contains('\u{1b}'), "{}", console.output());
}
