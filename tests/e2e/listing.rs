//! Tests that the items of a screen as JSON equal the response over REST.

use std::process::Output;

use bellwether_tests::{eventually::eventually, process, receiver::Receiver, world::World};
use serde_json::{Value, json};

use crate::{journey, samples};

fn list(world: &World, screen: &str) -> Output {
    let address = format!("http://{}", world.service().address("grpc"));
    let mut command = process::command(world.folder(), ["--snapshot", screen, "--json"]);
    command.args(["--connect", &address, "--key-file"]);
    let output = command.arg(world.data_dir().join("admin.key")).output();
    output.expect("the command")
}

fn list_screen(world: &World, screen: &str) -> Value {
    let output = list(world, screen);
    assert!(output.status.success(), "{screen}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("one document of JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_matches_the_rest_response() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    journey::set_up(&rest, &receiver).await;
    let events = ["db-1", "db-2", "gone"]
        .map(|host| samples::event("full", host, "SEVERITY_ERROR", "disk is full"));
    rest.post("/v1/data-receiver/events", &samples::events(&events))
        .await
        .ok();
    let mut over = samples::event("full", "gone", "SEVERITY_ERROR", "disk is full");
    over["status"] = json!("STATUS_CLOSED");
    rest.post("/v1/data-receiver/events", &samples::events(&[over]))
        .await
        .ok();
    eventually("every delivery to end", async || {
        let list = rest.get("/v1/notification/deliveries").await.ok();
        let rows = list["deliveries"].as_array()?;
        let ended = rows.iter().all(|row| row["endTime"].is_string());
        (rows.len() >= 3 && ended).then_some(())
    })
    .await;

    for (screen, list, path, rows) in [
        ("triggers", "triggers", "/v1/notification/triggers", 1),
        (
            "destinations",
            "destinations",
            "/v1/notification/destinations",
            1,
        ),
        ("rules", "rules", "/v1/notification/rules", 1),
        ("deliveries", "deliveries", "/v1/notification/deliveries", 3),
    ] {
        let written = list_screen(&world, screen);
        assert_eq!(written, rest.get(path).await.ok(), "{screen}");
        assert_eq!(
            written[list].as_array().expect("rows").len(),
            rows,
            "{screen}"
        );
    }

    let open = json!({"query": {"statuses": ["STATUS_OPEN", "STATUS_SUPPRESSED"]}});
    let found = rest.post("/v1/events:search", &open).await.ok();
    let written = list_screen(&world, "events");
    assert_eq!(written["results"], found["results"]);
    assert_eq!(written["results"].as_array().expect("rows").len(), 2);

    let overview = rest.get("/v1/overview").await.ok();
    let written = list_screen(&world, "overview");
    let names = |value: &Value| -> Vec<String> {
        let fields = value.as_object().expect("an object");
        fields.keys().cloned().collect()
    };
    assert_eq!(names(&written), names(&overview));

    let written = list_screen(&world, "clients");
    assert_eq!(written["clients"][0]["name"], "admin", "{written}");
}

#[test]
fn error_for_a_screen_without_a_list_names_those_with_one() {
    let world = World::start();
    let output = list(&world, "reference");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for name in ["`reference` has no list", "events", "deliveries", "clients"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn list_without_a_service_is_rejected_and_creates_no_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let output = process::command(home.path(), ["--snapshot", "events", "--json"])
        .output()
        .expect("the command");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("no service runs on the data folder"),
        "{said}"
    );
    let made = std::fs::read_dir(home.path()).expect("the folder").count();
    assert_eq!(made, 0);
}
