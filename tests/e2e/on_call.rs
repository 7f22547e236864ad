//! On-call over REST: contacts, a schedule, a policy and a rule. An event pages one contact after
//! another, and one of them acknowledges with the link in the message.

mod edits;
mod feeds;

use std::time::Duration;

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use serde_json::{Value, json};

use crate::samples;

const NOTIFICATION: &str = "/v1/notification";

/// Returns a destination whose template contains the notified contact and the acknowledgement link.
pub(crate) fn push(url: &str) -> Value {
    json!({
        "name": "push",
        "type": {"webhook": {
            "url": url,
            "payload": "{\"to\": \"{{contact.name}} {{contact.phone}}\", \"ack\": \"{{ack.url}}\", \"clear\": {{clear}}}",
        }},
    })
}

pub(crate) fn contact(name: &str) -> Value {
    let phone = format!("+{name}");
    json!({
        "name": name,
        "methods": [{"destinationName": "push", "variables": {"phone": phone}}],
    })
}

async fn prepare(rest: &Rest, url: &str) {
    let create = async |path: &str, body: &Value| {
        rest.post(&format!("{NOTIFICATION}/{path}"), body)
            .await
            .ok()
    };
    create("destinations", &push(url)).await;
    for name in ["ana", "ben"] {
        create("contacts", &contact(name)).await;
    }
    let schedule = json!({
        "name": "database",
        "timeZone": "Europe/Berlin",
        "layers": [{
            "slots": [{"contactNames": ["ana"]}],
            "dtstart": "2026-01-05T09:00:00",
            "rrule": "FREQ=WEEKLY",
        }],
    });
    let created = create("schedules", &schedule).await;
    assert_eq!(created["schedule"]["onCallNames"], json!(["ana"]));
    let policy = json!({
        "name": "database",
        "steps": [
            {"targets": [{"scheduleName": "database"}], "wait": "2s"},
            {"targets": [{"contactName": "ben"}]},
        ],
    });
    create("escalation-policies", &policy).await;
    let trigger = json!({"name": "all", "type": {"event": {"filter": "name=disk"}}});
    create("triggers", &trigger).await;
    let rule = json!({
        "name": "page",
        "enabled": true,
        "sendUpdates": true,
        "triggerNames": ["all"],
        "escalationPolicyName": "database",
    });
    create("rules", &rule).await;
}

async fn response(rest: &Rest) -> Value {
    let path = format!("{NOTIFICATION}/responses?states=ACTIVE&states=ACKNOWLEDGED&states=ENDED");
    let found = rest.get(&path).await.ok();
    found["responses"][0].clone()
}

async fn send(rest: &Rest, status: &str) {
    let mut event = samples::event("disk", "db-1", "SEVERITY_CRITICAL", "full");
    event["status"] = json!(status);
    let body = samples::events(&[event]);
    rest.post("/v1/data-receiver/events", &body).await.ok();
}

fn to(receiver: &Receiver) -> Vec<String> {
    let all = receiver.received().into_iter();
    all.map(|it| it.json()["to"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn escalation_stops_when_a_contact_acknowledges_by_link() {
    let receiver = Receiver::start().await;
    let mut world = World::with_settings("link_base = \"https://events.example\"\n");
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    send(&rest, "STATUS_OPEN").await;
    receiver.wait_for(1).await;
    assert_eq!(to(&receiver), ["ana +ana"]);
    // Wait, since a message that is not recorded as delivered is sent again after a kill.
    eventually("the message to be recorded", async || {
        let path = format!("{NOTIFICATION}/deliveries?states=DELIVERED");
        let found = rest.get(&path).await.ok();
        found["deliveries"].as_array().filter(|it| !it.is_empty())?;
        Some(())
    })
    .await;
    // The second step becomes due while the service is down.
    world.kill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.start_again();
    let rest = world.rest();
    receiver.wait_for(2).await;
    assert_eq!(to(&receiver), ["ana +ana", "ben +ben"]);
    assert_eq!(response(&rest).await["state"], "ACTIVE");

    // No contact has been notified of a closing yet.
    let found = rest.get(&format!("{NOTIFICATION}/obligations")).await.ok();
    let owed = found["obligations"].as_array().unwrap().iter();
    let mut owed: Vec<_> = owed.map(|it| it["contactName"].as_str().unwrap()).collect();
    owed.sort_unstable();
    assert_eq!(owed, ["ana", "ben"]);

    let message = receiver.received()[1].json();
    let link = message["ack"].as_str().unwrap();
    let path = link.split_once("/acknowledge/").unwrap().1;
    let path = format!("/acknowledge/{path}");
    let page = rest.get(&path).await;
    assert_eq!(page.status, 200);
    // A program that only follows the link does not acknowledge.
    assert_eq!(response(&rest).await["state"], "ACTIVE");
    let done = rest.post(&path, &json!({})).await;
    assert_eq!(done.status, 200);
    let acknowledged = response(&rest).await;
    assert_eq!(acknowledged["state"], "ACKNOWLEDGED");
    assert_eq!(acknowledged["acknowledgedBy"], "contact:ben");
    let forged = path.replace("contact=ben", "contact=ana");
    assert_eq!(rest.post(&forged, &json!({})).await.status, 401);

    send(&rest, "STATUS_CLOSED").await;
    // Both contacts are notified of the acknowledgement and of the closing.
    receiver.wait_for(6).await;
    let clear = receiver.received().into_iter();
    let clear: Vec<_> = clear.map(|it| it.json()["clear"].clone()).collect();
    assert_eq!(clear[2..], [true, true, true, true]);
    let ended = response(&rest).await;
    assert_eq!(ended["state"], "ENDED");
    let found = rest.get(&format!("{NOTIFICATION}/obligations")).await.ok();
    assert!(found.get("obligations").is_none(), "{found}");
    let path = format!("/v1/events/{}:explain", ended["eventId"].as_str().unwrap());
    let explained = rest.get(&path).await.ok();
    let story = explained["timeline"].as_array().unwrap().iter();
    let story: Vec<_> = story.filter_map(|it| it["text"].as_str()).collect();
    for reported in [
        "the message to ana by push was delivered",
        "the message to ben by push was delivered",
    ] {
        assert!(story.contains(&reported), "{story:#?}");
    }
    let command = world.command(&["explain", ended["eventId"].as_str().unwrap()]);
    let said = String::from_utf8(process::run(command).stdout).unwrap();
    for reported in [
        "\n  ✓ delivery to ana by push: delivered at ",
        "\n  escalation database: ended, step 2 of 2; notified ana by push in step 1, ben by push \
         in step 2\n",
    ] {
        assert!(said.contains(reported), "{said}");
    }
}

#[tokio::test]
async fn resources_in_use_are_not_deleted_and_drafts_are_simulated() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    for path in [
        "contacts/ana",
        "schedules/database",
        "escalation-policies/database",
        "destinations/push",
    ] {
        let refused = rest.delete(&format!("{NOTIFICATION}/{path}")).await;
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains("is used by"), "{path}");
    }
    let draft = json!({
        "policy": {"steps": [
            {"targets": [{"scheduleName": "database"}]},
            {"targets": [{"contactName": "ana"}]},
            {"targets": [{"contactName": "ben"}]},
        ]},
        "severity": "SEVERITY_ERROR",
    });
    let path = format!("{NOTIFICATION}/escalation-policies:preview");
    let played = rest.post(&path, &draft).await.ok();
    let shown: Vec<_> = played["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |field: &str| it[field].as_str().unwrap_or_default();
            (text("after"), text("contactName"), text("problem"))
        })
        .collect();
    let expected = [
        ("0s", "ana", ""),
        ("300s", "", "everyone was already notified in this round"),
        ("300s", "ben", ""),
    ];
    assert_eq!(shown, expected);
    assert_eq!(played["endsAfter"], "600s");
    let shifts = rest
        .get(&format!("{NOTIFICATION}/schedules/database:shifts"))
        .await
        .ok();
    assert_eq!(shifts["shifts"][0]["contactNames"], json!(["ana"]));
    let path = format!("{NOTIFICATION}/schedules/database/overrides");
    let late = json!({"contactNames": ["ben"], "endTime": "2020-01-01T00:00:00Z"});
    let refused = rest.post(&path, &late).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("override.endTime"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn every_method_of_a_contact_is_tested_with_its_variables() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    let create = async |path: &str, body: &Value| {
        rest.post(&format!("{NOTIFICATION}/{path}"), body)
            .await
            .ok()
    };
    create("destinations", &push(&receiver.url("/"))).await;
    let gone = json!({"name": "gone", "type": {"webhook": {"url": "http://127.0.0.1:9/"}}});
    create("destinations", &gone).await;
    let mut ana = contact("ana");
    let late =
        json!({"destinationName": "gone", "after": "300s", "minSeverity": "SEVERITY_CRITICAL"});
    ana["methods"].as_array_mut().unwrap().push(late);
    create("contacts", &ana).await;
    let found = create("contacts/ana:test", &json!({})).await;
    let methods: Vec<_> = found["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            (text(&it["destinationName"]), text(&it["result"]["outcome"]))
        })
        .collect();
    let expected = [
        ("push", "OUTCOME_DELIVERED"),
        ("gone", "OUTCOME_UNREACHABLE"),
    ];
    let expected = expected.map(|(name, outcome)| (name.to_owned(), outcome.to_owned()));
    assert_eq!(methods, expected);
    assert_eq!(to(&receiver), ["ana +ana"]);
    let missing = rest
        .post(&format!("{NOTIFICATION}/contacts/zoe:test"), &json!({}))
        .await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn schedule_feed_is_served_by_address_until_deleted() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let feed = format!("{NOTIFICATION}/schedules/database:feed");
    let url = rest.get(&feed).await.ok()["url"].clone();
    let url = url.as_str().unwrap();
    assert!(url.starts_with("/schedules/database.ics?sign="), "{url}");
    let anonymous = rest.with_key(None);
    let found = anonymous.get(url).await;
    assert_eq!(found.status, 200);
    let text = found.text();
    for line in ["BEGIN:VCALENDAR", "SUMMARY:On call: ana", "END:VCALENDAR"] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
    let sign = url.split_once('=').unwrap().1;
    let shorter = &sign[..sign.len() - 1];
    for wrong in [
        "/schedules/database.ics".to_owned(),
        format!("/schedules/database.ics?sign={shorter}"),
        format!("/schedules/other.ics?sign={sign}"),
    ] {
        assert_eq!(anonymous.get(&wrong).await.status, 401, "{wrong}");
    }
    // A new schedule with the same name gets another feed address.
    for path in [
        "rules/page",
        "escalation-policies/database",
        "schedules/database",
    ] {
        rest.delete(&format!("{NOTIFICATION}/{path}")).await.ok();
    }
    assert_eq!(anonymous.get(url).await.status, 401);
    let again = json!({
        "name": "database",
        "timeZone": "UTC",
        "layers": [{"slots": [{"contactNames": ["ben"]}], "dtstart": "2026-01-05T09:00:00"}],
    });
    let path = format!("{NOTIFICATION}/schedules");
    rest.post(&path, &again).await.ok();
    assert_eq!(anonymous.get(url).await.status, 401);
}

#[tokio::test]
async fn page_states_that_the_link_acknowledges_a_group() {
    let receiver = Receiver::start().await;
    let world = World::with_settings("link_base = \"https://events.example\"\n");
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let path = format!("{NOTIFICATION}/rules/page");
    let mut rule = rest.get(&path).await.ok()["rule"].clone();
    rule["group"] = json!({"by": ["name"], "wait": "1s", "interval": "30s"});
    rest.put(&path, &rule).await.ok();
    let hosts = ["db-1", "db-2", "db-3"];
    let events = hosts.map(|host| samples::event("disk", host, "SEVERITY_ERROR", "full"));
    let body = samples::events(&events);
    rest.post("/v1/data-receiver/events", &body).await.ok();
    receiver.wait_for(1).await;
    let message = receiver.received()[0].json();
    let link = message["ack"].as_str().unwrap();
    let path = format!(
        "/acknowledge/{}",
        link.split_once("/acknowledge/").unwrap().1
    );
    let page = rest.get(&path).await.text();
    assert!(
        page.contains("This also acknowledges 2 more open events in its group"),
        "{page}"
    );
    let page = rest.post(&path, &json!({})).await.text();
    assert!(
        page.contains("Acknowledged with 2 more open events"),
        "{page}"
    );
}

/// Pages a contact that has the same name as the first client, by a webhook and by an event.
async fn page_a_namesake(world: &World, receiver: &Receiver) {
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let mut push = push(&receiver.url("/"));
    push["type"]["webhook"]["payload"] = json!(
        "{\"ack\": \"{{ack.url}}\", \"link\": \"{{link}}\", \"half\": \"{{{ack.url}}} {{{link}}}\"}"
    );
    let path = format!("{NOTIFICATION}/destinations/push");
    rest.put(&path, &push).await.ok();
    let event = json!({
        "name": "event",
        "type": {"event": {
            "nameTemplate": "paged", "typeTemplate": "page", "summaryTemplate": "{{ack.url}} {{link}}",
            "severity": "SEVERITY_INFO",
        }},
    });
    rest.post(&format!("{NOTIFICATION}/destinations"), &event)
        .await
        .ok();
    let mut namesake = contact("admin");
    let methods = namesake["methods"].as_array_mut().unwrap();
    methods.push(json!({"destinationName": "event"}));
    rest.post(&format!("{NOTIFICATION}/contacts"), &namesake)
        .await
        .ok();
    let policy = json!({"name": "database", "steps": [{"targets": [{"contactName": "admin"}]}]});
    rest.put(
        &format!("{NOTIFICATION}/escalation-policies/database"),
        &policy,
    )
    .await
    .ok();
}

fn signature(link: &Value) -> &str {
    let link = link.as_str().unwrap();
    link.rsplit_once("sign=").expect("a signed link").1
}

#[tokio::test]
async fn signed_link_is_masked_in_the_api() {
    let receiver = Receiver::start().await;
    let settings = "link_base = \"https://events.example\"\nlink_lifetime = \"1h\"\n";
    let world = World::with_settings(settings);
    page_a_namesake(&world, &receiver).await;
    let rest = world.rest();
    send(&rest, "STATUS_OPEN").await;
    receiver.wait_for(1).await;
    let message = receiver.received()[0].json();
    let secrets = [signature(&message["ack"]), signature(&message["link"])];
    let viewer = rest.with_key(Some(&world.client("reader", "viewer")));
    let delivered = format!("{NOTIFICATION}/deliveries?states=DELIVERED");
    let ids = eventually("both messages to be recorded", async || {
        let found = viewer.get(&delivered).await.ok();
        let found = found["deliveries"].as_array()?;
        let ids: Vec<_> = found.iter().map(|it| it["id"].clone()).collect();
        (ids.len() == 2).then_some(ids)
    })
    .await;
    let mut texts = Vec::new();
    for id in &ids {
        let path = format!("{NOTIFICATION}/deliveries/{}", id.as_str().unwrap());
        texts.push(viewer.get(&path).await.text());
    }
    let search = json!({"query": {"filter": "name=paged"}});
    texts.push(viewer.post("/v1/events:search", &search).await.text());
    let event_id = response(&rest).await["eventId"].clone();
    let preview = json!({
        "destinationNames": ["push", "event"], "message": "{{link}}", "eventId": event_id,
    });
    let path = format!("{NOTIFICATION}/rules:preview");
    texts.push(viewer.post(&path, &preview).await.text());
    let render = json!({"name": "push", "eventId": event_id, "message": "{{link}}"});
    let path = format!("{NOTIFICATION}/destinations:render");
    texts.push(rest.post(&path, &render).await.text());
    for text in texts {
        assert!(
            text.contains("sign=********") || text.contains("sign%3D********"),
            "{text}"
        );
        for secret in secrets {
            for part in [secret, &secret[12..32]] {
                assert!(!text.contains(part), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn acknowledgement_by_link_is_audited_as_its_contact() {
    let receiver = Receiver::start().await;
    let world = World::with_settings("link_base = \"https://events.example\"\n");
    page_a_namesake(&world, &receiver).await;
    let rest = world.rest();
    send(&rest, "STATUS_OPEN").await;
    receiver.wait_for(1).await;
    let message = receiver.received()[0].json();
    let link = message["ack"].as_str().unwrap();
    let path = link.strip_prefix("https://events.example").unwrap();
    let anonymous = rest.with_key(None);
    assert_eq!(anonymous.get(path).await.status, 200);
    let done = anonymous.post(path, &json!({})).await;
    assert!(done.text().contains("contact:admin"), "{}", done.text());
    let acknowledged = response(&rest).await;
    assert_eq!(acknowledged["acknowledgedBy"], "contact:admin");
    let event = acknowledged["eventId"].as_str().unwrap();
    let found = rest.get(&format!("/v1/events/{event}")).await.ok();
    let history = found["result"]["occurrences"][0]["history"].as_array();
    let mut history = history.unwrap().iter();
    let entry = history.find(|it| it["field"] == "acknowledged").unwrap();
    assert_eq!(entry["author"], "contact:admin");
    let issued = "issued an acknowledge link in a message";
    for (action, address, reason) in [
        ("READ", "", issued),
        ("READ", "127.0.0.1", "via an acknowledge link"),
        ("UPDATED", "127.0.0.1", ""),
    ] {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        // Reads are recorded at most once a minute, after the response.
        let entry = eventually(&format!("the entry {action} {reason}"), async || {
            let found = rest.get("/v1/audit?clientNames=contact:admin").await.ok();
            let mut entries = found["entries"].as_array()?.iter();
            let entry = entries.find(|it| it["action"] == action && text(&it["reason"]) == reason);
            entry.cloned()
        })
        .await;
        assert_eq!(entry["method"], "bellwether.v1.LinkService/Acknowledge");
        assert_eq!(text(&entry["address"]), address);
        assert_eq!(entry["kind"], "occurrence");
        assert_eq!(entry["names"], json!([acknowledged["occurrenceId"]]));
    }
    // A client cannot have a contact's name.
    let named = ["client", "create", "contact:admin", "--role", "viewer"];
    let made = process::run(world.command(&named));
    assert!(!made.status.success(), "{made:?}");
}

#[tokio::test]
async fn feed_address_requests_are_audited_and_can_be_replaced() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let of = |text: &str| format!("{NOTIFICATION}/schedules/database:{text}");
    let url = |found: &Value| found["url"].as_str().unwrap().to_owned();
    let first = url(&rest.get(&of("feed")).await.ok());
    assert_eq!(url(&rest.get(&of("feed")).await.ok()), first);
    let anonymous = rest.with_key(None);
    assert_eq!(anonymous.get(&first).await.status, 200);
    let second = url(&rest.post(&of("rotateFeed"), &json!({})).await.ok());
    assert_eq!(url(&rest.get(&of("feed")).await.ok()), second);
    assert_eq!(anonymous.get(&first).await.status, 401);
    assert_eq!(anonymous.get(&second).await.status, 200);
    // An edit does not change the address.
    let path = format!("{NOTIFICATION}/schedules/database");
    let schedule = rest.get(&path).await.ok()["schedule"].clone();
    rest.put(&path, &schedule).await.ok();
    assert_eq!(anonymous.get(&second).await.status, 200);
    eventually(
        "the address to be issued, read, rotated and rejected",
        async || {
            let found = rest.get("/v1/audit?pageSize=200").await.ok();
            let entries = found["entries"].as_array()?;
            let expected = [
                ("admin", "GetScheduleFeed", "READ"),
                ("admin", "RotateScheduleFeed", "UPDATED"),
                ("", "OpenFeed", "READ"),
                ("", "OpenFeed", "REFUSED"),
            ];
            let is_there = |(client, method, action): &(&str, &str, &str)| {
                entries.iter().any(|it| {
                    let name = it["clientName"].as_str().unwrap_or_default();
                    let called = it["method"].as_str().unwrap_or_default();
                    let is_about = *action == "REFUSED" || it["names"] == json!(["database"]);
                    let from = it["address"].as_str().unwrap_or_default();
                    name == *client
                        && called.ends_with(method)
                        && it["action"] == *action
                        && is_about
                        && from == "127.0.0.1"
                })
            };
            expected.iter().all(is_there).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn guessed_addresses_are_throttled_and_reported() {
    let world = World::start();
    let rest = world.rest();
    let heartbeat = json!({"name": "cron", "enabled": true, "every": "3600s"});
    rest.post(&format!("{NOTIFICATION}/heartbeats"), &heartbeat)
        .await
        .ok();
    let anonymous = rest.with_key(None);
    for guess in 0..25 {
        let path = format!("/v1/data-receiver/heartbeats/cron/guess{guess}");
        assert_eq!(anonymous.get(&path).await.status, 401);
    }
    eventually("an own event about it", async || {
        let search = json!({"query": {"filter": "source=bellwether and type=key-refused"}});
        let found = rest.post("/v1/events:search", &search).await.ok();
        let found = found["results"].as_array()?;
        (!found.is_empty()).then_some(())
    })
    .await;
}
