//! Rules edited while all nodes evaluate events, and watches resumed at another node.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bellwether_proto::v1::{
    WatchEventsRequest, event_query_service_client::EventQueryServiceClient,
};
use bellwether_tests::{eventually::eventually, receiver::Receiver, world::World};
use tokio::{task::JoinSet, time::timeout};

use super::{put, three};
use crate::{journey, lives, postgres::Database, samples};

/// Default number of edits; `BELLWETHER_TEST_EDITS` overrides it.
const EDITS: usize = 60;
/// Time limit for changes to become visible, on a busy machine.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
const SENDERS: usize = 2;

fn edits() -> usize {
    let value = std::env::var_os("BELLWETHER_TEST_EDITS");
    let value = value.as_ref().and_then(|value| value.to_str());
    value.map_or(EDITS, |value| value.parse().unwrap())
}

/// The range of edits on which the decision about an event may be based.
#[derive(Debug, Clone, Copy)]
struct Span {
    answered_before: usize,
    begun_after: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_of_three_nodes_use_the_rule_in_force() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let rests: Vec<_> = worlds.iter().map(World::rest).collect();
    let receiver = Receiver::start().await;
    journey::set_up(&rests[0], &receiver).await;
    // A decision is based on the last edit that ended before the event was sent, or on a later edit
    // that began before the event was accepted.
    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let rule = |revision: usize| samples::rule("disks", "disk", "hook", &format!("{revision}"));
    let path = "/v1/notification/rules/disks";
    rests[0].put(path, &rule(0)).await.ok();
    let spans = Arc::new(Mutex::new(BTreeMap::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS * 3 {
        let rest = rests[sender % 3].clone();
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        let (spans, is_over) = (Arc::clone(&spans), Arc::clone(&is_over));
        senders.spawn(async move {
            for number in 0.. {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                let host = format!("{sender}-{number}");
                let answered_before = done.load(Ordering::Acquire);
                let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
                let body = samples::events(&[event]);
                rest.post("/v1/data-receiver/events", &body).await.ok();
                let begun_after = begun.load(Ordering::Acquire);
                let span = Span {
                    answered_before,
                    begun_after,
                };
                spans.lock().unwrap().insert(host, span);
            }
        });
    }
    for revision in 1..=edits() {
        begun.store(revision, Ordering::Release);
        rests[revision % 3].put(path, &rule(revision)).await.ok();
        done.store(revision, Ordering::Release);
    }
    is_over.store(true, Ordering::Release);
    senders.join_all().await;
    let spans = spans.lock().unwrap().clone();
    let received = eventually("notifications of every event", async || {
        let received = receiver.received();
        (received.len() >= spans.len()).then_some(received)
    })
    .await;
    assert_eq!(received.len(), spans.len());
    let mut by_an_edit_meanwhile = 0;
    for message in received {
        let message = message.json();
        let host = message["event"]["dimensions"]["host"].as_str().unwrap();
        let revision = message["rule"]["message"].as_str().unwrap();
        let revision: usize = revision.parse().unwrap();
        let span = spans[host];
        let in_force = span.answered_before..=span.begun_after;
        assert!(
            in_force.contains(&revision),
            "{host}: {revision}, not of {span:?}"
        );
        by_an_edit_meanwhile += usize::from(revision > span.answered_before);
    }
    eprintln!(
        "{} edits, {} decisions, {by_an_edit_meanwhile} of them by an edit that was under way",
        edits(),
        spans.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_resumes_on_another_node_without_a_gap() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let token = |world: &World| lives::first(world.grpc(), "");
    let mut before = token(&worlds[0]).await.resume_token;
    for round in 0..30 {
        let (at, next) = (&worlds[round % 3], &worlds[(round + 1) % 3]);
        let host = format!("h{round}");
        put(&at.rest(), "full", &host).await;
        // Resume with a token from before the event, and with one that the other node may not have
        // reached yet.
        let newest = token(at).await.resume_token;
        assert!(
            !lives::first(next.grpc(), &newest).await.gap,
            "round {round}"
        );
        assert!(goes_on_to(next, &before, &host).await, "round {round}");
        before = newest;
    }
}

/// Whether a watch that resumes from a token reports no gap and reaches the event about a host.
async fn goes_on_to(world: &World, token: &str, host: &str) -> bool {
    let request = WatchEventsRequest {
        query: None,
        resume_token: token.into(),
    };
    let mut client = EventQueryServiceClient::new(world.grpc());
    let mut news = client.watch_events(request).await.unwrap().into_inner();
    let mut has_come = false;
    while !has_come {
        let message = timeout(SEEN_WITHIN, news.message());
        let message = message.await.expect("it arrives").unwrap().unwrap();
        if message.gap {
            return false;
        }
        let mut events = message.events.iter();
        has_come = events.any(|it| format!("{:?}", it.dimensions).contains(&format!("\"{host}\"")));
    }
    true
}
