//! Tests of metrics: all are documented and have samples, the address and key of their page can be
//! set, and a real Prometheus raises an alert when a destination rejects all messages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use bellwether_proto::reference::{Block, Topic};
use bellwether_tests::{
    engine::Engine,
    eventually::eventually,
    process::{self, Service},
    programs::{Running, port, programs},
    receiver::{Receiver, Reply},
    rest::Rest,
    tree,
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const EVENTS: &str = "/v1/data-receiver/events";
const EXAMPLES: &str = "tests/examples/prometheus";

/// Returns the documented families with their labels: those of every service, or those that only a
/// service with a store in a database has.
fn documented_families_with(database: bool) -> BTreeMap<String, BTreeSet<String>> {
    let topic = Topic::find("metrics").expect("the topic exists");
    let words = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let mut is_of_database = false;
    let tables = topic.blocks().into_iter().filter_map(|block| match block {
        Block::Table(rows) => (std::mem::take(&mut is_of_database) == database).then_some(rows),
        Block::Paragraph(text) => {
            is_of_database = text.contains("PostgreSQL");
            None
        }
        _ => None,
    });
    let rows = tables.flat_map(|rows| rows.into_iter().skip(1));
    rows.map(|row| (row[0].trim_matches('`').to_owned(), words(&row[1])))
        .collect()
}

fn documented_families() -> BTreeMap<String, BTreeSet<String>> {
    documented_families_with(false)
}

/// Checks that a metrics page has every metric family of a service with a PostgreSQL store, except
/// those in `but`.
pub(crate) fn check_database(page: &str, but: &[&str]) {
    let reported = documented_families_with(true).into_keys();
    let reported: BTreeSet<_> = reported.filter(|it| !but.contains(&&**it)).collect();
    let shown: BTreeSet<_> = exposed_families(page).into_keys().collect();
    assert!(
        reported.len() > 5 && reported.is_subset(&shown),
        "{reported:?}\n{page}"
    );
    check(page);
}

/// Returns the families of a page that have samples, with their labels except `le`.
fn exposed_families(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let kinds = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let kinds = kinds.filter_map(|line| line.split_once(' '));
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let mut shown = BTreeMap::new();
    for (family, kind) in kinds {
        let name = match kind {
            "histogram" => format!("{family}_bucket"),
            _ => family.to_owned(),
        };
        let of_it = |line: &&str| {
            let rest = line.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        for sample in samples.clone().filter(of_it) {
            let labels = sample
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once('}'));
            let labels = labels.map_or("", |(labels, _)| labels).split(',');
            let names = labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
            let labels: &mut BTreeSet<String> = shown.entry(family.to_owned()).or_default();
            labels.extend(names.filter(|name| name != "le"));
        }
    }
    shown
}

/// Returns the value of the sample whose line begins with this text.
fn value(page: &str, sample: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(sample));
    let line = line.unwrap_or_else(|| panic!("no {sample}\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Creates a rule that notifies a URL about every error of a disk.
async fn notify_of_disks(rest: &Rest, url: &str) {
    for (kind, draft) in [
        ("triggers", samples::trigger("disk", "disk")),
        ("destinations", samples::webhook("hook", url)),
        ("rules", samples::rule("tell", "disk", "hook", "")),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
}

fn disk(host: &str) -> Value {
    samples::event("disk", host, "SEVERITY_ERROR", "the disk is full")
}

/// Creates held events: one opens and closes under a silence, another stays open until the silence
/// ends, and a third is reported as a group.
async fn hold_some(rest: &Rest) {
    let mut grouping = samples::rule("tell of logs", "logs", "hook", "");
    grouping["group"] = json!({"by": ["name"], "wait": "0s"});
    let silence = json!({
        "name": "disks",
        "reason": "they are changed",
        "ruleNames": ["tell"],
        "span": {"endTime": samples::in_seconds(3_600)},
    });
    for (kind, draft) in [
        ("triggers", samples::trigger("logs", "log")),
        ("rules", grouping),
        ("silences", silence),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
    let mut over = disk("c");
    let log = samples::event("log", "a", "SEVERITY_ERROR", "the log is full");
    let list = samples::events(&[disk("d"), over.clone(), log]);
    rest.post(EVENTS, &list).await.ok();
    over["status"] = json!("STATUS_CLOSED");
    rest.post(EVENTS, &samples::events(&[over])).await.ok();
    let expire = "/v1/notification/silences/disks:expire";
    rest.post(expire, &json!({})).await.ok();
}

const COUNTED: [(&str, f64); 21] = [
    ("bellwether_events_accepted_total{dialect=\"native\"}", 7.0),
    (
        "bellwether_events_deduplicated_total{dialect=\"native\"}",
        2.0,
    ),
    (
        "bellwether_events_refused_total{dialect=\"native\",code=\"invalid_argument\"}",
        1.0,
    ),
    ("bellwether_events_replayed_total{dialect=\"native\"}", 3.0),
    ("bellwether_notifications_total{type=\"webhook\"}", 4.0),
    ("bellwether_delivery_seconds_count{type=\"webhook\"}", 4.0),
    (
        "bellwether_attempts_total{type=\"webhook\",outcome=\"delivered\"}",
        4.0,
    ),
    (
        "bellwether_test_sends_total{type=\"webhook\",state=\"delivered\"}",
        1.0,
    ),
    ("bellwether_refusals_total{why=\"key\"}", 1.0),
    ("bellwether_pending", 0.0),
    ("bellwether_due_overdue", 0.0),
    ("bellwether_due_oldest_seconds", 0.0),
    ("bellwether_silences_active", 0.0),
    ("bellwether_holds_total{kind=\"silence\"}", 2.0),
    ("bellwether_skipped_total{kind=\"silence\"}", 1.0),
    ("bellwether_released_total", 2.0),
    ("bellwether_group_messages_total", 1.0),
    ("bellwether_group_members_sum", 1.0),
    ("bellwether_destination_waiting{destination=\"hook\"}", 0.0),
    ("bellwether_destination_paused{destination=\"hook\"}", 0.0),
    (
        "bellwether_calls_total{method=\"bellwether.v1.RuleService/CreateRule\",code=\"ok\"}",
        2.0,
    ),
];

#[tokio::test]
async fn every_metric_is_documented_and_recorded_and_passes_promtool() {
    if Engine::only_in_a_folder() {
        return;
    }
    let receiver = Receiver::start().await;
    let monitor = Receiver::start().await;
    let settings = format!("[heartbeat]\nurl = \"{}\"\n", monitor.url("/"));
    let world = World::with_settings(&settings);
    let rest = world.rest();
    notify_of_disks(&rest, &receiver.url("/hook")).await;
    let nameless = json!({"summary": "has no name"});
    let list = samples::events(&[disk("a"), disk("b"), disk("a"), nameless]);
    for _ in 0..2 {
        let key = [("idempotency-key", "once")];
        let sent = rest.try_send(Method::POST, EVENTS, &key, list.to_string());
        sent.await.unwrap().ok();
    }
    let test = json!({"name": "hook"});
    rest.post("/v1/notification/destinations:test", &test)
        .await
        .ok();
    rest.with_key(Some("wrong"))
        .get("/v1/notification/rules")
        .await;
    hold_some(&rest).await;
    let delivered = async || {
        let page = rest.get("/metrics").await.text();
        let sample = "bellwether_deliveries_total{type=\"webhook\",state=\"delivered\"} 4";
        page.contains(sample).then_some(page)
    };
    let page = eventually("all messages to be counted", delivered).await;

    assert_eq!(exposed_families(&page), documented_families(), "{page}");
    for (sample, expected) in COUNTED {
        let found = value(&page, sample);
        assert!((found - expected).abs() < f64::EPSILON, "{sample} {found}");
    }
    assert!(value(&page, "bellwether_matches_total") >= 2.0);
    assert!(value(&page, "bellwether_store_bytes") > 0.0);

    check(&page);
}

fn check(page: &str) {
    let Some([promtool]) = programs(["promtool"]) else {
        return;
    };
    let mut tool = Command::new(promtool);
    tool.args(["check", "metrics"]).stdin(Stdio::piped());
    tool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().unwrap();
    let mut input = tool.stdin.take().unwrap();
    input.write_all(page.as_bytes()).unwrap();
    drop(input);
    let output = tool.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
}

#[tokio::test]
async fn metrics_use_their_own_address_and_key_if_configured() {
    let settings = "[metrics]\nlisten = \"127.0.0.1:0\"\nkey = \"secret-of-metrics\"";
    let world = World::with_settings(settings);
    assert_eq!(world.rest().get("/metrics").await.status, 404);
    let metrics = Rest::new(world.service().address("metrics"), None);
    for (key, status) in [
        (None, 401),
        (Some("wrong"), 401),
        (Some(world.admin_key().as_str()), 401),
        (Some("secret-of-metrics"), 200),
    ] {
        let answer = metrics.with_key(key).get("/metrics").await;
        assert_eq!(answer.status, status, "{key:?}");
        assert_eq!(
            answer.text().contains("bellwether_build_info{"),
            status == 200
        );
    }
    let other = metrics.with_key(Some("secret-of-metrics"));
    assert_eq!(other.get("/v1/notification/rules").await.status, 404);
    assert!(!world.service().log().contains("secret-of-metrics"));

    // A key protects the page at its default address.
    let world = World::with_settings("[metrics]\nkey = \"secret-of-metrics\"");
    let rest = world.rest();
    let refused = rest.get("/metrics").await;
    assert_eq!(refused.status, 401);
    assert!(refused.text().contains("a key is required for the metrics"));
    let shown = rest
        .with_key(Some("secret-of-metrics"))
        .get("/metrics")
        .await;
    assert_eq!(shown.status, 200);
    assert!(
        shown
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
}

#[tokio::test]
async fn standalone_backend_and_gateway_expose_their_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let start = |arguments: &[&str], log: &str| {
        let command = process::command(folder.path(), arguments);
        Service::start(command, &folder.path().join(log))
    };
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let backend = start(
        &[
            "backend",
            "--data-dir",
            data_dir,
            "--grpc-listen",
            "127.0.0.1:0",
        ],
        "backend.log",
    );
    let page = Rest::new(backend.address("grpc"), None)
        .get("/metrics")
        .await;
    assert_eq!(page.status, 200);
    let page = page.text();
    assert!(page.contains("bellwether_store_commits_total") && !page.contains("_gateway_"));

    let address = format!("http://{}", backend.address("grpc"));
    let gateway = start(
        &[
            "gateway",
            "--backend",
            &address,
            "--rest-listen",
            "127.0.0.1:0",
        ],
        "gateway.log",
    );
    let page = Rest::new(gateway.address("rest"), None)
        .get("/metrics")
        .await;
    let page = page.text();
    assert!(page.contains("bellwether_gateway_connections_total") && !page.contains("_store_"));
}

#[test]
fn alert_rules_and_dashboard_use_existing_metrics() {
    let reported = documented_families();
    let read = |name| fs::read_to_string(tree::root().join(EXAMPLES).join(name)).unwrap();
    let board: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let of_panels = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<String> = of_panels
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    assert!(queries.len() > 15, "{queries:?}");
    queries.push(read("alerts.yml"));
    for text in queries {
        let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        let of_ours = |word: &&str| word.starts_with("bellwether_") || word.starts_with("process_");
        for name in words.filter(of_ours) {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(reported.contains_key(family), "{name} in {text}");
        }
    }
    let Some([promtool]) = programs(["promtool"]) else {
        return;
    };
    let mut check = Command::new(promtool);
    check.args(["check", "rules"]);
    let output = check
        .arg(tree::root().join(EXAMPLES).join("alerts.yml"))
        .output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
}

#[test]
fn every_shipped_alert_passes_its_promtool_test() {
    let folder = tree::root().join(EXAMPLES);
    let names = |file: &str, key: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let after = text.split(key).skip(1);
        let names = after.map(|rest| rest.split(['\n', ',', '}']).next().unwrap());
        names.map(|name| name.trim().to_owned()).collect()
    };
    assert_eq!(
        names("alerts.yml", "- alert:"),
        names("alerts_test.yml", "alertname:")
    );
    let Some([promtool]) = programs(["promtool"]) else {
        return;
    };
    let output = Command::new(promtool)
        .args(["test", "rules", "alerts_test.yml"])
        .current_dir(folder)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success(), "{printed}");
}

#[tokio::test]
async fn counters_with_known_labels_start_at_zero() {
    let world = World::start();
    let page = world.rest().get("/metrics").await.text();
    let counters = page.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        (kind == "counter").then_some(name)
    });
    for name in counters {
        let has_series = page.lines().any(|line| line.starts_with(name));
        assert!(has_series, "{name} has no series");
    }
    for series in [
        "bellwether_deliveries_total{type=\"slack\",state=\"dead\"}",
        "bellwether_events_accepted_total{dialect=\"prometheus\"}",
        "bellwether_events_refused_total{dialect=\"native\",code=\"resource_exhausted\"}",
        "bellwether_events_refused_total{dialect=\"alertmanager\",code=\"unavailable\"}",
        "bellwether_attempts_total{type=\"webhook\",outcome=\"unreachable\"}",
        "bellwether_attempt_seconds_count{type=\"email\"}",
        "bellwether_refusals_total{why=\"key\"}",
        "bellwether_holds_total{kind=\"silence\"}",
        "bellwether_pings_total{outcome=\"unreachable\"}",
        "bellwether_calls_total{method=\"bellwether.v1.RuleService/CreateRule\",code=\"internal\"}",
        "bellwether_gateway_requests_total{operation=\"bellwether.v1.RuleService/CreateRule\",code=\"500\"}",
    ] {
        let line = format!("{series} 0\n");
        assert!(page.contains(&line), "{series} is missing");
    }
}

#[tokio::test]
async fn prometheus_alerts_when_a_destination_fails() {
    let Some([prometheus]) = programs(["prometheus"]) else {
        return;
    };
    let receiver = Receiver::with_rule(|_| Reply::status(500)).await;
    let world = World::with_settings("[metrics]\nkey = \"secret-of-metrics\"");
    let rest = world.rest();
    notify_of_disks(&rest, &receiver.url("/hook")).await;
    let events: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(disk).into();
    rest.post(EVENTS, &samples::events(&events)).await.ok();

    let folder = tempfile::tempdir().unwrap();
    let rules = tree::root().join(EXAMPLES).join("alerts.yml");
    // Use the rules of the example, without their delays.
    let rules = fs::read_to_string(rules).unwrap();
    let rules: String = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with("for: "))
        .map(|line| line.to_owned() + "\n")
        .collect();
    fs::write(folder.path().join("alerts.yml"), rules).unwrap();
    let target = world.service().address("rest");
    let settings = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [alerts.yml]\n\
         scrape_configs:\n\
         - job_name: bellwether\n  \
           authorization: {{credentials: secret-of-metrics}}\n  \
           static_configs: [{{targets: [\"{target}\"]}}]\n"
    );
    fs::write(folder.path().join("prometheus.yml"), settings).unwrap();
    let address = format!("127.0.0.1:{}", port());
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address={address}"),
    ];
    let _prometheus = Running::start(folder.path(), &prometheus, &arguments);
    let prometheus = Rest::new(&address, None);
    let firing = async || {
        let response = prometheus.try_send(Method::GET, "/api/v1/alerts", &[], "");
        let found = response.await.ok()?;
        let found: Value = serde_json::from_slice(&found.body).ok()?;
        let alerts = found["data"]["alerts"].as_array()?;
        let is_it = |alert: &&Value| {
            let labels = &alert["labels"];
            labels["alertname"] == "BellwetherDestinationFailing"
                && labels["destination"] == "hook"
                && alert["state"] == "firing"
        };
        alerts.iter().find(is_it).cloned()
    };
    let alert = eventually("the alert to fire", firing).await;
    assert_eq!(
        alert["annotations"]["summary"],
        "Deliveries to hook are failing"
    );
}

#[tokio::test]
async fn open_occurrences_are_counted_by_severity() {
    let world = World::start();
    let rest = world.rest();
    let send = async |host: &str, severity: &str, status: &str| {
        let mut event = samples::event("full", host, severity, "it is full");
        event["status"] = json!(status);
        rest.post(EVENTS, &samples::events(&[event])).await.ok();
    };
    let counted = async |severity: &str, count: u32| {
        let line = format!("bellwether_open_occurrences{{severity=\"{severity}\"}} {count}");
        eventually(&line, async || {
            let page = rest.get("/metrics").await.text();
            page.lines().any(|it| it == line).then_some(())
        })
        .await;
    };
    for host in ["a", "b", "c"] {
        send(host, "SEVERITY_CRITICAL", "STATUS_OPEN").await;
    }
    send("d", "SEVERITY_WARNING", "STATUS_OPEN").await;
    counted("critical", 3).await;
    counted("warning", 1).await;
    send("a", "SEVERITY_CRITICAL", "STATUS_CLOSED").await;
    // An event whose severity rises is counted only under its new severity.
    send("d", "SEVERITY_CRITICAL", "STATUS_OPEN").await;
    counted("critical", 3).await;
    counted("warning", 0).await;
}
