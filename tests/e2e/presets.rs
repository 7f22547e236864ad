//! Tests of the presets in `tests/examples/presets`: the command stores them with only the host
//! changed, and their messages are checked against the receivers' published rules.

mod aws;
mod incidents;
mod kept;
mod markup;
mod rules;
mod watchdog;
mod wrong;

use std::{
    fs,
    path::{Path, PathBuf},
};

use bellwether_tests::{eventually::eventually, process, receiver::Received, world::World};
use rules::{ChangeKind, Rules, all_rules};
use serde_json::json;
use watchdog::WATCHDOG;

/// Attempts to break out of JSON, a form, XML, HTML, a header and an address, and to be a template.
const HOSTILE: &str =
    "x\",\"y\":\"z\"}\r\nx-evil: 1</a><b>&to=evil&b=%41#f/../{{event.name}} \u{e4}";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/presets")
}

#[test]
fn every_preset_is_listed_and_tested() {
    let list = fs::read_to_string(folder().join("README.md")).unwrap();
    let mut files: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut known: Vec<_> = all_rules().map(|rules| rules.file).collect();
    known.push(WATCHDOG);
    known.sort_unstable();
    assert_eq!(files, known);
    for file in files {
        assert!(
            list.contains(&format!("[`{file}.yaml`]({file}.yaml)")),
            "{file}"
        );
    }
}

fn store(world: &World, rules: &Rules, address: impl Fn(&str) -> String) {
    let file = folder().join(format!("{}.yaml", rules.file));
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| match line.split_once("url: ") {
        Some((indent, url)) if indent.trim().is_empty() && url.contains("://") => {
            let url = url.trim_matches('"');
            let path = url.splitn(4, '/').nth(3).unwrap();
            format!("{indent}url: \"{}\"", address(&format!("/{path}")))
        }
        _ => line.to_owned(),
    });
    let copy = world.folder().join(format!("{}.yaml", rules.file));
    fs::write(&copy, lines.collect::<Vec<_>>().join("\n")).unwrap();

    let mut apply = world.command(&["apply", "-f", copy.to_str().unwrap()]);
    if let Some((_, rest)) = text.split_once("fromEnv: ") {
        let variable = rest.split('}').next().unwrap();
        let secret = match rules.secret_path {
            "" => rules.secret.to_owned(),
            path => address(path),
        };
        apply.env(variable, secret);
    }
    let output = process::run(apply);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", rules.file);
}

#[tokio::test]
async fn every_preset_sends_an_opening_and_a_closing() {
    let world = World::start();
    let rest = world.rest();
    let mut receivers = Vec::new();
    for rules in all_rules() {
        let receiver = rules.receiver().await;
        store(&world, rules, |path| receiver.url(path));
        receivers.push((rules, receiver));
    }
    let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
    let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    for (rules, _) in &receivers {
        let rule = json!({"name": rules.file, "enabled": true, "sendUpdates": true,
            "triggerNames": ["disk"], "destinationNames": [rules.file]});
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
    for (count, status) in [(1, "STATUS_OPEN"), (2, "STATUS_CLOSED")] {
        let event = json!({"name": "disk", "dimensions": {"host": "a\"b"}, "summary": HOSTILE,
            "severity": "SEVERITY_CRITICAL", "status": status});
        let events = json!({"events": [event]});
        rest.post("/v1/data-receiver/events", &events).await.ok();
        for (rules, receiver) in &receivers {
            eventually(rules.file, async || {
                (receiver.count() == count).then_some(())
            })
            .await;
        }
    }
    for (rules, receiver) in receivers {
        let received = receiver.received();
        let shown = |it: &Received| format!("{} {} {}", it.method, it.path, it.text());
        for (received, reported) in received
            .iter()
            .zip([ChangeKind::Opening, ChangeKind::Closing])
        {
            // The output is shown if a later check fails.
            println!("{} {reported:?}: {}", rules.file, shown(received));
            (rules.check)(received, reported);
        }
        assert_eq!(received.len(), 2);
    }

    // Secrets are never returned.
    let path = "/v1/notification/destinations?pageSize=100";
    let stored = rest.get(path).await.text();
    assert!(!stored.contains("canary"), "{stored}");
}
