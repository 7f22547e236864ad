//! A real Prometheus with a real Alertmanager, and `amtool`.

use std::{fs, path::Path, process::Command, time::Duration};

use bellwether_tests::{
    eventually::eventually,
    process::signal,
    programs::{Running, port, programs},
    receiver::Receiver,
    rest::Rest,
    tree,
    world::World,
};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{events, sender};
use crate::samples;

/// Files of a Prometheus that sends an alert to this service and to an Alertmanager, which forwards
/// it to this service.
struct Stage {
    folder: tempfile::TempDir,
    prometheus: u16,
    alertmanager: u16,
}

impl Stage {
    fn new(address: &str, key: &str) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            prometheus: port(),
            alertmanager: port(),
        };
        // Use the examples with this test's addresses and key, and without delays.
        for name in ["prometheus.yml", "alertmanager.yml"] {
            let path = tree::root().join("tests/examples/prometheus").join(name);
            let text = fs::read_to_string(path).unwrap();
            let alertmanager = format!("127.0.0.1:{}", stage.alertmanager);
            let text = text
                .replace("127.0.0.1:8480", address)
                .replace("127.0.0.1:9093", &alertmanager)
                .replace("KEY", key)
                .replace("group_wait: 10s", "group_wait: 1s")
                .replace("group_interval: 30s", "group_interval: 1s");
            stage.write(name, &text);
        }
        stage.rule(true);
        stage
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn rule(&self, fires: bool) {
        let most = if fires { 90 } else { 99 };
        self.write(
            "rules.yml",
            &format!(
                "groups:\n\
             - name: disks\n  \
               interval: 1s\n  \
               rules:\n  \
               - alert: DiskFull\n    \
                 expr: vector(97) > {most}\n    \
                 labels: {{severity: critical, host: db-1}}\n    \
                 annotations: {{summary: 'disk of db-1 is full', description: '97 % used'}}\n"
            ),
        );
    }

    fn start(&self, prometheus: &Path, alertmanager: &Path) -> (Running, Running) {
        let text = |text: &str| text.to_owned();
        let alertmanager = Running::start(
            self.folder.path(),
            alertmanager,
            &[
                text("--config.file=alertmanager.yml"),
                text("--storage.path=alertmanager"),
                text("--cluster.listen-address="),
                format!("--web.listen-address=127.0.0.1:{}", self.alertmanager),
            ],
        );
        let prometheus = Running::start(
            self.folder.path(),
            prometheus,
            &[
                text("--config.file=prometheus.yml"),
                text("--storage.tsdb.path=prometheus"),
                text("--rules.alert.resend-delay=1s"),
                format!("--web.listen-address=127.0.0.1:{}", self.prometheus),
            ],
        );
        (prometheus, alertmanager)
    }
}

/// Creates a rule that notifies a URL when full disks open or close.
async fn notify_of_disks(rest: &Rest, url: &str) {
    let clause = json!({"equals": {"field": "name", "stringVal": "DiskFull"}});
    let trigger = json!({"name": "disks", "type": {"event": {"query": {"clause": clause}}}});
    let mut rule = samples::rule("disks", "disks", "hook", "");
    rule["sendUpdates"] = json!(true);
    for (kind, draft) in [
        ("triggers", trigger),
        ("destinations", samples::webhook("hook", url)),
        ("rules", rule),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
}

#[tokio::test]
async fn prometheus_alert_is_notified_on_firing_and_resolving() {
    let names = ["prometheus", "prometheus-alertmanager"];
    let Some([prometheus, alertmanager]) = programs(names) else {
        return;
    };
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    notify_of_disks(&rest, &receiver.url("/hook")).await;
    let key = sender(&world, "prometheus", &["prometheus", "alertmanager"]);
    let stage = Stage::new(world.service().address("rest"), &key);
    let (prometheus, _alertmanager) = stage.start(&prometheus, &alertmanager);

    let reported = async |clear: bool| {
        let find = async || {
            let received = receiver.received();
            let messages = received
                .iter()
                .map(bellwether_tests::receiver::Received::json);
            messages.into_iter().find(|it| it["clear"] == clear)
        };
        eventually("a message arrives", find).await
    };
    let opening: Value = reported(false).await;
    assert_eq!(opening["event"]["summary"], "disk of db-1 is full");
    assert_eq!(opening["event"]["severity"], 5);
    let both = async || {
        let metrics = rest.get("/metrics").await.text();
        let ways = [
            "prometheus/api/v2/alerts",
            "alertmanager/v1/intake/alertmanager",
        ];
        let is_accepted = |way: &str| metrics.contains(&format!("\"{way}\",code=\"200\"}}"));
        ways.into_iter().all(is_accepted).then_some(())
    };
    eventually("the alert to arrive by both paths", both).await;
    let found = events(&rest, "DiskFull").await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].0, "host=db-1 severity=critical");
    assert_eq!(found[0].1["status"], "STATUS_OPEN");

    stage.rule(false);
    // Prometheus reloads its files.
    signal("-HUP", prometheus.id());
    let closing = reported(true).await;
    assert_eq!(closing["event"]["id"], opening["event"]["id"]);
    assert_eq!(closing["event"]["status"], 3);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one journey")]
async fn alertmanager_opens_updates_and_closes_an_opsgenie_alert() {
    let Some([alertmanager]) = programs(["prometheus-alertmanager"]) else {
        return;
    };
    let world = World::start();
    let rest = world.rest();
    let key = sender(&world, "genie", &["opsgenie"]);
    let address = world.service().address("rest");
    let settings = format!(
        "route: {{receiver: us, group_by: [alertname, host], group_wait: 1s, group_interval: 1s, \
         repeat_interval: 1s}}\n\
         receivers:\n\
         - name: us\n  \
           opsgenie_configs:\n  \
           - api_url: http://{address}/\n    \
             api_key: {key}\n    \
             update_alerts: true\n    \
             message: '{{{{ .CommonAnnotations.summary }}}}'\n    \
             description: '{{{{ .CommonAnnotations.description }}}}'\n"
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("alertmanager.yml"), settings).unwrap();
    let listen = port();
    let arguments = [
        "--config.file=alertmanager.yml".to_owned(),
        "--storage.path=data".to_owned(),
        "--cluster.listen-address=".to_owned(),
        format!("--web.listen-address=127.0.0.1:{listen}"),
    ];
    let _running = Running::start(folder.path(), &alertmanager, &arguments);
    let source = Rest::new(&format!("127.0.0.1:{listen}"), None);
    let start = Timestamp::now();
    let send = async |summary: &str, description: &str, end: Option<Timestamp>| {
        let mut alert = json!({
            "labels": {"alertname": "DiskFull", "host": "db-1"},
            "annotations": {"summary": summary, "description": description},
            "startsAt": start.to_string(),
        });
        if let Some(end) = end {
            alert["endsAt"] = json!(end.to_string());
        }
        let alerts = json!([alert]).to_string();
        let json = [("content-type", "application/json")];
        let sent = async || {
            let path = "/api/v2/alerts";
            let sent = source.try_send(Method::POST, path, &json, alerts.clone());
            sent.await.ok().filter(|it| it.status == 200)
        };
        eventually("Alertmanager to accept the alert", sent).await;
    };
    let shown = async |summary: &str, body: &str, status: &str| {
        let find = async || {
            let found = events(&rest, "opsgenie").await;
            let [(_, event)] = &*found else { return None };
            let is_shown =
                event["summary"] == summary && event["body"] == body && event["status"] == status;
            is_shown.then(|| event.clone())
        };
        eventually(&format!("{summary}, {body}, {status}"), find).await
    };
    send("disk of db-1 is full", "97 % used", None).await;
    let opened = shown("disk of db-1 is full", "97 % used", "STATUS_OPEN").await;
    send("disk of db-1 is fuller", "99 % used", None).await;
    let updated = shown("disk of db-1 is fuller", "99 % used", "STATUS_OPEN").await;
    assert_eq!(updated["id"], opened["id"]);
    let end = Some(Timestamp::now());
    send("disk of db-1 is fuller", "99 % used", end).await;
    let closed = shown("disk of db-1 is fuller", "99 % used", "STATUS_CLOSED").await;
    assert_eq!(closed["id"], opened["id"]);
    // Alertmanager counts a notification as failed if one of its requests is rejected.
    let metrics = source.get("/metrics").await.text();
    let failed = metrics.lines().filter(|line| {
        line.starts_with("alertmanager_notifications_failed_total{integration=\"opsgenie\"")
    });
    let failed: Vec<_> = failed.filter(|line| !line.ends_with(" 0")).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn alerts_expire_without_their_prometheus_even_after_a_kill() {
    let mut world = World::start();
    let key = sender(&world, "prometheus", &["prometheus"]);
    let send = async |world: &World, host: &str, lasts: Duration| {
        let alert = json!({
            "labels": {"alertname": "DiskFull", "host": host},
            "endsAt": (Timestamp::now() + lasts).to_string(),
        });
        let prometheus = world.rest().with_key(Some(&key));
        let answer = prometheus.post("/api/v2/alerts", &json!([alert])).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let short = Duration::from_secs(5);
    for host in ["gone", "here"] {
        send(&world, host, short).await;
    }
    // The alert is open, and its expiry time is stored.
    let open = events(&world.rest(), "DiskFull").await;
    assert_eq!(open[0].1["closeReason"], Value::Null, "{open:#?}");
    assert!(open[0].1["expireTime"].is_string(), "{open:#?}");
    send(&world, "here", Duration::from_secs(3_600)).await;
    world.kill();
    world.start_again();
    let rest = world.rest();
    let ended = async || {
        let found = events(&rest, "DiskFull").await;
        (found[0].1["status"] == "STATUS_CLOSED").then_some(found)
    };
    let found = eventually("the alert to end", ended).await;
    assert_eq!(found[0].0, "host=gone");
    assert_eq!(found[0].1["closeReason"], "EXPIRED");
    let close: i64 = found[0].1["closeTime"].as_str().unwrap().parse().unwrap();
    let due: i64 = open[0].1["expireTime"].as_str().unwrap().parse().unwrap();
    assert!(close >= due, "{close} {due}");
    assert_eq!(found[1].1["status"], "STATUS_OPEN");
}

struct Replica {
    folder: tempfile::TempDir,
    listen: u16,
    running: Option<Running>,
}

impl Replica {
    fn start(name: &str, program: &Path, address: &str, key: &str) -> Self {
        let mut replica = Self {
            folder: tempfile::tempdir().unwrap(),
            listen: port(),
            running: None,
        };
        let settings = format!(
            "global:\n  evaluation_interval: 1s\n  external_labels: {{replica: {name}}}\n\
             rule_files: [rules.yml]\n\
             alerting:\n  alertmanagers:\n  - static_configs: [{{targets: ['{address}']}}]\n    \
               authorization: {{credentials: {key}}}\n"
        );
        replica.write("prometheus.yml", &settings);
        replica.rule(true);
        let text = |text: &str| text.to_owned();
        replica.running = Some(Running::start(
            replica.folder.path(),
            program,
            &[
                text("--config.file=prometheus.yml"),
                text("--storage.tsdb.path=prometheus"),
                text("--rules.alert.resend-delay=1s"),
                format!("--web.listen-address=127.0.0.1:{}", replica.listen),
            ],
        ));
        replica
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn rule(&self, fires: bool) {
        let most = if fires { 90 } else { 99 };
        self.write(
            "rules.yml",
            &format!(
                "groups:\n- name: disks\n  interval: 1s\n  rules:\n  - alert: DiskFull\n    \
                 expr: vector(97) > {most}\n    labels: {{severity: critical, host: db-1}}\n"
            ),
        );
    }

    async fn end(&self) {
        self.rule(false);
        signal("-HUP", self.running.as_ref().unwrap().id());
        let own = Rest::new(&format!("127.0.0.1:{}", self.listen), None);
        let ended = async || {
            let alerts = own.get("/api/v1/alerts").await.json()["data"]["alerts"].clone();
            (alerts == json!([])).then_some(())
        };
        eventually("the alert to end", ended).await;
    }
}

#[tokio::test]
async fn alert_from_a_prometheus_pair_notifies_once() {
    let Some([program]) = programs(["prometheus"]) else {
        return;
    };
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    notify_of_disks(&rest, &receiver.url("/hook")).await;
    let key = sender(&world, "pair", &["prometheus"]);
    let address = world.service().address("rest");
    let replicas = ["a", "b"].map(|name| Replica::start(name, &program, address, &key));
    let count = async || {
        let found = events(&rest, "DiskFull").await;
        let text = found.first()?.1["count"].as_str()?.to_owned();
        text.parse::<u64>().ok()
    };
    // Both Prometheus servers report the alert once per second.
    let more = async |than: u64| {
        let counted = async || count().await.filter(|it| *it >= than);
        eventually("more reports", counted).await
    };
    more(6).await;
    replicas[0].end().await;
    let now = count().await.unwrap();
    // One server repeats the resolution, the other one the firing alert.
    more(now + 20).await;
    let found = events(&rest, "DiskFull").await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        (&*found[0].0, &found[0].1["status"]),
        ("host=db-1 severity=critical", &json!("STATUS_OPEN"))
    );
    assert_eq!(receiver.received().len(), 1);
    replicas[1].end().await;
    let closed = async || {
        let found = events(&rest, "DiskFull").await;
        (found[0].1["status"] == "STATUS_CLOSED").then_some(found[0].1["closeReason"].clone())
    };
    assert_eq!(eventually("the alert to close", closed).await, "SENDER");
    let now = count().await.unwrap();
    more(now + 10).await;
    let messages = async || (receiver.received().len() == 2).then_some(());
    eventually("the closing to arrive", messages).await;
    assert_eq!(receiver.received()[1].json()["clear"], true);
}

#[tokio::test]
async fn amtool_adds_and_resolves_an_alert() {
    let Some([amtool]) = programs(["amtool"]) else {
        return;
    };
    let world = World::start();
    let key = sender(&world, "amtool", &["prometheus"]);
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("http.yml");
    fs::write(
        &settings,
        format!("authorization: {{credentials: {key}}}\n"),
    )
    .unwrap();
    let address = format!("http://{}", world.service().address("rest"));
    let amtool = |arguments: &[&str]| {
        let output = Command::new(&amtool)
            .arg(format!("--alertmanager.url={address}"))
            .arg(format!("--http.config.file={}", settings.display()))
            .args(arguments)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let add = ["alert", "add", "DiskFull", "host=db-1", "severity=major"];
    let (done, text) = amtool(&[&add[..], &["--annotation=summary=full"]].concat());
    assert!(done, "{text}");
    let rest = world.rest();
    let open = events(&rest, "DiskFull").await;
    let state = |occurrence: &Value| json!([occurrence["severity"], occurrence["status"]]);
    assert_eq!(open[0].0, "host=db-1 severity=major");
    assert_eq!(state(&open[0].1), json!(["SEVERITY_ERROR", "STATUS_OPEN"]));
    let (done, text) = amtool(&[&add[..], &["--end=2026-01-01T00:00:00Z"]].concat());
    assert!(done, "{text}");
    let closed = events(&rest, "DiskFull").await;
    assert_eq!(
        state(&closed[0].1),
        json!(["SEVERITY_ERROR", "STATUS_CLOSED"])
    );
    // The client receives the reason for the rejection.
    fs::write(&settings, "authorization: {credentials: wrong}\n").unwrap();
    let (done, text) = amtool(&add);
    assert!(!done && text.contains("401"), "{text}");
}
