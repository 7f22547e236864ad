//! Tests of budgets: single messages, the content of digests, and exactly-once reporting.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::world::{MINUTE, SECOND, START_MS, World, set, switch};
use crate::{
    clock::Clock as _,
    domain::{
        Budget, BudgetWindow, Content, Delivery, DeliverySettings, DeliveryState, Destination,
        EventId, RecordId, Severity, Status,
    },
    message::sample,
    ops::delivery::Deliveries,
    samples,
    sending::receiver::{ReceivedRequest, Receiver, Reply},
    store::{Lane, Stored},
};

/// Ten per ten minutes.
const SETTINGS: DeliverySettings = DeliverySettings {
    timeout: None,
    max_in_flight: None,
    max_per_minute: None,
    max_attempts: None,
    budget: Some(Budget {
        messages: 10,
        per: Duration::from_secs(600),
        critical_share: 20,
    }),
};

fn content(number: usize, severity: Severity, clear: bool, to: &Destination) -> Content {
    let mut occurrence = sample::sample_occurrence(START_MS);
    let host = format!("host-{number}");
    occurrence.dimensions = BTreeMap::from([("host".to_owned(), host)]);
    occurrence.event = EventId::derive("disk-full", &occurrence.dimensions);
    occurrence.key = RecordId::from_parts(number as u64 + 1, 9);
    occurrence.severity = severity;
    occurrence.summary = format!("event {number}");
    if clear {
        occurrence.status = Status::Closed;
    }
    Content {
        clear,
        ..sample::sample_content(occurrence, to.kind.clone(), String::new())
    }
}

/// Decides one message per event, all in one commit.
async fn decide(
    world: &mut World,
    to: &Destination,
    numbers: impl Iterator<Item = usize>,
    severity: Severity,
    clear: bool,
) -> Vec<RecordId> {
    let mut ids = Vec::new();
    let mut changes = world.store.new_changes();
    for number in numbers {
        let id = world.id();
        let content = content(number, severity, clear, to);
        changes.insert(&Delivery {
            event: Some(content.occurrence.event),
            state: DeliveryState::Pending {
                due_ms: world.clock.now_ms(),
            },
            ..Delivery::new(
                id,
                (to.id, to.name.to_string()),
                content,
                world.clock.now_ms(),
            )
        });
        ids.push(id);
    }
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    ids
}

async fn world(reply: Reply) -> (World, Receiver, Destination) {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (receiver, _) = switch(reply).await;
    let to = world.destination("hook", receiver.url("/"), SETTINGS).await;
    world.start();
    (world, receiver, to)
}

/// Returns the messages of a receiver: summaries of single messages, and digests.
fn received_messages(receiver: &Receiver) -> (Vec<String>, Vec<Value>) {
    let (mut singles, mut digests) = (Vec::new(), Vec::new());
    for body in receiver
        .received_requests()
        .iter()
        .map(ReceivedRequest::json)
    {
        if body["digest"].is_null() {
            singles.push(body["event"]["summary"].as_str().unwrap().to_owned());
        } else {
            digests.push(body["digest"].clone());
        }
    }
    (singles, digests)
}

async fn states(world: &World, ids: &[RecordId]) -> BTreeMap<u8, usize> {
    let mut states = BTreeMap::new();
    for id in ids {
        *states
            .entry(world.delivery(*id).await.state.number())
            .or_default() += 1;
    }
    states
}

const DELIVERED: u8 = DeliveryState::Delivered.number();
const DEAD: u8 = DeliveryState::Dead.number();
const FOLDED: u8 = DeliveryState::Folded.number();

#[tokio::test]
async fn messages_over_budget_are_folded_into_a_digest() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    let many = decide(&mut world, &to, 0..1_000, Severity::Error, false).await;
    world.live(MINUTE).await;
    let critical = decide(&mut world, &to, 1_000..1_005, Severity::Critical, false).await;
    world.live(MINUTE).await;
    let (singles, digests) = received_messages(&receiver);
    assert_eq!((singles.len(), digests.len()), (10, 0));
    assert_eq!(singles[8..], ["event 1000", "event 1001"]);
    assert_eq!(
        states(&world, &many).await,
        [(DELIVERED, 8), (FOLDED, 992)].into()
    );
    assert_eq!(
        states(&world, &critical).await,
        [(DELIVERED, 2), (FOLDED, 3)].into()
    );
    world.live(8 * MINUTE).await;
    let (singles, digests) = received_messages(&receiver);
    assert_eq!((singles.len(), digests.len()), (10, 1));
    let [digest] = &digests[..] else { panic!() };
    assert_eq!(
        (&digest["count"], &digest["new_count"]),
        (&995.into(), &995.into())
    );
    let rows = digest["rows"].as_array().unwrap();
    let sum: i64 = rows.iter().map(|it| it["count"].as_i64().unwrap()).sum();
    assert_eq!(sum, 995);
    assert_eq!(rows[0]["severity"], "critical");
    let events = digest["events"].as_array().unwrap();
    assert_eq!(
        (events.len(), &digest["more_count"]),
        (20, &(995 - 20).into())
    );
    // The most severe first, then the oldest.
    assert_eq!(events[0]["summary"], "event 1002");
    assert_eq!(events[3]["summary"], "event 8");
    // The next window has a new budget.
    decide(&mut world, &to, 2_000..2_003, Severity::Info, false).await;
    world.settled().await;
    assert_eq!(received_messages(&receiver).0.len(), 13);
    world.stop().await;
}

#[tokio::test]
async fn single_message_over_budget_is_sent_at_window_end() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    decide(&mut world, &to, 0..8, Severity::Error, false).await;
    world.live(MINUTE).await;
    let ninth = decide(&mut world, &to, 8..9, Severity::Error, false).await;
    world.live(MINUTE).await;
    let (reason, next) = world.waiting(ninth[0]).await;
    assert!(
        reason.starts_with("over its destination's budget"),
        "{reason}"
    );
    assert_eq!(next, Some(600));
    world.live(8 * MINUTE).await;
    let (singles, digests) = received_messages(&receiver);
    assert_eq!((singles.len(), digests.len()), (9, 0));
    assert_eq!(states(&world, &ninth).await, [(DELIVERED, 1)].into());
    world.stop().await;
}

#[tokio::test]
async fn closing_joins_the_pending_digest_of_its_opening() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    decide(&mut world, &to, 0..50, Severity::Error, false).await;
    world.live(MINUTE).await;
    // Eight were sent one by one; their closings are over budget as well.
    decide(&mut world, &to, 0..30, Severity::Error, true).await;
    world.live(9 * MINUTE).await;
    let (singles, digests) = received_messages(&receiver);
    assert_eq!((singles.len(), digests.len()), (8, 1));
    assert_eq!(digests[0]["count"], 42 + 30);
    assert_eq!(digests[0]["clear_count"], 30);
    // Closings after the digest are sent one by one again.
    decide(&mut world, &to, 30..35, Severity::Error, true).await;
    world.settled().await;
    assert_eq!(received_messages(&receiver).0.len(), 8 + 5);
    world.stop().await;
}

#[tokio::test]
async fn closing_waits_for_a_digest_being_retried() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (receiver, reply) = switch(Reply::status(200)).await;
    let to = world.destination("hook", receiver.url("/"), SETTINGS).await;
    world.start();
    decide(&mut world, &to, 0..20, Severity::Error, false).await;
    world.live(MINUTE).await;
    set(&reply, 500);
    world.live(9 * MINUTE + SECOND).await;
    // The digest was tried once, and its retry is minutes away.
    let closings = decide(&mut world, &to, 10..12, Severity::Error, true).await;
    set(&reply, 200);
    world.live(SECOND).await;
    assert_eq!(states(&world, &closings).await.get(&DELIVERED), None);
    world.live(10 * MINUTE).await;
    let received = receiver.received_requests();
    let bodies: Vec<_> = received.iter().map(ReceivedRequest::json).collect();
    let is_digest = |it: &Value| !it["digest"].is_null();
    let last_digest = bodies.iter().rposition(is_digest).unwrap();
    let first_closing = bodies.iter().position(|it| it["clear"] == true).unwrap();
    assert!(last_digest < first_closing, "{last_digest} {first_closing}");
    assert_eq!(states(&world, &closings).await, [(DELIVERED, 2)].into());
    world.stop().await;
}

#[tokio::test]
async fn folded_deliveries_die_and_are_resent_with_their_digest() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    let ids = decide(&mut world, &to, 0..600, Severity::Error, false).await;
    world.live(MINUTE).await;
    // The remaining deliveries are found in the store after a crash.
    world.kill();
    let folded = ids[599];
    let digest = world.delivery(folded).await.folding.digest_id().unwrap();
    let key = digest.to_bytes().to_vec();
    let stored: Stored<Delivery> = world.store.get(key).await.unwrap().unwrap();
    let key = to.id.to_bytes().to_vec();
    let window: Stored<BudgetWindow> = world.store.get(key.clone()).await.unwrap().unwrap();
    let mut changes = world.store.new_changes();
    changes.update(
        &stored,
        &Delivery {
            state: DeliveryState::Dead,
            last_error: "answered 500".into(),
            ..stored.value.clone()
        },
    );
    let dead = vec![digest];
    changes.update(
        &window,
        &BudgetWindow {
            dead,
            ..window.value.clone()
        },
    );
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.start();
    world.live(SECOND).await;
    assert_eq!(
        states(&world, &ids).await,
        [(DELIVERED, 8), (DEAD, 592)].into()
    );
    let window: Stored<BudgetWindow> = world.store.get(key).await.unwrap().unwrap();
    assert!(window.value.dead.is_empty(), "{:?}", window.value);
    let dead = world.delivery(folded).await;
    assert!(
        dead.last_error.contains("answered 500"),
        "{}",
        dead.last_error
    );
    let deliveries = Deliveries::new(world.store.clone(), world.clock.clone());
    let again = deliveries.retry(folded).await.unwrap();
    assert_eq!(again.retry_of, Some(digest));
    world.settled().await;
    let (_, digests) = received_messages(&receiver);
    assert_eq!(digests[0]["count"], 592);
    world.stop().await;
}

#[tokio::test]
async fn rejected_digest_kills_its_folded_deliveries() {
    let mut world = World::new();
    let (receiver, reply) = switch(Reply::status(200)).await;
    let to = world.destination("hook", receiver.url("/"), SETTINGS).await;
    world.start();
    let ids = decide(&mut world, &to, 0..20, Severity::Error, false).await;
    world.live(MINUTE).await;
    set(&reply, 400);
    world.live(10 * MINUTE).await;
    assert_eq!(
        states(&world, &ids).await,
        [(DELIVERED, 8), (DEAD, 12)].into()
    );
    world.stop().await;
}

#[tokio::test]
async fn recovered_receiver_gets_every_message_once() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (receiver, reply) = switch(Reply::status(503)).await;
    let to = world.destination("hook", receiver.url("/"), SETTINGS).await;
    world.start();
    let mut ids = Vec::new();
    for round in 0..6 {
        let numbers = round * 20..(round + 1) * 20;
        ids.extend(decide(&mut world, &to, numbers, Severity::Error, false).await);
        world.live(10 * MINUTE).await;
    }
    set(&reply, 200);
    let failed = receiver.count();
    world.live(Duration::from_secs(6 * 3_600)).await;
    let states = states(&world, &ids).await;
    let (one_by_one, in_digests) = (states[&DELIVERED], states[&FOLDED]);
    assert_eq!(one_by_one + in_digests, 120, "{states:?}");
    let bodies: Vec<_> = receiver.received_requests()[failed..]
        .iter()
        .map(ReceivedRequest::json)
        .collect();
    let counts = bodies
        .iter()
        .filter_map(|it| it["digest"]["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), in_digests as u64);
    world.stop().await;
}

#[tokio::test]
async fn kills_neither_lose_deliveries_nor_fold_them_twice() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    let mut ids = Vec::new();
    for round in 0..40_usize {
        let numbers = round * 5..(round + 1) * 5;
        ids.extend(decide(&mut world, &to, numbers, Severity::Error, false).await);
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        world.kill();
        world.clock.advance(Duration::from_secs(47));
        world.start();
    }
    world.live(Duration::from_secs(3_600)).await;
    let states = states(&world, &ids).await;
    assert_eq!(states[&DELIVERED] + states[&FOLDED], 200, "{states:?}");
    let all = world.all().await;
    for digest in all.iter().filter(|it| it.content.digest.is_some()) {
        let content = digest.content.digest.as_ref().unwrap();
        let folded = all
            .iter()
            .filter(|it| it.folding.digest_id() == Some(digest.id));
        assert_eq!(folded.count(), content.count as usize);
        assert_eq!(digest.state, DeliveryState::Delivered);
    }
    let (_, digests) = received_messages(&receiver);
    assert!(digests.len() >= 3, "{}", digests.len());
    world.stop().await;
}

#[tokio::test]
async fn clock_steps_do_not_shift_digests() {
    for by_ms in [-3_600_000, 3_600_000] {
        let (mut world, receiver, to) = world(Reply::status(200)).await;
        decide(&mut world, &to, 0..20, Severity::Error, false).await;
        world.live(MINUTE).await;
        world.set_clock(by_ms).await;
        decide(&mut world, &to, 20..25, Severity::Error, false).await;
        world.live(8 * MINUTE).await;
        let (singles, digests) = received_messages(&receiver);
        assert_eq!((singles.len(), digests.len()), (8, 0), "by {by_ms}");
        world.live(MINUTE).await;
        let (singles, digests) = received_messages(&receiver);
        assert_eq!((singles.len(), digests.len()), (8, 1), "by {by_ms}");
        assert_eq!(digests[0]["count"], 17);
        world.stop().await;
    }
}

#[tokio::test]
async fn removed_budget_still_sends_its_pending_digest() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    decide(&mut world, &to, 0..20, Severity::Error, false).await;
    world.live(MINUTE).await;
    world.edit("hook", |it| it.delivery.budget = None).await;
    decide(&mut world, &to, 20..40, Severity::Error, false).await;
    world.live(MINUTE).await;
    assert_eq!(received_messages(&receiver).0.len(), 28);
    world.live(8 * MINUTE).await;
    assert_eq!(received_messages(&receiver).1[0]["count"], 12);
    world.stop().await;
}

#[tokio::test]
async fn unreadable_budget_window_holds_no_deliveries() {
    let (mut world, receiver, to) = world(Reply::status(200)).await;
    let ids = decide(&mut world, &to, 0..20, Severity::Error, false).await;
    world.live(MINUTE).await;
    world.kill();
    let digest = world.delivery(ids[19]).await.folding.digest_id().unwrap();
    samples::damage::<BudgetWindow>(&world.store, to.id.to_bytes().into()).await;
    world.start();
    decide(&mut world, &to, 20..40, Severity::Error, false).await;
    world.live(MINUTE).await;
    assert_eq!(received_messages(&receiver).0.len(), 28);
    world.set_clock(-60_000).await;
    world.live(9 * MINUTE).await;
    assert_eq!(received_messages(&receiver).1[0]["count"], 12);
    assert_eq!(world.delivery(digest).await.state, DeliveryState::Delivered);
    world.stop().await;
}
