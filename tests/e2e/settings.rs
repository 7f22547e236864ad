//! Tests of settings in the store: imported from the file of a single node, or changed by calls and
//! documents, with the required role.

use std::fs;

use bellwether_tests::{engine::Engine, process, world::World};
use serde_json::json;

const SETTINGS: &str = "/v1/settings";

#[tokio::test]
async fn settings_from_the_file_cannot_be_changed_by_calls() {
    if Engine::only_in_a_folder() {
        return;
    }
    let mut world = World::with_settings("tenant = \"acme\"\n[delivery]\nretention = \"40d\"\n");
    let rest = world.rest();
    let mut settings = rest.get(SETTINGS).await.ok()["settings"].clone();
    assert_eq!(settings["deliveryRetention"], "3456000s");
    assert_eq!(settings["eventRetention"], "2592000s");
    assert_eq!(
        settings["fromFile"],
        json!(["tenant", "delivery.retention"])
    );
    settings["tenant"] = json!("other");
    let refused = rest.put(SETTINGS, &settings).await.refused();
    let reported = refused.to_string();
    assert!(
        reported.contains("tenant = \\\"acme\\\" in the settings file"),
        "{reported}"
    );
    settings["tenant"] = json!("acme");
    settings["auditRetention"] = json!("864000s");
    rest.put(SETTINGS, &settings).await.ok();

    world.kill();
    let file = world.folder().join("bellwether.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("acme", "renamed")
            .replace("retention = \"40d\"\n", ""),
    )
    .unwrap();
    world.start_again();
    let rest = world.rest();
    let after = rest.get(SETTINGS).await.ok()["settings"].clone();
    assert_eq!(after["tenant"], "renamed");
    assert_eq!(after["deliveryRetention"], "2592000s");
    assert_eq!(after["auditRetention"], "864000s");
    let audit = rest.get("/v1/audit?kinds=settings").await.ok();
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries[0]["clientName"], "settings file", "{audit}");
    assert_eq!(entries[0]["after"]["settings"]["tenant"], "renamed");
    assert_eq!(entries[1]["clientName"], "admin");
}

#[tokio::test]
async fn only_admins_change_settings_by_call_or_document() {
    let world = World::start();
    let rest = world.rest();
    let editor_key = world.client("changer", "editor");
    let editor = rest.with_key(Some(&editor_key));
    let viewer = rest.with_key(Some(&world.client("reader", "viewer")));
    let before = viewer.get(SETTINGS).await.ok()["settings"].clone();
    let edited = json!({"tenant": "acme", "eventRetention": "0s"});
    assert_eq!(editor.put(SETTINGS, &edited).await.status, 403);
    let apply = |settings: serde_json::Value| json!({"documents": [{"settings": settings}]});
    let path = "/v1/config:apply";
    let refused = editor.post(path, &apply(edited.clone())).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.text().contains("requires the role `admin`"),
        "{}",
        refused.text()
    );
    // An update without changes is not recorded.
    let same = editor.post(path, &apply(before.clone())).await.ok();
    assert_eq!(same["changes"][0]["action"], "CONFIG_ACTION_UNCHANGED");

    let file = world.folder().join("settings.yaml");
    let text = "kind: settings\nname: service\ntenant: acme\neventRetention: 0s\n";
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let run = |arguments: &[&str]| process::run(world.command(arguments));
    let shown = run(&["diff", "-f", path]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert!(run(&["apply", "-f", path]).status.success());
    assert!(run(&["diff", "-f", path]).status.success());
    let exported = String::from_utf8(run(&["export"]).stdout).unwrap();
    assert!(
        exported.contains("kind: settings\nname: service\n"),
        "{exported}"
    );
    assert!(exported.contains("tenant: acme\n"), "{exported}");
    let after = viewer.get(SETTINGS).await.ok()["settings"].clone();
    assert_eq!(after["tenant"], "acme");
    assert_eq!(after["eventRetention"], "0s");
    assert_eq!(after["deliveryRetention"], "2592000s");
    let refused = run(&["delete", "settings", "service"]);
    assert!(!refused.status.success());
    let wrong = json!({"deliveryRetention": "0s", "tenant": "t".repeat(201)});
    let refused = rest.put(SETTINGS, &wrong).await;
    assert_eq!(refused.status, 400);
    for field in ["deliveryRetention", "tenant"] {
        assert!(refused.text().contains(field), "{}", refused.text());
    }
}
