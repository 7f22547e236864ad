//! The commands for scripts, with the real program and a real service.

use std::{fs, io::Write, path::Path, process::Output};

use bellwether_tests::{
    eventually::eventually,
    process,
    receiver::{Receiver, Reply},
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn run(world: &World, arguments: &[&str]) -> Said {
    process::run(world.command(arguments)).into()
}

fn fed(world: &World, arguments: &[&str], input: &str) -> Said {
    let mut command = world.command(arguments);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

/// Documents of the resources that hold messages.
const HOLDS: &str = "\
kind: calendar
name: work
timeZone: Europe/Berlin
windows:
- {dtstart: '2026-01-05T08:00:00', endTimeOfDay: '18:00', rrule: 'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR'}
---
kind: inhibition
name: router
enabled: true
sourceFilter: name=router-down
targetFilter: name=host-down
equal:
- {source: site, target: site}
---
kind: mapping
name: status
event:
  name: '{{component}}'
  dimensions: {page: '{{page.id}}'}
";

fn write_configuration(world: &World) -> String {
    let folder = world.folder().join("config");
    fs::create_dir_all(folder.join("below")).unwrap();
    let yaml = "\
kind: destination
name: ops
tags: ['owner:team-a']
type:
  slack:
    channel: '#ops'
    token: {fromFile: TOKEN}
---
kind: rule
name: page
tags: ['owner:team-a']
enabled: true
triggerNames: [disk]
destinationNames: [ops]
message: |
  first line
  second line
";
    let token = folder.join(".token");
    fs::write(&token, "xoxb-secret-1\n").unwrap();
    let yaml = yaml.replace("TOKEN", token.to_str().unwrap());
    fs::write(folder.join("team.yaml"), yaml).unwrap();
    let mut trigger = samples::trigger("disk", "disk");
    trigger["kind"] = json!("trigger");
    trigger["tags"] = json!(["owner:team-a"]);
    let text = trigger.to_string();
    fs::write(folder.join("below/disk.json"), text).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn configuration_is_diffed_applied_exported_and_reapplied() {
    let world = World::start();
    let folder = write_configuration(&world);
    fs::write(format!("{folder}/holds.yaml"), HOLDS).unwrap();
    let before = run(&world, &["diff", "-f", &folder]);
    assert_eq!(before.code, 1, "{before:?}");
    assert_eq!(before.out.matches("created").count(), 6, "{before:?}");
    let applied = run(&world, &["apply", "-f", &folder]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let same = run(&world, &["diff", "-f", &folder]);
    assert_eq!((same.code, &*same.out), (0, "= 6 unchanged\n"), "{same:?}");

    let token = "BELLWETHER_SECRET_DESTINATION_OPS_SLACK_TOKEN";
    let exported = run(&world, &["export"]);
    assert!(exported.out.contains(token), "{exported:?}");
    assert!(!exported.out.contains("xoxb"), "{exported:?}");
    assert!(
        exported.out.starts_with("kind: trigger\nname: disk\n"),
        "{exported:?}"
    );
    assert!(exported.out.contains("filter: "), "{exported:?}");
    let before = world.rest().get("/v1/notification/rules/page").await.ok();
    assert!(exported.out.contains("rrule: "), "{exported:?}");
    assert!(exported.out.contains("kind: inhibition"), "{exported:?}");

    for (kind, name) in [
        ("rule", "page"),
        ("destinations", "ops"),
        ("trigger", "disk"),
        ("inhibition", "router"),
        ("calendar", "work"),
        ("mapping", "status"),
    ] {
        let deleted = run(&world, &["delete", kind, name]);
        assert_eq!(deleted.code, 0, "{deleted:?}");
    }
    let refused = fed(&world, &["apply", "-f", "-"], &exported.out);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("is not set"), "{refused:?}");

    let file = world.folder().join("exported.yaml");
    fs::write(&file, &exported.out).unwrap();
    let mut command = world.command(&["apply", "-f", file.to_str().unwrap()]);
    command.env(token, "xoxb-secret-1");
    let applied: Said = process::run(command).into();
    assert_eq!(applied.code, 0, "{applied:?}");
    let after = world.rest().get("/v1/notification/rules/page").await.ok();
    for field in [
        "enabled",
        "message",
        "triggerNames",
        "destinationNames",
        "tags",
    ] {
        assert_eq!(after["rule"][field], before["rule"][field], "{field}");
    }
    let same = run(&world, &["diff", "-f", &folder]);
    assert_eq!(same.code, 0, "{same:?}");
}

#[tokio::test]
async fn silence_document_is_applied_exported_and_ended() {
    let world = World::start();
    let document = |seconds: i64| {
        format!(
            "kind: silence\nname: patch\ntags: [\"owner:team-a\"]\nreason: kernel update\n\
             filter: host=db-1\nannotations: {{ticket: OPS-1}}\nspan: {{endTime: \"{}\"}}\n",
            samples::in_seconds(seconds)
        )
    };
    let text = document(3_600);
    let file = world.folder().join("silence.yaml");
    fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let created = run(&world, &["apply", "-f", file]);
    assert!(created.out.contains("created"), "{created:?}");
    let same = run(&world, &["diff", "-f", file]);
    assert_eq!(same.code, 0, "{same:?}");
    let exported = run(&world, &["export", "silence"]);
    for part in [
        "kind: silence",
        "name: patch",
        "ticket: OPS-1",
        "filter: host=db-1",
    ] {
        assert!(exported.out.contains(part), "{part}: {exported:?}");
    }
    let again = fed(&world, &["diff", "-f", "-"], &exported.out);
    assert_eq!(again.code, 0, "{again:?}");

    // An operator ends it: the document no longer starts it.
    let rest = world.rest();
    let expire = "/v1/notification/silences/patch:expire";
    rest.post(expire, &json!({})).await.ok();
    let applied = run(&world, &["apply", "-f", file]);
    assert_eq!(applied.out, "= 1 unchanged\n", "{applied:?}");
    let exported = run(&world, &["export", "silence"]);
    assert!(!exported.out.contains("patch"), "{exported:?}");

    let later = text.replace(
        "span: {",
        &format!("span: {{startTime: \"{}\", ", samples::in_seconds(60)),
    );
    let created = fed(&world, &["apply", "-f", "-"], &later);
    assert!(created.out.contains("created"), "{created:?}");
    let pruned = fed(
        &world,
        &["apply", "-f", "-", "--prune", "--owner", "team-a"],
        "kind: calendar\nname: work\ntags: [\"owner:team-a\"]\ntimeZone: UTC\nwindows: \
         [{dtstart: \"2026-01-05T08:00:00\", duration: PT8H}]\n",
    );
    assert!(pruned.out.contains("patch"), "{pruned:?}");
    let stored = rest.get("/v1/notification/silences/patch").await.ok();
    assert_eq!(stored["silence"]["state"], "EXPIRED");
}

#[tokio::test]
async fn diff_shows_changed_lines_but_never_secrets() {
    let world = World::start();
    let folder = write_configuration(&world);
    run(&world, &["apply", "-f", &folder]);
    let path = format!("{folder}/team.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("second line", "another line")).unwrap();
    fs::write(format!("{folder}/.token"), "xoxb-secret-2").unwrap();
    let differs = run(&world, &["diff", "-f", &folder]);
    assert_eq!(differs.code, 1, "{differs:?}");
    assert!(differs.out.contains("-  second line"), "{}", differs.out);
    assert!(differs.out.contains("+  another line"), "{}", differs.out);
    assert!(
        differs.out.contains("secret type.slack.token changed"),
        "{}",
        differs.out
    );
    assert!(!differs.out.contains("xoxb"), "{}", differs.out);
    let json = run(&world, &["diff", "-f", &folder, "--output", "json"]);
    assert!(!json.out.contains("xoxb"), "{}", json.out);
    assert_eq!(json.json()["changes"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn impact_replays_past_events_and_can_fail_the_diff() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    samples::disks_to_hook(&rest, &receiver).await;
    let rule = samples::rule("page", "disk", "hook", "disk");
    rest.post("/v1/notification/rules", &rule).await.ok();
    for (host, severity) in [("a", "error"), ("b", "critical"), ("c", "critical")] {
        let send = [
            "send",
            "full",
            "-d",
            &format!("host={host}"),
            "-s",
            severity,
            "-m",
            "disk",
        ];
        assert_eq!(run(&world, &send).code, 0);
    }
    receiver.wait_for(3).await;
    let draft = "kind: trigger\nname: disk\ntype: {event: {filter: 'severity=critical'}}\n";
    let diff = ["diff", "-f", "-", "--impact", "7d"];

    let reported = fed(&world, &diff, draft);
    assert_eq!(reported.code, 1, "{reported:?}");
    for line in [
        "impact on 3 occurrences, ",
        "  rule page: 2 messages instead of 3\n",
        "  destination hook: 2 messages instead of 3\n",
        "  total: 2 messages instead of 3\n",
        "  1 occurrence would no longer notify:\n",
        "host=a\tdisk\n",
    ] {
        assert!(reported.out.contains(line), "{line}: {}", reported.out);
    }
    let json = fed(&world, &[&diff[..], &["--output", "json"]].concat(), draft).json();
    assert_eq!(
        json["impact"]["noLongerNotified"][0]["dimensions"]["host"],
        "a"
    );
    assert_eq!(json["changes"][0]["name"], "disk");

    let few = [&diff[..], &["--max-messages", "1"]].concat();
    let refused = fed(&world, &few, draft);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.err.contains("2 messages exceed the limit of 1"),
        "{refused:?}"
    );
    let apply = [&["apply"], &few[1..]].concat();
    assert_eq!(fed(&world, &apply, draft).code, 5);
    assert_eq!(fed(&world, &diff, draft).code, 1, "it was applied");
    let enough = [&["apply"], &diff[1..], &["--max-messages", "2"]].concat();
    assert_eq!(fed(&world, &enough, draft).code, 0);
    assert_eq!(fed(&world, &diff, draft).code, 0, "it was not applied");

    let wrong = fed(&world, &["diff", "-f", "-", "--impact", "31d"], draft);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let alone = fed(&world, &["diff", "-f", "-", "--max-messages", "2"], draft);
    assert_eq!(alone.code, 2, "{alone:?}");
    let request = json!({"documents": [], "days": 40});
    let refused = rest.post("/v1/config:impact", &request).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("1 to 30"), "{}", refused.text());
}

#[tokio::test]
async fn plan_is_rejected_after_a_concurrent_change() {
    let world = World::start();
    let folder = write_configuration(&world);
    let plan = world.folder().join("plan.json");
    let plan = plan.to_str().unwrap();
    let prune = ["--prune", "--owner", "team-a"];
    let save = [&["diff", "-f", &folder, "--save", plan], &prune[..]].concat();
    assert_eq!(run(&world, &save).code, 1);
    assert!(!fs::read_to_string(plan).unwrap().contains("xoxb"));
    let applied = run(&world, &["apply", "--plan", plan]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let again = run(&world, &["apply", "--plan", plan]);
    assert_eq!(again.code, 5, "{again:?}");
    assert!(again.err.contains("concurrently"), "{again:?}");

    assert_eq!(run(&world, &save).code, 0);
    let rest = world.rest();
    let mut rule = rest.get("/v1/notification/rules/page").await.ok()["rule"].clone();
    rule["description"] = json!("edited by hand");
    rest.put("/v1/notification/rules/page", &rule).await.ok();
    let refused = run(&world, &["apply", "--plan", plan]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("rule `page`"), "{refused:?}");

    assert_eq!(run(&world, &save).code, 1);
    let mut other = samples::trigger("other", "disk");
    other["tags"] = json!(["owner:team-a"]);
    rest.post("/v1/notification/triggers", &other).await.ok();
    let refused = run(&world, &["apply", "--plan", plan]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("trigger `other`"), "{refused:?}");
}

#[tokio::test]
async fn invalid_document_is_located_and_nothing_is_stored() {
    let world = World::start();
    let text = "kind: trigger\nname: a\n---\nkind: rule\nname: b\ntriggerNames: [x]\n";
    let refused = fed(&world, &["apply", "-f", "-"], text);
    assert_eq!(refused.code, 5, "{refused:?}");
    let says = "standard input, document 2: rule `b`: triggerNames[0]";
    assert!(refused.err.contains(says), "{refused:?}");
    let unknown = fed(
        &world,
        &["apply", "-f", "-"],
        "kind: rule\nname: b\nenabeld: true\n",
    );
    assert_eq!(unknown.code, 5, "{unknown:?}");
    assert!(
        unknown.err.contains("enabeld") && unknown.err.contains("enabled"),
        "{unknown:?}"
    );
    let rules = run(&world, &["get", "rules", "--output", "json"]);
    assert_eq!(rules.json(), json!({"rules": []}));
}

#[tokio::test]
async fn apply_reports_errors_of_all_documents_together() {
    let world = World::start();
    let text = "\
kind: trigger
name: a
type: {event: {filter: severity>=error}}
fitler: x
---
kind: rule
name: b
triggerNames: [missing]
---
kind: calendar
name: 123
timeZone: Nowhere/Land
---
kind: destination
name: a/b
description: 4.50
tags: [ok, true]
type: {slack: {channel: ops, token: t}}
";
    for command in ["apply", "diff"] {
        let refused = fed(&world, &[command, "-f", "-"], text);
        assert_eq!(refused.code, 5, "{refused:?}");
        for says in [
            "document 1: trigger `a`: fitler: is not a known field",
            "document 2: rule `b`: triggerNames[0]: trigger `missing` not found",
            "document 3: calendar `123`: name: expected a string, found 123; quote it",
            "document 3: calendar `123`: timeZone: ",
            "document 4: destination `a/b`: name: ",
            "document 4: destination `a/b`: description: expected a string, found 4.5; quote it",
            "document 4: destination `a/b`: tags[1]: expected a string, found true; quote it",
        ] {
            assert!(refused.err.contains(says), "{says}: {}", refused.err);
        }
    }
    let triggers = run(&world, &["get", "triggers", "--output", "json"]);
    assert_eq!(triggers.json(), json!({"triggers": []}));
}

#[tokio::test]
async fn events_are_sent_found_watched_and_explained() {
    let world = World::start();
    let none = run(&world, &["events"]);
    assert_eq!(none.code, 1, "{none:?}");
    let send = [
        "send",
        "backup-failed",
        "-d",
        "host=db-1",
        "--severity",
        "error",
        "-m",
        "no\u{1b}space",
    ];
    let sent = run(&world, &send);
    assert_eq!((sent.code, &*sent.out), (0, "1 accepted\n"), "{sent:?}");
    let lines = "{\"name\": \"a\", \"dimensions\": {\"host\": \"x\"}}\n\n{\"name\": \"b\"}\n";
    let lines = fed(&world, &["send", "--lines"], lines);
    assert_eq!(lines.code, 5, "{lines:?}");
    assert!(lines.err.contains("1 accepted, 1 rejected"), "{lines:?}");
    assert!(lines.err.contains("line 3: "), "{lines:?}");

    let found = run(&world, &["events", "severity>=error host=db-*"]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(
        found
            .out
            .contains("backup-failed\thost=db-1\tno\\u{1b}space"),
        "{found:?}"
    );
    let wrong = run(&world, &["events", "severty>=error"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(wrong.err.contains("`severity`?"), "{wrong:?}");
    let json = run(&world, &["events", "--output", "json", "--limit", "1"]).json();
    assert_eq!(json["results"].as_array().unwrap().len(), 1);

    let closed = run(
        &world,
        &["send", "backup-failed", "-d", "host=db-1", "--close"],
    );
    assert_eq!(closed.code, 0, "{closed:?}");
    assert_eq!(run(&world, &["events", "name=backup-failed"]).code, 1);
    let all = run(&world, &["events", "name=backup-failed", "--status", "all"]);
    let id = all.out.split('\t').nth(3).unwrap();
    let explained = run(&world, &["explain", id]);
    assert_eq!((explained.code, &*explained.out), (0, "no rules\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trial_and_preview_commands_exit_with_the_documented_code() {
    let world = World::start();
    let receiver = Receiver::start().await;
    let rest = world.rest();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let dead = samples::webhook("dead", "http://127.0.0.1:9/");
    rest.post("/v1/notification/destinations", &dead).await.ok();
    let disk = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &disk).await.ok();
    let rule = samples::rule("page", "disk", "hook", "{{event.summary}}");
    rest.post("/v1/notification/rules", &rule).await.ok();

    assert_eq!(run(&world, &["health"]).out, "serving\n");
    assert_eq!(run(&world, &["status"]).code, 0);
    let tested = run(&world, &["test", "hook"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    assert!(tested.out.starts_with("delivered\t"), "{tested:?}");
    let tested = run(&world, &["test", "dead"]);
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(tested.out.starts_with("unreachable\t"), "{tested:?}");
    let tried = run(&world, &["try", "disk"]);
    assert_eq!((tried.code, &*tried.out), (0, "0 of 0 matched\n"));
    let preview = run(&world, &["preview", "page"]);
    assert!(preview.out.starts_with("== hook\n"), "{preview:?}");
    let missing = run(&world, &["test", "nobody"]);
    assert_eq!(missing.code, 5, "{missing:?}");
}

#[test]
fn unreachable_service_and_wrong_key_have_distinct_exit_codes() {
    let mut world = World::start();
    let wrong = world.folder().join("wrong.key");
    fs::write(&wrong, "nobodys-key").unwrap();
    let denied = run(
        &world,
        &["get", "rules", "--key-file", wrong.to_str().unwrap()],
    );
    assert_eq!(denied.code, 4, "{denied:?}");
    world.terminate();
    for arguments in [
        &["get", "rules"][..],
        &["health"],
        &["send", "a", "-d", "b=c"],
    ] {
        let unreachable = run(&world, arguments);
        assert_eq!(unreachable.code, 3, "{unreachable:?}");
        assert!(
            unreachable.err.contains("bellwether serve"),
            "{unreachable:?}"
        );
    }
    let usage = run(&world, &["send", "a", "--severity", "awful"]);
    assert_eq!(usage.code, 2, "{usage:?}");
}

#[test]
fn script_command_help_shows_only_relevant_options() {
    let home = tempfile::tempdir().unwrap();
    let help = |command: &str| -> Said {
        process::run(process::command(home.path(), [command, "--help"])).into()
    };
    let apply = help("apply").out;
    assert!(
        apply.contains("--connect") && apply.contains("Examples:"),
        "{apply}"
    );
    assert!(!apply.contains("--grpc-listen"), "{apply}");
    let serve = help("serve").out;
    assert!(serve.contains("--grpc-listen") && !serve.contains("--connect"));
    assert!(!help("man").out.contains("--data-dir"));
    assert!(help("get").out.contains("heartbeat, contact, schedule"));
}

#[test]
fn completions_and_manual_page_are_generated() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let made: Said = process::run(process::command(home.path(), ["completions", shell])).into();
        assert_eq!(made.code, 0, "{made:?}");
        assert!(made.out.contains("apply"), "{shell}");
    }
    let page: Said = process::run(process::command(home.path(), ["man"])).into();
    assert!(page.out.contains(".TH bellwether"), "{page:?}");
}

#[test]
fn manual_has_a_page_for_every_command() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("man1");
    let mut command = process::command(home.path(), ["man", "--all"]);
    command.arg(&folder);
    let written: Said = process::run(command).into();
    assert_eq!(written.code, 0, "{written:?}");
    for name in ["bellwether", "bellwether-apply", "bellwether-client-create"] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        for part in [
            &format!(".TH {name} 1"),
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
        ] {
            assert!(page.contains(part), "{name}: {part}");
        }
    }
}

#[tokio::test]
async fn completions_in_bash_include_names_of_resources() {
    let world = World::start();
    let folder = write_configuration(&world);
    let applied = run(&world, &["apply", "-f", &folder]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let script = world.folder().join("completions.bash");
    fs::write(&script, run(&world, &["completions", "bash"]).out).unwrap();
    let complete = |line: &str| {
        let data = world.data_dir();
        let line = format!("bellwether --data-dir {} {line}", data.display());
        let program = format!(
            "bellwether() {{ {} \"$@\"; }}; source {}; COMP_LINE='{line}'; \
             COMP_POINT=${{#COMP_LINE}}; read -ra COMP_WORDS <<< \"$COMP_LINE\"; \
             [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMPREPLY=(); _bellwether_with_names bellwether \"${{COMP_WORDS[COMP_CWORD]}}\" ''; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            process::binary().display(),
            script.display(),
        );
        let bash = Path::new("bash");
        let bash = process::command_of(bash, world.folder(), ["-c", &program]);
        let said: Said = process::run(bash).into();
        let words = said.out.lines().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let rules = run(&world, &["get", "rules"]).out;
    let rule = rules.split('\t').next().unwrap().trim();
    let offered = complete("preview ");
    assert!(offered.contains(&rule.to_owned()), "{rule}: {offered:?}");
    let offered = complete("get rule ");
    assert!(offered.contains(&rule.to_owned()), "{rule}: {offered:?}");
    assert_eq!(complete("client revoke a"), ["admin"]);
    assert_eq!(
        complete("preset show tele"),
        ["telegram", "telegram-buttons", "telegram-edit"]
    );
    let offered = complete("get --");
    assert!(offered.contains(&"--key-file".to_owned()), "{offered:?}");
    assert!(
        !offered.contains(&"--grpc-listen".to_owned()),
        "{offered:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preset_is_listed_shown_and_applied_with_parameters() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let listed = run(&world, &["preset", "list"]);
    assert_eq!(listed.out.lines().count(), 56, "{listed:?}");
    assert!(
        listed
            .out
            .contains("telegram\tdestination\tA Telegram chat"),
        "{listed:?}"
    );
    let shown = run(&world, &["preset", "show", "telegram"]).out;
    let unchanged = fed(&world, &["diff", "-f", "-"], &shown);
    assert!(
        unchanged.err.contains("TELEGRAM_URL is not set"),
        "{unchanged:?}"
    );

    let open = run(&world, &["preset", "apply", "telegram"]);
    assert_eq!(open.code, 2, "{open:?}");
    assert!(
        open.err.contains("with --set: name, url, chat_id"),
        "{open:?}"
    );
    let url = format!("url={}", receiver.url("/"));
    let applied = run(
        &world,
        &[
            "preset",
            "apply",
            "telegram",
            "--set",
            &url,
            "--set",
            "name=alerts",
            "--set",
            "chat_id=@b\"c",
        ],
    );
    assert_eq!(applied.out, "+ destination alerts created\n", "{applied:?}");
    run(&world, &["test", "alerts"]);
    assert_eq!(receiver.received()[0].json()["chat_id"], "@b\"c");

    let missing = run(&world, &["preset", "apply", "github"]);
    assert!(
        missing.err.contains("--set secret=VALUE: required"),
        "{missing:?}"
    );
    let mapping = run(
        &world,
        &["preset", "apply", "github", "--set", "secret=s3cret"],
    );
    assert_eq!(mapping.out, "+ mapping github created\n", "{mapping:?}");
    for (arguments, says) in [
        (
            &["preset", "show", "telegam"][..],
            "the nearest is telegram",
        ),
        (
            &["preset", "apply", "ntfy", "--set", "tpic=a"],
            "this preset has name, url",
        ),
    ] {
        let refused = run(&world, arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(says), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_prints_failed_clauses_holds_and_deliveries() {
    let gone =
        Receiver::with_rule(|_| Reply::answer(503, Vec::new(), "overloaded".to_owned())).await;
    let world = World::start();
    let documents = format!(
        "kind: destination\nname: hook\ntype: {{webhook: {{url: '{}'}}}}\n---\n\
         kind: trigger\nname: severe\ntype: {{event: {{filter: 'name=disk severity>=error'}}}}\n---\n\
         kind: trigger\nname: any\ntype: {{event: {{filter: name=disk}}}}\n---\n\
         kind: rule\nname: a-severe\nenabled: true\ntriggerNames: [severe]\ndestinationNames: [hook]\n---\n\
         kind: rule\nname: b-delayed\nenabled: true\ntriggerNames: [any]\ndestinationNames: [hook]\n\
         delay: 3600s\n---\n\
         kind: rule\nname: c-sent\nenabled: true\ntriggerNames: [any]\ndestinationNames: [hook]\n",
        gone.url("/")
    );
    let applied = fed(&world, &["apply", "-f", "-"], &documents);
    assert_eq!(applied.code, 0, "{applied:?}");
    run(
        &world,
        &["send", "disk", "-d", "host=a", "--severity", "warning"],
    );
    let found = run(&world, &["events", "name=disk"]);
    let id = found.out.split('\t').nth(3).unwrap().to_owned();
    let explained = eventually("the first attempt to fail", async || {
        let explained = run(&world, &["explain", &id]);
        explained.out.contains("503").then_some(explained.out)
    })
    .await;
    let parts = [
        "✗ a-severe\tThe trigger did not match\n  \
         trigger severe requires severity >= error, found warning\n",
        "◐ b-delayed\tHeld: delay",
        "\n  held by delay until 20",
        "◐ c-sent\tNotified: ",
        "\n  ◐ delivery to hook: retry, 1 attempt",
        ", next attempt 20",
    ];
    for part in parts {
        assert!(explained.contains(part), "{part}\n{explained}");
    }
    // The same outcomes are returned over REST.
    let event = id.split(':').next().unwrap();
    let path = format!("/v1/events/{event}:explain");
    let answer = world.rest().get(&path).await.ok();
    let outcomes = ["/rules/0", "/rules/1", "/rules/2"].map(|rule| {
        answer
            .pointer(&format!("{rule}/reasonDetail/outcome"))
            .cloned()
    });
    let expected = ["NOT_SENT", "WAITING", "WAITING"]
        .map(|outcome| Some(Value::from(format!("NOTIFICATION_OUTCOME_{outcome}"))));
    assert_eq!(outcomes, expected, "{answer}");
    let delivery = &answer["rules"][2]["deliveries"][0]["outcome"];
    assert_eq!(delivery, "NOTIFICATION_OUTCOME_WAITING", "{answer}");
}
