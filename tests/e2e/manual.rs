//! Tests that the documentation of plain mode matches the program's output.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Output, Stdio},
};

use bellwether_tests::{eventually::eventually, process, receiver::Receiver, world::World};

use crate::{journey, samples};

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/console/command-line.md")
}

/// Masks digits and ids, which differ between runs, so that all numbers are equal, and all ids.
fn mask_digits_and_ids(text: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric();
    let mut out = String::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let all = |is: fn(&char) -> bool| word.chars().all(|char| is(&char));
        let is_id = word.len() == 26 && all(|char| !char.is_ascii_lowercase())
            || word.len() == 8 && all(char::is_ascii_hexdigit);
        if is_id {
            out.push_str("ID");
        } else {
            let mut digits = false;
            for char in word.chars() {
                if !(digits && char.is_ascii_digit()) {
                    out.push(if char.is_ascii_digit() { '0' } else { char });
                }
                digits = char.is_ascii_digit();
            }
        }
        rest = behind;
        if word.is_empty() {
            out.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    out
}

/// Runs the command of a block, with the lines typed in the block as input.
fn run(world: &World, command: &str, typed: &str) -> Output {
    let arguments = command.split_whitespace().skip(1);
    let address = format!("http://{}", world.service().address("grpc"));
    let mut command = process::command(world.folder(), arguments);
    command.args(["--connect", &address, "--key-file"]);
    command.arg(world.data_dir().join("admin.key"));
    command
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("a console");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(typed.as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("its end")
}

/// Returns the expected block: the command and its output, without the output before the first
/// typed line.
fn expected_block(world: &World, block: &str) -> String {
    let command = block.lines().next().unwrap_or_default();
    let typed = block.lines().filter_map(|line| line.strip_prefix("> "));
    let typed: String = typed.flat_map(|line| [line, "\n"]).collect();
    let output = run(world, command.trim_start_matches("$ "), &typed);
    assert!(output.status.success(), "{command}: {output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    let from = if typed.is_empty() {
        0
    } else {
        said.find("> ").unwrap_or(0)
    };
    format!("{command}\n{}", &said[from..])
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_output_matches_the_program() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    let full = |host, severity, summary| samples::event("full", host, severity, summary);
    for event in [
        full("db-1", "SEVERITY_ERROR", "disk is full"),
        full("db-2", "SEVERITY_WARNING", "disk is nearly full"),
        full("db-3", "SEVERITY_ERROR", "disk is full"),
    ] {
        rest.post("/v1/data-receiver/events", &samples::events(&[event]))
            .await
            .ok();
    }
    eventually("the two errors to be delivered", async || {
        let list = rest.get("/v1/notification/deliveries").await.ok();
        let rows = list["deliveries"].as_array()?;
        let ended = rows.iter().filter(|row| row["endTime"].is_string());
        (ended.count() == 2).then_some(())
    })
    .await;

    let text = fs::read_to_string(document()).expect("the document");
    let mut written = String::new();
    let mut differing = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once("```console\n") {
        let (block, behind) = behind.split_once("```\n").expect("a block that ends");
        let reported = expected_block(&world, block);
        if mask_digits_and_ids(&reported) != mask_digits_and_ids(block) {
            differing.push(reported.clone());
        }
        written.extend([before, "```console\n", &reported, "```\n"]);
        rest = behind;
    }
    written += rest;
    if std::env::var_os("BELLWETHER_UPDATE_MANUAL").is_some() {
        fs::write(document(), written).expect("the document");
        return;
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
