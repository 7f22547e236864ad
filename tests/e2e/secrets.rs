//! Rotation of encryption keys: data encrypted with earlier keys stays readable.

use std::{fs, os::unix::fs::PermissionsExt as _};

use bellwether_tests::{
    engine::Engine,
    eventually::eventually,
    process::run,
    receiver::{Receiver, Reply},
    world::World,
};
use serde_json::json;

use crate::samples;

fn rotate(world: &World, further: &[&str]) -> Result<String, String> {
    let output = run(world.command(&[&["secrets", "rotate"], further].concat()));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

fn numbers(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.data_dir().join("secret.key")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "one rotation with every kind of secret"
)]
async fn key_rotation_reencrypts_all_secrets() {
    if Engine::only_in_a_folder() {
        return;
    }
    let kept = Reply::json(&json!({"session": "hush-2"}));
    let receiver = Receiver::with_rule(move |_| kept.clone()).await;
    let mut world = World::start();
    let mut hook = samples::webhook("hook", &receiver.url("/hook"));
    hook["type"]["webhook"]["headers"] = json!({"x-token": "hush-1"});
    hook["type"]["webhook"]["keep"] = json!({"session": "session"});
    hook["type"]["webhook"]["keepSecret"] = json!(["session"]);
    hook["type"]["webhook"]["onUpdate"] = json!({"url": "./{{kept.session}}"});
    let rest = world.rest();
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
    let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let mut rule = samples::rule("disk", "disk", "hook", "");
    rule["sendUpdates"] = json!(true);
    rest.post("/v1/notification/rules", &rule).await.ok();
    let mut event = samples::event("disk", "h1", "SEVERITY_ERROR", "full");
    let events = samples::events(&[event.clone()]);
    rest.post("/v1/data-receiver/events", &events).await.ok();
    let list = "/v1/notification/deliveries?states=DELIVERED";
    let shown = eventually("the kept value", async || {
        let shown = rest.get(list).await.ok()["deliveries"][0].clone();
        shown["kept"].is_object().then_some(shown)
    })
    .await;
    assert_eq!(shown["kept"], json!({"session": "********"}));
    let id = shown["id"].as_str().unwrap();
    let whole = rest.get(&format!("/v1/notification/deliveries/{id}")).await;
    assert!(!whole.text().contains("hush-"), "{}", whole.text());
    let in_use = rotate(&world, &[]).unwrap_err();
    assert!(in_use.contains("use"), "{in_use}");
    assert_eq!(numbers(&world), ["1"]);

    world.terminate();
    for file in fs::read_dir(world.data_dir()).unwrap() {
        let content = fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(
            !content.windows(6).any(|it| it == b"hush-2"),
            "in plain text"
        );
    }
    let before = fs::read(world.data_dir().join("secret.key")).unwrap();
    let said = rotate(&world, &[]).unwrap();
    assert!(said.contains("key 2 of"), "{said}");
    assert_eq!(numbers(&world), ["1", "2"]);
    let file = world.data_dir().join("secret.key");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let said = rotate(&world, &["--forget"]).unwrap();
    assert!(said.contains("key 3 of"), "{said}");
    assert_eq!(numbers(&world), ["3"]);
    let checked = run(world.command(&["check"]));
    assert!(checked.status.success(), "{checked:?}");

    world.start_again();
    let test = "/v1/notification/destinations:test";
    let tested = world.rest().post(test, &json!({"name": "hook"})).await;
    assert!(tested.status.is_success(), "{}", tested.text());
    receiver.wait_for(2).await;
    assert_eq!(receiver.received()[1].header("x-token"), "hush-1");
    event["severity"] = json!("SEVERITY_CRITICAL");
    let events = samples::events(&[event]);
    let sent = world.rest().post("/v1/data-receiver/events", &events).await;
    assert!(sent.status.is_success(), "{}", sent.text());
    receiver.wait_for(3).await;
    assert_eq!(receiver.received()[2].path, "/hook/hush-2");

    // The previous key no longer opens the store.
    world.terminate();
    fs::write(&file, before).unwrap();
    let checked = run(world.command(&["check"]));
    assert!(!checked.status.success());
}

#[test]
fn key_rotation_without_a_store_is_rejected() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::start();
    world.terminate();
    fs::remove_dir_all(world.data_dir()).unwrap();
    let refused = rotate(&world, &[]).unwrap_err();
    assert!(!world.data_dir().exists(), "it was created");
    assert!(refused.contains("no store next to it"), "{refused}");
}
