//! Tests that a data folder of an earlier release is intact, and can be opened and used.
//!
//! Each folder in `tests/fixtures` was written by the release in its name, contains the
//! definitions, events, deliveries and secrets expected here, and is never modified.

use std::{path::Path, process::Command};

use bellwether_tests::{
    eventually::eventually, process, providers::standard_webhooks, receiver::Receiver, rest::Rest,
    tree, world::World,
};
use serde_json::{Value, json};

const RELEASES: [&str; 2] = ["0.1.0", "0.2.0"];
/// Settings with which no record expires, whatever its age.
const SETTINGS: &str = "[lifetime]\nerror_age_max = \"0s\"\nwarning_age_max = \"0s\"\n\
    info_age_max = \"0s\"\nretention = \"0s\"\n[delivery]\nretention = \"36500d\"\n";

const SENDER: &str = "bw_egPuoFG_Iy80HTrjuOfG5iZFWTZGeqRY12nHcp7Rsyw";
const LOOKER: &str = "bw_OfwfIcLObaA-AqTwZGOW4ys0ufKnyzVy5yaS-OblM5A";
const SIGNING: &str = "whsec_a2VwdC1zaWduaW5nLXNlY3JldC1rZXB0LXNlY3JldA==";
const MASK: &str = "********";

pub(crate) fn unpack(release: &str, data_dir: &Path) {
    let archive = tree::root().join(format!("tests/fixtures/data-{release}.tgz"));
    let folder = data_dir
        .parent()
        .expect("the data folder is inside a folder");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .status();
    assert!(unpacked.expect("tar").success(), "the folder of {release}");
}

#[tokio::test]
async fn data_folder_of_an_earlier_release_works() {
    for release in RELEASES {
        let mut world = World::on(|data_dir| unpack(release, data_dir), SETTINGS);
        let rest = world.rest();
        definitions_are_preserved(&rest).await;
        events_are_preserved(&rest).await;
        sent_messages_are_preserved(&rest).await;
        keys_keep_their_permissions(&rest).await;
        pending_messages_are_sent(&rest).await;
        existing_records_are_counted(&rest).await;

        world.terminate();
        let output = process::run(world.command(&["check", "--json"]));
        let reported = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{release}: {reported}");
        // Data of both versions survives a kill.
        world.start_again();
        world.kill();
        world.start_again();
        events_are_preserved(&world.rest()).await;
    }
}

/// Asserts that the first start counts existing records, but no earlier activity.
async fn existing_records_are_counted(rest: &Rest) {
    // Pending deliveries are sent in the meantime, and counts and lists are read at slightly
    // different times.
    eventually("the count to match the list", async || {
        let found = rest.get("/v1/statistics?span=2592000s").await.ok();
        let now = |field: &str| &found["deliveries"][field];
        let list = rest
            .get("/v1/notification/deliveries?pageSize=1000")
            .await
            .ok();
        let rows = list["deliveries"].as_array().expect("a list");
        let states = [("DELIVERED", "deliveredCount"), ("DEAD", "deadCount")];
        let agrees = states.into_iter().all(|(state, field)| {
            let of_state = |row: &&Value| row["state"] == state && row["test"] != true;
            *now(field) == rows.iter().filter(of_state).count()
        });
        (agrees && found["countedSinceTime"].is_string()).then_some(())
    })
    .await;
}

async fn definitions_are_preserved(rest: &Rest) {
    for (kind, names) in [
        ("triggers", &["disk", "unused"][..]),
        ("rules", &["disks", "escalate", "off"]),
        (
            "destinations",
            &["again", "chat", "hook", "mail", "now", "pages", "teams"],
        ),
    ] {
        let list = rest.get(&format!("/v1/notification/{kind}")).await.ok();
        let found = list[kind].as_array().expect("a list").iter();
        let found: Vec<_> = found.filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(found, names, "{kind}");
    }
    let get = async |path: &str| rest.get(&format!("/v1/notification/{path}")).await.ok();
    let trigger = get("triggers/disk").await["trigger"].clone();
    assert_eq!(
        trigger["ruleNames"],
        json!(["disks", "escalate", "off"]),
        "{trigger}"
    );
    assert_eq!(trigger["tags"], json!(["storage"]));
    let clauses = &trigger["type"]["event"]["query"]["clause"]["and"]["clauses"];
    assert_eq!(
        clauses[1],
        json!({"contains": {"field": "summary", "value": "disk"}}),
        "{trigger}"
    );
    let rule = get("rules/disks").await["rule"].clone();
    for (field, value) in [
        ("enabled", json!(true)),
        ("sendUpdates", json!(true)),
        (
            "message",
            json!("{{event.summary}} on {{event.dimensions.host}}"),
        ),
        ("destinationNames", json!(["hook"])),
    ] {
        assert_eq!(rule[field], value, "{rule}");
    }
    let escalate = get("rules/escalate").await["rule"].clone();
    assert_eq!(escalate["repeatInterval"], "60", "{escalate}");
    for (name, pointer) in [
        ("hook", "/type/webhook/headers/authorization"),
        ("hook", "/type/webhook/signingSecret"),
        ("chat", "/type/slack/token"),
        ("teams", "/type/msteams/url"),
        ("pages", "/type/pagerduty/routingKey"),
        ("now", "/type/servicenow/clientSecret"),
        ("now", "/type/servicenow/refreshToken"),
    ] {
        let stored = get(&format!("destinations/{name}")).await["destination"].clone();
        assert_eq!(stored.pointer(pointer), Some(&json!(MASK)), "{stored}");
    }
}

async fn event(rest: &Rest, name: &str, host: &str) -> Value {
    let clause = json!({"and": {"clauses": [
        {"equals": {"field": "name", "stringVal": name}},
        {"equals": {"field": "dimensions.host", "stringVal": host}},
    ]}});
    let query =
        json!({"query": {"clause": clause, "sortBy": [{"byField": {"field": "startTime"}}]}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    found["results"][0].clone()
}

async fn events_are_preserved(rest: &Rest) {
    for (host, count, status, severity) in [
        ("db-0", "2", "STATUS_OPEN", "SEVERITY_ERROR"),
        ("db-1", "2", "STATUS_OPEN", "SEVERITY_CRITICAL"),
        ("db-2", "3", "STATUS_OPEN", "SEVERITY_ERROR"),
        ("lab", "1", "STATUS_OPEN", "SEVERITY_ERROR"),
        ("quiet", "1", "STATUS_SUPPRESSED", "SEVERITY_ERROR"),
    ] {
        let event = event(rest, "disk-full", host).await;
        let occurrence = &event["occurrences"][0];
        assert_eq!(event["count"], count, "{host}: {event}");
        assert_eq!(occurrence["status"], status, "{host}: {event}");
        assert_eq!(occurrence["severity"], severity, "{host}: {event}");
        assert_eq!(
            occurrence["metadataFields"]["nested"],
            json!({"racks": [1, 2]})
        );
    }
    let again = event(rest, "disk-full", "db-2").await["occurrences"][0].clone();
    assert_eq!(again["number"], 2, "{again}");
    let noted = event(rest, "disk-full-escalated", "db-3").await["occurrences"][0].clone();
    assert_eq!(noted["acknowledged"], true, "{noted}");
    assert_eq!(noted["annotations"][0]["annotation"], "looking at it");
}

async fn sent_messages_are_preserved(rest: &Rest) {
    let list = rest
        .get("/v1/notification/deliveries?pageSize=1000")
        .await
        .ok();
    let deliveries = list["deliveries"].as_array().expect("deliveries");
    let ended = |state: &str, destination: &str| {
        let rows = deliveries.iter();
        rows.filter(|row| row["state"] == state && row["destinationName"] == destination)
            .count()
    };
    assert_eq!(ended("DELIVERED", "again"), 6, "{list}");
    assert_eq!(ended("CANCELLED", "hook"), 1, "{list}");
}

async fn keys_keep_their_permissions(rest: &Rest) {
    let event = json!({"events": [{"name": "new", "dimensions": {"host": "new"}}]});
    let sent = rest
        .with_key(Some(SENDER))
        .post("/v1/data-receiver/events", &event)
        .await;
    assert_eq!(sent.ok()["succeeded"], 1);
    let fetched = rest
        .with_key(Some(LOOKER))
        .get("/v1/notification/rules")
        .await;
    assert_eq!(fetched.status, 200);
    let refused = rest
        .with_key(Some(LOOKER))
        .post("/v1/data-receiver/events", &event)
        .await;
    assert_eq!(refused.status, 403);
}

/// Sends the pending deliveries, after giving the destination the address of a receiver and its
/// secrets again.
async fn pending_messages_are_sent(rest: &Rest) {
    let receiver = Receiver::start().await;
    let hook = json!({"name": "hook", "type": {"webhook": {
        "url": receiver.url("/"), "headers": {"authorization": "Bearer kept-header-secret", "x-team": "storage"},
        "signingSecret": SIGNING,
    }}});
    rest.put("/v1/notification/destinations/hook", &hook)
        .await
        .ok();
    // The rule with updates has already reported the first event. The second is new.
    for (host, status) in [("db-4", "STATUS_CLOSED"), ("db-9", "STATUS_OPEN")] {
        let event = json!({"events": [{
            "name": "disk-full", "dimensions": {"host": host}, "status": status,
            "severity": "SEVERITY_ERROR", "summary": format!("disk is full on {host}"),
        }]});
        rest.post("/v1/data-receiver/events", &event).await.ok();
    }
    let id = event(rest, "disk-full", "db-3").await["id"].clone();
    let close = json!({"statuses": [{"eventId": id, "status": "STATUS_CLOSED"}]});
    rest.post("/v1/event-management/status", &close).await.ok();

    for (host, clear) in [("db-3", true), ("db-9", false)] {
        let message = eventually("its message", async || {
            let query = "/v1/notification/deliveries?destinationNames=hook&pageSize=1000";
            let waiting = rest.get(query).await.ok();
            for row in waiting["deliveries"].as_array()? {
                if row["state"] == "PENDING" || row["state"] == "RETRY" {
                    // Retry the delivery now, instead of waiting for its next attempt.
                    let id = row["id"].as_str()?;
                    rest.post(
                        &format!("/v1/notification/deliveries/{id}:retry"),
                        &json!({}),
                    )
                    .await;
                }
            }
            let received = receiver.received();
            received.into_iter().find(|request| {
                let reported = request.json();
                reported["event"]["dimensions"]["host"] == host && reported["clear"] == clear
            })
        })
        .await;
        assert_eq!(
            message.headers["authorization"],
            "Bearer kept-header-secret"
        );
        assert_eq!(message.headers["x-team"], "storage");
        let now = jiff::Timestamp::now().as_second();
        standard_webhooks::verify(&message, SIGNING, now).expect("signed with the same key");
    }
}
