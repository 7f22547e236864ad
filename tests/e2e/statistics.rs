//! Statistics are exact at any size and equal the counts of lists, also after a kill. They start at
//! zero for a data folder of a release without statistics.

use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether_tests::{
    engine::Engine,
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    walks::walk_length,
    world::World,
};
use serde_json::{Value, json};

use crate::samples;

const PER_REQUEST: usize = 1_000;
/// Settings with a single attempt, so that deliveries to a failing destination die immediately.
const SETTINGS: &str = "[delivery]\nschedule = [\"0s\"]\nmax_in_flight_per_destination = 64\n";

async fn set_up(rest: &Rest, receiver: &Receiver) {
    let trigger = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    for name in ["good", "bad"] {
        let destination = samples::webhook(name, &receiver.url(&format!("/{name}")));
        let path = "/v1/notification/destinations";
        rest.post(path, &destination).await.ok();
        let rule = samples::rule(&format!("tell-{name}"), "disk", name, "{{event.summary}}");
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
}

async fn send(rest: &Rest, from: usize, count: usize) {
    for start in (from..from + count).step_by(PER_REQUEST) {
        let numbers = start..(start + PER_REQUEST).min(from + count);
        let severity = |number: usize| match number % 3 {
            0 => "SEVERITY_CRITICAL",
            _ => "SEVERITY_ERROR",
        };
        let event = |number: usize| {
            let host = format!("host-{number}");
            samples::event("full", &host, severity(number), "disk is full")
        };
        let events: Vec<_> = numbers.map(event).collect();
        let path = "/v1/data-receiver/events";
        rest.post(path, &samples::events(&events)).await.ok();
    }
}

async fn count_listed(rest: &Rest, destination: &str, state: &str) -> i64 {
    let (mut count, mut token) = (0, String::new());
    loop {
        let path = format!(
            "/v1/notification/deliveries?pageSize=1000&destinationNames={destination}&states={state}\
             &pageToken={token}"
        );
        let page = rest.get(&path).await.ok();
        let rows = page["deliveries"].as_array().map_or(0, Vec::len);
        count += i64::try_from(rows).unwrap();
        match page["nextPageToken"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return count,
        }
    }
}

fn of<'a>(statistics: &'a Value, kind: &str, name: &str) -> &'a Value {
    let found = statistics[kind].as_array().unwrap();
    let found = found.iter().find(|one| one["name"] == name);
    found.map_or(&Value::Null, |one| &one["deliveries"])
}

fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

fn sum(columns: &Value) -> i64 {
    let columns = columns.as_array();
    columns.map_or(0, |columns| columns.iter().map(number).sum())
}

async fn statistics(rest: &Rest) -> Value {
    rest.get("/v1/statistics?span=3600s").await.ok()
}

async fn assert_statistics_match_the_lists(rest: &Rest, events: usize) {
    let found = statistics(rest).await;
    for name in ["good", "bad"] {
        let counted = of(&found, "destinations", name);
        for (state, field) in [
            ("DELIVERED", "deliveredCount"),
            ("DEAD", "deadCount"),
            ("CANCELLED", "cancelledCount"),
        ] {
            let listed = count_listed(rest, name, state).await;
            assert_eq!(number(&counted[field]), listed, "{name}, {state}");
        }
        assert_eq!(number(&counted["waitingCount"]), 0, "{counted}");
        let by_rule = of(&found, "rules", &format!("tell-{name}"));
        assert_eq!(by_rule, counted, "each rule has one destination");
        let events = i64::try_from(events).unwrap();
        assert_eq!(sum(&counted["decided"]), events, "{name}: {counted}");
    }
    let events_of = |severity: &str| {
        let of_severity = found["events"].as_array().unwrap().iter();
        let of_severity = of_severity.filter(|one| one["severity"] == severity);
        of_severity.map(|one| sum(&one["counts"])).sum::<i64>()
    };
    let critical = i64::try_from(events.div_ceil(3)).unwrap();
    let error = i64::try_from(events).unwrap() - critical;
    // The numbers include the service's own events about failed deliveries.
    assert!(events_of("SEVERITY_CRITICAL") >= critical, "{found}");
    assert!(events_of("SEVERITY_ERROR") >= error, "{found}");
    let overview = rest.get("/v1/overview").await.ok();
    let rows = overview["destinations"].as_array().unwrap();
    for row in rows {
        let counted = of(
            &found,
            "destinations",
            row["destinationName"].as_str().unwrap(),
        );
        for field in ["deliveredCount", "deadCount"] {
            assert_eq!(number(&row[field]), number(&counted[field]), "{row}");
        }
    }
}

async fn wait_until_settled(rest: &Rest) {
    let mut left = i64::MAX;
    while left > 0 {
        left = eventually("deliveries to end", async || {
            let found = statistics(rest).await;
            let waiting = number(&found["deliveries"]["waitingCount"]);
            (waiting < left).then_some(waiting)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_are_exact_at_any_size_and_after_a_kill() {
    if Engine::only_in_a_folder() {
        return;
    }
    let count = usize::try_from(walk_length("BELLWETHER_STATISTICS")).unwrap();
    let mut world = World::with_settings(SETTINGS);
    // The receiver accepts every other message, so that the rejections are attributed to the
    // messages rather than the destination.
    let requests = AtomicUsize::new(0);
    let receiver = Receiver::with_rule(move |request| match request.path.as_str() {
        "/bad" if requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => Reply::status(400),
        _ => Reply::status(200),
    })
    .await;
    set_up(&world.rest(), &receiver).await;
    send(&world.rest(), 0, count / 2).await;
    wait_until_settled(&world.rest()).await;
    assert_statistics_match_the_lists(&world.rest(), count / 2).await;
    send(&world.rest(), count / 2, count / 2).await;
    world.kill();
    world.start_again();
    wait_until_settled(&world.rest()).await;
    assert_statistics_match_the_lists(&world.rest(), count).await;

    world.terminate();
    let checked = world.command(&["check", "--json"]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test]
async fn supported_spans_have_fixed_columns_and_others_are_rejected() {
    let world = World::start();
    let rest = world.rest();
    for (span, step, columns) in [
        ("60s", "60s", 1),
        ("3600s", "60s", 60),
        ("86400s", "900s", 96),
        ("2592000s", "21600s", 120),
    ] {
        let found = rest.get(&format!("/v1/statistics?span={span}")).await.ok();
        assert_eq!(found["step"], step, "{found}");
        let decided = found["deliveries"]["decided"].as_array().unwrap();
        assert_eq!(decided.len(), columns, "{span}");
        assert!(found["countedSinceTime"].is_string(), "{found}");
    }
    for span in ["0s", "59s", "-3600s", "2592001s", "yesterday"] {
        let refused = rest.get(&format!("/v1/statistics?span={span}")).await;
        assert_eq!(refused.status, 400, "{span}");
        assert!(refused.text().contains("span"), "{}", refused.text());
    }
    let usual = rest.get("/v1/statistics").await.ok();
    assert_eq!(usual["step"], json!("60s"));
}
