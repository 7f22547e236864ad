//! Alertmanager's API v2, as used by the real `amtool`, karma and Grafana's Alertmanager data
//! source.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use bellwether_tests::{
    eventually::eventually,
    programs::programs,
    receiver::Receiver,
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const SILENCES: &str = "/v1/notification/silences";

/// Creates three disk events of two severities that a rule sends to `hook`, and a queue event that
/// no rule matches.
async fn fill(rest: &Rest, receiver: &Receiver) {
    samples::disks_to_hook(rest, receiver).await;
    let rule = samples::rule("page", "disk", "hook", "");
    rest.post("/v1/notification/rules", &rule).await.ok();
    let mut events: Vec<_> = [("db-1", "CRITICAL"), ("db-2", "ERROR"), ("web-1", "ERROR")]
        .into_iter()
        .map(|(host, severity)| {
            let severity = format!("SEVERITY_{severity}");
            samples::event("DiskFull", host, &severity, "the disk is full")
        })
        .collect();
    events[0]["body"] = json!("97 % used");
    events[0]["metadataFields"] = json!({
        "team": "storage", "used": 97, "generatorURL": "http://prometheus.example.net/graph",
        "annotations": {"runbook_url": "http://wiki.example.net/disk"},
    });
    events.push(samples::event("Queue", "mq-1", "SEVERITY_WARNING", "long"));
    let body = samples::events(&events);
    let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
    assert_eq!(answer["succeeded"], 4, "{answer}");
}

struct Amtool {
    program: PathBuf,
    folder: tempfile::TempDir,
    address: String,
}

impl Amtool {
    fn of(world: &World, key: &str) -> Option<Self> {
        let [program] = programs(["amtool"])?;
        let folder = tempfile::tempdir().unwrap();
        // The key is sent as the password, for tools that only support user and password.
        let settings = format!("basic_auth: {{username: any, password: {key}}}\n");
        fs::write(folder.path().join("http.yml"), settings).unwrap();
        Some(Self {
            program,
            folder,
            address: format!("http://{}", world.service().address("rest")),
        })
    }

    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let settings = self.folder.path().join("http.yml");
        let output = Command::new(&self.program)
            .env("HOME", self.folder.path())
            .arg(format!("--alertmanager.url={}", self.address))
            .arg(format!("--http.config.file={}", settings.display()))
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            Ok(text.trim().to_owned())
        } else {
            Err(text + &String::from_utf8_lossy(&output.stderr))
        }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.run(&[arguments, &["-o", "json"]].concat()).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the hosts of the matching alerts. The service's own event about a silence is also an
    /// alert, but has no host.
    fn hosts(&self, arguments: &[&str]) -> Vec<String> {
        let found = self.json(&[&["alert", "query"], arguments].concat());
        let alerts = found.as_array().unwrap().iter();
        let hosts = alerts.filter_map(|it| Some(it["labels"]["host"].as_str()?.to_owned()));
        let hosts: BTreeSet<_> = hosts.collect();
        hosts.into_iter().collect()
    }
}

#[tokio::test]
async fn amtool_queries_alerts_and_adds_updates_and_expires_silences() {
    let world = World::start();
    let key = world.client("an-operator", "operator");
    let Some(amtool) = Amtool::of(&world, &key) else {
        return;
    };
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    fill(&rest, &receiver).await;

    let table: [(&[&str], &[&str]); 9] = [
        (&[], &["db-1", "db-2", "mq-1", "web-1"]),
        (&["DiskFull"], &["db-1", "db-2", "web-1"]),
        (&["alertname=DiskFull", "host=~db-.*"], &["db-1", "db-2"]),
        (&["host!~db-.*", "alertname!=Queue"], &["web-1"]),
        (&["severity=critical"], &["db-1"]),
        (&["severity=~error|warning"], &["db-2", "mq-1", "web-1"]),
        (&["host=DB-1"], &[]),
        (&["zone=", "host=db-1"], &["db-1"]),
        (&["--receiver=hook"], &["db-1", "db-2", "web-1"]),
    ];
    for (arguments, expected) in table {
        assert_eq!(amtool.hosts(arguments), expected, "{arguments:?}");
    }
    let found = amtool.json(&["alert", "query", "host=db-1"]);
    assert_eq!(found[0]["annotations"]["description"], "97 % used");
    assert_eq!(found[0]["annotations"]["team"], "storage");
    assert_eq!(
        found[0]["annotations"]["runbook_url"],
        "http://wiki.example.net/disk"
    );
    assert_eq!(
        found[0]["generatorURL"],
        "http://prometheus.example.net/graph"
    );
    assert_eq!(found[0]["receivers"], json!([{"name": "hook"}]));

    let add = ["silence", "add", "--author=ana", "--comment=db-1 is moved"];
    let add = [
        &add[..],
        &["--duration=1h", "alertname=DiskFull", "host=~db-[13]"],
    ]
    .concat();
    let id = amtool.run(&add).unwrap();
    assert_eq!(amtool.hosts(&[]), ["db-2", "mq-1", "web-1"]);
    assert_eq!(amtool.hosts(&["--silenced"]), ["db-1"]);
    let stored = rest.get(&format!("{SILENCES}/{id}")).await.ok();
    assert_eq!(stored["silence"]["reason"], "db-1 is moved");
    assert_eq!(stored["silence"]["author"], "an-operator");
    let shown = amtool.json(&["silence", "query"]);
    assert_eq!(shown[0]["id"], id);
    assert_eq!(shown[0]["createdBy"], "ana");
    assert_eq!(shown[0]["status"]["state"], "active");
    assert_eq!(
        shown[0]["matchers"],
        json!([
            {"name": "alertname", "value": "DiskFull", "isRegex": false, "isEqual": true},
            {"name": "host", "value": "db-[13]", "isRegex": true, "isEqual": true},
        ])
    );
    assert_eq!(amtool.json(&["silence", "query", "host=other"]), json!([]));

    let update = ["silence", "update", "--comment=it takes longer", &id];
    amtool.run(&update).unwrap();
    let stored = rest.get(&format!("{SILENCES}/{id}")).await.ok();
    assert_eq!(stored["silence"]["reason"], "it takes longer");
    amtool.run(&["silence", "expire", &id]).unwrap();
    assert_eq!(amtool.json(&["silence", "query"]), json!([]));
    assert_eq!(amtool.json(&["silence", "query", "--expired"])[0]["id"], id);
    assert_eq!(amtool.hosts(&["host=db-1"]), ["db-1"]);
    assert!(amtool.run(&["silence", "expire", "none"]).is_err());
}

#[tokio::test]
async fn amtool_prints_the_reason_for_a_rejected_silence() {
    let world = World::start();
    let key = world.client("an-operator", "operator");
    let viewer = world.client("a-viewer", "viewer");
    let (Some(operator), Some(viewer), Some(wrong)) = (
        Amtool::of(&world, &key),
        Amtool::of(&world, &viewer),
        Amtool::of(&world, "bw_wrong"),
    ) else {
        return;
    };
    let add = ["silence", "add", "--author=a", "--comment=c"];
    let add = |more: &[&'static str]| [&add[..], more].concat();
    for (amtool, more, expected) in [
        (&operator, vec!["host!=x"], "narrow the query"),
        (&operator, vec!["severity=~.*"], "must exclude some events"),
        (&operator, vec!["--duration=40d", "host=x"], "30 days"),
        // The client library of `amtool` shows error texts only for documented status codes.
        (&viewer, vec!["host=x"], "403"),
        (&wrong, vec!["host=x"], "401"),
    ] {
        let refused = amtool.run(&add(&more)).unwrap_err();
        assert!(refused.contains(expected), "{more:?}: {refused}");
    }
    assert_eq!(viewer.json(&["silence", "query"]), json!([]));
}

#[tokio::test]
async fn extending_a_silence_keeps_a_query_that_matchers_cannot_express() {
    let world = World::start();
    let rest = world.rest();
    let drafts = [
        json!({"name": "low", "filter": "severity<error or body=*x*"}),
        json!({"name": "of rules", "filter": "host=a", "ruleNames": ["page", "mail"]}),
        json!({"name": "plain", "filter": "host=a -zone=b name=disk"}),
    ];
    let receiver = Receiver::start().await;
    samples::disks_to_hook(&rest, &receiver).await;
    for name in ["page", "mail"] {
        let rule = samples::rule(name, "disk", "hook", "");
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
    for mut draft in drafts {
        draft["reason"] = json!("r");
        draft["span"] = json!({"endTime": samples::in_seconds(3_600)});
        rest.post(SILENCES, &draft).await.ok();
    }
    let all = rest.get("/api/v2/silences").await.ok();
    for shown in all.as_array().unwrap() {
        let mut posted = shown.clone();
        posted["endsAt"] = json!(samples::in_seconds(7_200));
        let answer = rest.post("/api/v2/silences", &posted).await.ok();
        assert_eq!(answer["silenceID"], shown["id"]);
        let path = format!("/api/v2/silence/{}", shown["id"].as_str().unwrap());
        let again = rest.get(&path).await.ok();
        assert_eq!(again["matchers"], shown["matchers"]);
        assert!(
            again["endsAt"].as_str() > shown["endsAt"].as_str(),
            "{again}"
        );
    }
    let stored = rest.get(&format!("{SILENCES}/low")).await.ok();
    let filter = stored["silence"]["filter"].as_str().unwrap();
    assert!(filter.contains("severity<error"), "{filter}");
    let stored = rest.get(&format!("{SILENCES}/of%20rules")).await.ok();
    assert_eq!(stored["silence"]["ruleNames"], json!(["page", "mail"]));
    let texts: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["matchers"].to_string())
        .collect();
    for part in ["\"filter\"", "\"page|mail\"", "\"zone\""] {
        assert!(
            texts.iter().any(|it| it.contains(part)),
            "{part}: {texts:?}"
        );
    }
}

fn check(document: &Value, required: &[&str]) {
    for name in required {
        assert!(!document[name].is_null(), "{name} of {document}");
    }
}

fn check_alert(alert: &Value) {
    let required = [
        "labels",
        "annotations",
        "receivers",
        "fingerprint",
        "startsAt",
        "updatedAt",
    ];
    check(alert, &required);
    check(&alert["status"], &["state", "silencedBy", "inhibitedBy"]);
    for name in ["startsAt", "updatedAt", "endsAt"] {
        let text = alert[name].as_str().unwrap();
        assert!(text.parse::<jiff::Timestamp>().is_ok(), "{text}");
    }
    let texts = ["labels", "annotations"].map(|name| alert[name].as_object().unwrap());
    assert!(
        texts.iter().all(|it| it.values().all(Value::is_string)),
        "{alert}"
    );
}

type Check<'a> = &'a dyn Fn(&Value);

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests")]
async fn karma_and_grafana_requests_get_alertmanager_responses() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    fill(&rest, &receiver).await;
    let none: [(&str, &str); 0] = [];
    for path in ["/-/healthy", "/-/ready", "/api/v2/status"] {
        let open = rest.with_key(None);
        assert_eq!(
            open.try_send(Method::GET, path, &none, "")
                .await
                .unwrap()
                .status,
            200
        );
    }
    let check_groups = |answer: &Value| {
        let groups = answer.as_array().unwrap();
        assert!(!groups.is_empty());
        for group in groups {
            check(group, &["labels", "receiver", "alerts"]);
            assert!(group["receiver"]["name"].is_string());
            group["alerts"]
                .as_array()
                .unwrap()
                .iter()
                .for_each(check_alert);
        }
    };
    let check_alerts = |answer: &Value| {
        assert!(!answer.as_array().unwrap().is_empty());
        answer.as_array().unwrap().iter().for_each(check_alert);
    };
    let recorded: [(&str, Check<'_>); 8] = [
        // Polled by karma.
        ("/api/v2/alerts/groups", &check_groups),
        ("/api/v2/silences", &|answer| assert_eq!(answer, &json!([]))),
        // Requested by Grafana: the list of alerts, its groups, and a panel with a query.
        ("/api/v2/alerts", &check_alerts),
        (
            "/api/v2/alerts/groups?silenced=true&active=true&inhibited=true",
            &check_groups,
        ),
        (
            "/api/v2/alerts?silenced=false&inhibited=false&active=true&filter=alertname%3D%22DiskFull%22\
             &filter=host%3D~%22db-.%2B%22&receiver=hook",
            &|answer| assert_eq!(answer.as_array().unwrap().len(), 2),
        ),
        ("/api/v2/alerts?active=false", &|answer| {
            assert_eq!(answer, &json!([]));
        }),
        ("/api/v2/receivers", &|answer| {
            assert_eq!(answer, &json!([{"name": "hook", "labels": {}}]));
        }),
        (
            "/api/v2/alerts?receiver=ho.*&filter=severity%3Dcritical",
            &|answer| {
                assert_eq!(
                    answer[0]["labels"],
                    json!({
                        "alertname": "DiskFull", "host": "db-1", "severity": "critical",
                    })
                );
            },
        ),
    ];
    for (path, check) in recorded {
        println!("{path}");
        check(&rest.get(path).await.ok());
    }
    // Matchers as Grafana and karma post them, and as an older client does, without `isEqual`.
    let posted = json!({
        "matchers": [
            {"name": "alertname", "value": "DiskFull", "isRegex": false, "isEqual": true},
            {"name": "host", "value": "db-1", "isRegex": false},
        ],
        "startsAt": samples::in_seconds(-1), "endsAt": samples::in_seconds(7_200),
        "createdBy": "admin", "comment": "created 2026-11-25", "id": "",
    });
    let made = rest.post("/api/v2/silences", &posted).await.ok();
    let id = made["silenceID"].as_str().unwrap().to_owned();
    let silence = rest.get(&format!("/api/v2/silence/{id}")).await.ok();
    let required = [
        "id",
        "status",
        "updatedAt",
        "matchers",
        "startsAt",
        "endsAt",
        "createdBy",
    ];
    check(&silence, &required);
    assert_eq!(silence["status"]["state"], "active");
    let covered = rest.get("/api/v2/alerts?active=false").await.ok();
    assert_eq!(covered[0]["status"]["state"], "suppressed");
    assert_eq!(covered[0]["status"]["silencedBy"], json!([id]));
    let filtered = rest.get("/api/v2/silences?filter=host%3Ddb-1").await.ok();
    assert_eq!(filtered.as_array().unwrap().len(), 1);
    let ended = rest.delete(&format!("/api/v2/silence/{id}")).await;
    assert_eq!((ended.status.as_u16(), ended.text().as_str()), (200, ""));
    let silence = rest.get(&format!("/api/v2/silence/{id}")).await.ok();
    assert_eq!(silence["status"]["state"], "expired");
    // Posting an expired silence creates another one with a new id, as in Alertmanager.
    let mut again = posted.clone();
    again["id"] = json!(id);
    let made = rest.post("/api/v2/silences", &again).await.ok();
    assert_ne!(made["silenceID"], json!(id));
}

fn count(answer: &Answer) -> usize {
    answer.ok().as_array().unwrap().len()
}

#[tokio::test]
async fn silences_have_states_and_annotations() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    fill(&rest, &receiver).await;
    let post = async |host: &str, start: i64, more: Value| {
        let mut posted = json!({
            "matchers": [{"name": "host", "value": host, "isRegex": false}],
            "startsAt": samples::in_seconds(start), "endsAt": samples::in_seconds(7_200),
            "createdBy": "ana", "comment": "c",
        });
        for (name, value) in more.as_object().unwrap() {
            posted[name] = value.clone();
        }
        let made = rest.post("/api/v2/silences", &posted).await.ok();
        made["silenceID"].as_str().unwrap().to_owned()
    };
    let annotations = json!({"ticket": "OPS-1", "link": "https://wiki.example.net/a b"});
    let id = post("db-1", -1, json!({"annotations": annotations})).await;
    post("db-2", 3_600, json!({})).await;
    let ended = post("web-1", -1, json!({})).await;
    rest.delete(&format!("/api/v2/silence/{ended}")).await;
    for (query, expected) in [
        ("", 3),
        ("?active=false", 2),
        ("?expired=false&pending=false", 1),
        ("?expired=false&pending=false&active=false", 0),
        ("?expired=0&filter=host%3D~%22db-.%22", 2),
    ] {
        let path = format!("/api/v2/silences{query}");
        assert_eq!(count(&rest.get(&path).await), expected, "{path}");
    }
    let path = format!("/api/v2/silence/{id}");
    assert_eq!(rest.get(&path).await.ok()["annotations"], annotations);
    // A client that does not know annotations retains them.
    post("db-1", -1, json!({"id": id})).await;
    let stored = rest.get(&format!("{SILENCES}/{id}")).await.ok();
    assert_eq!(stored["silence"]["annotations"], annotations);
    post("db-1", -1, json!({"id": id, "annotations": {}})).await;
    assert_eq!(rest.get(&path).await.ok()["annotations"], json!({}));
    let refused = json!({
        "matchers": [{"name": "host", "value": "a", "isRegex": false}],
        "startsAt": samples::in_seconds(0), "endsAt": samples::in_seconds(60),
        "createdBy": "a", "comment": "c", "annotations": {"long": "x".repeat(1_001)},
    });
    let refused = rest.post("/api/v2/silences", &refused).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("annotations.long"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn receivers_are_matched_by_their_tags() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    fill(&rest, &receiver).await;
    let mut hook = samples::webhook("hook", &receiver.url("/"));
    hook["tags"] = json!(["team:storage", "plain"]);
    rest.put("/v1/notification/destinations/hook", &hook)
        .await
        .ok();
    let receivers = rest.get("/api/v2/receivers").await.ok();
    let labels = json!({"team": "storage"});
    assert_eq!(receivers, json!([{"name": "hook", "labels": labels}]));
    for (matchers, matches) in [
        ("team%3Dstorage", true),
        ("team%3D~sto.*", true),
        ("team%3Dweb", false),
        ("team!%3Dstorage", false),
        ("zone%3D", true),
        ("team%3Dstorage&receiver_matchers=zone%3Da", false),
    ] {
        let of = |path: &str| format!("/api/v2/{path}?receiver_matchers={matchers}");
        let found = [
            count(&rest.get(&of("receivers")).await),
            count(&rest.get(&of("alerts")).await),
            count(&rest.get(&of("alerts/groups")).await),
        ];
        let expected = if matches { [1, 3, 1] } else { [0, 0, 0] };
        assert_eq!(found, expected, "{matchers}");
    }
    let wrong = rest.get("/api/v2/receivers?receiver_matchers=team").await;
    assert_eq!(wrong.status, 400);

    for (path, warning) in [
        ("silences?active=true", ""),
        (
            "silences?state=active",
            "199 - \"unknown query parameter `state` ignored; expected active, pending, expired, \
             filter\"",
        ),
        (
            "receivers?q=1&%22%0a=2",
            "199 - \"unknown query parameter ``, `q` ignored; expected receiver_matchers\"",
        ),
    ] {
        let answer = rest.get(&format!("/api/v2/{path}")).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("warning"), warning, "{path}");
    }
}

#[tokio::test]
async fn groups_of_suppressed_alerts_are_muted() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    fill(&rest, &receiver).await;
    let groups = async |query: &str| {
        let found = rest.get(&format!("/api/v2/alerts/groups{query}")).await;
        let found = found.ok();
        let names = found.as_array().unwrap().iter();
        let names: Vec<_> = names
            .map(|it| it["labels"]["alertname"].as_str().unwrap().to_owned())
            .collect();
        names
    };
    assert_eq!(groups("?muted=false").await, ["DiskFull", "Queue"]);
    let silence = json!({"name": "disks", "reason": "r", "filter": "name=DiskFull",
        "span": {"endTime": samples::in_seconds(600)}});
    rest.post(SILENCES, &silence).await.ok();
    assert_eq!(
        groups("?muted=false&filter=alertname%3DDiskFull").await,
        Vec::<String>::new()
    );
    assert_eq!(groups("?filter=alertname%3DDiskFull").await, ["DiskFull"]);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests")]
async fn errors_are_json_strings() {
    let world = World::start();
    let rest = world.rest();
    let get = [
        ("/api/v2/alerts?filter=host", 400, "bad matcher"),
        ("/api/v2/alerts?filter=host%3D~(", 400, "bad matcher"),
        ("/api/v2/alerts?receiver=(", 400, "regular expression"),
        ("/api/v2/alerts?active=maybe", 400, "`active`"),
        ("/api/v2/silences?filter=%3D", 400, "bad matcher"),
        (
            "/api/v2/silence/00000000-0000-4000-8000-000000000000",
            404,
            "not found",
        ),
    ];
    for (path, status, part) in get {
        let answer = rest.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        let text = answer.json();
        assert!(text.as_str().unwrap().contains(part), "{path}: {text}");
    }
    let good = json!({
        "matchers": [{"name": "host", "value": "a", "isRegex": false}],
        "startsAt": samples::in_seconds(0), "endsAt": samples::in_seconds(60),
        "createdBy": "a", "comment": "c",
    });
    let long = "x".repeat(1_001);
    for (member, value, part) in [
        ("matchers", json!([]), "`matchers`"),
        (
            "matchers",
            json!([{"name": "", "value": "a", "isRegex": false}]),
            "a label name",
        ),
        (
            "matchers",
            json!([{"name": "a", "value": "(", "isRegex": true}]),
            "regular expression",
        ),
        (
            "matchers",
            json!([{"name": "a", "value": ".*", "isRegex": true}]),
            "narrow",
        ),
        ("comment", json!(" "), "`comment`"),
        ("comment", json!(long), "1000"),
        ("endsAt", json!("tomorrow"), "not a time"),
        ("endsAt", json!(samples::in_seconds(-60)), "`endsAt`"),
        ("startsAt", json!(samples::in_seconds(90)), "`endsAt`"),
    ] {
        let mut posted = good.clone();
        posted[member] = value;
        let answer = rest.post("/api/v2/silences", &posted).await;
        assert_eq!(answer.status, 400, "{member}: {}", answer.text());
        let text = answer.json();
        let text = text.as_str().unwrap_or_default();
        assert!(text.contains(part), "{member}: {text}");
    }
    let mut posted = good.clone();
    posted["id"] = json!("00000000-0000-4000-8000-000000000000");
    assert_eq!(rest.post("/api/v2/silences", &posted).await.status, 404);
    assert_eq!(rest.get("/api/v2/silences").await.ok(), json!([]));
    let wrong = rest.put("/api/v2/alerts", &json!([])).await;
    assert_eq!(wrong.status, 405);
    assert_eq!(wrong.header("allow"), "GET, HEAD, POST");
    for (key, status) in [(None, 401), (Some("bw_wrong"), 401)] {
        let refused = rest.with_key(key).get("/api/v2/alerts").await;
        assert_eq!(refused.status, status);
        assert!(refused.json().is_string());
    }
    let viewer = world.client("a-viewer", "viewer");
    let viewer = rest.with_key(Some(&viewer));
    assert_eq!(viewer.get("/api/v2/silences").await.status, 200);
    assert_eq!(viewer.post("/api/v2/silences", &good).await.status, 403);
    let sender = world.client("a-sender", "ingest");
    let sender = rest.with_key(Some(&sender));
    assert_eq!(sender.get("/api/v2/alerts").await.status, 403);
}

#[tokio::test]
async fn alert_list_is_truncated_at_the_limit_with_a_warning() {
    let world = World::start();
    let rest = world.rest();
    for page in 0..11 {
        let events: Vec<_> = (0..1_000)
            .map(|at| {
                let severity = if page == 10 { "CRITICAL" } else { "WARNING" };
                let severity = format!("SEVERITY_{severity}");
                samples::event("storm", &format!("h{page}-{at}"), &severity, "s")
            })
            .collect();
        let body = json!({"events": events});
        let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
        assert_eq!(answer["succeeded"], 1_000);
    }
    let answer = rest.get("/api/v2/alerts").await;
    assert!(answer.header("warning").contains("more alerts"));
    let alerts = answer.ok();
    let alerts = alerts.as_array().unwrap();
    assert_eq!(alerts.len(), 10_000);
    assert_eq!(alerts[999]["labels"]["severity"], "critical");
    // Equality matchers are applied by the search, so that alerts beyond the limit are found.
    let path = "/api/v2/alerts?filter=host%3Dh0-999";
    let found = rest.get(path).await;
    assert_eq!(found.header("warning"), "");
    assert_eq!(found.ok().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn inhibited_or_suppressed_alerts_are_not_active() {
    let world = World::start();
    let (rest, receiver) = (world.rest(), Receiver::start().await);
    let mut trigger = samples::trigger("disk", "disk");
    trigger["type"] = json!({"event": {"filter": "name=effect"}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let rule = samples::rule("page", "disk", "hook", "");
    rest.post("/v1/notification/rules", &rule).await.ok();
    let inhibition = json!({"name": "host down", "enabled": true, "sourceFilter": "name=cause",
        "targetFilter": "name=effect", "equal": [{"source": "host"}]});
    rest.post("/v1/notification/inhibitions", &inhibition)
        .await
        .ok();
    let path = "/v1/notification/inhibitions/host%20down";
    eventually("the inhibition to hold", async || {
        let found = rest.get(path).await.ok();
        (found["inhibition"]["state"] == "ACTIVE").then_some(())
    })
    .await;
    for name in ["cause", "effect"] {
        let event = samples::event(name, "a", "SEVERITY_ERROR", name);
        let body = samples::events(&[event]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
    }
    let held = async || {
        let found = rest.get("/api/v2/alerts?active=false").await.ok();
        (!found[0].is_null()).then_some(found)
    };
    let found = eventually("the effect to be held", held).await;
    assert_eq!(found[0]["status"]["inhibitedBy"], json!(["host down"]));
    let path = "/api/v2/alerts?inhibited=false";
    let others = rest.get(path).await.ok();
    assert_eq!(others.as_array().unwrap().len(), 1);
    assert_eq!(others[0]["labels"]["alertname"], "cause");
    let search = json!({"query": {"filter": "name=cause"}});
    let cause = rest.post("/v1/events:search", &search).await.ok();
    let item = json!({"eventId": cause["results"][0]["id"], "status": "STATUS_SUPPRESSED"});
    let body = json!({"statuses": [item]});
    rest.post("/v1/event-management/status", &body).await.ok();
    let active = rest
        .get("/api/v2/alerts?silenced=false&inhibited=false")
        .await;
    assert_eq!(active.ok(), json!([]));
}
