//! What is kept: checked, backed up and restored, by the commands that an operator has.

use std::{collections::BTreeMap, fs, path::Path, process::Output};

use bellwether_tests::{process, receiver::Receiver, world::World};
use serde_json::Value;

use crate::{journey, samples};

/// Every file of a folder with its content.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A service with a rule that tells a receiver, and so many events.
async fn filled(receiver: &Receiver, events: usize) -> World {
    let world = World::start();
    let rest = world.rest();
    journey::set_up(&rest, receiver).await;
    let event = |number| {
        let host = format!("host-{number}");
        samples::event("full", &host, "SEVERITY_ERROR", "disk is full")
    };
    let events: Vec<_> = (0..events).map(event).collect();
    for batch in events.chunks(500) {
        let body = samples::events(batch);
        let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
        assert_eq!(answer["succeeded"], batch.len());
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_reads_everything_after_a_kill_and_changes_nothing() {
    let receiver = Receiver::start().await;
    let mut world = filled(&receiver, 40).await;
    let in_use = process::run(world.command(&["check"]));
    assert_eq!(in_use.status.code(), Some(1));
    assert!(said(&in_use).contains("in use"), "{}", said(&in_use));

    world.kill();
    let before = content(&world.data_dir());
    let output = process::run(world.command(&["check", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(found["whole"], true);
    assert_eq!(found["records"]["occurrence"], 40);
    assert_eq!(found["records"]["delivery"], 40);
    assert_eq!(found["records"]["rule"], 1);
    assert!(found["indexEntries"].as_u64() > Some(200));
    assert!(found["logSteps"].as_u64() > Some(2));
    assert!(
        content(&world.data_dir()) == before,
        "a byte of the folder was changed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_a_changed_byte_and_a_wrong_key() {
    let receiver = Receiver::start().await;
    let mut world = filled(&receiver, 20).await;
    assert!(world.terminate().success());
    let key_path = world.data_dir().join("secret.key");
    let key = fs::read(&key_path).expect("a key");
    fs::write(
        &key_path,
        "1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    )
    .expect("written");
    let output = process::run(world.command(&["check"]));
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("does not fit the store"), "{told}");

    fs::write(&key_path, key).expect("written");
    let store_path = world.data_dir().join("store.redb");
    let mut store = fs::read(&store_path).expect("a store");
    let at = store.windows(7).rposition(|bytes| bytes == b"host-11");
    store[at.expect("the host is in it")] ^= 1;
    fs::write(&store_path, store).expect("written");
    let output = process::run(world.command(&["check"]));
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("fault: "), "{told}{}", said(&output));
    assert!(said(&output).contains("is not whole"), "{}", said(&output));
}
