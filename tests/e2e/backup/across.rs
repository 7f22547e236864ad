//! A backup moves a store from one engine to another without changes.

use std::{fs, path::Path};

use bellwether_tests::{
    engine::Engine, eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use serde_json::Value;

use super::{fill, standard_error};
use crate::{crash, samples};

const EVENTS: usize = 60;

fn world(engine: Engine) -> World {
    let mut made = None;
    engine.run_on(|| made = Some(World::start()));
    made.expect("it is available")
}

async fn stored_data(rest: &Rest) -> Vec<Value> {
    let mut stored = vec![Value::from_iter(crash::stored_hosts(rest).await)];
    let mut deliveries = crash::deliveries(rest).await;
    deliveries.sort_by_key(|it| it["id"].to_string());
    stored.extend(deliveries);
    for path in ["triggers", "destinations", "rules"] {
        stored.push(rest.get(&format!("/v1/notification/{path}")).await.ok());
    }
    stored
}

async fn assert_new_event_is_notified(rest: &Rest, receiver: &Receiver, host: &str) {
    let before = receiver.count();
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    eventually("its message", async || {
        (receiver.count() > before).then_some(())
    })
    .await;
}

fn is_whole(world: &World) {
    let output = process::run(world.command(&["check", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", standard_error(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(found["whole"], true, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_moves_unchanged_between_folder_and_databases() {
    for from in Engine::usable() {
        let receiver = Receiver::start().await;
        let old = world(from);
        let rest = old.rest();
        fill(&old, &receiver, EVENTS).await;
        eventually("every delivery to end", async || {
            let deliveries = crash::deliveries(&rest).await;
            let ended = deliveries.iter().all(|it| it["endTime"].is_string());
            (ended && deliveries.len() == EVENTS).then_some(())
        })
        .await;
        is_whole(&old);
        let copy = old.folder().join("copy");
        let made = process::run(old.command(&["backup", copy.to_str().unwrap(), "--without-keys"]));
        assert!(made.status.success(), "{}", standard_error(&made));
        let (expected, key) = (stored_data(&rest).await, old.admin_key());
        let secret_key = old.data_dir().join("secret.key");
        for into in Engine::usable() {
            let new = restore_into(into, &copy, &secret_key, &key);
            let rest = Rest::new(new.service().address("rest"), Some(&key));
            assert_eq!(stored_data(&rest).await, expected, "{from:?} into {into:?}");
            assert_new_event_is_notified(&rest, &receiver, &format!("new-{}", into.as_str())).await;
            is_whole(&new);
        }
    }
}

/// Starts a service on the restored backup, with the key of the original admin client.
fn restore_into(into: Engine, copy: &Path, secret_key: &Path, key: &str) -> World {
    let world = World::restored(into, copy, secret_key);
    fs::write(world.data_dir().join("admin.key"), key).unwrap();
    if into == Engine::Database {
        let again = process::run(world.command(&[
            "restore",
            copy.to_str().unwrap(),
            "--secret-key",
            secret_key.to_str().unwrap(),
        ]));
        let why = standard_error(&again);
        assert_eq!(again.status.code(), Some(1), "{why}");
        assert!(why.contains("in use; stop these: one"), "{why}");
    }
    world
}
