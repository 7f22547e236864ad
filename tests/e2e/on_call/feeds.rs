//! Feeds of schedules and contacts: three parsers that share no code with the service find the same
//! shifts.

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use bellwether_tests::{receiver::Receiver, rest::Rest, tree, world::World};
use serde_json::{Value, json};

use super::{NOTIFICATION, prepare};
use crate::{foreign::python, samples};

/// Returns the events of a feed by id, as found by each parser: start, end, summary, sequence and
/// stamp.
fn read(python: &std::path::Path, text: &str) -> Vec<BTreeMap<String, Value>> {
    let mut readers = Command::new(python)
        .arg(tree::root().join("tests/e2e/on_call/feeds.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut input = readers.stdin.take().expect("standard input");
    input.write_all(text.as_bytes()).expect("python reads");
    drop(input);
    let output = readers.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{text}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let found = lines.lines().map(|line| {
        let mut found: Value = serde_json::from_str(line).unwrap();
        serde_json::from_value(found["events"].take()).unwrap()
    });
    found.collect()
}

async fn url(rest: &Rest, path: &str) -> String {
    let found = rest.get(&format!("{NOTIFICATION}/{path}:feed")).await.ok();
    found["url"].as_str().unwrap().to_owned()
}

/// Puts ana and ben on call on alternating days.
async fn take_turns(rest: &Rest) {
    let path = format!("{NOTIFICATION}/schedules/database");
    let mut schedule = rest.get(&path).await.ok()["schedule"].clone();
    schedule["layers"][0]["slots"] = json!([{"contactNames": ["ana"]}, {"contactNames": ["ben"]}]);
    schedule["layers"][0]["rrule"] = json!("FREQ=DAILY");
    rest.put(&path, &schedule).await.ok();
}

#[tokio::test]
async fn three_calendar_libraries_parse_the_feed() {
    let Some(python) = python("icalendar, vobject, ical.calendar_stream") else {
        return;
    };
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    take_turns(&rest).await;
    let anonymous = rest.with_key(None);
    let address = url(&rest, "schedules/database").await;
    let feed = async || read(&python, &anonymous.get(&address).await.text());
    let found = feed().await;
    assert_eq!(found.len(), 3);
    assert!(found[0].len() > 80, "{found:#?}");
    for (at, events) in found.iter().enumerate() {
        assert_eq!(events, &found[0], "reader {at}");
    }
    // An edit does not remove the other shifts, but their sequence and stamp are newer.
    let over = json!({"contactNames": ["ben"], "startTime": samples::in_seconds(20 * 86_400),
        "endTime": samples::in_seconds(20 * 86_400 + 3_600)});
    let path = format!("{NOTIFICATION}/schedules/database/overrides");
    rest.post(&path, &over).await.ok();
    let before = found[0].clone();
    let after = feed().await[0].clone();
    let (mut same, mut changed) = (0, 0);
    for (uid, event) in &before {
        let Some(now) = after.get(uid) else { continue };
        assert!(now[3].as_i64() > event[3].as_i64(), "{uid}: {event} {now}");
        if now[0] == event[0] && now[1] == event[1] && now[2] == event[2] {
            same += 1;
        } else {
            changed += 1;
        }
    }
    assert!(same >= before.len() - 2 && changed <= 2, "{same} {changed}");
    // The feed of a contact contains only the contact's shifts, named after the schedule.
    let own = url(&rest, "contacts/ana").await;
    let own = read(&python, &anonymous.get(&own).await.text());
    assert!(own.iter().all(|it| it == &own[0]), "{own:#?}");
    let of_ana = after.iter().filter(|(_, it)| it[2] == "On call: ana");
    let of_ana: Vec<_> = of_ana.map(|(uid, it)| (uid, &it[0], &it[1])).collect();
    let own: Vec<_> = own[0]
        .iter()
        .map(|(uid, it)| {
            assert_eq!(it[2], "On call: database");
            (uid, &it[0], &it[1])
        })
        .collect();
    assert_eq!(own, of_ana);
}

#[tokio::test]
async fn revoked_contact_feed_is_rejected_and_the_contact_stays() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    prepare(&rest, &receiver.url("/")).await;
    let first = url(&rest, "contacts/ana").await;
    assert!(first.starts_with("/contacts/ana.ics?sign="), "{first}");
    let anonymous = rest.with_key(None);
    let text = anonymous.get(&first).await.text();
    assert!(text.contains("SUMMARY:On call: database\r\n"), "{text}");
    let rotate = format!("{NOTIFICATION}/contacts/ana:rotateFeed");
    let second = rest.post(&rotate, &json!({})).await.ok()["url"].clone();
    let second = second.as_str().unwrap();
    assert_ne!(first, second);
    assert_eq!(anonymous.get(&first).await.status, 401);
    assert_eq!(anonymous.get(second).await.status, 200);
    // The signature is valid for this contact only, not for a schedule.
    let sign = second.split_once('=').unwrap().1;
    for other in [
        "/contacts/ben.ics",
        "/contacts/zoe.ics",
        "/schedules/database.ics",
    ] {
        let path = format!("{other}?sign={sign}");
        assert_eq!(anonymous.get(&path).await.status, 401, "{path}");
    }
    // An edit does not change the address.
    let path = format!("{NOTIFICATION}/contacts/ana");
    let contact = rest.get(&path).await.ok()["contact"].clone();
    rest.put(&path, &contact).await.ok();
    assert_eq!(anonymous.get(second).await.status, 200);
}
