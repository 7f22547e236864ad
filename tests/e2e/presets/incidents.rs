//! Tests of receivers that identify incidents by a key. Despite groups, released events, flapping,
//! resends and kills, every incident opened by a preset or a built-in type is closed.

use std::fmt::Write as _;

use bellwether_tests::{
    eventually::eventually,
    process,
    providers::{
        Mischief, StandIn,
        incidents::{Accepts, Board, Change, Incidents, Read},
        msteams::MsTeams,
        pagerduty::PagerDuty,
        servicenow::ServiceNow,
        slack::Slack,
    },
    receiver::{Received, Reply},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::{rules::all_rules, store};
use crate::samples;

const ROUTING_KEY: &str = "0123456789abcdef0123456789abcdef";
const SECRET: &str = "canary-client-secret";
const TOKEN: &str = "xoxb-canary-token";

/// Presets for receivers with incidents, each with a parser of its messages.
const PRESETS: [(&str, Read); 9] = [
    ("opsgenie", genie),
    ("jira-service-management", genie),
    ("splunk-on-call", |it| {
        let body = it.json();
        let change = match text(&body["message_type"]).as_str() {
            "RECOVERY" => Change::Close,
            "ACKNOWLEDGEMENT" => Change::Acknowledge,
            _ => Change::Open,
        };
        (
            text(&body["entity_id"]),
            change,
            text(&body["entity_display_name"]),
        )
    }),
    ("squadcast", |it| {
        let body = it.json();
        let change = opens(&body["status"], "trigger", "resolve");
        (text(&body["event_id"]), change, text(&body["message"]))
    }),
    ("incident-io", |it| {
        let body = it.json();
        let change = opens(&body["status"], "firing", "resolved");
        (
            text(&body["deduplication_key"]),
            change,
            text(&body["title"]),
        )
    }),
    ("grafana-oncall", |it| {
        let body = it.json();
        let change = opens(&body["state"], "alerting", "ok");
        (text(&body["alert_uid"]), change, text(&body["title"]))
    }),
    ("better-stack", |it| {
        let body = it.json();
        let change = opens(&body["status"], "open", "closed");
        (text(&body["alert_id"]), change, text(&body["title"]))
    }),
    ("alertmanager", |it| {
        let alert = &it.json()[0];
        let end: jiff::Timestamp = text(&alert["endsAt"]).parse().unwrap();
        let change = if end <= jiff::Timestamp::now() {
            Change::Close
        } else {
            // The end is later than any alert stays open.
            assert!(end > jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * 365));
            Change::Open
        };
        // All labels together identify the alert.
        (
            alert["labels"].to_string(),
            change,
            text(&alert["annotations"]["summary"]),
        )
    }),
    // Google Chat has threads rather than incidents.
    ("google-chat", |it| {
        let body = it.json();
        let said = text(&body["text"]);
        let change = if said.contains("closed") {
            Change::Close
        } else {
            Change::Open
        };
        (text(&body["thread"]["threadKey"]), change, said)
    }),
];

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn opens(value: &Value, open: &str, closed: &str) -> Change {
    match text(value) {
        it if it == open => Change::Open,
        it if it == closed => Change::Close,
        other => panic!("neither {open} nor {closed}: {other}"),
    }
}

fn genie(it: &Received) -> (String, Change, String) {
    let body = it.json();
    let change = if it.path.ends_with("/close?identifierType=alias") {
        Change::Close
    } else if it.path.ends_with("/acknowledge?identifierType=alias") {
        Change::Acknowledge
    } else {
        Change::Open
    };
    (text(&body["alias"]), change, text(&body["message"]))
}

fn pagerduty(it: &Received) -> (String, Change, String) {
    let body = it.json();
    let change = match text(&body["event_action"]).as_str() {
        "resolve" => Change::Close,
        "acknowledge" => Change::Acknowledge,
        _ => Change::Open,
    };
    (
        text(&body["dedup_key"]),
        change,
        text(&body["payload"]["summary"]),
    )
}

fn servicenow(it: &Received) -> (String, Change, String) {
    let body = it.json();
    let is_closing = body["severity"] == "0";
    let change = if is_closing {
        Change::Close
    } else {
        Change::Open
    };
    (
        text(&body["message_key"]),
        change,
        text(&body["description"]),
    )
}

/// Parses a chat message. A message that is not a reply starts a thread.
fn slack(it: &Received) -> (String, Change, String) {
    let body = it.json();
    let is_closing = body.to_string().contains("closed");
    let change = if is_closing {
        Change::Close
    } else {
        Change::Open
    };
    let thread = body["thread_ts"].as_str().unwrap_or("1503435956.000247");
    (thread.to_owned(), change, text(&body["text"]))
}

/// Parses a Teams card. A channel has no threads, so all of its messages have the same key.
fn teams(it: &Received) -> (String, Change, String) {
    let card = &it.json()["attachments"][0]["content"];
    let said = text(&card["body"][0]["text"]);
    let change = if said.contains("(closed)") {
        Change::Close
    } else {
        Change::Open
    };
    ("channel".to_owned(), change, said)
}

/// Parses the requests of a webhook with a separate address for closings. Both addresses contain
/// the key.
fn on_clear(it: &Received) -> (String, Change, String) {
    let (path, key) = it.path.rsplit_once('/').unwrap();
    let change = match (it.method.as_str(), path) {
        ("POST", "/alerts") => Change::Open,
        ("DELETE", "/alerts/by-key") => Change::Close,
        other => panic!("{other:?}"),
    };
    (key.to_owned(), change, text(&it.json()["text"]))
}

/// Destinations whose receivers get one incident even if an event reopens.
const OF_ONE_KEY: [&str; 3] = ["servicenow", "slack", "msteams"];

/// Returns destinations of the built-in types, by name.
fn builtin(now: &StandIn, channel: &StandIn, hook: &StandIn) -> [(&'static str, Value); 5] {
    [
        (
            "pagerduty",
            json!({"pagerduty": {"routingKey": ROUTING_KEY}}),
        ),
        (
            "servicenow",
            json!({"servicenow": {"instanceUrl": now.url("/"),
                "clientId": "bellwether", "clientSecret": SECRET}}),
        ),
        (
            "slack",
            json!({"slack": {"channel": "#ops", "token": TOKEN}}),
        ),
        (
            "msteams",
            json!({"msteams": {"url": channel.url("/workflows/canary")}}),
        ),
        (
            "onClear",
            json!({"webhook": {
                "url": hook.url("/alerts/{{thread_id}}"),
                "payload": "{\"text\": \"{{headline}}\"}",
                "onClear": {
                    "url": hook.url("/alerts/by-key/{{thread_id}}"),
                    "method": "DELETE",
                    "payload": "{\"text\": \"{{headline}}\"}",
                },
            }}),
        ),
    ]
}

struct Stage {
    world: World,
    receivers: Vec<(&'static str, StandIn, Board)>,
}

impl Stage {
    async fn new(more: &Value) -> Self {
        Self::refusing_threads(more, None).await
    }

    /// Sets up the rules. With `refuses_threads`, Slack rejects messages in threads with that
    /// error.
    async fn refusing_threads(more: &Value, refuses_threads: Option<&'static str>) -> Self {
        let (rules, board) = Incidents::new(
            PagerDuty {
                routing_key: ROUTING_KEY.to_owned(),
            },
            pagerduty,
        );
        let pager = ("pagerduty", StandIn::start(rules).await, board);
        let (rules, board) = Incidents::new(ServiceNow::new(SECRET, None, 1_000), servicenow);
        let now = ("servicenow", StandIn::start(rules).await, board);
        let chat = Slack {
            token: TOKEN.to_owned(),
            channel: "#ops".to_owned(),
            refuses_threads,
        };
        let (rules, board) = Incidents::new(chat, slack);
        let chat = ("slack", StandIn::start(rules).await, board);
        let workflow = MsTeams {
            path: "/workflows/canary".to_owned(),
            is_workflow: true,
        };
        let (rules, board) = Incidents::new(workflow, teams);
        let channel = ("msteams", StandIn::start(rules).await, board);
        let (rules, board) = Incidents::new(Accepts(200, "{}"), on_clear);
        let hook = ("onClear", StandIn::start(rules).await, board);
        let mut settings =
            "[delivery]\nschedule = [\"0s\", \"100ms\", \"100ms\"]\n[providers]\n".to_owned();
        for (name, receiver) in [("pagerduty", &pager.1), ("slack", &chat.1)] {
            writeln!(settings, "{name} = {:?}", receiver.url("")).unwrap();
        }
        let world = World::with_settings(&settings);
        let rest = world.rest();
        for (name, kind) in builtin(&now.1, &channel.1, &hook.1) {
            let draft = json!({"name": name, "type": kind});
            rest.post("/v1/notification/destinations", &draft)
                .await
                .ok();
        }
        let mut receivers = vec![pager, now, chat, channel, hook];
        for (name, read) in PRESETS {
            let rules = all_rules().find(|it| it.file == name).unwrap();
            let (status, body) = rules.accepts;
            let (incidents, board) = Incidents::new(Accepts(status, body), read);
            let receiver = StandIn::start(incidents).await;
            store(&world, rules, |path| receiver.url(path));
            receivers.push((name, receiver, board));
        }
        let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
        let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        for (name, ..) in &receivers {
            let rule = Self::rule(name, more);
            rest.post("/v1/notification/rules", &rule).await.ok();
        }
        Self { world, receivers }
    }

    fn rule(name: &str, more: &Value) -> Value {
        let mut rule = samples::rule(name, "disk", name, "");
        rule["sendUpdates"] = json!(true);
        for (key, value) in more.as_object().unwrap() {
            rule[key] = value.clone();
        }
        rule
    }

    fn rest(&self) -> Rest {
        self.world.rest()
    }

    async fn send(&self, hosts: impl IntoIterator<Item = usize>, status: &str) {
        let events = hosts.into_iter().map(|host| {
            let host = format!("h{host}");
            let mut event = samples::event("disk", &host, "SEVERITY_ERROR", "the disk is full");
            event["status"] = json!(format!("STATUS_{status}"));
            event
        });
        let events: Vec<_> = events.collect();
        let body = samples::events(&events);
        let answer = self
            .rest()
            .post("/v1/data-receiver/events", &body)
            .await
            .ok();
        assert_eq!(answer["succeeded"], events.len(), "{answer}");
    }

    async fn until(&self, what: &str, stands: impl Fn(&Board) -> bool) {
        for (name, receiver, board) in &self.receivers {
            let wanted = format!("{name}: {what}");
            let seen = eventually(&wanted, async || {
                assert!(
                    receiver.refused().is_empty(),
                    "{name}: {:?}",
                    receiver.refused()
                );
                stands(board).then_some(())
            });
            seen.await;
        }
    }

    async fn until_open(&self, count: usize) {
        let what = format!("{count} open");
        self.until(&what, |board| board.open_count() == count).await;
    }

    /// Waits until all deliveries have ended, and asserts that no incident is open.
    async fn ends(&self) {
        let rest = self.rest();
        eventually("all deliveries to end", async || {
            let path =
                "/v1/notification/deliveries?states=PENDING&states=LEASED&states=RETRY&pageSize=1";
            let waiting = rest.get(path).await.ok();
            waiting["deliveries"].is_null().then_some(())
        })
        .await;
        for (name, _, board) in &self.receivers {
            assert_eq!(board.open_count(), 0, "{name}: {:#?}", board.incidents());
        }
    }
}

#[tokio::test]
async fn group_is_one_incident_that_ends_with_its_last_event() {
    let more = json!({"group": {"by": ["name"], "wait": "1s", "interval": "10s"}});
    let mut stage = Stage::new(&more).await;
    for round in 1..=2 {
        stage.send(0..3, "OPEN").await;
        stage.until_open(1).await;
        if round == 1 {
            stage.world.kill();
            stage.world.start_again();
        }
        // The first closing does not close the group.
        stage.send([0], "CLOSED").await;
        stage.send([1, 2], "CLOSED").await;
        stage.until_open(0).await;
        stage.ends().await;
        for (name, _, board) in &stage.receivers {
            if ["slack", "msteams"].contains(name) {
                continue;
            }
            let incidents = board.incidents();
            assert_eq!(incidents.len(), round, "{name}: {incidents:#?}");
            let first = &incidents.values().next().unwrap().texts[0];
            assert!(first.contains("3 open"), "{name}: {first}");
            assert_eq!(board.with(|it| it.unknown.len()), 0, "{name}");
        }
    }
}

#[tokio::test]
async fn events_released_by_a_silence_form_one_incident() {
    let mut stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    let silence = json!({"name": "move", "reason": "r", "filter": "name=disk",
        "span": {"endTime": samples::in_seconds(3_600)}});
    rest.post("/v1/notification/silences", &silence).await.ok();
    stage.send(0..12, "OPEN").await;
    rest.post("/v1/notification/silences/move:expire", &json!({}))
        .await
        .ok();
    stage.until_open(1).await;
    stage.world.kill();
    stage.world.start_again();
    stage.send(0..11, "CLOSED").await;
    stage.send([11], "CLOSED").await;
    stage.until_open(0).await;
    stage.ends().await;
    for (name, _, board) in &stage.receivers {
        let incidents = board.incidents();
        assert_eq!(incidents.len(), 1, "{name}: {incidents:#?}");
        let first = &incidents.values().next().unwrap().texts[0];
        assert!(first.contains("12 open"), "{name}: {first}");
    }
}

#[tokio::test]
async fn flapping_event_is_one_incident_until_it_settles() {
    let calm = json!({"openCount": 3, "window": "3600s", "settle": "900s"});
    let mut stage = Stage::new(&json!({"flapping": calm})).await;
    for round in 0..5 {
        stage.send([1], "OPEN").await;
        if round < 3 {
            stage.until_open(1).await;
        }
        stage.send([1], "CLOSED").await;
        if round < 2 {
            stage.until_open(0).await;
        }
        if round == 3 {
            // Kill the service while the event is flapping and open at every receiver.
            stage.world.kill();
            stage.world.start_again();
        }
    }
    let rest = stage.rest();
    for (name, ..) in &stage.receivers {
        let path = format!("/v1/notification/rules/{name}");
        rest.put(&path, &Stage::rule(name, &json!({}))).await.ok();
    }
    stage.until_open(0).await;
    stage.ends().await;
    for (name, _, board) in &stage.receivers {
        // ServiceNow has one event, the chats one thread, and all others one incident per
        // occurrence.
        let expected = if OF_ONE_KEY.contains(name) { 1 } else { 3 };
        let incidents = board.incidents();
        assert_eq!(incidents.len(), expected, "{name}: {incidents:#?}");
    }
}

#[tokio::test]
async fn late_responses_do_not_duplicate_incidents() {
    let stage = Stage::new(&json!({})).await;
    for (_, _, board) in &stage.receivers {
        board.with(|state| state.answers_late = true);
    }
    let rest = stage.rest();
    stage.send([1], "OPEN").await;
    stage.until_open(1).await;
    let search = json!({"query": {"filter": "host=h1"}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    let item = json!({"eventId": found["results"][0]["id"], "acknowledged": true});
    let body = json!({"statuses": [item]});
    rest.post("/v1/event-management/status", &body).await.ok();
    stage.send([1], "CLOSED").await;
    stage.until_open(0).await;
    stage.ends().await;
    for (name, _, board) in &stage.receivers {
        assert_eq!(board.incidents().len(), 1, "{name}");
        assert_eq!(board.with(|it| it.unknown.len()), 0, "{name}");
    }
}

#[tokio::test]
async fn opening_resent_after_the_close_leaves_no_incident_open() {
    let mut stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    for (_, receiver, _) in &stage.receivers {
        receiver.misbehave(Mischief::Answers(Reply::status(400)));
    }
    stage.send([1], "OPEN").await;
    let dead = "/v1/notification/deliveries?states=DEAD&pageSize=100";
    let count = stage.receivers.len();
    let openings = eventually("the openings to become dead letters", async || {
        let list = rest.get(dead).await.ok()["deliveries"].as_array().cloned();
        list.filter(|list| list.len() == count)
    })
    .await;
    for (_, receiver, _) in &stage.receivers {
        receiver.misbehave(None);
    }
    stage.send([1], "CLOSED").await;
    stage.ends().await;
    for opening in openings {
        let id = opening["id"].as_str().unwrap();
        let path = format!("/v1/notification/deliveries/{id}:retry");
        rest.post(&path, &json!({})).await.ok();
    }
    stage.world.kill();
    stage.world.start_again();
    stage
        .until("the opening and the end once more", |board| {
            let incidents = board.incidents();
            // Messages in flight during the kill may arrive twice.
            incidents.len() == 1 && incidents.values().all(|it| it.texts.len() >= 2)
        })
        .await;
    stage.ends().await;
}

#[tokio::test]
async fn closing_goes_to_the_channel_if_the_thread_is_rejected() {
    for error in [
        "thread_not_found",
        "cannot_reply_to_message",
        "message_not_found",
    ] {
        let mut stage = Stage::refusing_threads(&json!({}), Some(error)).await;
        stage.send([1], "OPEN").await;
        stage.until_open(1).await;
        stage.world.kill();
        stage.world.start_again();
        stage.send([1], "CLOSED").await;
        stage.until_open(0).await;
        stage.ends().await;
        let chat = stage.receivers.iter().find(|(name, ..)| *name == "slack");
        let (_, receiver, _) = chat.unwrap();
        let last = receiver.accepted().pop().unwrap().json();
        assert!(last["thread_ts"].is_null(), "{error}: {last}");
    }
}

#[tokio::test]
async fn kill_during_delivery_leaves_no_incident_open() {
    let mut stage = Stage::new(&json!({})).await;
    for round in 0..3 {
        for (_, receiver, _) in &stage.receivers {
            receiver.misbehave(Mischief::Hangs);
        }
        let before: Vec<_> = stage.receivers.iter().map(|it| it.1.requests()).collect();
        let status = if round % 2 == 0 { "OPEN" } else { "CLOSED" };
        stage.send([1], status).await;
        for ((name, receiver, _), before) in stage.receivers.iter().zip(before) {
            let is_in_flight = async || (receiver.requests() > before).then_some(());
            eventually(name, is_in_flight).await;
        }
        stage.world.kill();
        for (_, receiver, _) in &stage.receivers {
            receiver.misbehave(None);
        }
        stage.world.start_again();
        stage.until_open(usize::from(round % 2 == 0)).await;
    }
    stage.send([1], "CLOSED").await;
    stage.until_open(0).await;
    stage.ends().await;
}

#[tokio::test]
async fn incident_presets_reject_digests() {
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    for (name, ..) in &stage.receivers {
        let path = format!("/v1/notification/destinations/{name}");
        let mut draft = rest.get(&path).await.ok()["destination"].clone();
        draft["delivery"] = json!({"budget": {"messages": 1, "per": "60s"}});
        let saved = rest.put(&path, &draft).await;
        // In a chat, a digest is a normal message.
        if ["slack", "msteams", "google-chat"].contains(name) {
            assert_eq!(saved.status, 200, "{name}: {}", saved.text());
            continue;
        }
        assert_eq!(saved.status, 400, "{name}");
        let text = saved.text();
        assert!(text.contains("keeps state per thread"), "{name}: {text}");
    }
}

#[tokio::test]
async fn alertmanager_resolves_alerts_opened_by_its_preset() {
    use bellwether_tests::programs::{Running, port, programs};
    let Some([alertmanager]) = programs(["prometheus-alertmanager"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let settings = "route: {receiver: none}\nreceivers: [{name: none}]\n";
    std::fs::write(folder.path().join("alertmanager.yml"), settings).unwrap();
    let address = format!("127.0.0.1:{}", port());
    let arguments = [
        "--config.file=alertmanager.yml".to_owned(),
        "--storage.path=data".to_owned(),
        "--cluster.listen-address=".to_owned(),
        format!("--web.listen-address={address}"),
    ];
    let _running = Running::start(folder.path(), &alertmanager, &arguments);
    let other = Rest::new(&address, None);
    let is_up = async || {
        let response = other.try_send(http::Method::GET, "/-/ready", &[], "");
        response.await.ok().filter(|it| it.status == 200)
    };
    eventually("Alertmanager to be ready", is_up).await;
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    let file = super::folder().join("alertmanager.yaml");
    let preset = std::fs::read_to_string(file).unwrap();
    let preset = preset.replace("alertmanager.example.net:9093", &address);
    let copy = stage.world.folder().join("preset.yaml");
    std::fs::write(&copy, preset).unwrap();
    let command = stage
        .world
        .command(&["apply", "-f", copy.to_str().unwrap()]);
    assert!(process::run(command).status.success());
    let mut event = samples::event("disk", "h1", "SEVERITY_ERROR", "full");
    event["dimensions"] = json!({"host": "h1", "k8s.pod": "p", "1st": "x"});
    for (status, severity, open) in [
        ("OPEN", "ERROR", 1),
        ("OPEN", "CRITICAL", 1),
        ("CLOSED", "ERROR", 0),
    ] {
        event["status"] = json!(format!("STATUS_{status}"));
        event["severity"] = json!(format!("SEVERITY_{severity}"));
        let body = samples::events(&[event.clone()]);
        rest.post("/v1/data-receiver/events", &body).await.ok();
        let alerts = eventually("the alert", async || {
            let alerts = other.get("/api/v2/alerts").await.ok();
            let alerts = alerts.as_array().unwrap().clone();
            (alerts.len() == open).then_some(alerts)
        })
        .await;
        for alert in alerts {
            assert_eq!(alert["labels"]["k8s_pod"], "p", "{alert}");
            assert_eq!(alert["labels"]["_1st"], "x", "{alert}");
            assert!(
                alert["endsAt"].as_str().unwrap().starts_with("2099"),
                "{alert}"
            );
        }
    }
}
