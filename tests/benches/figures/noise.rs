//! Cost of holds and groups: intake with silences and inhibitions, intake into one group, and the
//! time from the end of a silence until the held messages are sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_tests::world::World;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    load::{Load, Numbers, SPAN, keep_in_flight, over_rest, percentile_99},
    report::{Figure, Goal, Report},
    sink::Sink,
};

const IN_FLIGHT: usize = 32;
const BATCH: usize = 100;
const SILENCES: usize = 1_000;
const INHIBITIONS: usize = 100;
/// Number of events that one silence holds.
const HELD: usize = 100_000;
/// Timeout for sending the messages about held events; the measurement is then aborted.
const FREED_MAX: Duration = Duration::from_secs(120);
/// Number of groups of one event each that are due at the same time.
const GROUPS: usize = 10_000;
/// Wait of the groups, long enough to send all events before it ends.
const GROUP_WAIT: Duration = Duration::from_secs(10);

pub(crate) async fn measure(report: &mut Report) {
    if report.wants("noise: intake") {
        intake(report).await;
    }
    if report.wants("noise: freed") {
        freed(report).await;
    }
    if report.wants("noise: groups") {
        groups(report).await;
    }
}

/// Creates a rule that notifies a destination about every event.
async fn create_rule(world: &World, url: &str, more: Value) {
    let rest = world.rest();
    let clause = json!({"equals": {"field": "name", "stringVal": "bench"}});
    let trigger = json!({"name": "all", "type": {"event": {"query": {"clause": clause}}}});
    let destination = json!({"name": "hook", "type": {"webhook": {"url": url}}});
    let mut rule = json!({"name": "tell", "enabled": true, "triggerNames": ["all"],
        "destinationNames": ["hook"], "message": "{{event.summary}}"});
    for (key, value) in more.as_object().into_iter().flatten() {
        rule[key] = value.clone();
    }
    for (kind, body) in [
        ("triggers", trigger),
        ("destinations", destination),
        ("rules", rule),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &body).await.ok();
    }
}

/// Measures batches over REST with a rule that notifies about their events. No messages are sent
/// during the measurement; that cost is a separate figure.
async fn load(more: Value, targets: Option<&str>) -> Load {
    let world = World::start();
    let rest = world.rest();
    create_rule(&world, "http://127.0.0.1:9/", more).await;
    let pause = "/v1/notification/destinations/hook:pause";
    rest.post(pause, &json!({})).await.ok();
    if let Some(targets) = targets {
        hold_others(&world, targets).await;
    }
    let numbers = Numbers::default();
    keep_in_flight(IN_FLIGHT, BATCH, move || {
        over_rest(rest.clone(), numbers.take(BATCH), BATCH)
    })
    .await
}

/// Creates silences that cover none of the events, and inhibitions without an open cause.
async fn hold_others(world: &World, targets: &str) {
    let rest = world.rest();
    for number in 0..SILENCES {
        let silence = json!({"reason": "none of these", "filter": format!("host=quiet-{number}"),
            "span": {"endTime": in_an_hour()}});
        rest.post("/v1/notification/silences", &silence).await.ok();
    }
    for number in 0..INHIBITIONS {
        let inhibition = json!({"name": format!("i{number}"), "enabled": true,
            "sourceFilter": format!("name=cause-{number}"), "targetFilter": targets,
            "equal": [{"source": "host"}]});
        rest.post("/v1/notification/inhibitions", &inhibition)
            .await
            .ok();
    }
}

fn in_an_hour() -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    at.to_string()
}

async fn intake(report: &mut Report) {
    let group = json!({"group": {"by": [], "wait": "1s", "interval": "10s"}});
    let rows = [
        (
            "noise: intake beside 1,000 silences, 100 inhibitions",
            (json!({}), Some("name=other")),
            0.75,
        ),
        (
            "noise: intake, each event a target of 100 inhibitions",
            (json!({}), Some("name=bench")),
            0.75,
        ),
        ("noise: intake into one group", (group, None), 0.8),
    ];
    let mut before = load(json!({}), None).await.rate;
    for (name, (more, targets), least) in rows {
        let rate = load(more, targets).await.rate;
        let after = load(json!({}), None).await.rate;
        let without = f64::midpoint(before, after);
        let figure = Figure::new(name, rate, "/s").goal(Goal::Least(least * without));
        report.add(figure.beside("without", Some(without)));
        before = after;
    }
}

/// Number of senders of single events during another operation, and their pause between two events.
/// Their rate is a fifth of what one client can reach.
const SENDERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(5);

/// Sends single events until stopped, and returns the time that each took.
async fn singles(world: &World, numbers: &Numbers, until: Arc<AtomicBool>) -> Vec<Duration> {
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        let (rest, numbers, until) = (world.rest(), numbers.clone(), Arc::clone(&until));
        senders.spawn(async move {
            let mut times = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let sent = Instant::now();
                over_rest(rest.clone(), numbers.take(1), 1).await;
                times.push(sent.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
            times
        });
    }
    senders.join_all().await.into_iter().flatten().collect()
}

/// Returns the 99th percentile of the latency of single events during another operation, in
/// milliseconds, and the result of that operation.
async fn measure_during<T>(
    world: &World,
    numbers: &Numbers,
    other: impl Future<Output = T>,
) -> (f64, T) {
    let is_over = Arc::new(AtomicBool::new(false));
    let other = async {
        let answer = other.await;
        is_over.store(true, Ordering::Relaxed);
        answer
    };
    let (times, answer) = tokio::join!(singles(world, numbers, Arc::clone(&is_over)), other);
    (percentile_99(times).as_secs_f64() * 1e3, answer)
}

/// Measures the time from the end of a silence until no notification waits, and the latency of
/// single events during that time.
async fn freed(report: &mut Report) {
    let world = World::start();
    let sink = Sink::start().await;
    let rest = world.rest();
    create_rule(&world, &sink.url("/"), json!({})).await;
    let silence = json!({"name": "all", "reason": "storm", "ruleNames": ["tell"],
        "span": {"endTime": in_an_hour()}});
    rest.post("/v1/notification/silences", &silence).await.ok();
    for first in (0..HELD).step_by(BATCH) {
        over_rest(world.rest(), first, BATCH).await;
    }
    let numbers = Numbers::from(HELD);
    let (quiet, ()) = measure_during(&world, &numbers, tokio::time::sleep(SPAN)).await;
    let start = Instant::now();
    let freeing = async {
        let expire = "/v1/notification/silences/all:expire";
        rest.post(expire, &json!({})).await.ok();
        until_nothing_waits(&world, start).await
    };
    let (p99, took) = measure_during(&world, &numbers, freeing).await;
    let name = "noise: freed, 100,000 that one silence held";
    report.add(Figure::new(name, took, "s").goal(Goal::Most(10.0)));
    let name = "noise: freed, p99 of single events meanwhile";
    let figure = Figure::new(name, p99, "ms").goal(Goal::Most(2.0 * quiet));
    report.add(figure.beside("quiet", Some(quiet)));
    drop(sink.take());
}

/// Measures the time to notify about groups of one event each, starting when the first one is due.
async fn groups(report: &mut Report) {
    let world = World::start();
    let sink = Sink::start().await;
    let wait = format!("{}s", GROUP_WAIT.as_secs());
    let group = json!({"group": {"by": ["host"], "wait": wait, "interval": "3600s"}});
    create_rule(&world, &sink.url("/"), group).await;
    let due = Instant::now() + GROUP_WAIT;
    for first in (0..GROUPS).step_by(BATCH) {
        over_rest(world.rest(), first, BATCH).await;
    }
    tokio::time::sleep_until(due.into()).await;
    let reported = until_nothing_waits(&world, due).await;
    let name = "noise: groups, 10,000 due at once";
    report.add(Figure::new(name, reported, "s").goal(Goal::Most(5.0)));
    while sink.count() < GROUPS {
        assert!(due.elapsed() < FREED_MAX, "messages are missing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let notified = due.elapsed().as_secs_f64();
    report.add(Figure::new(
        "noise: groups, until all were heard of",
        notified,
        "s",
    ));
    drop(sink.take());
}

/// Returns the time from `start` until no notification waits, in seconds.
async fn until_nothing_waits(world: &World, start: Instant) -> f64 {
    let rest = world.rest();
    loop {
        let waiting = rest.get("/v1/notification/pending?pageSize=1").await.ok();
        if waiting["pending"].as_array().is_none_or(Vec::is_empty) {
            return start.elapsed().as_secs_f64();
        }
        assert!(
            start.elapsed() < FREED_MAX,
            "notifications are still waiting"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
