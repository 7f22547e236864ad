//! Each node delivers to the destinations that it owns. Together, the nodes behave like a single
//! node, with the same limits and order, even while destinations change owners.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::{eventually, eventually_within},
    process,
    receiver::{Received, Receiver, Reply},
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::{EVENTS, join, nodes, three};
use crate::{
    crash::{is_measured, rounds},
    postgres::Database,
    samples,
};

/// Number of destinations. Ownership is random, but in 10^6 trials, each of three nodes owned some.
pub(super) const DESTINATIONS: usize = 24;
const IN_FLIGHT: usize = 2;
/// Maximum pause in deliveries to a failed node's destinations, on an otherwise idle machine.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// Maximum pause in deliveries to a destination that keeps its owner.
const STEADY_MAX: Duration = Duration::from_secs(4);
/// Time limit for another node to take over from a stopped node.
const STOPPED_WITHIN: Duration = Duration::from_secs(90);

/// Creates destinations, each with a rule for events whose host ends with the destination's number.
pub(super) async fn routes(rest: &Rest, receiver: &Receiver) {
    for number in 0..DESTINATIONS {
        let name = format!("d{number:02}");
        let mut hook = samples::webhook(&name, &receiver.url(&format!("/{name}")));
        hook["delivery"] = json!({"maxInFlight": IN_FLIGHT});
        let clause = json!({"endsWith": {"field": "dimensions.host", "value": format!("-{name}")}});
        let trigger = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
        let mut rule = samples::rule(&name, &name, &name, "{{event.summary}}");
        rule["sendUpdates"] = json!(true);
        for (path, body) in [
            ("destinations", hook),
            ("triggers", trigger),
            ("rules", rule),
        ] {
            let path = format!("/v1/notification/{path}");
            rest.post(&path, &body).await.ok();
        }
    }
}

pub(super) async fn sent(rest: &Rest, numbers: Range<usize>) {
    assert!(try_send(rest, numbers, "STATUS_OPEN").await);
}

fn host(number: usize) -> String {
    format!("h{number}-d{:02}", number % DESTINATIONS)
}

async fn try_send(rest: &Rest, numbers: Range<usize>, status: &str) -> bool {
    let event = |number: usize| {
        let host = host(number);
        let mut event = samples::event("full", &host, "SEVERITY_ERROR", &host);
        event["status"] = json!(status);
        event
    };
    let events: Vec<_> = numbers.map(event).collect();
    let body = samples::events(&events).to_string();
    let answer = rest.try_send(Method::POST, EVENTS, &[], body).await;
    answer.is_ok_and(|it| it.status == 200 && it.json()["succeeded"] == events.len())
}

fn change_in(message: &Received) -> Change {
    let body = message.json();
    let host = body["event"]["dimensions"]["host"].as_str().unwrap();
    (host.to_owned(), body["clear"] == true)
}

pub(super) async fn sample(world: &World, name: &str) -> usize {
    let page = world.rest().get("/metrics").await.text();
    let lines = page.lines().filter(|it| it.starts_with(name));
    let values = lines.filter_map(|it| it.rsplit(' ').next()?.parse::<usize>().ok());
    values.sum()
}

pub(super) async fn attempts(world: &World) -> usize {
    sample(world, "bellwether_attempts_total").await
}

pub(super) async fn owned(world: &World) -> usize {
    sample(world, "bellwether_slots_owned").await
}

/// Waits until every slot has its final owner.
pub(super) async fn all_own(worlds: &[impl Borrow<World>]) {
    let mut before = Vec::new();
    eventually("every slot to have an owner", async || {
        let mut counts = Vec::new();
        for world in worlds {
            counts.push(owned(world.borrow()).await);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let least = 256 / worlds.len() / 2;
        let is_all = counts.iter().sum::<usize>() == 256 && counts.iter().all(|it| *it > least);
        let is_same = std::mem::replace(&mut before, counts.clone()) == counts;
        (is_all && is_same).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_share_deliveries_without_duplicates() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let receiver = Receiver::start().await;
    routes(&worlds[0].rest(), &receiver).await;
    all_own(&worlds).await;
    let shown = nodes(&worlds[1]);
    let overview = worlds[2].rest().get("/v1/overview").await.ok();
    let mut listed = BTreeMap::new();
    for node in overview["nodes"].as_array().unwrap() {
        listed.insert(node["name"].as_str().unwrap(), node["ownedSlots"].as_u64());
    }
    let events = 10 * DESTINATIONS;
    for (at, from) in (0..events).step_by(DESTINATIONS).enumerate() {
        sent(&worlds[at % 3].rest(), from..from + DESTINATIONS).await;
    }
    receiver.wait_for(events).await;
    eventually("every attempt to be counted", async || {
        let mut counted = 0;
        for world in &worlds {
            counted += attempts(world).await;
        }
        (counted >= events).then_some(())
    })
    .await;
    let mut all = 0;
    for (world, name) in worlds.iter().zip(["one", "two", "three"]) {
        let (slots, made) = (owned(world).await, attempts(world).await);
        eprintln!("{name} owns {slots} slots and made {made} attempts");
        assert!(made > 0, "{name} delivered nothing");
        assert_eq!(listed[name], Some(slots as u64), "{overview}");
        let says = format!("owns {slots} of 256 slots");
        let says = |it: &String| it.starts_with(&format!("{name},")) && it.contains(&says);
        assert!(shown.iter().any(says), "{shown:?}");
        all += made;
    }
    assert_eq!((all, receiver.count()), (events, events));
}

/// The host of a message, and whether it is a closing.
type Change = (String, bool);

/// Arrival times by destination, and the maximum number of concurrent messages to one destination.
#[derive(Debug, Default)]
struct Arrivals {
    at: BTreeMap<String, Vec<Instant>>,
    in_flight: usize,
    /// Messages in order of arrival, with their delivery ids.
    messages: Vec<(Change, String)>,
}

impl Arrivals {
    /// Returns for each destination the longest time without a message, within a span.
    fn gaps(&self, from: Instant, until: Instant) -> Vec<Duration> {
        let gaps = self.at.values().map(|arrivals| {
            let within = arrivals.iter().copied();
            let within = within.filter(|at| (from..until).contains(at));
            let (mut last, mut longest) = (from, Duration::ZERO);
            for at in within.chain([until]) {
                longest = longest.max(at - last);
                last = at;
            }
            longest
        });
        gaps.collect()
    }
}

/// Starts a receiver that records arrivals and responds to each message after a delay.
async fn noting(takes: Duration) -> (Receiver, Arc<Mutex<Arrivals>>) {
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let noted = Arc::clone(&arrivals);
    let receiver = Receiver::with_rule(move |request| {
        let (now, message) = (Instant::now(), change_in(request));
        let mut noted = noted.lock().unwrap();
        let id = request.delivery_id().to_owned();
        noted.messages.push((message, id));
        let of_it = noted.at.entry(request.path.clone()).or_default();
        of_it.push(now);
        // Count the messages that have no response yet.
        let in_flight = of_it.iter().filter(|at| now - **at < takes).count();
        noted.in_flight = noted.in_flight.max(in_flight);
        Reply {
            delay: takes,
            ..Reply::status(200)
        }
    })
    .await;
    (receiver, arrivals)
}

/// Senders that open and close events for all destinations on several nodes, until stopped.
struct Sending {
    tasks: JoinSet<BTreeSet<Change>>,
    stop: tokio::sync::watch::Sender<bool>,
}

impl Sending {
    /// Starts the senders. All nodes except `lost` must accept every request.
    fn begin(
        worlds: &[World],
        lost: Option<usize>,
        numbers: &Arc<AtomicUsize>,
        pause: Duration,
    ) -> Self {
        let stop = tokio::sync::watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        for (at, world) in worlds.iter().enumerate() {
            let (rest, numbers) = (world.rest(), Arc::clone(numbers));
            let stopped = stop.subscribe();
            tasks.spawn(async move {
                let mut answered = BTreeSet::new();
                while !*stopped.borrow() {
                    let first = numbers.fetch_add(DESTINATIONS, Ordering::AcqRel);
                    let events = first..first + DESTINATIONS;
                    for (status, is_end) in [("STATUS_OPEN", false), ("STATUS_CLOSED", true)] {
                        let is_answered = try_send(&rest, events.clone(), status).await;
                        assert!(
                            is_answered || lost == Some(at),
                            "node {at} does not respond"
                        );
                        if !is_answered {
                            break;
                        }
                        answered.extend(events.clone().map(|number| (host(number), is_end)));
                    }
                    tokio::time::sleep(pause).await;
                }
                answered
            });
        }
        Self { tasks, stop }
    }

    async fn end(self) -> BTreeSet<Change> {
        self.stop.send_replace(true);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }
}

/// Asserts that every accepted event was reported by one delivery, whatever the number of attempts,
/// and each closing after its opening.
async fn assert_each_reported_in_order(arrivals: &Mutex<Arrivals>, answered: &BTreeSet<Change>) {
    let late = Duration::from_secs(240);
    let messages = eventually_within(late, "all messages", async || {
        let messages = arrivals.lock().unwrap().messages.clone();
        let reported: BTreeSet<_> = messages.iter().map(|(reported, _)| reported).collect();
        let is_all = answered.iter().all(|it| reported.contains(it));
        tokio::time::sleep(Duration::from_millis(100)).await;
        is_all.then_some(messages)
    })
    .await;
    let mut ids = BTreeMap::<Change, String>::new();
    for (reported, id) in messages {
        let (host, is_end) = &reported;
        assert!(
            !is_end || ids.contains_key(&(host.clone(), false)),
            "{host}"
        );
        let first = ids.entry(reported.clone()).or_insert_with(|| id.clone());
        assert_eq!(*first, id, "{reported:?} arrived under two ids");
    }
}

/// Runs a round, in which a node is killed or stopped under load and then restarted. Returns the
/// events accepted during the round.
#[expect(
    clippy::print_stderr,
    reason = "the test prints the results of its rounds"
)]
async fn lose(
    worlds: &mut [World],
    (lost, is_killed): (usize, bool),
    numbers: &Arc<AtomicUsize>,
    arrivals: &Mutex<Arrivals>,
) -> BTreeSet<Change> {
    all_own(worlds).await;
    let sending = Sending::begin(worlds, Some(lost), numbers, Duration::from_millis(300));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begin = Instant::now();
    if is_killed {
        worlds[lost].kill();
    } else {
        process::signal("-STOP", worlds[lost].service().id());
    }
    // From this time on, no message that the lost node had in flight can arrive.
    let resumed = begin + Duration::from_secs(1);
    eventually("a message to every destination", async || {
        let arrivals = arrivals.lock().unwrap();
        let is_resumed = |at: &Vec<Instant>| at.last().is_some_and(|at| *at > resumed);
        arrivals.at.values().all(is_resumed).then_some(())
    })
    .await;
    let gaps = arrivals.lock().unwrap().gaps(begin, Instant::now());
    let steady = gaps.iter().filter(|it| **it <= STEADY_MAX);
    let (unaffected, longest) = (steady.clone().count(), gaps.iter().max().unwrap());
    eprintln!(
        "{} {}: {} of {DESTINATIONS} destinations paused, for {longest:.1?} at the longest; \
         the others for {:.1?}",
        if is_killed { "killed" } else { "stopped" },
        ["one", "two", "three"][lost],
        DESTINATIONS - unaffected,
        steady.max().unwrap_or(&Duration::ZERO),
    );
    if is_measured() {
        assert!(*longest <= PAUSE_MAX, "{gaps:?}");
        assert!(
            (DESTINATIONS / 3..DESTINATIONS).contains(&unaffected),
            "{gaps:?}"
        );
    }
    if is_killed {
        worlds[lost].start_again();
    } else {
        process::signal("-CONT", worlds[lost].service().id());
    }
    all_own(worlds).await;
    sending.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn node_loss_delays_only_its_own_destinations() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let (receiver, arrivals) = noting(Duration::ZERO).await;
    routes(&worlds[0].rest(), &receiver).await;
    let (numbers, mut answered) = (Arc::default(), BTreeSet::new());
    for round in 0..rounds(3) {
        let lost = (round % 3, round % 2 == 0);
        answered.extend(lose(&mut worlds, lost, &numbers, &arrivals).await);
        assert_each_reported_in_order(&arrivals, &answered).await;
    }
    let messages = arrivals.lock().unwrap().messages.len();
    eprintln!(
        "{} openings and endings answered, none lost; {messages} messages",
        answered.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_order_hold_during_ownership_changes() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = vec![database.world()];
    let (receiver, arrivals) = noting(Duration::from_millis(80)).await;
    routes(&worlds[0].rest(), &receiver).await;
    let sending = Sending::begin(&worlds, None, &Arc::default(), Duration::from_millis(300));
    // Nodes join and then leave.
    for name in ["two", "three"] {
        worlds.push(join(&database, &worlds[0], name));
        all_own(&worlds).await;
    }
    for _ in 0..2 {
        let begin = Instant::now();
        assert!(worlds[2].terminate().success());
        all_own(&worlds[..2]).await;
        let took = begin.elapsed();
        eprintln!("stopped: others own everything after {took:?}");
        assert!(took <= STOPPED_WITHIN, "{took:?}");
        worlds[2].start_again();
        all_own(&worlds).await;
    }
    let answered = sending.end().await;
    assert_each_reported_in_order(&arrivals, &answered).await;
    // No node was interrupted, so no message was sent twice.
    assert_eq!(receiver.count(), answered.len());
    assert!(arrivals.lock().unwrap().in_flight <= IN_FLIGHT);
    for world in &worlds {
        assert!(attempts(world).await > 0);
    }
}
