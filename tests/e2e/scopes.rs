//! Clients restricted to a scope in addition to their role.

mod every_method;

use std::collections::BTreeMap;

use bellwether_tests::{
    eventually::eventually,
    process::run,
    receiver::Receiver,
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

fn client(world: &World, name: &str, role: &str, further: &[&str]) -> String {
    let create = ["client", "create", name, "--role", role];
    let made = run(world.command(&[&create[..], further].concat()));
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn trigger(name: &str, tags: &[&str]) -> Value {
    let mut trigger = samples::trigger(name, "disk");
    trigger["tags"] = json!(tags);
    trigger
}

const TRIGGERS: &str = "/v1/notification/triggers";

async fn expect_denial(rest: &Rest, method: Method, path: &str, body: &Value) -> String {
    let answer = rest.send(method, path, body.to_string()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    answer.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn tag_scoped_editor_changes_only_its_resources() {
    let world = World::start();
    let admin = world.rest();
    let key = client(&world, "db", "editor", &["--scope-tag", "team:db"]);
    let db = world.rest().with_key(Some(&key));

    admin
        .post(TRIGGERS, &trigger("theirs", &["team:web"]))
        .await
        .ok();
    db.post(TRIGGERS, &trigger("ours", &["team:db", "x"]))
        .await
        .ok();
    let theirs = format!("{TRIGGERS}/theirs");
    let why = expect_denial(&db, Method::POST, TRIGGERS, &trigger("new", &["team:web"])).await;
    assert!(why.contains("team:db") && why.contains("`new`"), "{why}");
    let checked = format!("{TRIGGERS}?validateOnly=true");
    expect_denial(&db, Method::POST, &checked, &trigger("new", &[])).await;
    // Resources cannot be moved into or out of the scope.
    expect_denial(&db, Method::PUT, &theirs, &trigger("theirs", &["team:db"])).await;
    let ours = format!("{TRIGGERS}/ours");
    expect_denial(&db, Method::PUT, &ours, &trigger("ours", &["team:web"])).await;
    let answer = db.delete(&theirs).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    db.put(&ours, &trigger("ours", &["team:db"])).await.ok();

    // Applies a document, also as a dry run.
    for validate_only in [true, false] {
        let documents = json!({
            "validateOnly": validate_only,
            "documents": [{ "trigger": trigger("theirs", &["team:db"]) }],
        });
        let answer = db.post("/v1/config:apply", &documents).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    eventually("the rejections in the audit log", async || {
        let list = admin.get("/v1/audit?clientNames=db").await.ok();
        let is_reported = list.to_string().contains("has none of the tags");
        is_reported.then_some(())
    })
    .await;
    let whole = run(world.command(&["client", "update", "db", "--no-scope"]));
    assert!(whole.status.success(), "{whole:?}");
    db.put(&theirs, &trigger("theirs", &["team:db"])).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn source_scoped_sender_sends_only_its_sources() {
    let world = World::start();
    let sources = ["--scope-source", "cron", "--dialect", "cloudevents"];
    let key = client(&world, "cron", "ingest", &sources);
    let rest = world.rest().with_key(Some(&key));
    let send = async |dimensions: Value| {
        let events = json!({ "detailedResponse": true, "events": [
            { "name": "job failed", "summary": "it failed", "severity": "SEVERITY_ERROR",
              "dimensions": dimensions },
        ] });
        let answer = rest.post("/v1/data-receiver/events", &events).await.json();
        (
            answer["succeeded"].as_i64().unwrap_or(0),
            answer.to_string(),
        )
    };
    assert_eq!(send(json!({"source": "cron"})).await.0, 1);
    let (accepted, answer) = send(json!({"source": "web"})).await;
    assert_eq!(accepted, 0);
    assert!(
        answer.contains("is `web`; this key may send events only from `cron`"),
        "{answer}"
    );
    let (accepted, answer) = send(json!({"host": "a"})).await;
    assert_eq!(accepted, 0);
    assert!(answer.contains("is missing"), "{answer}");
    // The restriction also applies to an event in another dialect.
    let event = json!({ "specversion": "1.0", "id": "1", "type": "job", "source": "web" });
    let answer = rest.post("/v1/intake/cloudevents", &event).await;
    assert!(!answer.status.is_success(), "{}", answer.text());
}

const SILENCES: &str = "/v1/notification/silences";
const INHIBITIONS: &str = "/v1/notification/inhibitions";
const RULES: &str = "/v1/notification/rules";
const DESTINATIONS: &str = "/v1/notification/destinations";
const DELIVERIES: &str = "/v1/notification/deliveries";

/// Creates two teams, each with a trigger, a destination, a grouping rule and a delivered event;
/// also an event of the first team that no rule matches.
async fn two_teams(admin: &Rest, receiver: &Receiver) -> BTreeMap<&'static str, String> {
    for (name, word, tag) in [("ours", "disk", "team:db"), ("theirs", "page", "team:web")] {
        let tagged = |mut draft: Value| {
            draft["tags"] = json!([tag]);
            draft
        };
        let trigger = tagged(samples::trigger(name, word));
        admin.post(TRIGGERS, &trigger).await.ok();
        let destination = tagged(samples::webhook(name, &receiver.url(&format!("/{name}"))));
        admin.post(DESTINATIONS, &destination).await.ok();
        let mut rule = tagged(samples::rule(name, name, name, ""));
        rule["group"] = json!({"by": ["name"], "wait": "0s"});
        admin.post(RULES, &rule).await.ok();
    }
    let of_team = |mut event: Value, team: &str| {
        event["dimensions"]["team"] = json!(team);
        event
    };
    let events = [
        of_team(
            samples::event("full", "a", "SEVERITY_ERROR", "disk is full"),
            "db",
        ),
        samples::event("slow", "b", "SEVERITY_ERROR", "page is slow"),
        of_team(
            samples::event("calm", "c", "SEVERITY_INFO", "all is well"),
            "db",
        ),
    ];
    let sent = samples::events(&events);
    admin.post("/v1/data-receiver/events", &sent).await.ok();
    eventually("a message of each team", async || {
        let sent = admin
            .get(&format!("{DELIVERIES}?states=DELIVERED"))
            .await
            .ok();
        (sent["deliveries"].as_array()?.len() == 2).then_some(())
    })
    .await;
    let mut ids = BTreeMap::new();
    for (key, name) in [("ours", "full"), ("theirs", "slow"), ("named", "calm")] {
        let search = json!({"query": {"filter": format!("name={name}")}});
        let found = admin.post("/v1/events:search", &search).await.ok();
        ids.insert(key, found["results"][0]["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn silence(name: &str, covers: &Value) -> Value {
    let mut silence = json!({
        "name": name,
        "tags": ["team:db"],
        "reason": "kernel update",
        "span": {"endTime": samples::in_seconds(600)},
    });
    let members = silence.as_object_mut().unwrap();
    members.extend(covers.as_object().unwrap().clone());
    silence
}

fn inhibition(name: &str, target: &str) -> Value {
    json!({
        "name": name,
        "tags": ["team:db"],
        "enabled": true,
        "sourceFilter": "name=host-down",
        "targetFilter": target,
        "equal": [{"source": "host"}],
    })
}

async fn made_in_every_way(db: &Rest, all: &str, word: &str, draft: &Value) -> Vec<Answer> {
    let broad = if all == SILENCES {
        "?allowBroad=true"
    } else {
        ""
    };
    let checked = if all == SILENCES {
        "&validateOnly=true"
    } else {
        "?validateOnly=true"
    };
    let mut edit = draft.clone();
    edit["name"] = json!("kept");
    let mut answers = vec![
        db.post(&format!("{all}{broad}{checked}"), draft).await,
        db.put(&format!("{all}/kept{broad}"), &edit).await,
        db.post(&format!("{all}{broad}"), draft).await,
    ];
    if all != SILENCES {
        let documents = json!({"documents": [{ word: draft }]});
        answers.push(db.post("/v1/config:apply", &documents).await);
    }
    answers
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test(flavor = "multi_thread")]
async fn tag_scoped_client_cannot_silence_or_notify_others() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let admin = world.rest();
    two_teams(&admin, &receiver).await;
    let key = client(&world, "db", "editor", &["--scope-tag", "team:db"]);
    let db = world.rest().with_key(Some(&key));
    let rule = |name: &str, destinations: &[&str]| {
        let mut rule = samples::rule(name, "theirs", "ours", "");
        rule["tags"] = json!(["team:db"]);
        rule["destinationNames"] = json!(destinations);
        rule
    };
    let allowed = [
        (SILENCES, silence("kept", &json!({"ruleNames": ["ours"]}))),
        (INHIBITIONS, inhibition("kept", "name=full and team=db")),
        (RULES, rule("kept", &["ours"])),
    ];
    for (all, draft) in allowed {
        db.post(all, &draft).await.ok();
    }
    // The path, the request, and the text of the rejection; `None` if the request is allowed.
    let table = [
        (
            SILENCES,
            silence("s1", &json!({"ruleNames": ["theirs"]})),
            "rule `theirs`",
        ),
        (
            SILENCES,
            silence("s2", &json!({"ruleNames": ["ours", "theirs"]})),
            "rule `theirs`",
        ),
        (
            SILENCES,
            silence("s3", &json!({"filter": "severity>=debug"})),
            "`team` = `db`",
        ),
        (
            SILENCES,
            silence("s4", &json!({"filter": "team=web"})),
            "query",
        ),
        (
            SILENCES,
            silence("s5", &json!({"filter": "team=db or host=b"})),
            "query",
        ),
        (
            SILENCES,
            silence("s6", &json!({"filter": "not team=web"})),
            "query",
        ),
        (
            SILENCES,
            silence("s7", &json!({"filter": "team=db", "ruleNames": ["theirs"]})),
            "rule `theirs`",
        ),
        (SILENCES, silence("s8", &json!({"ruleNames": ["ours"]})), ""),
        (
            SILENCES,
            silence("s9", &json!({"filter": "team=db and host=a"})),
            "",
        ),
        (
            SILENCES,
            silence("s10", &json!({"filter": "host=a", "ruleNames": ["ours"]})),
            "",
        ),
        (INHIBITIONS, inhibition("i1", "severity>=debug"), "target"),
        (INHIBITIONS, inhibition("i2", "name=slow"), "target"),
        (INHIBITIONS, inhibition("i3", "team=db"), ""),
        (RULES, rule("r1", &["theirs"]), "destination `theirs`"),
        (
            RULES,
            rule("r2", &["ours", "theirs"]),
            "destination `theirs`",
        ),
        (RULES, rule("r3", &["ours"]), ""),
    ];
    for (all, draft, named) in table {
        let word = all.rsplit('/').next().unwrap().trim_end_matches('s');
        for answer in made_in_every_way(&db, all, word, &draft).await {
            let text = answer.text();
            if named.is_empty() {
                assert_eq!(answer.status, 200, "{draft}: {text}");
            } else {
                assert_eq!(
                    (answer.status.as_u16(), answer.code()),
                    (403, 7),
                    "{draft}: {text}"
                );
                assert!(
                    text.contains(named) && text.contains("team:db"),
                    "{draft}: {text}"
                );
            }
        }
    }
    // The client may keep another team's destination that an administrator added to the rule.
    admin
        .put(&format!("{RULES}/kept"), &rule("kept", &["ours", "theirs"]))
        .await
        .ok();
    let mut edit = rule("kept", &["theirs"]);
    edit["description"] = json!("edited");
    db.put(&format!("{RULES}/kept"), &edit).await.ok();
    // A client without a scope is not restricted.
    let broad = silence("broad", &json!({"filter": "severity>=debug"}));
    admin
        .post(&format!("{SILENCES}?allowBroad=true"), &broad)
        .await
        .ok();
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test(flavor = "multi_thread")]
async fn tag_scoped_operator_acts_only_on_its_resources() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let admin = world.rest();
    let events = two_teams(&admin, &receiver).await;
    let key = client(&world, "db", "operator", &["--scope-tag", "team:db"]);
    let db = world.rest().with_key(Some(&key));
    let delivery = async |rule: &str| {
        let list = admin
            .get(&format!("{DELIVERIES}?ruleNames={rule}"))
            .await
            .ok();
        list["deliveries"][0]["id"].as_str().unwrap().to_owned()
    };
    let group = async |rule: &str| {
        let list = admin
            .get(&format!("/v1/notification/groups?ruleNames={rule}"))
            .await;
        list.ok()["groups"][0]["id"].as_str().unwrap().to_owned()
    };
    let (own, other) = (delivery("ours").await, delivery("theirs").await);
    let hook = json!({"webhook": {"url": receiver.url("/new")}});
    let test = format!("{DESTINATIONS}:test");
    let table = [
        (format!("{DESTINATIONS}/theirs:pause"), json!({}), false),
        (format!("{DESTINATIONS}/theirs:resume"), json!({}), false),
        (test.clone(), json!({"name": "theirs"}), false),
        (test.clone(), json!({"name": "theirs", "type": hook}), false),
        (format!("{DELIVERIES}/{other}:retry"), json!({}), false),
        (format!("{DELIVERIES}/{other}:cancel"), json!({}), false),
        (
            format!("{DELIVERIES}:retry"),
            json!({"ids": [own, other]}),
            false,
        ),
        (
            format!("{DELIVERIES}:retry"),
            json!({"filter": {"states": ["DELIVERED"]}}),
            false,
        ),
        (
            format!("{DELIVERIES}:cancel"),
            json!({"filter": {"ruleNames": ["theirs"], "states": ["DELIVERED"]}}),
            false,
        ),
        (
            format!("/v1/notification/groups/{}:status", group("theirs").await),
            json!({"acknowledged": true}),
            false,
        ),
        (format!("{DESTINATIONS}/ours:pause"), json!({}), true),
        (format!("{DESTINATIONS}/ours:resume"), json!({}), true),
        (test.clone(), json!({"name": "ours"}), true),
        (test, json!({"name": "new", "type": hook}), true),
        (format!("{DELIVERIES}/{own}:retry"), json!({}), true),
        (
            format!("{DELIVERIES}:cancel"),
            json!({"filter": {"ruleNames": ["ours"]}}),
            true,
        ),
        (
            format!("/v1/notification/groups/{}:status", group("ours").await),
            json!({"acknowledged": true}),
            true,
        ),
    ];
    for (path, body, is_allowed) in table {
        let answer = db.post(&path, &body).await;
        let text = answer.text();
        if is_allowed {
            assert_eq!(answer.status, 200, "{path} {body}: {text}");
        } else {
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (403, 7),
                "{path} {body}: {text}"
            );
            assert!(text.contains("team:db"), "{path} {body}: {text}");
        }
    }
    for (whose, is_allowed) in [("ours", true), ("named", true), ("theirs", false)] {
        let id = &events[whose];
        let status = json!({"statuses": [{"eventId": id, "acknowledged": true}]});
        let note = json!({"annotations": [{"eventId": id, "annotation": "seen"}]});
        for (path, body, list) in [
            ("/v1/event-management/status", status, "statusResponses"),
            ("/v1/event-management/annotate", note, "annotationResponses"),
        ] {
            let answer = db.post(path, &body).await;
            let text = answer.text();
            let item = &answer.json()[list][0];
            assert_eq!(item["success"], is_allowed, "{path} {whose}: {text}");
            assert!(
                is_allowed || text.contains("team:db"),
                "{path} {whose}: {text}"
            );
        }
    }
    // The other team's data is unchanged, and no message was sent again.
    let theirs = admin
        .get(&format!("/v1/events/{}", events["theirs"]))
        .await
        .ok();
    assert_eq!(
        theirs["result"]["occurrences"][0]["acknowledged"], false,
        "{theirs}"
    );
    let to_them = receiver
        .received()
        .into_iter()
        .filter(|it| it.path == "/theirs");
    assert_eq!(to_them.count(), 1);
}
