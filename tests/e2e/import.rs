//! Moving here: the configuration of other products as documents, applied to a real service.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Output},
};

use bellwether_tests::{process, programs::programs, receiver::Receiver, rest::Rest, world::World};
use serde_json::{Value, json};

/// A configuration with one of everything that has a counterpart, and much that has none.
const ALERTMANAGER: &str = include_str!("import/alertmanager.yml");
/// What stands for a secret in it.
const SECRET: &str = "s3cret";

/// Imports a file or folder; answers the documents and the report.
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

/// Applies documents in the place of those imported before, with these variables.
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

/// The variables that a report names.
fn variables(report: &str) -> Vec<&str> {
    let lines = report.lines().map(str::trim);
    let names = lines.filter(|it| it.starts_with("BELLWETHER_SECRET_"));
    names.filter_map(|it| Some(it.split_once(':')?.0)).collect()
}

/// The receivers of `amtool` for labels.
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

/// The destinations that the service notifies of open alerts, by the label `set` of each.
async fn notified(rest: &Rest, batch: usize) -> BTreeMap<String, BTreeSet<String>> {
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

/// Compares the receivers of alerts in the service with those of `amtool`.
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
    let found = notified(&rest, batch).await;
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
async fn a_configuration_of_alertmanager_becomes_documents_that_apply() {
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
        "receivers[1].opsgenie_configs[0]: ",
        "receivers[2].pagerduty_configs[0].details: ",
        "receivers[4].webhook_configs[0].max_alerts: ",
        "inhibit_rules[1]: ",
        "time_intervals[2].time_intervals[0].days_of_month: ",
        "route.routes[0].surprise: has no counterpart",
        "route.routes[3].routes[1]: no alert reaches it",
    ] {
        assert!(report.contains(&format!("\n  {part}")), "{part}\n{report}");
    }
    let names = variables(&report);
    assert!(names.len() >= 5, "{report}");
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
async fn the_routes_of_an_imported_configuration_have_the_receivers_that_amtool_finds() {
    let Some([amtool]) = programs(["amtool"]) else {
        return;
    };
    let world = World::start();
    let receiver = Receiver::start().await;
    let asked = std::env::var_os("BELLWETHER_TEST_ROUTES");
    let asked = asked.map(|it| it.to_string_lossy().parse().unwrap());
    let configurations: usize = asked.unwrap_or(15);
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

/// Numbers that look random and are the same in every run.
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
/// Labels and their values; the empty one leaves the label out.
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
