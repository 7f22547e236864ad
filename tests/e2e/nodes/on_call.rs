//! Heartbeats and escalations over several nodes: any node accepts beats, and a new leader
//! continues the work of the previous one without duplicates.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::{eventually, eventually_within},
    receiver::Receiver,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::{EVENTS, leader, three};
use crate::{
    on_call::{contact, push},
    postgres::Database,
    samples,
};

const NOTIFICATION: &str = "/v1/notification";
const NAMES: [&str; 3] = ["one", "two", "three"];
const EVERY: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(2);
/// Maximum delay of an opening or closing. Another node must first become the leader, and the
/// service time recorded for it is some seconds old.
const LATE_MAX: Duration = Duration::from_secs(35);
/// Time without a message after which no more messages are expected.
const QUIET: Duration = Duration::from_secs(5);
const PEOPLE: [&str; 5] = ["ana", "ben", "cleo", "dora", "emil"];

async fn at_leader(worlds: &[World]) -> usize {
    let leads = leader(worlds.first().unwrap()).await;
    NAMES.iter().position(|it| *it == leads).unwrap()
}

async fn kill_leader(worlds: &mut [World]) {
    let leads = at_leader(worlds).await;
    worlds[leads].kill();
    worlds[leads].start_again();
}

async fn beat(rest: &Rest) {
    let beat = samples::event("backup-done", "db-1", "SEVERITY_INFO", "done");
    let answer = rest.post(EVENTS, &samples::events(&[beat])).await.ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
}

async fn alarms(rest: &Rest) -> Vec<Value> {
    let query = json!({"query": {"filter": "name=\"backup missing\""}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let results = found["results"].as_array().cloned().unwrap_or_default();
    assert!(results.len() < 2, "{found}");
    let occurrences = results.first().map(|it| it["occurrences"].clone());
    let occurrences = occurrences.and_then(|it| it.as_array().cloned());
    occurrences.unwrap_or_default()
}

async fn until_alarm_is(rest: &Rest, status: &str, within: Duration) {
    eventually_within(within, "the event of the heartbeat", async || {
        let found = alarms(rest).await;
        (found.first()?["status"] == status).then_some(())
    })
    .await;
}

/// Returns by delivery id whether the message is a closing.
fn clear(receiver: &Receiver) -> BTreeMap<String, bool> {
    let received = receiver.received();
    let all = received.iter();
    all.map(|it| {
        let is_clear = it.json()["clear"] == true;
        (it.delivery_id().to_owned(), is_clear)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_beat_raises_and_closes_one_alarm_across_leader_changes() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let receiver = Receiver::start().await;
    let rest = worlds[0].rest();
    let heartbeat = json!({
        "name": "nightly backup", "enabled": true, "filter": "name=backup-done", "by": ["host"],
        "every": format!("{}s", EVERY.as_secs()), "grace": format!("{}s", GRACE.as_secs()),
        "event": {"name": "backup missing", "severity": "SEVERITY_CRITICAL"},
    });
    let path = format!("{NOTIFICATION}/heartbeats");
    rest.post(&path, &heartbeat).await.ok();
    let trigger =
        json!({"name": "missing", "type": {"event": {"filter": "name=\"backup missing\""}}});
    let mut rule = samples::rule("missing", "missing", "hook", "{{event.summary}}");
    rule["sendUpdates"] = json!(true);
    for (path, body) in [
        ("destinations", samples::webhook("hook", &receiver.url("/"))),
        ("triggers", trigger),
        ("rules", rule),
    ] {
        let path = format!("{NOTIFICATION}/{path}");
        rest.post(&path, &body).await.ok();
    }

    // Send beats to the nodes in turn for longer than the tolerance, with a change of leader.
    let begin = Instant::now();
    for round in 0_u32.. {
        if begin.elapsed() > EVERY + 2 * GRACE {
            break;
        }
        if round == 5 {
            kill_leader(&mut worlds).await;
        }
        for world in &worlds {
            beat(&world.rest()).await;
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    }
    let rest = worlds[1].rest();
    assert!(alarms(&rest).await.is_empty(), "every beat arrived");

    // Kill the leader just before the first missing beat is late, and again when beats resume.
    let last = Instant::now();
    tokio::time::sleep(EVERY).await;
    kill_leader(&mut worlds).await;
    let rest = worlds[1].rest();
    until_alarm_is(&rest, "STATUS_OPEN", LATE_MAX).await;
    assert!(last.elapsed() > EVERY, "{:?}", last.elapsed());
    receiver.wait_for(1).await;
    let leads = at_leader(&worlds).await;
    let other = (leads + 1) % 3;
    beat(&worlds[other].rest()).await;
    worlds[leads].kill();
    let rest = worlds[other].rest();
    until_alarm_is(&rest, "STATUS_CLOSED", LATE_MAX).await;
    receiver.wait_for(2).await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(alarms(&rest).await.len(), 1);
    let messages: Vec<_> = clear(&receiver).into_values().collect();
    assert_eq!(messages.len(), 2, "one opening and one closing");
    assert!(messages.contains(&true) && messages.contains(&false));
}

/// Creates contacts, one of them by a schedule, a policy with a step for each contact, and a rule
/// with that policy.
async fn page_all(rest: &Rest, url: &str) {
    let create = async |path: &str, body: &Value| {
        let path = format!("{NOTIFICATION}/{path}");
        rest.post(&path, body).await.ok()
    };
    create("destinations", &push(url)).await;
    for name in PEOPLE {
        create("contacts", &contact(name)).await;
    }
    let slots = json!([{"contactNames": [PEOPLE[0]]}]);
    let layer = json!({"slots": slots, "dtstart": "2026-01-05T09:00:00", "rrule": "FREQ=WEEKLY"});
    let schedule = json!({"name": "database", "timeZone": "Europe/Berlin", "layers": [layer]});
    create("schedules", &schedule).await;
    let mut steps = vec![json!({"targets": [{"scheduleName": "database"}], "wait": "3s"})];
    for name in &PEOPLE[1..] {
        steps.push(json!({"targets": [{"contactName": name}], "wait": "3s"}));
    }
    let policy = json!({"name": "database", "steps": steps});
    create("escalation-policies", &policy).await;
    let trigger = json!({"name": "all", "type": {"event": {"filter": "name=disk"}}});
    create("triggers", &trigger).await;
    let rule = json!({
        "name": "page", "enabled": true, "sendUpdates": true, "triggerNames": ["all"],
        "escalationPolicyName": "database",
    });
    create("rules", &rule).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn escalation_continues_without_duplicates_after_leader_loss() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let receiver = Receiver::start().await;
    page_all(&worlds[0].rest(), &receiver.url("/")).await;
    let hosts: Vec<_> = (0..4).map(|number| format!("db-{number}")).collect();
    for (at, host) in hosts.iter().enumerate() {
        let disk = samples::event("disk", host, "SEVERITY_CRITICAL", "full");
        let rest = worlds[at % 3].rest();
        rest.post(EVENTS, &samples::events(&[disk])).await.ok();
    }
    // Kill the leader once during the first steps, and once during later steps.
    receiver.wait_for(hosts.len()).await;
    kill_leader(&mut worlds).await;
    receiver.wait_for(3 * hosts.len()).await;
    kill_leader(&mut worlds).await;
    let rest = worlds[0].rest();
    eventually_within(2 * LATE_MAX, "every step to be delivered", async || {
        let path = format!("{NOTIFICATION}/deliveries?states=DELIVERED&pageSize=100");
        let found = rest.get(&path).await.ok();
        let delivered = found["deliveries"].as_array().map_or(0, Vec::len);
        (delivered >= PEOPLE.len() * hosts.len()).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET).await;
    // A killed node may have sent a message that is sent again with the same delivery id.
    let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for it in receiver.received() {
        let to = it.json()["to"].as_str().unwrap_or_default().to_owned();
        ids.entry(to)
            .or_default()
            .insert(it.delivery_id().to_owned());
    }
    let counts: BTreeMap<_, _> = ids.iter().map(|(to, ids)| (&**to, ids.len())).collect();
    let all: Vec<_> = PEOPLE.iter().map(|it| format!("{it} +{it}")).collect();
    let expected: BTreeMap<_, _> = all.iter().map(|to| (&**to, hosts.len())).collect();
    assert_eq!(counts, expected, "one delivery per step and event");

    // Each notified contact is notified of the closing once.
    for host in &hosts {
        let mut disk = samples::event("disk", host, "SEVERITY_CRITICAL", "full");
        disk["status"] = json!("STATUS_CLOSED");
        rest.post(EVENTS, &samples::events(&[disk])).await.ok();
    }
    eventually("every closing to be notified", async || {
        let ends = clear(&receiver).into_values().filter(|it| *it).count();
        (ends == PEOPLE.len() * hosts.len()).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(clear(&receiver).len(), 2 * PEOPLE.len() * hosts.len());
}
