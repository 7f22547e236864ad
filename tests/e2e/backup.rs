//! Checking, backing up and restoring a store with commands.

mod across;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Output,
    sync::{Arc, Mutex},
};

use bellwether_tests::{
    engine::Engine,
    eventually::eventually,
    process::{self, Service},
    receiver::{Receiver, Reply},
    rest::Rest,
    world::World,
};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{crash, journey, samples};

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

fn standard_error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a service with a rule that notifies a receiver, and sends `events` events.
async fn filled_world(receiver: &Receiver, events: usize) -> World {
    let world = World::start();
    fill(&world, receiver, events).await;
    world
}

/// Creates a rule that notifies a receiver, and sends `events` events.
async fn fill(world: &World, receiver: &Receiver, events: usize) {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn check_after_a_kill_reads_all_records_without_changes() {
    if Engine::only_in_a_folder() {
        return;
    }
    let receiver = Receiver::start().await;
    let mut world = filled_world(&receiver, 40).await;
    world.kill();
    let before = content(&world.data_dir());
    let output = process::run(world.command(&["check", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", standard_error(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(found["whole"], true);
    assert_eq!(found["records"]["occurrence"], 40);
    assert_eq!(found["records"]["delivery"], 40);
    assert_eq!(found["records"]["rule"], 1);
    assert!(found["indexEntries"].as_u64() > Some(200));
    assert!(found["logSteps"].as_u64() > Some(2));
    assert!(
        content(&world.data_dir()) == before,
        "a byte of the folder changed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn running_service_can_be_checked_under_load() {
    let receiver = Receiver::start().await;
    let world = filled_world(&receiver, 40).await;
    let answered = Arc::default();
    let mut senders = JoinSet::new();
    for sender in 0..4 {
        senders.spawn(keep_sending(world.rest(), sender, Arc::clone(&answered)));
    }
    // Check a folder that a service uses, then a service given by its address.
    let address = format!("http://{}", world.service().address("grpc"));
    let named = ["--connect", &address];
    for arguments in [&[][..], &named[..]] {
        let arguments = [&["check", "--json"][..], arguments].concat();
        let command = world.command(&arguments);
        let output = tokio::task::spawn_blocking(|| process::run(command)).await;
        let output = output.expect("it ends");
        let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(output.status.code(), Some(0), "{found}");
        assert!(found["service"].is_string(), "{found}");
        assert_eq!(
            (&found["whole"], &found["complete"]),
            (&true.into(), &true.into())
        );
        assert!(
            found["records"]["occurrence"].as_u64() >= Some(40),
            "{found}"
        );
        assert!(found["indexEntries"].as_u64() > Some(200), "{found}");
    }
    assert!(
        !answered.lock().expect("no panic").is_empty(),
        "events arrived meanwhile"
    );
    let viewer = world.client("viewer", "viewer");
    let mut command = world.command(&["check"]);
    command.env("BELLWETHER_KEY", viewer);
    let refused = process::run(command);
    assert_eq!(refused.status.code(), Some(4));
    assert!(
        standard_error(&refused).contains("role `admin`"),
        "{}",
        standard_error(&refused)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_detects_a_changed_byte_and_a_wrong_key() {
    if Engine::only_in_a_folder() {
        return;
    }
    let receiver = Receiver::start().await;
    let mut world = filled_world(&receiver, 20).await;
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
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(reported.contains("cannot use the key file"), "{reported}");

    fs::write(&key_path, key).expect("written");
    let store_path = world.data_dir().join("store.redb");
    let mut store = fs::read(&store_path).expect("a store");
    // Free pages may also contain the name of the host, but at least one page in use does.
    let is_host = |at: &usize| store[*at..].starts_with(b"host-11");
    let places: Vec<usize> = (0..store.len()).filter(is_host).collect();
    assert!(!places.is_empty(), "the host is in it");
    for at in places {
        store[at] ^= 1;
    }
    fs::write(&store_path, store).expect("written");
    let output = process::run(world.command(&["check"]));
    assert_eq!(output.status.code(), Some(1));
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        reported.contains("fault: "),
        "{reported}{}",
        standard_error(&output)
    );
    assert!(
        standard_error(&output).contains("is not intact"),
        "{}",
        standard_error(&output)
    );
}

async fn keep_sending(rest: Rest, sender: usize, answered: Arc<Mutex<BTreeSet<String>>>) {
    for number in 0.. {
        let host = format!("s{sender}-{number}");
        let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
        let body = samples::events(&[event]).to_string();
        let post = http::Method::POST;
        let sent = rest.try_send(post, "/v1/data-receiver/events", &[], body);
        match sent.await {
            Ok(answer) if answer.status == 200 => {
                answered.lock().expect("no sender failed").insert(host);
            }
            _ => return,
        }
        // Otherwise the number of records that a check reads would depend on the machine.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one journey from backup to restore")]
async fn backup_under_load_restores_all_acknowledged_events() {
    let settings = "[delivery]\nschedule = [\"0s\", \"1s\", \"1s\", \"1s\", \"1s\"]\n";
    let mut world = World::with_settings(settings);
    let receiver = Receiver::start().await;
    receiver.reply((0..4).map(|_| Reply::status(503)));
    journey::set_up(&world.rest(), &receiver).await;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let mut senders = JoinSet::new();
    for sender in 0..2 {
        senders.spawn(keep_sending(world.rest(), sender, Arc::clone(&answered)));
    }
    let acknowledged = || answered.lock().expect("no sender failed").clone();
    eventually("some events to be answered", async || {
        (acknowledged().len() >= 100).then_some(())
    })
    .await;
    let before = acknowledged();

    let copy = world.folder().join("copy");
    let copy_name = copy.to_str().expect("a name");
    let output = process::run(world.command(&["backup", copy_name, "--with-keys"]));
    assert!(output.status.success(), "{}", standard_error(&output));
    assert!(
        acknowledged().len() > before.len(),
        "nothing was sent meanwhile"
    );
    let output = process::run(world.command(&["check", "--backup", copy_name]));
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        reported.contains("verified with its keys"),
        "{reported}{}",
        standard_error(&output)
    );
    let other = world.folder().join("other.key");
    fs::write(&other, format!("1 {}=\n", "A".repeat(43))).expect("written");
    let other = other.to_str().expect("a name");
    let arguments = ["check", "--backup", copy_name, "--secret-key", other];
    let output = process::run(world.command(&arguments));
    assert_eq!(output.status.code(), Some(1));
    let reported = standard_error(&output);
    assert!(reported.contains("was modified"), "{reported}");
    world.kill();
    senders.join_all().await;

    let restored = world.folder().join("restored");
    let restored_name = restored.to_str().expect("a name");
    let arguments = ["restore", copy_name, "--data-dir", restored_name];
    let output = process::run(process::command(world.folder(), arguments));
    assert!(output.status.success(), "{}", standard_error(&output));
    let again = process::run(process::command(world.folder(), arguments));
    assert_eq!(again.status.code(), Some(1));
    assert!(
        standard_error(&again).contains("empty or new folder"),
        "{}",
        standard_error(&again)
    );

    let mut serve = process::command(world.folder(), ["serve", "--data-dir", restored_name]);
    serve.args([
        "--grpc-listen",
        "127.0.0.1:0",
        "--rest-listen",
        "127.0.0.1:0",
    ]);
    serve.env("BELLWETHER_EGRESS_ALLOW", "127.0.0.0/8");
    serve.env("BELLWETHER_DELIVERY_SCHEDULE", "0s,1s,1s,1s,1s");
    let service = Service::start(serve, &world.folder().join("log-restored"));
    let key = fs::read_to_string(restored.join("admin.key")).expect("a key");
    let rest = Rest::new(service.address("rest"), Some(key.trim()));
    let stored = crash::stored_hosts(&rest).await;
    let lost: Vec<_> = before.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "{} are lost, such as {:?}",
        lost.len(),
        lost[0]
    );
    assert_each_event_arrives_once(&rest, &receiver, stored.len()).await;
}

/// Waits until all deliveries have ended. Checks that each arrived, and that messages with the same
/// delivery id are equal.
async fn assert_each_event_arrives_once(rest: &Rest, receiver: &Receiver, events: usize) {
    let deliveries = eventually("every delivery to end", async || {
        let deliveries = crash::deliveries(rest).await;
        let ended = deliveries.iter().all(|it| it["endTime"].is_string());
        ended.then_some(deliveries)
    })
    .await;
    assert_eq!(deliveries.len(), events, "each event has one delivery");
    let mut messages: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for request in receiver.received() {
        let of_id = messages
            .entry(request.delivery_id().to_owned())
            .or_default();
        of_id.insert(request.body.to_vec());
    }
    for delivery in &deliveries {
        let id = delivery["id"].as_str().expect("an id");
        assert_eq!(delivery["state"], "DELIVERED", "{delivery}");
        assert_eq!(messages[id].len(), 1, "two messages under the id {id}");
    }
}
