//! Import of other products' configuration, and its application to a real service.

mod times;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Output},
};

use bellwether_tests::{process, programs::programs, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

/// A configuration with all features that have a counterpart, and many that have none.
const ALERTMANAGER: &str = include_str!("import/alertmanager.yml");
const SECRET: &str = "s3cret";

fn import(world: &World, arguments: &[&str]) -> (String, String) {
    let output = process::run(world.command(&[&["import"], arguments].concat()));
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    (out, err)
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// Applies documents with these variables, and prunes documents imported earlier.
fn apply(world: &World, owner: &str, documents: &str, variables: &[&str]) -> String {
    let file = world.folder().join("imported.yaml");
    fs::write(&file, documents).unwrap();
    let file = file.to_str().unwrap();
    let mut command = world.command(&["apply", "--prune", "--owner", owner, "-f", file]);
    command.envs(variables.iter().map(|name| (name, "https://example.net/x")));
    let output = process::run(command);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}\n{documents}");
    out
}

fn variables(report: &str) -> Vec<&str> {
    let lines = report.lines().map(str::trim);
    let names = lines.filter(|it| it.starts_with("BELLWETHER_SECRET_"));
    names.filter_map(|it| Some(it.split_once(':')?.0)).collect()
}

/// Returns the receivers for labels according to `amtool`.
fn routed(amtool: &Path, file: &Path, labels: &BTreeMap<String, String>) -> BTreeSet<String> {
    let output = Command::new(amtool)
        .args(["config", "routes", "test"])
        .arg(format!("--config.file={}", file.display()))
        .args(labels.iter().map(|(name, value)| format!("{name}={value}")))
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    out.trim().split(',').map(str::to_owned).collect()
}

/// Returns the destinations notified of open alerts, by the label `set`.
async fn notified_receivers(rest: &Rest, batch: usize) -> BTreeMap<String, BTreeSet<String>> {
    let alerts = rest
        .get(&format!("/api/v2/alerts?filter=batch%3D%22{batch}%22"))
        .await
        .ok();
    let alerts = alerts.as_array().unwrap().iter();
    alerts
        .map(|alert| {
            let receivers = alert["receivers"].as_array().unwrap().iter();
            let names = receivers.map(|it| it["name"].as_str().unwrap().to_owned());
            let set = alert["labels"]["set"].as_str().unwrap().to_owned();
            (set, names.collect())
        })
        .collect()
}

async fn compare(
    world: &World,
    (amtool, file): (&Path, &Path),
    batch: usize,
    label_sets: Vec<BTreeMap<String, String>>,
) {
    let mut alerts = Vec::new();
    for (at, labels) in label_sets.iter().enumerate() {
        let mut labels = labels.clone();
        labels.insert("batch".to_owned(), batch.to_string());
        labels.insert("set".to_owned(), at.to_string());
        alerts.push(json!({"labels": labels}));
    }
    let rest = world.rest();
    let accepted = rest.post("/api/v2/alerts", &json!(alerts)).await;
    assert!(accepted.status.is_success(), "{accepted:?}");
    let found = notified_receivers(&rest, batch).await;
    assert_eq!(found.len(), label_sets.len());
    for (at, labels) in label_sets.iter().enumerate() {
        let expected = routed(amtool, file, labels);
        assert_eq!(
            found[&at.to_string()],
            expected,
            "{labels:?}\n{}",
            fs::read_to_string(file).unwrap()
        );
    }
}

#[tokio::test]
async fn alertmanager_configuration_is_imported_and_applies() {
    let world = World::start();
    let file = world.folder().join("alertmanager.yml");
    fs::write(&file, ALERTMANAGER).unwrap();
    let path = file.to_str().unwrap();
    let (documents, report) = import(&world, &["alertmanager", path]);
    for text in [&documents, &report] {
        assert!(!text.contains(SECRET), "{text}");
    }
    for part in [
        "templates: ",
        "global.smtp_auth_password: ",
        "global.resolve_timeout: ",
        "receivers[1].slack_configs[0].title: ",
        "receivers[2].pagerduty_configs[0].details: ",
        "receivers[4].webhook_configs[0].max_alerts: ",
        "inhibit_rules[1]: ",
        "inhibit_rules[2]: an inhibition needs matchers",
        "inhibit_rules[2].sources: has no counterpart",
        "receivers[6].webhook_configs[0].http_config.basic_auth.username_file: ",
        "time_intervals[2].time_intervals[0].days_of_month: ",
        "route.routes[0].surprise: has no counterpart",
        "route.routes[3].routes[1]: no alert reaches it",
    ] {
        assert!(report.contains(&format!("\n  {part}")), "{part}\n{report}");
    }
    let names = variables(&report);
    assert!(names.len() >= 5, "{report}");
    // The documents refer to a file on the machine where they are applied.
    let url_file = world.folder().join("url");
    fs::write(&url_file, "https://example.net/from-a-file\n").unwrap();
    assert!(
        documents.contains("fromFile: /run/secrets/url"),
        "{documents}"
    );
    let documents = documents.replace("/run/secrets/url", url_file.to_str().unwrap());
    let changes = apply(&world, "alertmanager", &documents, &names);
    assert!(changes.contains("created"), "{changes}");
    let again = apply(&world, "alertmanager", &documents, &names);
    assert!(
        !again.contains("created") && !again.contains("updated"),
        "{again}"
    );
    let rest = world.rest();
    let rule = rest.get("/v1/notification/rules/team-db-pager").await.ok();
    let rule = &rule["rule"];
    assert_eq!(rule["group"]["by"], json!(["name", "dimensions.cluster"]));
    assert_eq!(rule["group"]["wait"], "10s");
    assert_eq!(rule["repeatInterval"], "3600");
    assert_eq!(rule["sendUpdates"], true);
    assert_eq!(rule["activeCalendarName"], "offhours not holidays");
    let bot = rest.get("/v1/notification/destinations/bot").await.ok();
    assert_eq!(bot["destination"]["type"]["slack"]["channel"], "#bot");
    let basic = rest.get("/v1/notification/destinations/basic-2").await.ok();
    let auth = &basic["destination"]["type"]["webhook"]["auth"];
    assert_eq!(auth["basic"]["username"], "ana");
    let calendar = "/v1/notification/calendars/offhours%20not%20holidays";
    let calendar = rest.get(calendar).await.ok();
    assert_eq!(
        calendar["calendar"]["exceptCalendarNames"],
        json!(["holidays"])
    );
    let (with_secrets, _) = import(&world, &["alertmanager", path, "--with-secrets"]);
    assert!(with_secrets.contains(SECRET), "{with_secrets}");
}

#[tokio::test]
async fn every_alertmanager_receiver_type_is_imported_except_wechat() {
    let world = World::start();
    let file = world.folder().join("receivers.yml");
    fs::write(&file, include_str!("import/receivers.yml")).unwrap();
    let (documents, report) = import(&world, &["alertmanager", file.to_str().unwrap()]);
    for part in [
        "receivers[13].sns_configs[0].sigv4.access_key: is not set; set it in the destination's `auth.aws`",
        "receivers[17].wechat_configs[0]: a WeChat application requires a token exchange",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    let changes = apply(&world, "alertmanager", &documents, &variables(&report));
    let created = changes.matches("destination").count();
    assert_eq!(created, 17, "{changes}");
    let rest = world.rest();
    for (name, sends_updates) in [("telegram", true), ("jira", false)] {
        let rule = rest.get(&format!("/v1/notification/rules/{name}")).await;
        let rule = rule.ok()["rule"].clone();
        assert_eq!(rule["destinationNames"], json!([name]), "{rule}");
        assert_eq!(rule["sendUpdates"], sends_updates, "{rule}");
    }
}

#[tokio::test]
async fn webhook_payloads_are_sent_in_the_form_of_alertmanager() {
    let world = World::start();
    let receiver = Receiver::start().await;
    let payload = json!({
        "text": "[{{ .Status | toUpper }}] \"{{ .CommonLabels.alertname }}\" on \
                 {{ .CommonLabels.host | title }}",
        "labels": "{{ .CommonLabels | toJson }}",
        "alerts": "{{ range .Alerts -}} {{ .Labels.host }}={{ .Annotations.summary }};{{ end }}",
        "count": 1,
        "values": "{{ .CommonLabels.Values | join \", \" }}",
        "fixed": "{{ if eq .CommonLabels.severity \"critical\" }}P1{{ else }}P2{{ end }}",
    });
    let file = json!({
        "route": {"receiver": "hook", "group_by": ["..."]},
        "receivers": [{"name": "hook", "webhook_configs": [
            {"url": receiver.url("/"), "payload": payload},
        ]}],
    });
    let path = world.folder().join("payload.yml");
    fs::write(&path, file.to_string()).unwrap();
    let arguments = ["alertmanager", "--with-secrets", path.to_str().unwrap()];
    let (documents, report) = import(&world, &arguments);
    assert!(!report.contains("payload"), "{report}");
    apply(&world, "alertmanager", &documents, &[]);
    let alert = json!([{
        "labels": {"alertname": "Disk \"full\"", "host": "db-1", "severity": "critical"},
        "annotations": {"summary": "97 %"},
    }]);
    let answer = world.rest().post("/api/v2/alerts", &alert).await;
    assert_eq!(answer.status, 200);
    receiver.wait_for(1).await;
    let sent = receiver.received()[0].json();
    assert_eq!(
        sent,
        json!({
            "text": "[FIRING] \"Disk \"full\"\" on Db-1",
            "labels": {"host": "db-1", "severity": "critical"},
            "alerts": "db-1=97 %;",
            "count": 1,
            "values": "db-1, critical",
            "fixed": "P1",
        })
    );
}

#[tokio::test]
async fn documented_routes_match_amtool() {
    let Some([amtool]) = programs(["amtool"]) else {
        return;
    };
    let world = World::start();
    let file = world.folder().join("simple.yml");
    fs::write(&file, include_str!("import/simple.yml")).unwrap();
    let arguments = ["alertmanager", file.to_str().unwrap()];
    let (documents, report) = import(&world, &arguments);
    apply(&world, "alertmanager", &documents, &variables(&report));
    let mut label_sets = Vec::new();
    for service in ["foo1", "foo2", "baz", "files", "database", "other"] {
        for owner in ["team-X", "team-Y", "team-Z"] {
            for severity in ["critical", "warning", "page"] {
                let labels = [
                    ("service", service),
                    ("owner", owner),
                    ("severity", severity),
                ];
                let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
                label_sets.push(BTreeMap::from(labels));
            }
        }
    }
    compare(&world, (&amtool, &file), 0, label_sets).await;
}

#[tokio::test]
async fn imported_routes_match_amtool() {
    let Some([amtool]) = programs(["amtool"]) else {
        return;
    };
    let world = World::start();
    let receiver = Receiver::start().await;
    let value = std::env::var_os("BELLWETHER_TEST_ROUTES");
    let value = value.map(|it| it.to_string_lossy().parse().unwrap());
    let configurations: usize = value.unwrap_or(15);
    let mut chance = Chance(0x5EED);
    for batch in 0..configurations {
        let file = world.folder().join("generated.yml");
        let configuration = configuration(&mut chance, &receiver.url("/hook"));
        fs::write(&file, format!("{configuration:#}")).unwrap();
        let arguments = ["alertmanager", file.to_str().unwrap(), "--with-secrets"];
        let (documents, _) = import(&world, &arguments);
        apply(&world, "alertmanager", &documents, &[]);
        let label_sets = (0..10).map(|_| labels(&mut chance)).collect();
        compare(&world, (&amtool, &file), batch, label_sets).await;
    }
}

#[tokio::test]
async fn parent_route_gets_alerts_unmatched_by_hundreds_of_children() {
    const TEAMS: usize = 450;
    let world = World::start();
    let receiver = Receiver::start().await;
    let team = |at: usize| format!("a team with a long name, and the number {at:04}");
    let config = json!([{"url": receiver.url("/hook")}]);
    let routes: Vec<_> = (0..TEAMS)
        .map(|at| json!({"receiver": "teams", "matchers": [format!("team=\"{}\"", team(at))]}))
        .collect();
    let configuration = json!({
        "route": {"receiver": "others", "routes": routes},
        "receivers": [
            {"name": "others", "webhook_configs": config},
            {"name": "teams", "webhook_configs": config},
        ],
    });
    let file = world.folder().join("long.yml");
    fs::write(&file, configuration.to_string()).unwrap();
    let arguments = ["alertmanager", file.to_str().unwrap(), "--with-secrets"];
    let (documents, _) = import(&world, &arguments);
    apply(&world, "alertmanager", &documents, &[]);
    let rest = world.rest();
    let alert = |set: &str, team: &str| json!({"labels": {"batch": "0", "set": set, "team": team}});
    let alerts = json!([alert("known", &team(400)), alert("other", "x")]);
    let accepted = rest.post("/api/v2/alerts", &alerts).await;
    assert!(accepted.status.is_success(), "{accepted:?}");
    let found = notified_receivers(&rest, 0).await;
    assert_eq!(found["known"], BTreeSet::from(["teams".to_owned()]));
    assert_eq!(found["other"], BTreeSet::from(["others".to_owned()]));
}

/// Writes the files of an export, given as a map of paths to contents.
fn folder(world: &World, files: &str) -> String {
    let folder = world.folder().join("export");
    let files: BTreeMap<String, Value> = serde_json::from_str(files).unwrap();
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

/// Imports an export and applies it to an empty service twice, the second time without changes;
/// returns the report.
fn import_files(world: &World, product: &str, files: &str) -> String {
    let (documents, report) = import(world, &[product, &folder(world, files)]);
    for text in [&documents, &report] {
        assert!(!text.contains(SECRET), "{text}");
    }
    let changes = apply(world, product, &documents, &variables(&report));
    assert!(changes.contains("created"), "{changes}");
    let again = apply(world, product, &documents, &variables(&report));
    assert!(
        !again.contains("created") && !again.contains("updated"),
        "{again}"
    );
    report
}

async fn on_call(rest: &Rest, schedule: &str, time: &str) -> Value {
    let schedule = schedule.replace(' ', "%20");
    let path = format!("/v1/notification/schedules/{schedule}:oncall?time={time}");
    rest.get(&path).await.ok()["contactNames"].clone()
}

#[tokio::test]
async fn opsgenie_export_becomes_contacts_schedules_and_policies() {
    let world = World::start();
    let report = import_files(&world, "opsgenie", include_str!("import/opsgenie.json"));
    for part in [
        "integrations/Prometheus-i1.json: create a key",
        "schedules/Database-s1.json: scheduleOverrideList: ",
        "schedules/Web-s2.json: schedule.rotations[2]: shifts must last whole",
        "users/dora@example.net-u4.json: user: is blocked",
        "schedules/Web-s2.json: schedule.rotations[3].participants[2]: no contact",
        "teams/ops-t1.json: teamRoutingRules: ",
        "users/ana@example.net-u1.json: notificationRuleList: ",
        "users/ana@example.net-u1.json: user.role: ",
        "users/ana@example.net-u1.json: user.userAddress: has no counterpart",
        "users/ana@example.net-u1.json: user.userContacts[2]: is disabled",
        "users/cleo-u3.json: user: has no email address",
        "escalations/Database-e1.json: rules[3].recipient: ",
        "escalations/Database-e1.json: repeat.resetRecipientStates: ",
    ] {
        assert!(report.contains(&format!("\n  {part}")), "{part}\n{report}");
    }
    let rest = world.rest();
    let path = "/v1/notification/contacts/Ana%20Mar%C3%ADn";
    let contact = &rest.get(path).await.ok()["contact"];
    assert_eq!(contact["timeZone"], "Europe/Berlin");
    let variables = json!({"mail": "ana@example.net", "sms": "49-3012345"});
    assert_eq!(contact["methods"][0]["variables"], variables);
    let (ana, ben) = (json!(["Ana Mar\u{ed}n"]), json!(["Ben"]));
    let both = json!(["Ana Mar\u{ed}n", "Ben"]);
    for (schedule, time, expected) in [
        ("Database", "2027-01-04T08:30:00Z", &ana),
        ("Database", "2027-01-11T07:30:00Z", &ana),
        ("Database", "2027-01-11T08:30:00Z", &ben),
        // In summer, the hand-off is still at 09:00 local time.
        ("Database", "2027-07-05T06:30:00Z", &ben),
        ("Database", "2027-07-05T07:30:00Z", &ana),
        ("Web halves", "2027-01-05T12:00:00Z", &ana),
        ("Web halves", "2027-01-05T20:00:00Z", &ben),
        ("Web office", "2027-01-04T08:30:00Z", &both),
        ("Web office", "2027-01-04T16:00:00Z", &json!([])),
        ("Web office", "2027-01-10T18:59:00Z", &both),
        ("Web office", "2027-01-10T19:00:00Z", &json!([])),
        // Until 3 March, the turns are those of ana, of no one, and of a blocked user.
        ("Web pause", "2027-01-04T12:00:00Z", &json!([])),
        ("Web pause", "2027-01-11T12:00:00Z", &json!([])),
        ("Web pause", "2027-01-18T12:00:00Z", &ana),
        ("Web pause", "2027-03-02T12:00:00Z", &ana),
        ("Web pause", "2027-03-04T12:00:00Z", &json!([])),
    ] {
        let found = on_call(&rest, schedule, time).await;
        let found = if found.is_null() { json!([]) } else { found };
        assert_eq!(&found, expected, "{schedule} {time}");
    }
    let policies = "/v1/notification/escalation-policies";
    let policy = rest.get(&format!("{policies}/Database")).await.ok();
    let policy = &policy["policy"];
    assert_eq!(policy["rounds"], 3);
    let schedules = ["Database", "Web halves", "Web office", "Web pause"];
    let contacts = ["Ana Mar\u{ed}n", "Ben"];
    assert_eq!(
        policy["steps"],
        json!([
            {"targets": schedules.map(|name| json!({"scheduleName": name})), "wait": "600s"},
            {"targets": contacts.map(|name| json!({"contactName": name})), "wait": "900s"},
        ])
    );
}

#[tokio::test]
async fn grafana_oncall_responses_become_contacts_schedules_policies_and_rules() {
    let world = World::start();
    let files = include_str!("import/grafana-oncall.json");
    let report = import_files(&world, "grafana-oncall", files);
    for part in [
        "teams.json: has no counterpart",
        "users.json: results[2]: has no email address",
        "users.json: results[1].slack: create a destination",
        "on_call_shifts.json: results[4]: repeats by month",
        "on_call_shifts.json: results[5]: leaves out hours, days or weeks",
        "on_call_shifts.json: results[7]: belongs to no imported schedule",
        "on_call_shifts.json: results[2]: user `U3` is missing",
        "on_call_shifts.json: results[2].time_zone: times are in",
        "schedules.json: results[2]: its shifts are in an iCalendar file",
        "escalation_policies.json: next: there are more pages",
        "escalation_policies.json: results[6]: create a destination of the type `webhook`",
        "escalation_chains.json:[1]: no step has anyone to notify",
        "integrations.json: results[0]: create a key: `bellwether client create NAME --role \
         ingest --dialect alertmanager`",
        "integrations.json: results[1].default_route: has no escalation chain",
        "routes.json: results[1]: its escalation chain could not be imported",
        "routes.json: results[2]: is the default route",
    ] {
        assert!(report.contains(&format!("\n  {part}")), "{part}\n{report}");
    }
    let rest = world.rest();
    let (ana, ben) = (json!(["ana"]), json!(["ben"]));
    let (both, none) = (json!(["ana", "ben"]), json!([]));
    for (schedule, time, expected) in [
        ("Primary", "2027-01-04T07:59:00Z", &ana),
        ("Primary", "2027-01-04T08:30:00Z", &ben),
        ("Primary", "2027-01-04T09:30:00Z", &ana),
        ("Primary", "2027-01-04T16:30:00Z", &ben),
        ("Primary", "2027-01-13T09:30:00Z", &ben),
        ("Primary", "2027-01-13T16:30:00Z", &ana),
        ("Primary", "2027-01-15T11:30:00Z", &ben),
        ("Primary", "2027-01-15T12:30:00Z", &ana),
        // In summer time, the hand-off stays at 09:00.
        ("Primary", "2027-07-05T06:30:00Z", &ana),
        ("Primary", "2027-07-05T07:30:00Z", &ben),
        ("Primary", "2027-06-01T07:00:00Z", &both),
        ("Days", "2027-01-04T12:00:00Z", &ana),
        ("Days", "2027-01-04T21:00:00Z", &none),
        ("Days", "2027-01-05T12:00:00Z", &ben),
    ] {
        let found = on_call(&rest, schedule, time).await;
        let found = if found.is_null() { json!([]) } else { found };
        assert_eq!(&found, expected, "{schedule} {time}");
    }
    let path = "/v1/notification/escalation-policies/Database";
    let policy = rest.get(path).await.ok()["policy"].clone();
    assert_eq!(policy["rounds"], 6);
    let contact = |name: &str| json!({"contactName": name});
    let schedule = |name: &str| json!({"scheduleName": name});
    assert_eq!(
        policy["steps"],
        json!([
            {"targets": [schedule("Primary")], "wait": "300s"},
            {"targets": [contact("ana"), schedule("Days")], "wait": "900s"},
            {"targets": [contact("ana"), contact("ben")], "wait": "300s"},
        ])
    );
    for rule in ["Prometheus", "Prometheus%20route%201"] {
        let rule = rest
            .get(&format!("/v1/notification/rules/{rule}"))
            .await
            .ok();
        assert_eq!(rule["rule"]["escalationPolicyName"], "Database", "{rule}");
    }
}

#[tokio::test]
async fn pagerduty_export_becomes_contacts_schedules_policies_and_rules() {
    let world = World::start();
    let report = import_files(&world, "pagerduty", include_str!("import/pagerduty.json"));
    for part in [
        "teams.json: teams: has no counterpart",
        "users.json: users[0].contact_methods[2]: ",
        "users.json: users[0].notification_rules: ",
        "schedules.json: schedules[1]: has no `schedule_layers`",
        "schedule-PS1.json: schedule.surprise: has no counterpart",
        "schedule-PS1.json: schedule.schedule_layers[2]: it is over",
        "schedule-PS1.json: schedule.overrides_subschedule: overrides are set",
        "escalation_policies.json: escalation_policies[0].escalation_rules[1].targets[1]: ",
        "services.json: services[0].auto_resolve_timeout: ",
        "services.json: services[0].integrations: create a key",
    ] {
        assert!(report.contains(&format!("\n  {part}")), "{part}\n{report}");
    }
    let rest = world.rest();
    // The upper layer covers the nights, from 22:00 to 06:00.
    for (time, expected) in [
        ("2027-01-06T17:00:00Z", "Ana"),
        ("2027-01-05T17:00:00Z", "Ben"),
        ("2027-01-07T04:00:00Z", "Ben"),
        ("2027-01-07T12:00:00Z", "Ana"),
        // A layer applies in February only, but its turns count from an earlier hand-off.
        ("2027-02-01T11:59:00Z", "Ben"),
        ("2027-02-01T12:01:00Z", "Ana"),
        ("2027-02-27T12:30:00Z", "Ana"),
        ("2027-03-01T12:01:00Z", "Ben"),
    ] {
        let found = on_call(&rest, "Primary", time).await;
        assert_eq!(found, json!([expected]), "{time}");
    }
    let policies = "/v1/notification/escalation-policies";
    let policy = rest.get(&format!("{policies}/Default")).await.ok();
    let policy = &policy["policy"];
    assert_eq!(policy["rounds"], 3);
    assert_eq!(policy["ackTimeout"], "1800s");
    assert_eq!(
        policy["steps"],
        json!([
            {"targets": [{"scheduleName": "Primary"}], "wait": "600s"},
            {"targets": [{"contactName": "Ben"}], "wait": "1200s"},
        ])
    );
    let rule = rest.get("/v1/notification/rules/Shop").await.ok();
    assert_eq!(rule["rule"]["escalationPolicyName"], "Default");
    assert_eq!(rule["rule"]["enabled"], false);
    let contact = rest.get("/v1/notification/contacts/Ana").await.ok();
    let variables = &contact["contact"]["methods"][0]["variables"];
    assert_eq!(variables["phone"], "+15551234567");
}

#[test]
fn invalid_export_error_names_its_location() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let table = [
        (
            "alertmanager",
            write("none.yml", "a: 1"),
            "route: is required",
        ),
        (
            "alertmanager",
            write("bad.yml", "route: ["),
            "is not YAML or JSON",
        ),
        (
            "alertmanager",
            write("secret.yml", "global: {smtp_auth_password: 's3cret"),
            "is not YAML or JSON",
        ),
        (
            "alertmanager",
            write("number.yml", "route: {match: {version: 1.10}}"),
            "route.match.version: expected a string; quote the number",
        ),
        (
            "alertmanager",
            write("receiver.yml", "route: {receiver: x}"),
            "route.receiver: expected a receiver name",
        ),
        (
            "alertmanager",
            write("matcher.yml", "route: {routes: [{matchers: ['a~b']}]}"),
            "route.routes[0].matchers[0]: expected a matcher",
        ),
        (
            "alertmanager",
            write("wait.yml", "route: {group_wait: soon}"),
            "route.group_wait: expected a duration",
        ),
        (
            "opsgenie",
            empty.to_str().unwrap().to_owned(),
            "has no .json files",
        ),
        (
            "pagerduty",
            folder.path().join("gone").display().to_string(),
            "cannot read",
        ),
    ];
    for (product, path, expected) in table {
        let command = process::command(folder.path(), ["import", product, &path]);
        let output = process::run(command);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(expected) && out.is_empty(), "{path}: {err}");
        assert!(!err.contains(SECRET), "{path}: {err}");
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

const RECEIVERS: usize = 6;
/// Labels and their values. An empty value omits the label.
const LABELS: [(&str, &[&str]); 5] = [
    ("alertname", &["Disk", "Latency", "Watchdog"]),
    (
        "severity",
        &["critical", "warning", "page", "info", "Error"],
    ),
    ("team", &["db", "web", "ops", ""]),
    ("service", &["foo1", "foo2", "bar", "b z", ""]),
    ("zone", &["eu", "us", "", ""]),
];
const PATTERNS: [&str; 7] = [
    "db|web",
    "foo.*",
    ".*",
    ".+",
    "(db|eu)?",
    "[a-z]+",
    "page|critical",
];

fn labels(chance: &mut Chance) -> BTreeMap<String, String> {
    let labels = LABELS.map(|(name, values)| (name.to_owned(), chance.of(values).to_owned()));
    labels
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

fn configuration(chance: &mut Chance, url: &str) -> Value {
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|at| json!({"name": format!("team {at}"), "webhook_configs": [{"url": url}]}))
        .collect();
    let mut route = route(chance, 3);
    let route = route.as_object_mut().unwrap();
    for matchers in ["matchers", "match", "match_re", "continue"] {
        route.remove(matchers);
    }
    route.insert("receiver".to_owned(), json!("team 0"));
    json!({"route": route, "receivers": receivers})
}

fn route(chance: &mut Chance, depth: usize) -> Value {
    let mut route = json!({"receiver": format!("team {}", chance.below(RECEIVERS))});
    if chance.below(3) == 0 {
        route["continue"] = json!(true);
    }
    let (mut matchers, mut texts, mut patterns) = (Vec::new(), json!({}), json!({}));
    for _ in 0..=chance.below(2) {
        let (name, values) = LABELS[chance.below(LABELS.len())];
        let value = chance.of(values);
        let pattern = chance.of(&PATTERNS);
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        match chance.below(6) {
            0 => matchers.push(format!("{name}!=\"{}\"", quoted(value))),
            1 => matchers.push(format!("{name}=~\"{pattern}\"")),
            2 => matchers.push(format!("{name}!~\"{pattern}\"")),
            3 => texts[name] = json!(value),
            4 => patterns[name] = json!(pattern),
            _ => matchers.push(format!("{name}=\"{}\"", quoted(value))),
        }
    }
    route["matchers"] = json!(matchers);
    route["match"] = texts;
    route["match_re"] = patterns;
    if depth > 0 {
        let inner = (0..chance.below(4)).map(|_| self::route(chance, depth - 1));
        route["routes"] = inner.collect();
    }
    route
}
