//! The recipes of `docs/recipes.md`, run as written on a new service.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use bellwether_tests::{
    page::{self, CodeBlock},
    programs::programs,
    world::World,
};
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/recipes.md");
const ADDRESS: &str = "https://bellwether.example.net:8480";
const KEY: &str = "BELLWETHER_KEY=$(cat sender.key)";

/// Prints one event in the requested format, as `docker events` does.
const DOCKER: &str = "#!/bin/sh
for format; do :; done
echo \"$format\" | sed 's/{{.Actor.Attributes.name}}/web/g; s/{{.Actor.Attributes.exitCode}}/137/g'
";

/// A request of Grafana's webhook.
const ALERT: &str = r#"{"version": "1", "status": "firing", "alerts": [{"status": "firing",
    "labels": {"alertname": "DiskFull", "severity": "critical", "instance": "db-1"},
    "annotations": {"summary": "disk is full", "runbook_url": "https://wiki.example.com/disk-full"},
    "startsAt": "2026-01-31T08:00:00Z"}]}"#;

/// Returns the shell commands that run a block; `None` if the block is not meant to be run, or if
/// its program is not installed.
fn commands(folder: &Path, block: &CodeBlock) -> Option<String> {
    let program = |command: &str| {
        let (_, file) = command.rsplit_once(' ').unwrap();
        fs::write(folder.join(file), &block.code).unwrap();
        format!("{KEY} {command}\n")
    };
    Some(match block.info.as_str() {
        "sh run" | "sh docker" => block.code.clone(),
        "ini unit" => unit(folder, &block.code),
        "yaml actions" => last_step(&block.code),
        "yaml grafana" => contact_point(&block.code),
        "python run" => program("python3 recipe.py"),
        "go run" => programs(["go"]).map(|_| program("go run recipe.go"))?,
        "powershell run" => programs(["pwsh"]).map(|_| program("pwsh -File recipe.ps1"))?,
        _ => return None,
    })
}

/// Returns commands that verify a systemd unit, if possible, and run the program that it starts.
fn unit(folder: &Path, code: &str) -> String {
    let path = code.lines().next().unwrap();
    let (_, name) = path.rsplit_once('/').unwrap();
    fs::write(folder.join(name), code).unwrap();
    let mut started = code.lines().filter_map(|it| it.strip_prefix("ExecStart="));
    let started = started.next().unwrap();
    let started = started
        .replace("%i", "backup.service")
        .replace("%H", "db-1");
    let instance = name.replace('@', "@backup");
    let verify = match programs(["systemd-analyze"]) {
        Some(_) => format!("systemd-analyze verify ./{instance}\n"),
        None => String::new(),
    };
    format!("{verify}( export {KEY}\n{started} )\n")
}

/// Returns the commands of the last step of a workflow, with the environment of a runner.
fn last_step(code: &str) -> String {
    let workflow: Value = serde_saphyr::from_str(code).unwrap();
    let steps = workflow["jobs"]["test"]["steps"].as_array().unwrap();
    let run = steps.last().unwrap()["run"].as_str().unwrap();
    format!(
        "( export {KEY} STATUS=open GITHUB_REPOSITORY=o/r GITHUB_WORKFLOW=ci GITHUB_REF_NAME=main \
         GITHUB_SERVER_URL=https://github.com GITHUB_RUN_ID=1\n{run}\n)\n"
    )
}

/// Returns a command that sends an alert as the contact point in a Grafana file does.
fn contact_point(code: &str) -> String {
    let file: Value = serde_saphyr::from_str(code).unwrap();
    let settings = &file["contactPoints"][0]["receivers"][0]["settings"];
    let field = |name: &str| settings[name].as_str().unwrap();
    assert_eq!(field("authorization_credentials"), "KEY");
    let (method, scheme) = (field("httpMethod"), field("authorization_scheme"));
    let url = field("url");
    format!(
        "curl -fsS -X {method} -H \"authorization: {scheme} $(cat grafana.key)\" {url} -d '{ALERT}'\n"
    )
}

#[tokio::test]
async fn commands_in_the_recipes_send_their_events() {
    let world = World::start();
    let address = format!("http://{}", world.service().address("rest"));
    let bin = world.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("docker"), DOCKER).unwrap();
    fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    let blocks = page::code_blocks(&PAGE.replace(ADDRESS, &address));
    let commands = blocks.iter().filter_map(|it| commands(world.folder(), it));
    let mut script: String = commands.collect();
    script += "bellwether events --status all\n";
    let output = page::run_script(world.folder(), &world.data_dir(), &script);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    assert!(
        printed.contains("disk is full <https://wiki.example.com/disk-full|Runbook>"),
        "{printed}"
    );

    let mut expected = vec![
        ("unit-failed", "closed"),
        ("workflow-failed", "open"),
        ("container-died", "open"),
        ("import-failed", "closed"),
        ("DiskFull", "open"),
    ];
    for (program, event) in [("go", "queue-blocked"), ("pwsh", "service-stopped")] {
        expected.extend(programs([program]).map(|_| (event, "open")));
    }
    let rows: Vec<Vec<&str>> = printed.lines().map(|it| it.split('\t').collect()).collect();
    for (name, status) in expected {
        let mut rows = rows.iter();
        assert!(
            rows.any(|row| row.get(4) == Some(&name) && row[2] == status),
            "{name} is not {status}:\n{printed}"
        );
    }
}
