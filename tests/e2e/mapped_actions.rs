//! Tests of mappings that take actions on events: webhooks of receivers such as Jira.

use std::{fmt::Write as _, fs};

use bellwether_tests::{
    eventually::eventually,
    process,
    receiver::{Receiver, Reply},
    rest::{Answer, Rest},
    tree,
    world::World,
};
use hmac::{Hmac, Mac};
use http::Method;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::samples;

const MAPPINGS: &str = "/v1/intake/mappings";
const SECRET: &str = "canary-actions-7d20";

/// A service with a rule that notifies a fake Jira, whose issues are named after the host, and
/// another receiver.
struct Stage {
    world: World,
    jira: Receiver,
    other: Receiver,
}

impl Stage {
    /// Stores the destinations, and a rule with these additional fields.
    async fn new(more: &Value) -> Self {
        let world = World::start();
        let rest = world.rest();
        let jira = Receiver::with_rule(|received| {
            let host = received.json()["host"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            Reply::json(&json!({"key": format!("OPS-{host}")}))
        })
        .await;
        let other = Receiver::start().await;
        samples::disks_to_hook(&rest, &other).await;
        let payload = r#"{"host": "{{event.dimensions.host}}"}"#;
        let webhook =
            json!({"url": jira.url("/issue"), "payload": payload, "keep": {"issue": "key"}});
        let draft = json!({"name": "jira-issue", "type": {"webhook": webhook}});
        rest.post("/v1/notification/destinations", &draft)
            .await
            .ok();
        let mut rule = samples::rule("disk", "disk", "hook", "");
        rule["destinationNames"] = json!(["jira-issue", "hook"]);
        rule["sendUpdates"] = json!(true);
        for (key, value) in more.as_object().unwrap() {
            rule[key] = value.clone();
        }
        rest.post("/v1/notification/rules", &rule).await.ok();
        Self { world, jira, other }
    }

    fn rest(&self) -> Rest {
        self.world.rest()
    }

    /// Returns the client of a key that may send webhooks.
    fn sender(&self, name: &str, role: &str) -> Rest {
        let mut create = self
            .world
            .command(&["client", "create", name, "--role", role]);
        create.args(["--dialect", "webhooks"]);
        let key = String::from_utf8(process::run(create).stdout).unwrap();
        self.rest().with_key(Some(key.trim()))
    }

    async fn send(&self, host: &str, status: &str) {
        let mut event = samples::event("disk", host, "SEVERITY_CRITICAL", "disk is full");
        event["status"] = json!(format!("STATUS_{status}"));
        let events = samples::events(&[event]);
        self.rest()
            .post("/v1/data-receiver/events", &events)
            .await
            .ok();
    }

    /// Waits until the receivers got these numbers of messages.
    async fn wait(&self, jira: usize, other: usize) {
        self.jira.wait_for(jira).await;
        self.other.wait_for(other).await;
    }

    /// Waits until the kept value of the newest message to Jira is stored.
    async fn wait_for_issue(&self, host: &str) {
        let path = "/v1/notification/deliveries?destinationNames=jira-issue&states=DELIVERED";
        eventually("the issue to be stored", async || {
            let list = self.rest().get(path).await.ok()["deliveries"].take();
            let mut all = list.as_array()?.iter();
            let issue = format!("OPS-{host}");
            all.any(|it| it["kept"]["issue"] == issue.as_str())
                .then_some(())
        })
        .await;
    }

    async fn occurrence(&self, host: &str) -> Value {
        let search = json!({"query": {"filter": format!("host={host}")}});
        let found = self.rest().post("/v1/events:search", &search).await.ok();
        found["results"][0]["occurrences"][0].clone()
    }

    async fn rejected(&self, mapping: &str) -> Value {
        let path = format!("{MAPPINGS}/{mapping}");
        self.rest().get(&path).await.ok()["mapping"]["rejectedDocuments"].take()
    }
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Returns a shipped mapping.
fn example(name: &str) -> Value {
    let path = tree::root().join(format!("tests/examples/responses/{name}.json"));
    let text = fs::read_to_string(path)
        .unwrap()
        .replace("SECRET", SECRET)
        .replace("PUBLIC_KEY", &"ab".repeat(32));
    serde_json::from_str(&text).unwrap()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn hex_signature(text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    to_hex(&mac.finalize().into_bytes())
}

async fn post(rest: &Rest, mapping: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let path = format!("/v1/intake/webhooks/{mapping}");
    let sent = rest.try_send(Method::POST, &path, headers, body.to_owned());
    sent.await.unwrap()
}

async fn post_signed(rest: &Rest, document: &Value) -> Answer {
    let body = document.to_string();
    let signature = format!("sha256={}", hex_signature(&body));
    post(rest, "jira", &[("x-hub-signature", &signature)], &body).await
}

/// Returns Jira's webhook about an issue that a user moved to a status of a category.
fn transition(issue: &str, category: &str) -> Value {
    json!({
        "timestamp": 1_525_698_237_764_i64,
        "webhookEvent": "jira:issue_updated",
        "issue_event_type_name": "issue_generic",
        "user": {"accountId": "99:27935d01", "displayName": "ana", "active": true},
        "issue": {"id": "99291", "key": issue, "fields": {
            "summary": "disk is full",
            "status": {"name": "Moved", "statusCategory": {"id": 4, "key": category}},
        }},
        "changelog": {"id": "10124", "items": [
            {"field": "status", "fieldtype": "jira", "from": "1", "fromString": "To Do", "to": "3"},
        ]},
    })
}

fn comment(issue: &str, text: &str) -> Value {
    json!({
        "webhookEvent": "comment_created",
        "comment": {"id": "252789", "author": {"displayName": "ana"}, "body": text},
        "issue": {"id": "99291", "key": issue, "fields": {"status": {"name": "To Do"}}},
    })
}

fn history(occurrence: &Value) -> Vec<(String, String)> {
    let entries = occurrence["history"].as_array().unwrap().iter().skip(1);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    entries
        .map(|it| (text(&it["author"]), text(&it["to"])))
        .collect()
}

fn entry(author: &str, to: &str) -> (String, String) {
    (author.to_owned(), to.to_owned())
}

#[tokio::test]
async fn jira_acknowledges_and_closes_without_an_echo() {
    let stage = Stage::new(&json!({})).await;
    stage.rest().post(MAPPINGS, &example("jira")).await.ok();
    let sender = stage.sender("jira", "ingest");
    stage.send("a", "OPEN").await;
    stage.send("b", "OPEN").await;
    stage.wait(2, 2).await;
    stage.wait_for_issue("a").await;
    stage.wait_for_issue("b").await;
    let done = json!({"succeeded": 1, "dropped": 0});
    for _ in 0..3 {
        let answer = post_signed(&sender, &transition("OPS-a", "indeterminate")).await;
        assert_eq!(answer.ok(), done);
    }
    stage.wait(2, 3).await;
    let answer = post_signed(&sender, &comment("OPS-a", "looking")).await;
    assert_eq!(answer.ok(), done);
    assert_eq!(
        post_signed(&sender, &comment("OPS-a", "looking"))
            .await
            .ok(),
        done
    );
    let acknowledged = stage.occurrence("a").await;
    assert_eq!(history(&acknowledged), [entry("jira:ana", "true")]);
    let notes = acknowledged["annotations"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{acknowledged:#}");
    assert_eq!(notes[0]["author"], "jira:ana");
    assert_eq!(notes[0]["annotation"], "looking");
    // The comments of the preset are not notes.
    let own = post_signed(&sender, &comment("OPS-a", "{noformat}critical{noformat}")).await;
    assert_eq!(own.ok(), json!({"succeeded": 0, "dropped": 1}));
    // The sender's end is reported to both, with nothing in between.
    stage.send("a", "CLOSED").await;
    stage.wait(3, 4).await;
    let answer = post_signed(&sender, &transition("OPS-b", "done")).await;
    assert_eq!(answer.ok(), done);
    stage.wait(3, 5).await;
    let closed = stage.occurrence("b").await;
    assert_eq!(history(&closed), [entry("jira:ana", "closed")]);
    // Reopening is reported to both again.
    let id = closed["eventId"].clone();
    let reopen = json!({"statuses": [{"eventId": id, "status": "STATUS_OPEN"}]});
    stage
        .rest()
        .post("/v1/event-management/status", &reopen)
        .await
        .ok();
    stage.wait(4, 6).await;
    let to_jira: Vec<_> = stage
        .jira
        .received()
        .iter()
        .map(|it| it.json()["host"].clone())
        .collect();
    assert_eq!(to_jira[2..], ["a", "b"]);
}

#[tokio::test]
async fn later_change_by_another_user_reaches_the_receiver() {
    let stage = Stage::new(&json!({})).await;
    stage.rest().post(MAPPINGS, &example("jira")).await.ok();
    let sender = stage.sender("jira", "ingest");
    stage.send("a", "OPEN").await;
    stage.wait_for_issue("a").await;
    stage.wait(1, 1).await;
    post_signed(&sender, &transition("OPS-a", "indeterminate"))
        .await
        .ok();
    stage.wait(1, 2).await;
    let id = stage.occurrence("a").await["eventId"].clone();
    for (at, flag) in [false, true].into_iter().enumerate() {
        let change = json!({"statuses": [{"eventId": id, "acknowledged": flag}]});
        stage
            .rest()
            .post("/v1/event-management/status", &change)
            .await
            .ok();
        stage.wait(2 + at, 3 + at).await;
    }
}

#[tokio::test]
async fn group_is_acknowledged_by_its_issue_without_an_echo() {
    let more = json!({"group": {"by": ["name"], "wait": "1s", "interval": "10s"}});
    let stage = Stage::new(&more).await;
    stage.rest().post(MAPPINGS, &example("jira")).await.ok();
    let sender = stage.sender("jira", "ingest");
    stage.send("a", "OPEN").await;
    stage.send("b", "OPEN").await;
    stage.wait(1, 1).await;
    let host = stage.jira.received()[0].json()["host"]
        .as_str()
        .unwrap()
        .to_owned();
    stage.wait_for_issue(&host).await;
    let issue = format!("OPS-{host}");
    for category in ["indeterminate", "done"] {
        post_signed(&sender, &transition(&issue, category))
            .await
            .ok();
    }
    for host in ["a", "b"] {
        let occurrence = stage.occurrence(host).await;
        let expected = [entry("jira:ana", "true"), entry("jira:ana", "closed")];
        assert_eq!(history(&occurrence), expected);
    }
    // The closing message of the group.
    stage.wait(1, 2).await;
    // Another group is reported to both.
    stage.send("c", "OPEN").await;
    stage.wait(2, 3).await;
}

#[tokio::test]
async fn action_requires_a_signature_or_the_operator_role() {
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    rest.post(MAPPINGS, &example("jira")).await.ok();
    let mut unsigned = example("jira");
    unsigned["name"] = json!("unsigned");
    unsigned.as_object_mut().unwrap().remove("signature");
    rest.post(MAPPINGS, &unsigned).await.ok();
    stage.send("a", "OPEN").await;
    stage.wait_for_issue("a").await;
    let body = transition("OPS-a", "indeterminate").to_string();
    let (ingest, operator) = (
        stage.sender("ingest", "ingest"),
        stage.sender("operator", "operator"),
    );
    let viewer = stage.sender("viewer", "viewer");
    let wrong = format!("sha256={}", hex_signature("another body"));
    let signature = [("x-hub-signature", wrong.as_str())];
    let nobody = rest.with_key(None);
    let table: [(&Rest, &str, Headers<'_>, u16, &str); 7] = [
        (&ingest, "jira", &signature, 403, "x-hub-signature"),
        (&ingest, "jira", &[], 403, "x-hub-signature"),
        (&operator, "jira", &signature, 403, "x-hub-signature"),
        (
            &ingest,
            "unsigned",
            &[],
            403,
            "requires the role `operator`",
        ),
        (
            &viewer,
            "unsigned",
            &[],
            403,
            "requires the role `operator`",
        ),
        (&nobody, "unsigned", &[], 401, "key"),
        (&ingest, "absent", &[], 404, "absent"),
    ];
    for (at, (client, mapping, headers, status, text)) in table.into_iter().enumerate() {
        let answer = post(client, mapping, headers, &body).await;
        assert_eq!(answer.status, status, "{at}: {}", answer.text());
        assert!(answer.text().contains(text), "{at}: {}", answer.text());
    }
    assert!(history(&stage.occurrence("a").await).is_empty());
    let reason = stage.rejected("unsigned").await[0]["reason"].clone();
    assert!(
        reason
            .as_str()
            .unwrap()
            .contains("requires the role `operator`"),
        "{reason}"
    );
    let answer = post(&operator, "unsigned", &[], &body).await;
    assert_eq!(answer.ok(), json!({"succeeded": 1, "dropped": 0}));
    let expected = [entry("unsigned:ana", "true")];
    assert_eq!(history(&stage.occurrence("a").await), expected);
    // The audit log names the client.
    let audit = rest.get("/v1/audit?clientNames=operator").await.text();
    assert!(audit.contains("ReceiveWebhook"), "{audit}");
}

#[tokio::test]
async fn unknown_thread_is_dropped_and_shown() {
    let stage = Stage::new(&json!({})).await;
    stage.rest().post(MAPPINGS, &example("jira")).await.ok();
    let sender = stage.sender("jira", "ingest");
    let answer = post_signed(&sender, &transition("OPS-404", "done")).await;
    assert_eq!(answer.ok(), json!({"succeeded": 0, "dropped": 1}));
    let rejected = stage.rejected("jira").await;
    assert_eq!(rejected[0]["dropped"], true);
    assert_eq!(rejected[0]["client"], "jira");
    assert_eq!(
        rejected[0]["reason"],
        "no thread has the kept value `issue` = `OPS-404`"
    );
    assert!(
        rejected[0]["document"]
            .as_str()
            .unwrap()
            .contains("OPS-404")
    );
}

#[tokio::test]
async fn button_in_discord_acts_once_and_gets_the_required_reply() {
    let stage = Stage::new(&json!({})).await;
    let private = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let mut mapping = example("discord");
    mapping["signature"]["secret"] = json!("not a key");
    let refused = stage.rest().post(MAPPINGS, &mapping).await;
    assert!(refused.text().contains("64 hexadecimal digits"));
    mapping["signature"]["secret"] = json!(to_hex(private.public_key().as_ref()));
    stage.rest().post(MAPPINGS, &mapping).await.ok();
    let sender = stage.sender("discord", "ingest");
    stage.send("a", "OPEN").await;
    stage.wait(1, 1).await;
    let id = stage.occurrence("a").await["id"].clone();
    let send = async |document: &Value, sent_s: i64, signed: &str| {
        let time = sent_s.to_string();
        let code = to_hex(private.sign(format!("{time}{signed}").as_bytes()).as_ref());
        let headers = [
            ("x-signature-ed25519", &*code),
            ("x-signature-timestamp", &*time),
        ];
        post(&sender, "discord", &headers, &document.to_string()).await
    };
    let now_s = jiff::Timestamp::now().as_second();
    let ping = json!({"id": "1", "application_id": "2", "type": 1, "version": 1});
    let pong = send(&ping, now_s, &ping.to_string()).await;
    assert_eq!(pong.ok(), json!({"type": 1}));
    let press = json!({"id": "3", "type": 3, "member": {"user": {"id": "4", "username": "ana"}},
        "data": {"component_type": 2, "custom_id": format!("acknowledge {}", id.as_str().unwrap())}});
    let text = press.to_string();
    for (sent_s, signed) in [(now_s, "another body"), (now_s - 301, &*text)] {
        let refused = send(&press, sent_s, signed).await;
        assert_eq!(refused.status, 401, "{}", refused.text());
    }
    for _ in 0..2 {
        let done = send(&press, now_s, &text).await;
        assert_eq!(done.ok(), json!({"type": 6}));
    }
    let expected = [entry("discord:ana", "true")];
    assert_eq!(history(&stage.occurrence("a").await), expected);
}

/// Returns a mapping whose document contains all parts of the action.
fn plain_mapping() -> Value {
    json!({
        "name": "plain",
        "response": {
            "thread": {"id": "{{thread}}"},
            "action": "{{action}}",
            "author": "{{user}}",
            "note": "{{note}}",
            "duration": "{{duration}}",
            "assignee": "{{assignee}}",
        },
    })
}

#[tokio::test]
async fn each_action_takes_effect_once() {
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    rest.post(MAPPINGS, &plain_mapping()).await.ok();
    stage.send("a", "OPEN").await;
    stage.wait(1, 1).await;
    let id = stage.occurrence("a").await["id"].clone();
    let act = async |fields: Value| {
        let mut document = json!({"thread": id, "user": "Ana B. <ana@example.org>"});
        for (key, value) in fields.as_object().unwrap() {
            document[key] = value.clone();
        }
        rest.post("/v1/intake/webhooks/plain", &document).await
    };
    let actions = [
        json!({"action": "Acknowledge", "duration": "2h", "note": "mine"}),
        json!({"action": "unacknowledge"}),
        json!({"action": "assign", "assignee": "admin"}),
        json!({"action": "note", "note": "mine"}),
        json!({"action": "silence", "duration": "4h"}),
        json!({"action": "close"}),
        json!({"action": "acknowledge"}),
    ];
    for action in &actions {
        for _ in 0..2 {
            let answer = act(action.clone()).await;
            assert_eq!(
                answer.ok(),
                json!({"succeeded": 1, "dropped": 0}),
                "{action}"
            );
        }
    }
    let by = "plain:Ana B. <ana@example.org>";
    let occurrence = stage.occurrence("a").await;
    let expected = ["true", "false", "admin", "closed"].map(|to| entry(by, to));
    assert_eq!(history(&occurrence), expected);
    assert_eq!(occurrence["annotations"].as_array().unwrap().len(), 1);
    let silences = rest.get("/v1/notification/silences").await.ok();
    assert_eq!(silences["totalSize"], 1, "{silences:#}");
    let silence = &silences["silences"][0];
    assert_eq!(silence["author"], by);
    assert_eq!(silence["coveredCount"], 0, "{silence:#}");
}

#[tokio::test]
async fn invalid_actions_are_rejected_with_the_field() {
    let world = World::start();
    let rest = world.rest();
    rest.post(MAPPINGS, &plain_mapping()).await.ok();
    let event = samples::event("disk", "a", "SEVERITY_INFO", "disk is full");
    let events = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &events).await.ok();
    let search = json!({"query": {"filter": "host=a"}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    let id = found["results"][0]["id"].clone();
    let act = async |fields: Value| {
        let mut document = json!({"thread": id});
        for (key, value) in fields.as_object().unwrap() {
            document[key] = value.clone();
        }
        rest.post("/v1/intake/webhooks/plain", &document).await
    };
    assert_eq!(
        act(json!({"action": ""})).await.ok(),
        json!({"succeeded": 0, "dropped": 1})
    );
    let rejected = [
        (json!({"action": "explode"}), "response.action"),
        (
            json!({"action": "silence", "duration": "1 month"}),
            "response.duration",
        ),
        (
            json!({"action": "silence", "duration": "721h"}),
            "response.duration",
        ),
        (json!({"action": "silence"}), "response.duration"),
        (json!({"action": "note"}), "response.note"),
        (
            json!({"action": "assign", "assignee": "a/b"}),
            "response.assignee",
        ),
        (
            json!({"action": "close", "user": "a\u{202e}b"}),
            "response.author",
        ),
    ];
    for (fields, text) in rejected {
        let answer = act(fields.clone()).await;
        assert_eq!(answer.status, 400, "{fields}: {}", answer.text());
        assert!(answer.text().contains(text), "{fields}: {}", answer.text());
    }
    let many: Vec<_> = (0..101)
        .map(|_| json!({"thread": id, "action": "close"}))
        .collect();
    let answer = rest.post("/v1/intake/webhooks/plain", &json!(many)).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("the limit is 100"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn invalid_response_fields_are_named() {
    let world = World::start();
    let rest = world.rest();
    let change = |path: &str, value: Value| {
        let mut draft = plain_mapping();
        *draft.pointer_mut(path).unwrap() = value;
        draft
    };
    let kept = json!({"keptName": "issue", "keptValue": "{{x}}"});
    let event = json!({"name": "x", "dimensions": {"a": "b"}});
    let mut both = plain_mapping();
    both["event"] = event;
    let mut many = plain_mapping();
    many["response"]["destinationNames"] = json!(vec!["a"; 21]);
    let mut language = plain_mapping();
    language["response"]["templateLanguage"] = json!(7);
    let table = [
        (change("/name", json!("contact")), "\"name\""),
        (change("/response/action", json!("")), "response.action"),
        (change("/response/note", json!("{{#x}}")), "response.note"),
        (change("/response/thread", json!({})), "response.thread"),
        (
            change("/response/thread", kept),
            "response.destinationNames",
        ),
        (
            change("/response/thread", json!({"keptName": "issue"})),
            "response.thread.keptValue",
        ),
        (
            change("/response/thread", json!({"id": "{{#x}}"})),
            "response.thread.id",
        ),
        (both, "\"response\""),
        (many, "response.destinationNames"),
        (language, "response.templateLanguage"),
    ];
    for (draft, field) in table {
        let answer = rest.post(MAPPINGS, &draft).await;
        assert_eq!(answer.status, 400, "{field}: {}", answer.text());
        assert!(answer.text().contains(field), "{field}: {}", answer.text());
    }
}

#[tokio::test]
async fn shipped_mappings_map_published_documents_to_actions() {
    let world = World::start();
    let rest = world.rest();
    for (name, body, expected) in published_documents() {
        let media_type = if body.starts_with('{') {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        };
        let headers = json!({"x-github-event": "issues", "content-type": media_type});
        let test = json!({"mapping": example(name), "body": body, "headers": headers});
        let shown = rest.post(&format!("{MAPPINGS}:test"), &test).await.ok();
        assert_eq!(shown["faults"], Value::Null, "{name}: {shown:#}");
        assert_eq!(shown["actions"][0], expected, "{name}: {body}");
        // Every mapping is valid as it is.
        rest.post(&format!("{MAPPINGS}?validateOnly=true"), &example(name))
            .await
            .ok();
    }
}

/// Returns documents with the mapping and the expected action, or null if they are dropped.
#[expect(clippy::too_many_lines, reason = "one document after another")]
fn published_documents() -> Vec<(&'static str, String, Value)> {
    let pagerduty = |kind: &str| {
        json!({"event": {
            "id": "01CH754SM17TWPE2V2H4VPBRO7", "event_type": format!("incident.{kind}"),
            "resource_type": "incident", "occurred_at": "2021-12-08T22:58:53.510Z",
            "agent": {"id": "PLH1HKV", "summary": "Tenex Engineer", "type": "user_reference"},
            "client": null,
            "data": {"id": "PGR0VU2", "type": "incident", "number": 2, "status": "triggered",
                "incident_key": "event:1", "title": "disk is full"},
        }})
    };
    let slack = json!({
        "type": "block_actions", "team": {"id": "T9TK3CUKW", "domain": "example"},
        "user": {"id": "UA8RXUSPL", "username": "ana", "team_id": "T9TK3CUKW"},
        "api_app_id": "AABA1ABCD", "token": "9s8d9as89d8as9d8as989",
        "actions": [{"action_id": "silence", "block_id": "b", "value": "event:1", "type": "button",
            "text": {"type": "plain_text", "text": "Silence 1 h"}, "action_ts": "1548426417.840180"}],
    });
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &slack.to_string())
        .finish();
    let telegram = json!({"update_id": 1, "callback_query": {
        "id": "4382bfdwdsb323b2d9", "from": {"id": 1_111_111, "first_name": "Ana", "username": "ana"},
        "data": "close event:1",
    }});
    let discord = json!({"id": "1", "type": 3, "member": {"user": {"username": "ana"}},
        "data": {"component_type": 2, "custom_id": "silence event:1"}});
    let github = |action: &str| {
        json!({"action": action, "issue": {"number": 7, "state": "open", "title": "disk is full"},
            "repository": {"full_name": "o/r"}, "sender": {"login": "ana"}})
    };
    let text = |it: Value| it.to_string();
    let table = [
        (
            "jira",
            text(transition("OPS-7", "indeterminate")),
            json!({"keptValue": "OPS-7", "action": "acknowledge", "author": "ana"}),
        ),
        ("jira", text(transition("OPS-7", "new")), Value::Null),
        (
            "jira",
            text(comment("OPS-7", "x")),
            json!({"keptValue": "OPS-7", "action": "note", "author": "ana", "note": "x"}),
        ),
        (
            "github-issues",
            text(github("closed")),
            json!({"keptValue": "7", "action": "close", "author": "ana"}),
        ),
        (
            "github-issues",
            text(github("assigned")),
            json!({"keptValue": "7", "action": "acknowledge", "author": "ana"}),
        ),
        ("github-issues", text(github("edited")), Value::Null),
        (
            "pagerduty",
            text(pagerduty("acknowledged")),
            json!({"threadId": "event:1", "action": "acknowledge", "author": "Tenex Engineer"}),
        ),
        (
            "pagerduty",
            text(pagerduty("resolved")),
            json!({"threadId": "event:1", "action": "close", "author": "Tenex Engineer"}),
        ),
        ("pagerduty", text(pagerduty("triggered")), Value::Null),
        (
            "slack",
            form,
            json!({"threadId": "event:1", "action": "silence", "author": "ana", "duration": "3600s"}),
        ),
        (
            "discord",
            text(discord),
            json!({"threadId": "event:1", "action": "silence", "author": "ana", "duration": "3600s"}),
        ),
        ("discord", text(json!({"id": "1", "type": 1})), Value::Null),
        (
            "telegram",
            text(telegram),
            json!({"threadId": "event:1", "action": "close", "author": "ana"}),
        ),
    ];
    table.into()
}
